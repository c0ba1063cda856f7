/**
 * Every error a client can see, one factory per code, grouped by module.
 *
 * To add one: write a factory here. `kind` says whose fault it is and decides HTTP status, CLI exit code and log level,
 * one table each; nobody chooses a status by hand.
 */
import { shown } from '../lib/text/index.ts'

/** Whose fault it is. */
export type ErrorKind =
  | 'invalid'
  | 'unauthenticated'
  | 'forbidden'
  | 'not_found'
  | 'method_not_allowed'
  | 'timed_out'
  | 'conflict'
  | 'outdated'
  | 'too_large'
  | 'too_many'
  | 'headers_too_large'
  | 'unsupported'
  | 'unavailable'
  | 'storage_full'
  | 'internal'

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
  unavailable: 503,
  storage_full: 507,
  internal: 500,
} as const satisfies Record<ErrorKind, number>

/**
 * An error with a stable `code`, a message a stranger can act on, and a private cause.
 *
 * The message never holds a stack, a path of the server, a query or a secret: it is sent to the client as `faultstring`.
 */
export class AppError extends Error {
  readonly kind: ErrorKind
  readonly code: string
  readonly details: Record<string, unknown> | undefined

  constructor(
    kind: ErrorKind,
    code: string,
    message: string,
    more: { details?: Record<string, unknown>; cause?: unknown } = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause })
    this.name = 'AppError'
    this.kind = kind
    this.code = code
    this.details = more.details
  }
}

export function isAppError(error: unknown): error is AppError {
  return error instanceof AppError
}

// Requests

export const routeUnknown = (): AppError =>
  new AppError('not_found', 'ROUTE_UNKNOWN', 'The resource could not be found.')

export const methodNotAllowed = (method: string, allowed: readonly string[]): AppError =>
  new AppError(
    'method_not_allowed',
    'METHOD_NOT_ALLOWED',
    `Method ${shown(method)} is not available here; use ${allowed.join(', ')}.`,
    { details: { allowed } },
  )

export const requestMalformed = (why: string): AppError =>
  new AppError('invalid', 'REQUEST_MALFORMED', `The request is not valid HTTP: ${shown(why)}`)

export const headersTooLarge = (maxBytes: number): AppError =>
  new AppError(
    'headers_too_large',
    'HEADERS_TOO_LARGE',
    `The address and the headers of a request may together have ${maxBytes} bytes; shorten the query or the headers.`,
    { details: { max_bytes: maxBytes } },
  )

export const requestTimedOut = (): AppError =>
  new AppError('timed_out', 'REQUEST_TIMED_OUT', 'The request took too long to arrive; send it again.')

export const pathUndecodable = (path: string): AppError =>
  new AppError(
    'invalid',
    'PATH_UNDECODABLE',
    `Failed to parse request path "${shown(path)}": it is not valid percent-encoded UTF-8.`,
  )

export const bodyMalformed = (why: string): AppError =>
  new AppError('invalid', 'BODY_MALFORMED', `Failed to parse request body: ${why}`)

export const bodyTooLarge = (maxBytes: number): AppError =>
  new AppError('too_large', 'BODY_TOO_LARGE', `The request body is larger than ${maxBytes} bytes.`, {
    details: { max_bytes: maxBytes },
  })

export const contentTypeUnsupported = (type: string): AppError =>
  new AppError(
    'unsupported',
    'CONTENT_TYPE_UNSUPPORTED',
    `Failed to parse request body: Unsupported Content-Type: "${shown(type)}". Send application/json.`,
  )

export const bodyInvalid = (message: string, details?: Record<string, unknown>): AppError =>
  new AppError('invalid', 'BODY_INVALID', message, details === undefined ? {} : { details })

export const queryInvalid = (message: string): AppError => new AppError('invalid', 'QUERY_INVALID', message)

export const headerInvalid = (message: string): AppError => new AppError('invalid', 'HEADER_INVALID', message)

export const limitAboveMaximum = (limit: number, maximum: number): AppError =>
  new AppError('forbidden', 'LIMIT_ABOVE_MAXIMUM', `Limit "${limit}" specified, maximum value is "${maximum}"`)

export const limitNeedsAdmin = (): AppError =>
  new AppError(
    'forbidden',
    'LIMIT_NEEDS_ADMIN',
    'Administrator access is required to retrieve all records with limit=-1.',
  )

export const resourceNotFound = (id: string): AppError =>
  new AppError('not_found', 'RESOURCE_NOT_FOUND', `Unable to identify resource with id "${shown(id)}".`)

export const contentNotFound = (refOrId: string): AppError =>
  new AppError('not_found', 'CONTENT_NOT_FOUND', `Resource with a reference or id "${shown(refOrId)}" not found`)

export const namedNotFound = (nameOrId: string): AppError =>
  new AppError('not_found', 'NAMED_NOT_FOUND', `Resource with a name or id "${shown(nameOrId)}" not found`)

export const starting = (): AppError =>
  new AppError('unavailable', 'STARTING', 'The server is starting; try again in a moment.')

export const shuttingDown = (): AppError =>
  new AppError('unavailable', 'SHUTTING_DOWN', 'The server is shutting down; try again in a moment.')

export const queueFull = (what: string, limit: number): AppError =>
  new AppError('unavailable', 'QUEUE_FULL', `Too many ${what} are waiting (limit ${limit}); try again later.`)

export const internal = (cause: unknown): AppError =>
  new AppError('internal', 'INTERNAL', 'Internal Server Error', { cause })

// Database

/** A step of a unit did not change the number of rows it expected: somebody else was faster. */
export const conflict = (what: string): AppError =>
  new AppError('conflict', 'CONFLICT', `${what} was changed by someone else at the same time; read it again.`)

export const nameTaken = (what: string, existingId: string): AppError =>
  new AppError('conflict', 'NAME_TAKEN', `${what} exists already.`, { details: { 'conflict-id': existingId } })

/** @param who has changed it last */
export const contentChanged = (what: string, who: string): AppError =>
  new AppError(
    'outdated',
    'CONTENT_CHANGED',
    `${what} has been changed by "${shown(who)}" since it was read; read it again before you change it.`,
  )

// Actions

export const parametersInvalid = (message: string, details?: Record<string, unknown>): AppError =>
  new AppError('invalid', 'PARAMETERS_INVALID', message, details === undefined ? {} : { details })

export const actionUnknown = (ref: string): AppError =>
  new AppError('invalid', 'ACTION_UNKNOWN', `Action "${shown(ref)}" cannot be found.`)

export const entryPointNotFound = (ref: string, why: string): AppError =>
  new AppError('not_found', 'ENTRY_POINT_NOT_FOUND', `Action "${shown(ref)}" has no entry point to show: ${why}`)

export const actionDisabled = (ref: string): AppError =>
  new AppError('invalid', 'ACTION_DISABLED', `Unable to execute. Action "${shown(ref)}" is disabled.`)

export const templateFailed = (parameter: string, why: string): AppError =>
  new AppError('invalid', 'TEMPLATE_FAILED', `Failed to render parameter "${shown(parameter)}": ${why}`)

// Packs

export const packNotOnDisk = (name: string): AppError =>
  new AppError(
    'invalid',
    'PACK_NOT_ON_DISK',
    `Pack "${shown(name)}" not found on disk: give its reference, or the path of a folder that lies directly in one of the folders of packs (content.system_packs_base_path, content.packs_base_paths).`,
    { details: { pack: shown(name) } },
  )

/** @param problems in words; what could be used is registered all the same */
export const packInvalid = (message: string, problems: readonly Record<string, unknown>[]): AppError =>
  new AppError('invalid', 'PACK_INVALID', message, { details: { problems } })

/** Of its configuration, or the schema of that. */
export const configNotFound = (pack: string): AppError =>
  new AppError('not_found', 'CONFIG_NOT_FOUND', `Unable to identify resource with pack_ref "${shown(pack)}".`)

/** @param message names the attribute */
export const configInvalid = (message: string): AppError => new AppError('invalid', 'CONFIG_INVALID', message)

/** The folder of the configurations cannot be written. */
export const configNotWritten = (pack: string, cause: unknown): AppError =>
  new AppError(
    'unavailable',
    'STORAGE_FAILED',
    `The configuration of pack "${shown(pack)}" cannot be written at the moment; nothing was changed. The log of the server says why.`,
    { cause },
  )

/** @param key path in the configuration @param value the template, secrets masked */
export const configTemplateFailed = (pack: string, key: string, value: string, why: string): AppError =>
  new AppError(
    'invalid',
    'TEMPLATE_FAILED',
    `Failed to render dynamic configuration value for key "${shown(key)}" with value "${shown(value)}" for pack "${shown(pack)}" config: ${why}`,
  )

export const packFileNotFound = (path: string): AppError =>
  new AppError('not_found', 'PACK_FILE_NOT_FOUND', `File "${shown(path)}" not found`)

export const packFileTooLarge = (path: string, maxBytes: number): AppError =>
  new AppError(
    'invalid',
    'PACK_FILE_TOO_LARGE',
    `File ${shown(path)} exceeds maximum allowed file size (${maxBytes} bytes)`,
    { details: { max_bytes: maxBytes } },
  )

/** Of the pack that comes with the program. */
export const packProtected = (): AppError =>
  new AppError(
    'invalid',
    'PACK_PROTECTED',
    "Resources belonging to system level packs can't be manipulated; make a copy in a pack of your own.",
  )

export const packFolderMissing = (pack: string): AppError =>
  new AppError(
    'invalid',
    'PACK_FOLDER_MISSING',
    `Content pack "${shown(pack)}" is not found or doesn't contain actions directory. Make the folder and register the pack first.`,
  )

/** @param path of a file that a request writes or removes, as it gives it or relative to the pack */
export const dataFileInvalid = (path: string, why: string): AppError =>
  new AppError('invalid', 'DATA_FILE_INVALID', `The file "${shown(path)}" cannot be used: ${why}.`)

/** @param path relative to the pack */
export const packFileDenied = (verb: 'write' | 'delete', path: string, cause: unknown): AppError =>
  new AppError(
    'forbidden',
    'PACK_FILE_DENIED',
    verb === 'delete'
      ? `No permission to delete "${shown(path)}" file from disk. The action stays; let the server's account delete the file.`
      : `No permission to write "${shown(path)}" file to disk. Nothing was changed; let the server's account write there.`,
    { cause },
  )

/** @param path relative to the pack */
export const packFileFailed = (verb: 'write' | 'delete', path: string, cause: unknown): AppError =>
  new AppError(
    'internal',
    'PACK_FILE_FAILED',
    `The server could not ${verb} the file "${shown(path)}"; nothing was changed. Its log says why.`,
    { cause },
  )

// Installing packs

/** @param source as it was given; a password in it is not repeated */
export const packSourceUnusable = (source: string, why: string): AppError =>
  new AppError(
    'invalid',
    'PACK_SOURCE_UNUSABLE',
    `No pack can be installed from "${shown(source.replace(/(\/\/[^/@:]*):[^/@]*@/g, '$1@'))}": ${why.replace(/\.$/, '')}.`,
  )

export const packTooLarge = (maxFiles: number, maxBytes: number): AppError =>
  new AppError(
    'invalid',
    'PACK_TOO_LARGE',
    `The pack is larger than a pack may be: ${maxFiles} files, ${maxBytes} bytes, folders 40 deep.`,
  )

export const packReserved = (ref: string): AppError =>
  new AppError(
    'invalid',
    'PACK_RESERVED',
    `The pack "${shown(ref)}" belongs to the program; it is neither installed nor removed.`,
  )

export const packNotInstalled = (ref: string): AppError =>
  new AppError(
    'invalid',
    'PACK_NOT_INSTALLED',
    `There is no pack "${shown(ref)}"; svc pack list shows those there are.`,
  )

export const packRefused = (ref: string, why: string): AppError =>
  new AppError('invalid', 'PACK_REFUSED', `The pack "${shown(ref)}" is left as it was: ${why.replace(/\.$/, '')}.`)

// Traces

export const traceUnknown = (id: string): AppError =>
  new AppError('invalid', 'TRACE_UNKNOWN', `Unable to find Trace with id="${shown(id)}"`)

// Triggers

export const triggerTypeUnknown = (ref: string): AppError =>
  new AppError('invalid', 'TRIGGER_TYPE_UNKNOWN', `Trigger type "${shown(ref)}" does not exist.`)

/** Comes with the program. */
export const triggerTypeFixed = (ref: string): AppError =>
  new AppError(
    'invalid',
    'TRIGGER_TYPE_FIXED',
    `Trigger type "${shown(ref)}" belongs to the pack "core", whose types cannot be made, changed or deleted; use another pack.`,
  )

export const triggerInUse = (message: string): AppError => new AppError('conflict', 'TRIGGER_IN_USE', message)

/** The trigger of a stored instance, for dispatching it again. */
export const triggerGone = (ref: string): AppError =>
  new AppError(
    'conflict',
    'TRIGGER_GONE',
    `Trigger "${shown(ref)}" of the trigger instance does not exist any more, so it cannot be re-sent.`,
  )

// Executions

export const noExecutions = (): AppError =>
  new AppError('invalid', 'NO_EXECUTIONS', 'No executions found in the database')

export const transitionRefused = (message: string): AppError => new AppError('conflict', 'TRANSITION_REFUSED', message)

export const executionUpdateRefused = (message: string): AppError =>
  new AppError('invalid', 'EXECUTION_UPDATE_REFUSED', message)

// Inquiries (contract 08, 8.15)

export const notAnInquiry = (id: string): AppError =>
  new AppError('invalid', 'NOT_AN_INQUIRY', `Action execution "${id}" is not an inquiry.`)

export const inquiryTimedOut = (id: string): AppError =>
  new AppError('invalid', 'INQUIRY_TIMED_OUT', `Inquiry "${id}" timed out and cannot be responded to.`)

export const inquiryAnswered = (id: string): AppError =>
  new AppError('invalid', 'INQUIRY_ANSWERED', `Inquiry "${id}" has already been responded to.`)

/** It has not asked yet, or has ended otherwise. */
export const inquiryNotPending = (id: string, status: string): AppError =>
  new AppError(
    'invalid',
    'INQUIRY_NOT_PENDING',
    `Inquiry "${id}" is ${status} and cannot be responded to; only one that is pending can.`,
  )

export const inquiryResponseInvalid = (id: string, problem: string): AppError =>
  new AppError(
    'invalid',
    'INQUIRY_RESPONSE_INVALID',
    `Response for inquiry "${id}" did not pass schema validation. ${problem}`,
  )

export const inquiryDenied = (user: string, id: string): AppError =>
  new AppError(
    'forbidden',
    'PERMISSION_DENIED',
    `User "${shown(user)}" does not have permission to respond to inquiry "${id}".`,
    { details: { permission: 'inquiry_respond', resource: `inquiry:${id}` } },
  )

// Rules

export const criteriaInvalid = (message: string): AppError => new AppError('invalid', 'CRITERIA_INVALID', message)

export const ruleActionDenied = (user: string, ref: string): AppError =>
  new AppError(
    'forbidden',
    'PERMISSION_DENIED',
    `User "${shown(user)}" doesn't have required (action_execute) permission to use action ${shown(ref)}`,
    { details: { permission: 'action_execute', action: shown(ref) } },
  )

/** @param hook the address of the webhook, without slashes around it */
export const ruleWebhookDenied = (user: string, type: string, hook: string): AppError =>
  new AppError(
    'forbidden',
    'PERMISSION_DENIED',
    `User "${shown(user)}" doesn't have required permission (webhook_create) to use trigger ${type} with the url "${shown(hook)}"`,
    { details: { permission: 'webhook_create', resource: shown(`webhook:${hook}`) } },
  )

// Policies

export const policyTypeUnknown = (message: string): AppError => new AppError('invalid', 'POLICY_TYPE_UNKNOWN', message)

// Packs

/** Comes with the program. @param kind such as `Policy` */
export const systemPackFixed = (kind: string, ref: string): AppError =>
  new AppError(
    'invalid',
    'SYSTEM_PACK_FIXED',
    `${kind} "${shown(ref)}" belongs to the pack "core", whose content cannot be made, changed or deleted; use another pack.`,
  )

// Storage

/** Unreadable, read-only or locked: nothing of the request was kept. */
export const storageFailed = (cause: unknown): AppError =>
  new AppError('unavailable', 'STORAGE_FAILED', 'The database cannot be written at the moment; nothing was stored.', {
    cause,
  })

/** No room, or less than `database.reserve_bytes` before anything is written. */
export const storageFull = (cause?: unknown): AppError =>
  new AppError(
    'storage_full',
    'STORAGE_FULL',
    'The disk of the database has no room for this; nothing was stored. Try again when there is room: the server goes on by itself.',
    cause === undefined ? {} : { cause },
  )

export const backupHasNoRoom = (cause?: unknown): AppError =>
  new AppError(
    'storage_full',
    'BACKUP_HAS_NO_ROOM',
    'The disk of the backup directory has no room for a backup: it has the size of the database, and on the same disk database.reserve_bytes have to be left. Make room there, or set backup.directory to another disk.',
    cause === undefined ? {} : { cause },
  )

export const backupFailed = (why: string, cause?: unknown): AppError =>
  new AppError(
    'unavailable',
    'BACKUP_FAILED',
    `The backup could not be made, and nothing of it was kept: ${why}`,
    cause === undefined ? {} : { cause },
  )

export const backupUnderWay = (): AppError =>
  new AppError('conflict', 'BACKUP_UNDER_WAY', 'A backup is being made already; ask again when it has ended.')

/** Whether the same can be stored later. */
export function isStorageFailure(error: unknown): boolean {
  return isAppError(error) && (error.code === 'STORAGE_FAILED' || error.code === 'STORAGE_FULL')
}

/** The same of the accounts that a backend keeps in a file. */
export const accountsFailed = (cause: unknown): AppError =>
  new AppError(
    'unavailable',
    'STORAGE_FAILED',
    'The password file cannot be used at the moment; nothing was changed. The log of the server says why.',
    { cause },
  )

// Browsers

export const originRefused = (message: string): AppError => new AppError('forbidden', 'ORIGIN_REFUSED', message)

// Authentication

export const credentialsMissing = (): AppError =>
  new AppError('unauthenticated', 'CREDENTIALS_MISSING', 'Unauthorized - One of Token or API key required.')

export const twoCredentials = (): AppError =>
  new AppError('unauthenticated', 'TWO_CREDENTIALS', 'Unauthorized - Only one of Token or API key expected.')

export const tokenInvalid = (): AppError =>
  new AppError('unauthenticated', 'TOKEN_INVALID', 'Unauthorized - Invalid token.')

export const tokenExpired = (): AppError =>
  new AppError('unauthenticated', 'TOKEN_EXPIRED', 'Unauthorized - Token has expired.')

export const tokenUserDisabled = (): AppError =>
  new AppError('unauthenticated', 'TOKEN_USER_DISABLED', 'Unauthorized - The user of the token is disabled.')

/** Of a cookie, which a browser has one of for all its pages. */
export const userChanged = (): AppError =>
  new AppError('unauthenticated', 'USER_CHANGED', 'Unauthorized - Somebody else has signed in with this browser.')

export const apiKeyUnknown = (keyHash: string): AppError =>
  new AppError('unauthenticated', 'API_KEY_UNKNOWN', `Unauthorized - ApiKey with key_hash=${keyHash} not found.`)

export const apiKeyDisabled = (): AppError =>
  new AppError('unauthenticated', 'API_KEY_DISABLED', 'Unauthorized - API key is disabled.')

export const apiKeyExpired = (): AppError =>
  new AppError('unauthenticated', 'API_KEY_EXPIRED', 'Unauthorized - API key has expired.')

export const apiKeyUserDisabled = (): AppError =>
  new AppError('unauthenticated', 'API_KEY_USER_DISABLED', 'Unauthorized - The user of the API key is disabled.')

/** @param id undefined: what was given may be a key, and is not repeated */
export const apiKeyNotFound = (id: string | undefined): AppError =>
  new AppError(
    'not_found',
    'API_KEY_NOT_FOUND',
    `ApiKey matching ${id === undefined ? 'the given value' : `"${id}"`} as id or key not found.`,
  )

/** One answer for every reason, so that it tells nothing about who exists; the audit log has the reason. */
export const loginRefused = (): AppError =>
  new AppError('unauthenticated', 'LOGIN_REFUSED', 'Invalid or missing credentials')

export const ttlTooLong = (ttlSeconds: number, maxSeconds: number): AppError =>
  new AppError('invalid', 'TTL_TOO_LONG', `TTL specified ${ttlSeconds} is greater than max allowed ${maxSeconds}.`, {
    details: { max_ttl: maxSeconds },
  })

export const impersonationRefused = (): AppError =>
  new AppError(
    'invalid',
    'IMPERSONATION_REFUSED',
    'Current user is not a service and cannot request impersonated tokens; leave out "user" and "impersonate_user".',
  )

/** @param who a user name, or `<nickname>@<origin>` */
export const userNotLocated = (who: string): AppError =>
  new AppError('invalid', 'USER_NOT_LOCATED', `Could not locate user ${shown(who)}`)

export const nicknameOriginMissing = (nickname: string): AppError =>
  new AppError(
    'invalid',
    'NICKNAME_ORIGIN_MISSING',
    `Nickname origin is not provided for nickname '${shown(nickname)}'; send the chat system as "nickname_origin".`,
  )

export const nicknameAmbiguous = (who: string): AppError =>
  new AppError('invalid', 'NICKNAME_AMBIGUOUS', `${shown(who)} matched more than one username`)

export const passwordsKeptElsewhere = (backend: string): AppError =>
  new AppError(
    'invalid',
    'PASSWORDS_KEPT_ELSEWHERE',
    `The authentication backend "${shown(backend)}" does not keep the passwords, so they cannot be set here; leave out "password" and change it where it is kept.`,
  )

export const currentPasswordWrong = (): AppError =>
  new AppError('forbidden', 'CURRENT_PASSWORD_WRONG', 'current_password is not the password of this user.')

export const tokenNotProvided = (): AppError =>
  new AppError('invalid', 'TOKEN_NOT_PROVIDED', 'Token is not provided. Send it as "token" in the body.')

export const tokenUnknown = (): AppError =>
  new AppError('not_found', 'TOKEN_UNKNOWN', 'There is no such token; it may have been revoked.')

export const tokenNotUsed = (): AppError =>
  new AppError(
    'invalid',
    'TOKEN_NOT_USED',
    'This request was made without a token, so there is none to revoke; disable or delete an API key instead.',
  )

export const tlsRequired = (): AppError =>
  new AppError(
    'forbidden',
    'TLS_REQUIRED',
    'Authentication is offered over TLS only (auth.use_ssl): use the https:// address of the server.',
  )

export const authenticationOff = (): AppError =>
  new AppError('not_found', 'AUTHENTICATION_OFF', 'Authentication is off (auth.enable): requests need no token.')

/** @param waitSeconds whole seconds until the next try is looked at; sent as `Retry-After` */
export const tooManyFailures = (waitSeconds: number): AppError =>
  new AppError('too_many', 'TOO_MANY_FAILURES', `Too many failed logins; try again in ${waitSeconds} s.`, {
    details: { retry_after: waitSeconds },
  })

// Timers

export const timerTypeUnknown = (type: string, known: readonly string[]): AppError =>
  new AppError('invalid', 'TIMER_TYPE_UNKNOWN', `Timer type "${shown(type)}" does not exist; use ${known.join(', ')}.`)

// Permissions (contract 11, 11.5)

export const permissionDenied = (message: string): AppError => new AppError('forbidden', 'PERMISSION_DENIED', message)

/** @param uid of the resource, when it is about one */
export const permissionMissing = (user: string, permission: string, uid?: string): AppError =>
  permissionLacked(`User "${shown(user)}" doesn't have required permission`, permission, uid)

/** The user would have it. @param uid of the resource, when it is about one */
export const scopeMissing = (user: string, permission: string, uid?: string): AppError =>
  permissionLacked(`The scopes of the API key of user "${shown(user)}" lack permission`, permission, uid)

const permissionLacked = (lack: string, permission: string, uid: string | undefined): AppError =>
  new AppError(
    'forbidden',
    'PERMISSION_DENIED',
    `${lack} "${permission}"${uid === undefined ? '' : ` on resource "${shown(uid)}"`}`,
    { details: { permission, ...(uid === undefined ? {} : { resource: shown(uid) }) } },
  )

export const isolationDenied = (user: string, uid: string): AppError =>
  new AppError(
    'forbidden',
    'PERMISSION_DENIED',
    `User "${shown(user)}" doesn't have access to resource "${shown(uid)}" due to resource permission isolation.`,
  )

export const administratorRequired = (): AppError =>
  new AppError('forbidden', 'PERMISSION_DENIED', 'Administrator access required')

export const administratorOrSelfRequired = (): AppError =>
  new AppError('forbidden', 'PERMISSION_DENIED', 'Administrator or self access required')

export const accessControlOff = (): AppError =>
  new AppError(
    'invalid',
    'ACCESS_CONTROL_OFF',
    'Access control is off (rbac.enable): there are no definitions to apply.',
  )

const MAX_SHOWN_PROBLEMS = 100

/** @param problems each with its file */
export const definitionsInvalid = (problems: readonly string[]): AppError => {
  const more = problems.length - MAX_SHOWN_PROBLEMS
  const told = [...problems.slice(0, MAX_SHOWN_PROBLEMS), ...(more > 0 ? [`and ${more} more`] : [])]
  return new AppError('invalid', 'DEFINITIONS_INVALID', `Nothing was applied: ${told.join('; ')}`, {
    details: { problems: told },
  })
}

export const resourceTypeUnknown = (type: string): AppError =>
  new AppError('not_found', 'RESOURCE_TYPE_UNKNOWN', `Invalid resource type: ${shown(type)}`)

// Datastore

/** @param scope as it is stored: `svckv.system` */
export const keyNotFound = (name: string, scope: string): AppError =>
  new AppError(
    'not_found',
    'KEY_NOT_FOUND',
    `KeyValuePair with name: ${shown(name)} and scope: ${shown(scope)} not found in db.`,
  )

/** Of one item. */
export const keyScopeUnknown = (scope: string, allowed: readonly string[]): AppError =>
  new AppError(
    'invalid',
    'KEY_SCOPE_UNKNOWN',
    `Scope ${shown(scope)} is not in allowed scopes list: [${allowed.map((name) => `'${name}'`).join(', ')}].`,
  )

/** Of a list of items. */
export const keyScopeInvalid = (scope: string, allowed: readonly string[]): AppError =>
  new AppError('invalid', 'KEY_SCOPE_UNKNOWN', `Invalid scope: ${shown(scope)}. Use one of ${allowed.join(', ')}.`)

/** Somebody has named another user. */
export const keyUserRefused = (isAccessControlled: boolean): AppError =>
  permissionDenied(
    `"user" attribute can only be provided by admins${isAccessControlled ? '' : ' when RBAC is enabled'}`,
  )

export const decryptRefused = (): AppError => permissionDenied('Decrypt option requires administrator access')

export const preEncryptedRefused = (): AppError =>
  permissionDenied('Pre-encrypted option requires administrator access')

// Encryption

/** @param what is to be encrypted, in words; it is no secret */
export const cryptoKeyMissing = (path: string, what: string, advice: string): AppError =>
  new AppError(
    'invalid',
    'CRYPTO_KEY_MISSING',
    `Crypto key not found in ${path}. Unable to encrypt / decrypt ${what}. ${advice}`,
  )

/** @param what was encrypted, in words */
export const cipherTextInvalid = (what: string, why: string): AppError =>
  new AppError('invalid', 'CIPHER_TEXT_INVALID', `Unable to decrypt ${what}: ${why}.`)

// Webhooks

export const webhookNotRegistered = (hook: string): AppError =>
  new AppError('not_found', 'WEBHOOK_NOT_REGISTERED', `Webhook ${shown(hook)} not registered with svc`)

/** @param headers that carry the signature of this webhook */
export const signatureMissing = (headers: readonly string[]): AppError =>
  new AppError(
    'unauthenticated',
    'SIGNATURE_MISSING',
    `Unauthorized - Senders to this webhook have to sign; ${headers.join(', or ')} is missing.`,
  )

export const signatureMalformed = (header: string, why: string): AppError =>
  new AppError('unauthenticated', 'SIGNATURE_MALFORMED', `Unauthorized - The header ${header} ${why}.`)

export const signatureExpired = (header: string, toleranceSeconds: number): AppError =>
  new AppError(
    'unauthenticated',
    'SIGNATURE_EXPIRED',
    `Unauthorized - The time in the header ${header} is more than ${toleranceSeconds} s away from the time of this server.`,
  )

/** Tells nothing more: not which part does not fit. */
export const signatureInvalid = (): AppError =>
  new AppError('unauthenticated', 'SIGNATURE_INVALID', 'Unauthorized - The signature is not valid.')

/** The secret is a template that cannot be rendered, which the sender cannot help: it may send again later. */
export const signatureUncheckable = (cause: unknown): AppError =>
  new AppError(
    'unavailable',
    'SIGNATURE_UNCHECKABLE',
    'The secret of this webhook cannot be read at the moment; the log of the server says why.',
    { cause },
  )

/** @param triggerInstanceId the first that came of the first request */
export const idempotencyKeyReused = (triggerInstanceId: string): AppError =>
  new AppError(
    'conflict',
    'IDEMPOTENCY_KEY_REUSED',
    'This Idempotency-Key was sent with another body within the last 24 hours; choose a new key for a new request.',
    { details: { 'conflict-id': triggerInstanceId } },
  )
