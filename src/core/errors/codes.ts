/**
 * Every error code that a client can see. The kind sets the HTTP status; the action says what to do (docs/errors.md).
 */

/** The cause of an error. */
export type ErrorKind = keyof typeof httpStatusOf

export const httpStatusOf = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  timed_out: 408,
  conflict: 409,
  outdated: 412,
  too_large: 413,
  too_many: 429,
  headers_too_large: 431,
  unsupported: 400,
  internal: 500,
  unavailable: 503,
  storage_full: 507,
} as const

export const errorCodes = {
  // requests
  ROUTE_UNKNOWN: { kind: 'not_found', action: 'Check the path; `/v1/openapi.json` lists every path.' },
  METHOD_NOT_ALLOWED: { kind: 'method_not_allowed', action: 'Use one of the methods in `Allow`.' },
  REQUEST_MALFORMED: { kind: 'invalid', action: 'Send valid HTTP/1.1.' },
  HEADERS_TOO_LARGE: { kind: 'headers_too_large', action: 'Shorten the query or the headers.' },
  REQUEST_TIMED_OUT: { kind: 'timed_out', action: 'Send the request again, faster.' },
  PATH_UNDECODABLE: { kind: 'invalid', action: 'Encode the path as UTF-8 with percent signs.' },
  BODY_MALFORMED: { kind: 'invalid', action: 'Send valid JSON in UTF-8.' },
  BODY_TOO_LARGE: { kind: 'too_large', action: 'Send less, or raise `api.max_body_bytes`.' },
  CONTENT_TYPE_UNSUPPORTED: { kind: 'unsupported', action: 'Send `Content-Type: application/json`.' },
  BODY_INVALID: { kind: 'invalid', action: 'Change the attribute that the message names.' },
  QUERY_INVALID: { kind: 'invalid', action: 'Change the query parameter that the message names.' },
  HEADER_INVALID: { kind: 'invalid', action: 'Change the header that the message names.' },
  LIMIT_ABOVE_MAXIMUM: { kind: 'forbidden', action: 'Ask for fewer records a page, or raise `api.max_page_size`.' },
  LIMIT_NEEDS_ADMIN: { kind: 'forbidden', action: 'Read page by page, or as an administrator.' },
  IDEMPOTENCY_KEY_REUSED: { kind: 'conflict', action: 'Choose a new key for a new request.' },
  IDEMPOTENCY_KEY_IN_USE: { kind: 'conflict', action: 'Send the request again after `Retry-After` seconds.' },
  IDEMPOTENCY_ANSWER_LOST: { kind: 'conflict', action: 'Read the object that `conflict-id` names.' },
  RESOURCE_NOT_FOUND: { kind: 'not_found', action: 'Check the id; the object may have been deleted.' },
  CONTENT_NOT_FOUND: { kind: 'not_found', action: 'Check the reference (`pack.name`) or the id.' },
  NAMED_NOT_FOUND: { kind: 'not_found', action: 'Check the name or the id.' },
  STARTING: { kind: 'unavailable', action: 'Try again after `Retry-After` seconds.' },
  SHUTTING_DOWN: { kind: 'unavailable', action: 'Try again after `Retry-After` seconds.' },
  QUEUE_FULL: { kind: 'unavailable', action: 'Try again after `Retry-After` seconds; send fewer requests at a time.' },
  INTERNAL: { kind: 'internal', action: 'Look for the request id (`X-Request-ID`) in the log of the server.' },
  ORIGIN_REFUSED: {
    kind: 'forbidden',
    action: 'Let proxies pass `Host` unchanged; add the origin of the page to `api.allow_origin`.',
  },
  FORWARDED_REFUSED: { kind: 'forbidden', action: 'Set `auth.enable = True`, then log in.' },
  // notifications
  NOTIFICATION_BUSY: { kind: 'conflict', action: 'Try again in a moment: it is being sent.' },
  // storage
  CONFLICT: { kind: 'conflict', action: 'Read the object again, then repeat the change.' },
  NAME_TAKEN: { kind: 'conflict', action: 'Choose another name, or change the object that `conflict-id` names.' },
  CONTENT_CHANGED: { kind: 'outdated', action: 'Read the object again, then repeat the change with its new `ETag`.' },
  STORAGE_FAILED: { kind: 'unavailable', action: 'Try again; if it fails again, read the log of the server.' },
  DATABASE_GONE: {
    kind: 'unavailable',
    action:
      'Run `svc doctor` on the server, or read its log: a file was deleted, moved or replaced, or lost its permissions.',
  },
  STORAGE_FULL: {
    kind: 'storage_full',
    action: 'Free space on the disk of the database; the server continues by itself.',
  },
  BACKUP_HAS_NO_ROOM: {
    kind: 'storage_full',
    action: 'Free space in the backup directory, or set `backup.directory` to another disk.',
  },
  BACKUP_FAILED: { kind: 'unavailable', action: 'Remove the reason that the message names, then try again.' },
  BACKUP_UNDER_WAY: { kind: 'conflict', action: 'Wait until the backup under way has ended.' },
  // content
  PARAMETERS_INVALID: { kind: 'invalid', action: 'Change the parameter that the message names.' },
  ACTION_UNKNOWN: { kind: 'invalid', action: 'Check the reference of the action; `svc action list` prints them.' },
  ENTRY_POINT_NOT_FOUND: { kind: 'not_found', action: 'Read an action that has a file of its own.' },
  ACTION_EXISTS: { kind: 'invalid', action: 'Choose another name, or send `overwrite: true`.' },
  ACTION_DISABLED: { kind: 'invalid', action: 'Enable the action, or run another one.' },
  TEMPLATE_FAILED: {
    kind: 'invalid',
    action: 'Correct the template, or the datastore keys that it reads. `{% raw %}…{% endraw %}` keeps text as it is.',
  },
  ALIAS_UNKNOWN: { kind: 'not_found', action: 'Check the name; `svc action-alias list` prints the aliases.' },
  ALIAS_AMBIGUOUS: { kind: 'invalid', action: 'Give the reference (`pack.name`) instead of the name.' },
  ALIAS_DISABLED: { kind: 'invalid', action: 'Enable the alias, or use another one.' },
  FORMAT_UNKNOWN: {
    kind: 'invalid',
    action: 'Use one of the formats of the alias; `svc action-alias get` prints them.',
  },
  COMMAND_UNMATCHED: {
    kind: 'invalid',
    action: 'Write the command as one of the formats says; `GET /v1/actionalias/help` lists them.',
  },
  COMMAND_AMBIGUOUS: { kind: 'invalid', action: 'Write more of the command, or change one of the formats that fit.' },
  POLICY_TYPE_UNKNOWN: { kind: 'invalid', action: 'Check the type of the policy; `GET /v1/policytypes` lists them.' },
  // workflows
  DEFINITION_UNREADABLE: { kind: 'invalid', action: 'Correct the workflow definition as the message says.' },
  NOT_A_WORKFLOW: {
    kind: 'not_found',
    action: 'Give an execution of an action whose runner is `orquesta` or `action-chain`.',
  },
  // packs
  PACK_NOT_ON_DISK: { kind: 'invalid', action: 'Put the pack into one of the pack folders, then register it.' },
  PACK_INVALID: {
    kind: 'invalid',
    action: 'Correct the files that `details.problems` lists, then register the pack again.',
  },
  CONFIG_NOT_FOUND: { kind: 'not_found', action: 'Check the reference of the pack; it may have no configuration.' },
  CONFIG_INVALID: { kind: 'invalid', action: 'Change the attribute that the message names.' },
  PACK_FILE_NOT_FOUND: { kind: 'not_found', action: 'Check the path within the pack.' },
  PACK_FILE_TOO_LARGE: { kind: 'invalid', action: 'Read the file on the server.' },
  PACK_PROTECTED: { kind: 'invalid', action: 'Copy the action into a pack of your own.' },
  PACK_FOLDER_MISSING: { kind: 'invalid', action: 'Create the folder and register the pack.' },
  DATA_FILE_INVALID: { kind: 'invalid', action: 'Change the path or the content of the file.' },
  PACK_FILE_DENIED: { kind: 'forbidden', action: "Permit the server's account to write in the folder of the pack." },
  PACK_FILE_FAILED: { kind: 'internal', action: 'Read the log of the server.' },
  PACK_SOURCE_UNUSABLE: {
    kind: 'invalid',
    action: 'Correct the source: an address of a repository or archive, a folder, or a name from an index.',
  },
  PACK_TOO_LARGE: { kind: 'invalid', action: 'Remove files from the pack.' },
  PACKS_FOLDER_UNUSABLE: {
    kind: 'unavailable',
    action: "Put the directory back, or permit the server's account to write there.",
  },
  PACK_RESERVED: { kind: 'invalid', action: 'Choose another pack.' },
  PACK_NOT_INSTALLED: { kind: 'invalid', action: 'Check the reference of the pack; `svc pack list` prints them.' },
  PACK_REFUSED: { kind: 'invalid', action: 'Remove the reason that the message names.' },
  SYSTEM_PACK_FIXED: { kind: 'invalid', action: 'Use a pack of your own.' },
  // events
  TRACE_UNKNOWN: { kind: 'invalid', action: 'Check the id of the trace, or send a trace tag.' },
  TRIGGER_TYPE_UNKNOWN: {
    kind: 'invalid',
    action: 'Check the reference of the trigger type; `svc trigger list` prints them.',
  },
  TRIGGER_TYPE_FIXED: { kind: 'invalid', action: 'Use a pack of your own.' },
  TRIGGER_IN_USE: { kind: 'conflict', action: 'Delete the rules that the message names first.' },
  TRIGGER_GONE: { kind: 'conflict', action: 'Create the trigger again, then re-send the instance.' },
  CRITERIA_INVALID: {
    kind: 'invalid',
    action: 'Correct the criterion that the message names; `svc rule operators` prints the operators.',
  },
  PERMISSION_DENIED: { kind: 'forbidden', action: 'Ask an administrator for the permission in `details`.' },
  TIMER_TYPE_UNKNOWN: { kind: 'invalid', action: 'Use one of the types that the message lists.' },
  WEBHOOK_NOT_REGISTERED: {
    kind: 'not_found',
    action: 'Create a rule or a trigger with this URL; `svc webhook list` prints them.',
  },
  SIGNATURE_MISSING: { kind: 'unauthenticated', action: 'Sign the request.' },
  SIGNATURE_MALFORMED: { kind: 'unauthenticated', action: 'Correct what the message names.' },
  SIGNATURE_EXPIRED: { kind: 'unauthenticated', action: 'Set the clock of the sender, and send without delay.' },
  SIGNATURE_INVALID: {
    kind: 'unauthenticated',
    action: 'Sign the very bytes of the body with the secret of the webhook.',
  },
  SIGNATURE_UNCHECKABLE: { kind: 'unavailable', action: 'Send again later; the operator reads the log of the server.' },
  SUBSCRIPTION_UNCONFIRMED: {
    kind: 'unavailable',
    action: 'Send again later; let the server reach Amazon SNS over HTTPS.',
  },
  // executions
  NO_EXECUTIONS: { kind: 'invalid', action: 'Run an action first.' },
  TRANSITION_REFUSED: { kind: 'conflict', action: 'Read the execution; its status does not permit this change.' },
  EXECUTION_UPDATE_REFUSED: { kind: 'invalid', action: 'Change only what the message permits.' },
  NOT_AN_INQUIRY: { kind: 'invalid', action: 'Check the id; `svc inquiry list` prints pending inquiries.' },
  INQUIRY_TIMED_OUT: { kind: 'invalid', action: 'Run the action again.' },
  INQUIRY_ANSWERED: { kind: 'invalid', action: 'Read the execution for its response.' },
  INQUIRY_CANCELED: {
    kind: 'invalid',
    action: 'Read the execution of its workflow; re-run that from the task that asks.',
  },
  INQUIRY_NOT_PENDING: { kind: 'invalid', action: 'Wait until the inquiry is pending.' },
  INQUIRY_RESPONSE_INVALID: { kind: 'invalid', action: 'Send a response that fits the schema of the inquiry.' },
  // authentication
  CREDENTIALS_MISSING: {
    kind: 'unauthenticated',
    action: 'Send a token in `X-Auth-Token` or an API key in `Svc-Api-Key`.',
  },
  TWO_CREDENTIALS: { kind: 'unauthenticated', action: 'Send only one of token and API key.' },
  TOKEN_INVALID: { kind: 'unauthenticated', action: 'Log in again.' },
  TOKEN_EXPIRED: { kind: 'unauthenticated', action: 'Log in again.' },
  TOKEN_USER_DISABLED: { kind: 'unauthenticated', action: 'Ask an administrator to enable the user.' },
  USER_CHANGED: { kind: 'unauthenticated', action: 'Reload the page.' },
  API_KEY_UNKNOWN: { kind: 'unauthenticated', action: 'Check the API key; it may have been deleted.' },
  API_KEY_DISABLED: { kind: 'unauthenticated', action: 'Enable the API key, or use another one.' },
  API_KEY_EXPIRED: { kind: 'unauthenticated', action: 'Create a new API key.' },
  API_KEY_USER_DISABLED: { kind: 'unauthenticated', action: 'Ask an administrator to enable the user.' },
  API_KEY_NOT_FOUND: { kind: 'not_found', action: 'Check the id; `svc apikey list` prints them.' },
  LOGIN_REFUSED: {
    kind: 'unauthenticated',
    action: 'Check user name and password; the audit log of the server has the reason.',
  },
  TTL_TOO_LONG: { kind: 'invalid', action: 'Ask for a shorter lifetime, at most `details.max_ttl` seconds.' },
  IMPERSONATION_REFUSED: {
    kind: 'invalid',
    action: 'Leave out `user` and `impersonate_user`, or log in as a service user.',
  },
  USER_NOT_LOCATED: { kind: 'invalid', action: 'Check the user name or the nickname.' },
  NICKNAME_ORIGIN_MISSING: { kind: 'invalid', action: 'Send `nickname_origin`.' },
  NICKNAME_AMBIGUOUS: { kind: 'invalid', action: 'Remove the nickname from all users but one.' },
  PASSWORDS_KEPT_ELSEWHERE: { kind: 'invalid', action: 'Change the password in the system that keeps it.' },
  CURRENT_PASSWORD_WRONG: { kind: 'forbidden', action: 'Send the present password of the user.' },
  TOKEN_NOT_PROVIDED: { kind: 'invalid', action: 'Send the token as `token` in the body.' },
  TOKEN_UNKNOWN: { kind: 'not_found', action: 'Nothing: the token is not valid any more.' },
  TOKEN_NOT_USED: { kind: 'invalid', action: 'Disable or delete the API key instead.' },
  TLS_REQUIRED: { kind: 'forbidden', action: 'Use the `https://` address of the server.' },
  SSO_OFF: { kind: 'not_found', action: 'Log in with a user name and a password.' },
  AUTHENTICATION_OFF: { kind: 'not_found', action: 'Send requests without a token, or set `auth.enable`.' },
  TOO_MANY_FAILURES: {
    kind: 'too_many',
    action: 'Wait the seconds in `Retry-After`, then log in with the right password.',
  },
  // permissions
  ACCESS_CONTROL_OFF: { kind: 'invalid', action: 'Set `rbac.enable`, then restart the server.' },
  DEFINITIONS_INVALID: {
    kind: 'invalid',
    action: 'Correct the files that `details.problems` lists, then apply again.',
  },
  RESOURCE_TYPE_UNKNOWN: { kind: 'not_found', action: 'Check the type; `GET /v1/rbac/permission_types` lists them.' },
  // datastore
  KEY_NOT_FOUND: { kind: 'not_found', action: 'Check name, scope and user of the key.' },
  KEY_SCOPE_UNKNOWN: { kind: 'invalid', action: 'Use one of the scopes that the message lists.' },
  CRYPTO_KEY_MISSING: { kind: 'invalid', action: 'Create the key file, then restart the server.' },
  CIPHER_TEXT_INVALID: {
    kind: 'invalid',
    action: 'Restore the encryption key that the value was encrypted with, or set the value again.',
  },
} as const satisfies Record<string, { kind: ErrorKind; action: string }>

export type ErrorCode = keyof typeof errorCodes
