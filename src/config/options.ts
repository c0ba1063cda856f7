/**
 * Every option of the server, one row each (contract 10, 10.2). The `Config` type, the loader, the flags and
 * `svc.conf.example` come from this table; to add an option, add a row and run `npm run generate`.
 */
import { isIP } from 'node:net'
import { isAbsolute, resolve } from 'node:path'
import { logLevels } from '../lib/log/index.ts'
import type { ExecutionStatus } from '../core/execution-status.ts'
import { conditionNames } from '../core/notify.ts'
import { isTimeZone } from '../lib/calendar/index.ts'
import { readJson } from '../lib/json/index.ts'
import { readPartition, type PartitionRule } from './partition.ts'

export type Reading<T> = { value: T } | { problem: string }

/** What relative paths are relative to. */
export interface ReadContext {
  cwd: string
  /** Absolute `system.base_path`. */
  basePath: string
}

export interface Option<T> {
  /** The type of the value, for the example file and `--help`: `whole number`. */
  readonly kind: string
  /** The default as text in the file; `read` parses it like any other value. */
  readonly defaultText: string
  readonly about: string
  readonly unit: string | undefined
  /** The values that are accepted, when words for it are needed: `1 to 100`. */
  readonly range: string | undefined
  /** Masked wherever the configuration is shown. */
  readonly secret: boolean
  /** A `problem` starts with `must` and does not repeat the value. */
  readonly read: (text: string, context: ReadContext) => Reading<T>
}

interface RowBasics<D> {
  default: D
  about: string
}

interface NumberRow extends RowBasics<number> {
  min: number
  max: number
  unit?: string
}

function numberRow(row: NumberRow, kind: string, pattern: RegExp): Option<number> {
  const range = `${row.min} to ${row.max}`
  const problem = `must be a ${kind} from ${range}`
  return {
    kind,
    defaultText: String(row.default),
    about: row.about,
    unit: row.unit,
    range,
    secret: false,
    read: (text) => {
      const value = Number(text)
      return pattern.test(text) && value >= row.min && value <= row.max ? { value } : { problem }
    },
  }
}

const integer = (row: NumberRow): Option<number> => numberRow(row, 'whole number', /^[+-]?\d{1,16}$/)

const decimal = (row: NumberRow): Option<number> => numberRow(row, 'number', /^[+-]?\d{1,15}(\.\d{0,15})?$/)

const MAX_RETENTION_DAYS = 36_500

/** Days; 0 disables the limit. */
const ttl = (row: RowBasics<number>): Option<number> =>
  integer({ ...row, min: 0, max: MAX_RETENTION_DAYS, unit: 'days; 0: no limit' })

/** The same; empty: undefined. */
const optionalTtl = ({ about }: { about: string }): Option<number | undefined> => {
  const given = ttl({ default: 0, about })
  return {
    ...given,
    kind: 'whole number or empty',
    defaultText: '',
    read: (text, context) => (text === '' ? { value: undefined } : given.read(text, context)),
  }
}

const port = (row: RowBasics<number>): Option<number> => integer({ ...row, min: 0, max: 65535 })

const yes = new Set(['true', '1', 'yes', 'on'])
const no = new Set(['false', '0', 'no', 'off'])

/** Booleans as ConfigParser reads them, or undefined. */
function readBoolean(text: string): boolean | undefined {
  const word = text.toLowerCase()
  return yes.has(word) ? true : no.has(word) ? false : undefined
}

const boolean = (row: RowBasics<boolean>): Option<boolean> => ({
  kind: 'True or False',
  defaultText: row.default ? 'True' : 'False',
  about: row.about,
  unit: undefined,
  range: undefined,
  secret: false,
  read: (text) => {
    const value = readBoolean(text)
    return value === undefined ? { problem: 'must be True or False' } : { value }
  },
})

/** The same, or `auto`, which is the default and leaves it to the server. */
const autoBoolean = (row: { about: string }): Option<boolean | 'auto'> => ({
  ...boolean({ default: false, about: row.about }),
  kind: 'auto, True or False',
  defaultText: 'auto',
  read: (text) => {
    const value = text.toLowerCase() === 'auto' ? 'auto' : readBoolean(text)
    return value === undefined ? { problem: 'must be auto, True or False' } : { value }
  },
})

function choice<const V extends string>(row: { values: readonly V[]; default: V; about: string }): Option<V> {
  const names = row.values.join(', ')
  return {
    kind: `one of ${names}`,
    defaultText: row.default,
    about: row.about,
    unit: undefined,
    range: undefined,
    secret: false,
    read: (text) => {
      const value = row.values.find((name) => name.toLowerCase() === text.toLowerCase())
      return value === undefined ? { problem: `must be one of ${names}` } : { value }
    },
  }
}

function text(
  row: RowBasics<string> & { kind: string; problem: string; accepts: (text: string) => boolean; secret?: true },
): Option<string> {
  return {
    kind: row.kind,
    defaultText: row.default,
    about: row.about,
    unit: undefined,
    range: undefined,
    secret: row.secret ?? false,
    read: (value) => (row.accepts(value) ? { value } : { problem: row.problem }),
  }
}

const MAX_LIST_ITEMS = 1000

function list(
  row: RowBasics<string> & { kind: string; problem: string; item: (text: string) => string | undefined },
): Option<readonly string[]> {
  return {
    kind: row.kind,
    defaultText: row.default,
    about: row.about,
    unit: undefined,
    range: undefined,
    secret: false,
    read: (joined) => {
      const value: string[] = []
      for (const part of joined.split(/[,\n]/)) {
        const trimmed = part.trim()
        if (trimmed === '') continue
        const item = row.item(trimmed)
        if (item === undefined || value.length === MAX_LIST_ITEMS) return { problem: row.problem }
        if (!value.includes(item)) value.push(item)
      }
      return { value }
    },
  }
}

/**
 * A path, absolute after reading; relative ones start at the working directory or at `system.base_path`. An optional one
 * may be empty.
 */
const path = (row: RowBasics<string> & { relativeTo: keyof ReadContext; optional?: true }): Option<string> => ({
  kind: row.optional === true ? 'path or empty' : 'path',
  defaultText: row.default,
  about: row.about,
  unit: undefined,
  range: undefined,
  secret: false,
  read: (value, context) => {
    if (value === '') return row.optional === true ? { value } : { problem: 'must be a path' }
    if (value.includes('\0')) return { problem: 'must be a path without NUL characters' }
    return { value: isAbsolute(value) ? resolve(value) : resolve(context[row.relativeTo], value) }
  },
})

/** Absolute folders out of a list separated by colons. */
const paths = (row: RowBasics<string>): Option<readonly string[]> => ({
  kind: 'colon separated paths',
  defaultText: row.default,
  about: row.about,
  unit: undefined,
  range: undefined,
  secret: false,
  read: (given, context) => {
    if (given.includes('\0')) return { problem: 'must be paths without NUL characters' }
    const parts = given.split(':').filter((part) => part.trim() !== '')
    return { value: [...new Set(parts.map((part) => resolve(context.basePath, part.trim())))] }
  },
})

const hostLabel = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/i

function isHostName(name: string): boolean {
  if (name.length > 253) return false
  const labels = name.split('.')
  // A name that ends in a number is an address with a typing error, such as 127.0.0.256.
  return labels.every((label) => hostLabel.test(label)) && !/^\d+$/.test(labels.at(-1) ?? '')
}

const host = (row: RowBasics<string>): Option<string> => ({
  kind: 'address or host name',
  defaultText: row.default,
  about: row.about,
  unit: undefined,
  range: undefined,
  secret: false,
  read: (given) => {
    const value = /^\[.*\]$/.test(given) ? given.slice(1, -1) : given
    if (isIP(value) !== 0 || (value === given && isHostName(value))) return { value }
    return { problem: 'must be an IP address (127.0.0.1, ::1; 0.0.0.0 or :: for all interfaces) or a host name' }
  },
})

/** An http(s) URL without trailing slash, or empty. */
const url = (row: RowBasics<string>): Option<string> => ({
  kind: 'URL or empty',
  defaultText: row.default,
  about: row.about,
  unit: undefined,
  range: undefined,
  secret: false,
  read: (given) => {
    if (given === '') return { value: '' }
    const problem = 'must be an http:// or https:// URL without user name, query and fragment'
    if (!/^https?:\/\/[^\s?#]+$/i.test(given) || !URL.canParse(given)) return { problem }
    const parsed = new URL(given)
    if (parsed.username !== '' || parsed.password !== '') return { problem }
    return { value: parsed.href.replace(/\/+$/, '') }
  },
})

function readOrigin(given: string): string | undefined {
  if (given === '*') return given
  if (!/^https?:\/\/[^\s/?#@*]+\/?$/i.test(given) || !URL.canParse(given)) return undefined
  return new URL(given).origin
}

/** An http, https or file URL, as it is given. */
function readIndexUrl(given: string): string | undefined {
  const url = given.length <= 2_048 && URL.canParse(given) ? new URL(given) : undefined
  if (url === undefined) return undefined
  const isLocal = url.protocol === 'file:' && url.host === ''
  return isLocal || url.protocol === 'http:' || url.protocol === 'https:' ? given : undefined
}

function readNetwork(given: string): string | undefined {
  const [address = '', prefix, ...rest] = given.split('/')
  const family = isIP(address)
  if (family === 0 || address.includes('%') || rest.length > 0) return undefined
  if (prefix === undefined) return given
  if (!/^\d{1,3}$/.test(prefix) || Number(prefix) > (family === 4 ? 32 : 128)) return undefined
  return given
}

export type JsonObject = { readonly [name: string]: unknown }

const jsonObject = (row: RowBasics<string> & { secret: boolean }): Option<JsonObject> => ({
  kind: 'JSON object',
  defaultText: row.default,
  about: row.about,
  unit: undefined,
  range: undefined,
  secret: row.secret,
  read: (given) => {
    if (given === '') return { value: {} }
    try {
      const value: unknown = readJson(given)
      if (isJsonObject(value)) return { value }
      return { problem: 'must be a JSON object such as {"name": "value"}' }
    } catch (error) {
      // Only the place is repeated: the parser's message quotes the text, which may hold a password.
      const at = error instanceof Error ? /position (\d+)/.exec(error.message)?.[1] : undefined
      const where = at === undefined ? '' : `; syntax error at character ${Number(at) + 1}`
      return { problem: `must be a JSON object such as {"name": "value"}${where}` }
    }
  },
})

/** Headers of the requests of another protocol. */
const headers = (row: RowBasics<string>): Option<Readonly<Record<string, string>>> => {
  const object = jsonObject({ ...row, secret: true })
  return {
    ...object,
    read(given, context) {
      const found = object.read(given, context)
      if ('problem' in found) return found
      // Else each request would fail with a message that quotes the value.
      if (isHeaders(found.value)) return { value: found.value }
      return { problem: 'must be a JSON object of headers, with values of Latin-1 characters: {"X-Key": "value"}' }
    },
  }
}

function isHeaders(value: JsonObject): value is Readonly<Record<string, string>> {
  return Object.entries(value).every(
    ([name, content]) =>
      /^[\w!#$%&'*+.^`|~-]+$/.test(name) && typeof content === 'string' && /^[\t\x20-\x7e\xa0-\xff]*$/.test(content),
  )
}

function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The logging option of a component that is a separate process in existing installations. @param part which messages */
const logging = (part: string): Option<string> =>
  path({
    default: '',
    optional: true,
    relativeTo: 'cwd',
    about: `Python logging configuration of an existing installation. The server also writes ${part} to the files of its handlers, at their levels. For all messages, use log.file and log.audit_file. Empty: none.`,
  })

const DAY_SECONDS = 86_400

/** The three options that put a listener on TLS. */
const tls = (section: string, listener: string, more = '') => ({
  use_ssl: boolean({
    default: false,
    about: `Serve TLS 1.2 and 1.3 on the ${listener} listener, and no plain HTTP.${more}`,
  }),
  cert: path({
    default: '',
    optional: true,
    relativeTo: 'basePath',
    about: `PEM file with the certificate for ${section}.use_ssl, followed by its intermediate certificates. SIGHUP reloads it. A relative path starts at system.base_path.`,
  }),
  key: path({
    default: '',
    optional: true,
    relativeTo: 'basePath',
    about: `PEM file with the private key of ${section}.cert, without a passphrase. Make it readable for the account of the server only. SIGHUP reloads it. A relative path starts at system.base_path.`,
  }),
})

/** Contract 03, 3.5. */
const statuses = {
  requested: 'open',
  delayed: 'open',
  scheduled: 'open',
  running: 'open',
  pending: 'open',
  pausing: 'open',
  paused: 'open',
  resuming: 'open',
  canceling: 'open',
  succeeded: 'final',
  failed: 'final',
  timeout: 'final',
  canceled: 'final',
  abandoned: 'final',
} as const satisfies Record<ExecutionStatus, 'open' | 'final'>
const statusNames = Object.keys(statuses)
const finalStatusNames = Object.entries(statuses).flatMap(([name, kind]) => (kind === 'final' ? [name] : []))

export const options = {
  system: {
    base_path: path({
      default: './svc_data',
      relativeTo: 'cwd',
      about:
        'Data directory of the server: database, packs, keys, password file. The server creates it if it is missing. A relative path starts at the working directory.',
    }),
    validate_output_schema: boolean({
      default: false,
      about: 'Compare the results of actions with their output_schema. An execution whose result does not fit fails.',
    }),
    debug: boolean({ default: false, about: 'Log at level DEBUG and ignore log.level. Not for production.' }),
    allow_open_network: boolean({
      default: false,
      about:
        'Allow listeners on addresses other than loopback while auth.enable is off. Anyone who can reach such an address can then run commands on this machine.',
    }),
    max_connections: integer({
      default: 16_000,
      min: 8,
      max: 1_000_000,
      unit: 'connections',
      about:
        'Maximum number of connections to all listeners together. Streams may use three quarters of them. The server answers further connections with 503. The open file limit of the process can lower this limit.',
    }),
    max_requests: integer({
      default: 1000,
      min: 1,
      max: 1_000_000,
      unit: 'requests',
      about:
        'Maximum number of concurrent requests per listener. The server answers further requests with 503. Streams, health checks and requests that cancel executions do not count.',
    }),
    validate_trigger_parameters: boolean({
      default: true,
      about:
        'Reject triggers and rules whose trigger parameters do not match the schema of the trigger type. Webhooks and timers are always validated.',
    }),
    validate_trigger_payload: boolean({
      default: true,
      about:
        'Reject events whose payload does not match the schema of the trigger type, or whose trigger type does not exist. Webhooks and timers are always validated.',
    }),
  },
  action_sensor: {
    enable: boolean({
      default: true,
      about: 'Dispatch the trigger core.svc.generic.actiontrigger when an execution reaches a status in emit_when.',
    }),
    emit_when: list({
      kind: 'comma separated statuses',
      default: finalStatusNames.join(','),
      problem: `must be a comma separated list of statuses: ${statusNames.join(', ')}`,
      item: (given) => statusNames.find((status) => status === given.toLowerCase()),
      about: 'Execution statuses that dispatch core.svc.generic.actiontrigger.',
    }),
  },
  auth: {
    enable: boolean({
      default: false,
      about: 'Require a token or an API key for every request. Turn it on if other machines can reach a listener.',
    }),
    host: host({ default: '127.0.0.1', about: 'Address of the authentication listener.' }),
    port: port({ default: 9100, about: 'Port of the authentication listener. 0: any free port.' }),
    ...tls('auth', 'authentication', ' The API listener then also refuses logins over plain HTTP.'),
    mode: choice({
      values: ['standalone', 'proxy'],
      default: 'standalone',
      about:
        'Who checks passwords. standalone: this server, with auth.backend. proxy: a web server in front, which sends the user name in Remote-User, X-Remote-User or X-Forwarded-User and must be in auth.trusted_proxies.',
    }),
    remote_user_header: text({
      kind: 'header name or empty',
      default: '',
      problem: 'must be empty or the name of a header that carries no credential, such as X-Forwarded-User',
      accepts: (name) =>
        /^(?!(?:authorization|cookie|host|svc-api-key|x-auth-token)$)(?:[a-z][a-z0-9-]{0,63})?$/i.test(name),
      about:
        'The only header in which the proxy names the user, with auth.mode = proxy. Set it if the proxy passes on headers of clients that it does not know. Empty: the first of Remote-User, X-Remote-User and X-Forwarded-User that a request has, so the proxy must set or remove all three.',
    }),
    backend: text({
      kind: 'name',
      default: 'flat_file',
      problem: 'must be the name of an authentication backend, such as flat_file',
      accepts: (value) => /^[a-z][a-z0-9_]{0,63}$/.test(value),
      about:
        'Authentication backend. flat_file: a file in htpasswd format. ldap: a directory. pam: the accounts of this machine.',
    }),
    backend_kwargs: jsonObject({
      default: '{}',
      secret: true,
      about:
        'Arguments of the backend. flat_file: {"file_path": "/etc/svc/htpasswd"} (default: htpasswd in system.base_path). pam: {"service": "login"}. ldap: see docs/access.md.',
    }),
    token_ttl: integer({
      default: DAY_SECONDS,
      min: 1,
      max: 3650 * DAY_SECONDS,
      unit: 'seconds',
      about: 'Default and maximum lifetime of a token.',
    }),
    service_token_ttl: integer({
      default: DAY_SECONDS,
      min: 1,
      max: 3650 * DAY_SECONDS,
      unit: 'seconds',
      about:
        'Lifetime of the token that an action gets in SVC_ACTION_AUTH_TOKEN. The token also expires when the execution ends. token_ttl does not limit it.',
    }),
    api_url: url({
      default: '',
      about:
        'Public base URL of the API, without the version. A login returns it to the client. Empty: the address of the API listener.',
    }),
    trusted_proxies: list({
      kind: 'comma separated addresses and networks',
      default: '127.0.0.0/8, ::1/128',
      problem: 'must be a comma separated list of addresses and networks such as 127.0.0.0/8, ::1/128',
      item: readNetwork,
      about:
        'Proxies whose X-Forwarded-For and other forwarding headers the server trusts. With auth.mode = proxy it also trusts the user names that they send.',
    }),
    failures_per_user: integer({
      default: 20,
      min: 0,
      max: 100_000,
      unit: 'failures',
      about:
        'Failed logins per user within auth.failure_window before further attempts get 429. Addresses from which the user has logged in before have a separate count. 0: no limit.',
    }),
    failures_per_address: integer({
      default: 100,
      min: 0,
      max: 1_000_000,
      unit: 'failures',
      about:
        'Failed logins per client address (IPv6: per /64 network) within auth.failure_window before further attempts get 429. Each unknown token or API key counts once. Requests with a valid token or API key are never delayed. 0: no limit.',
    }),
    failure_window: integer({
      default: 300,
      min: 1,
      max: DAY_SECONDS,
      unit: 'seconds',
      about: 'Half-life of the failure counts: after this time, each count is halved.',
    }),
    max_failure_wait: integer({
      default: 60,
      min: 1,
      max: 3600,
      unit: 'seconds',
      about: 'Maximum wait after a failed login. The first wait is 1 second; each further failure doubles it.',
    }),
    logging: logging('messages about logins and credentials'),
  },
  api: {
    host: host({
      default: '127.0.0.1',
      about: 'Address of the API listener.',
    }),
    port: port({ default: 9101, about: 'Port of the API listener. 0: any free port.' }),
    ...tls(
      'api',
      'API',
      ' Actions then get an https address. If the certificate does not cover api.host, set auth.api_url. Actions must trust the CA of the certificate.',
    ),
    allow_origin: list({
      kind: 'comma separated origins',
      default: '',
      problem: 'must be a comma separated list of origins such as https://svc.example.com:8443 (no path), or *',
      item: readOrigin,
      about:
        'Origins whose web pages may read and change everything that the user of the browser may (CORS). Empty: only the web client of this server. *: all origins, without cookies.',
    }),
    allowed_hosts: list({
      kind: 'comma separated host names, or *',
      default: '',
      problem: 'must be a comma separated list of host names such as svc.example.com (no scheme, no port), or *',
      item: (given) => (given === '*' || isHostName(given) ? given.toLowerCase() : undefined),
      about:
        'Names under which clients address this server while auth.enable is off, in addition to its addresses, localhost, the name of this machine and the hosts of auth.api_url and webui.webui_base_url. Requests with another Host are refused: a page could make its own name point to this server (DNS rebinding). *: any name.',
    }),
    mask_secrets: boolean({
      default: true,
      about:
        'Mask secret values as ******** in responses. If False, everyone with permission to view an execution sees its secrets.',
    }),
    max_page_size: integer({
      default: 100,
      min: 1,
      max: 10_000,
      unit: 'records',
      about: 'Maximum value of the limit parameter of list requests.',
    }),
    max_body_bytes: integer({
      default: 16_777_216,
      min: 1024,
      max: 268_435_456,
      unit: 'bytes',
      about: 'Maximum size of a request body. The server answers larger ones with 413.',
    }),
    auth_cookie_secure: boolean({
      default: true,
      about:
        'Set the attribute Secure on the cookie auth-token: browsers then accept and send it over TLS only. Plain HTTP clients on this machine get the cookie without the attribute.',
    }),
    auth_cookie_same_site: choice({
      values: ['strict', 'lax', 'none', 'unset'],
      default: 'lax',
      about:
        'Attribute SameSite of the cookie auth-token. none needs auth_cookie_secure. unset: no attribute, the browser decides.',
    }),
    logging: logging('messages about requests, and all messages of no other component,'),
  },
  stream: {
    host: host({ default: '127.0.0.1', about: 'Address of the stream listener.' }),
    port: port({ default: 9102, about: 'Port of the stream listener. 0: any free port.' }),
    ...tls('stream', 'stream'),
    heartbeat: decimal({
      default: 25,
      min: 0.05,
      max: 3600,
      unit: 'seconds',
      about:
        'Interval of the heartbeats on an idle stream. Heartbeats keep proxies from closing the stream and detect dead clients.',
    }),
    client_buffer_bytes: integer({
      default: 1_048_576,
      min: 16_384,
      max: 1_073_741_824,
      unit: 'bytes',
      about:
        'Maximum size of the events queued for one client of the general stream. The server disconnects a client that falls further behind.',
    }),
    logging: logging('messages about requests for event streams'),
  },
  actionrunner: {
    stream_output: boolean({
      default: true,
      about:
        'Store the output of running actions, and lines about what happens in workflows, and stream both live. If False, only the result contains the output.',
    }),
    actions_pool_size: integer({
      default: 60,
      min: 1,
      max: 10_000,
      unit: 'executions',
      about: 'Maximum number of actions that run at the same time. Further executions wait in the queue.',
    }),
    max_result_bytes: integer({
      default: 10_485_760,
      min: 1,
      max: 268_435_456,
      unit: 'bytes',
      about:
        'Maximum size of stdout, and of stderr, in the result of an execution. Several hosts share it equally. Longer text is truncated and marked in the result; the stored output stays complete.',
    }),
    pass_environment: list({
      kind: 'comma separated names of environment variables',
      default: '',
      problem: 'must be a comma separated list of names of environment variables such as JAVA_HOME, AWS_*',
      item: (given) => (/^(?:[A-Za-z_][A-Za-z0-9_]*\*?|\*)$/.test(given) ? given : undefined),
      about:
        'Environment variables of the server that actions get, in addition to PATH, HOME, USER, LOGNAME, SHELL, LANG, LC_*, TZ, TMPDIR, TERM, the proxy variables, and those that name trusted certificates. A star at the end stands for any characters; * passes all. Configuration overrides (SVC_<SECTION>__<OPTION>) are never passed.',
    }),
    background: choice({
      values: ['wait', 'detach', 'kill'],
      default: 'wait',
      about:
        'Processes that outlive the command of an action and hold its output. wait: the execution goes on while they write or are subshells of its command, up to its time limit; then svc leaves them running and discards their output. detach: svc leaves them running at once. kill: svc stops them. The parameter background_jobs of an action overrides it.',
    }),
    background_grace_seconds: decimal({
      default: 5,
      min: 0.1,
      max: 86_400,
      unit: 'seconds',
      about:
        'Time without output after which an execution no longer waits for such processes. The parameter background_grace_seconds of an action overrides it.',
    }),
    decode_json_output: boolean({
      default: false,
      about:
        'Decode stdout and stderr of shell actions in the result if the whole text is JSON, as StackStorm does. If False, they are always text.',
    }),
    shutdown_grace_seconds: decimal({
      default: 10,
      min: 0,
      max: 86_400,
      unit: 'seconds',
      about:
        'Grace period for running actions when the server stops. The server then terminates them, and kills them 5 seconds later.',
    }),
    queue_limit: integer({
      default: 10_000,
      min: 1,
      max: 10_000_000,
      unit: 'executions',
      about: 'Maximum number of queued executions. The server answers further requests with 503.',
    }),
    python_binary: path({
      default: '',
      optional: true,
      relativeTo: 'cwd',
      about:
        'Python 3 interpreter that creates virtual environments, and runs python-script actions of packs without one. Empty: python3 in the PATH of the server.',
    }),
    python_runner_log_level: choice({
      values: ['AUDIT', 'CRITICAL', 'ERROR', 'WARNING', 'INFO', 'DEBUG'],
      default: 'DEBUG',
      about: 'Minimum log level of self.logger in Python actions. The parameter log_level of an action overrides it.',
    }),
    python_pool_size: integer({
      default: 2,
      min: 0,
      max: 100,
      unit: 'processes',
      about:
        'Number of idle Python processes kept ready for each recently used interpreter. Each process runs one action and exits. 0: none, each action starts its own process.',
    }),
    virtualenv_opts: list({
      kind: 'comma separated options',
      default: '--system-site-packages',
      problem: 'must be a comma separated list of options of the Python module venv',
      item: (given) => (given.startsWith('-') ? given : undefined),
      about: 'Options of python -m venv when it creates the virtual environment of a pack.',
    }),
    pip_opts: list({
      kind: 'comma separated options',
      default: '',
      problem: 'must be a comma separated list of options of pip install',
      item: (given) => (given.startsWith('-') ? given : undefined),
      about: 'Options of pip install when it installs the requirements of a pack, such as --index-url=https://….',
    }),
    logging: logging('messages about executions'),
  },
  content: {
    system_packs_base_path: path({
      default: 'packs',
      relativeTo: 'basePath',
      about:
        'Directory of the packs. svc pack install installs packs here. A relative path starts at system.base_path.',
    }),
    packs_base_paths: paths({
      default: '',
      about:
        'Additional pack directories. If several packs have the same name, the first one is used. Relative paths start at system.base_path.',
    }),
    index_url: list({
      kind: 'comma separated URLs',
      default: '',
      problem: 'must be a comma separated list of http, https or file URLs of indexes, at most 2048 characters each',
      item: readIndexUrl,
      about:
        'Indexes of packs, for svc pack search, svc pack show and svc pack install by name. If several have a pack, the first one is used. Empty: svc asks no other server. Private addresses need http_runner.allowed_private_networks.',
    }),
    watch: boolean({
      default: true,
      about: 'Watch the pack directories and register changes automatically. If False, run svc pack register.',
    }),
  },
  packs: {
    enable_common_libs: boolean({
      default: false,
      about: 'Allow Python actions to import modules from the directory lib of their pack.',
    }),
  },
  ssh_runner: {
    remote_dir: text({
      kind: 'absolute path',
      default: '/tmp',
      problem: 'must be an absolute path',
      accepts: (value) => value.startsWith('/') && !value.includes('\0'),
      about: 'Directory on remote hosts for scripts while they run. An action can override it.',
    }),
    allow_partial_failure: boolean({
      default: false,
      about: 'Count an execution on several hosts as succeeded if it succeeds on at least one host.',
    }),
    max_parallel_actions: integer({
      default: 50,
      min: 1,
      max: 1000,
      unit: 'hosts',
      about: 'Maximum number of hosts that one execution runs on at the same time.',
    }),
    use_ssh_config: boolean({
      default: false,
      about:
        'Read host names, users, ports, keys, ProxyJump and ProxyCommand from ssh_config_file_path if the action does not set them.',
    }),
    ssh_config_file_path: text({
      kind: 'path',
      default: '~/.ssh/config',
      problem: 'must be a path',
      accepts: (value) => value !== '' && !value.includes('\0'),
      about:
        'Configuration file of the OpenSSH client. ~/ is the home directory of the account of the server, which runs the commands of ProxyCommand.',
    }),
    ssh_connect_timeout: integer({
      default: 60,
      min: 1,
      max: 3600,
      unit: 'seconds',
      about: 'Timeout for connecting and logging in to a host.',
    }),
    known_hosts_file: path({
      default: 'known_hosts',
      relativeTo: 'basePath',
      about: 'File of known host keys in OpenSSH format. A relative path starts at system.base_path.',
    }),
    host_key_checking: choice({
      values: ['accept-new', 'strict', 'off'],
      default: 'accept-new',
      about:
        'accept-new: store the key of a new host, and refuse a changed key. strict: also refuse hosts without a known key. off: accept any key, without protection against interception.',
    }),
  },
  http_runner: {
    allowed_private_networks: list({
      kind: 'comma separated addresses and networks',
      default: '',
      problem: 'must be a comma separated list of IP addresses and networks, such as 10.0.0.0/8',
      item: readNetwork,
      about:
        'Private, loopback and link-local addresses that http-request actions, and requests to Amazon SNS, may connect to. The server blocks all others, also after redirects. Empty: all blocked.',
    }),
    max_body_bytes: integer({
      default: 10_485_760,
      min: 1,
      max: 268_435_456,
      unit: 'bytes',
      about: 'Maximum size of a response to an http-request action. A larger response fails the action.',
    }),
  },
  garbagecollector: {
    action_executions_ttl: ttl({
      default: 7,
      about: 'Retention of the stored output of executions, if action_executions_output_ttl is empty.',
    }),
    action_executions_output_ttl: optionalTtl({
      about: 'Retention of the stored output of executions. Empty: action_executions_ttl applies.',
    }),
    action_executions_record_ttl: ttl({
      default: 0,
      about: 'Retention of completed executions with their results and output.',
    }),
    trigger_instances_ttl: ttl({ default: 0, about: 'Retention of processed trigger instances.' }),
    traces_ttl: ttl({
      default: 0,
      about: 'Retention of traces, counted from their start. Traces with unfinished work stay.',
    }),
    tokens_ttl: ttl({ default: 30, about: 'Retention of expired tokens, counted from their expiry.' }),
    rule_enforcements_ttl: ttl({ default: 0, about: 'Retention of rule enforcements.' }),
    notifications_ttl: ttl({ default: 30, about: 'Retention of notifications that wait no more.' }),
    workflow_executions_ttl: ttl({
      default: 0,
      about:
        'Retention of what completed workflows have besides their executions: tasks, variables and errors. Without it, they cannot be explained or re-run from tasks.',
    }),
    task_executions_ttl: ttl({
      default: 0,
      about: 'The same as workflow_executions_ttl: tasks are a part of their workflow. The shorter one applies.',
    }),
    max_records: integer({
      default: 1_000_000,
      min: 0,
      max: 1_000_000_000,
      about:
        'Maximum number of records of each kind: executions, trigger instances, traces and rule enforcements. The server deletes the oldest completed records above it. 0: no limit.',
    }),
    max_database_bytes: integer({
      default: 0,
      min: 0,
      max: 1_000_000_000_000_000,
      unit: 'bytes',
      about:
        'Maximum size of the data in the database. The server deletes the oldest completed records of all kinds above it. 0: no limit.',
    }),
    collection_interval: integer({
      default: 600,
      min: 1,
      max: 86_400,
      unit: 'seconds',
      about: 'Interval of garbage collection. SIGUSR2 starts a run at once.',
    }),
    sleep_delay: decimal({
      default: 2,
      min: 0,
      max: 3600,
      unit: 'seconds',
      about: 'Pause between two kinds of records in one run. 0: no pause.',
    }),
    purge_inquiries: boolean({
      default: true,
      about:
        'Set inquiries without a response within their ttl to the status timeout. If False, inquiries wait without a limit.',
    }),
    logging: logging('messages about garbage collection'),
  },
  scheduler: {
    sleep_interval: decimal({
      default: 1,
      min: 0.01,
      max: 3600,
      unit: 'seconds',
      about: 'Interval at which the scheduler polls the queue. New executions do not wait for it: they start at once.',
    }),
  },
  workflow_engine: {
    max_tasks: integer({
      default: 100_000,
      min: 1,
      max: 1_000_000,
      unit: 'tasks',
      about:
        'Maximum number of times that one workflow execution starts tasks, each pass of a loop included. A workflow that needs more fails.',
    }),
    gc_max_idle_sec: integer({
      default: 0,
      min: 0,
      max: 31_536_000,
      unit: 'seconds',
      about:
        'Cancel workflows of which nothing runs or waits for so long. Delayed tasks, inquiries and paused workflows wait. 0 disables the check.',
    }),
  },
  timersengine: {
    enable: boolean({
      default: true,
      about: 'Fire timers. If False, timers can be created and listed but never fire.',
    }),
    local_timezone: text({
      kind: 'time zone',
      default: '',
      problem: 'must be the name of a time zone in the IANA database, such as Europe/Berlin or UTC',
      accepts: (name) => name === '' || isTimeZone(name),
      about: 'Time zone of timers that do not set one. Empty: that of this machine, else UTC.',
    }),
    missed: choice({
      values: ['once', 'skip'],
      default: 'once',
      about:
        'How to treat timers that were due while the server was stopped. once: fire one time after the start. skip: wait for the next due time.',
    }),
    logging: logging('messages about timers'),
  },
  notifier: {
    logging: logging('messages about triggers and notifications of completed executions'),
  },
  notifications: {
    enable: boolean({
      default: true,
      about: 'Send notifications. If off, none is planned, and those that wait stay.',
    }),
    destinations: list({
      kind: 'comma separated names',
      default: '',
      problem: 'must be names of destinations, separated by commas',
      item: (name) => (/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}$/.test(name) ? name : undefined),
      about:
        'Destinations that hear of every job. Files notifications/*.yaml in the base path and in packs define destinations; rules and actions can name others with "notify".',
    }),
    on: list({
      kind: `comma separated, of ${conditionNames.join(', ')}`,
      default: 'failed, timeout, recovered, missed',
      problem: `must be words of ${conditionNames.join(', ')}, separated by commas`,
      item: (name) => conditionNames.find((each) => each === name.toLowerCase()),
      about: 'Of what destinations hear that do not say it themselves.',
    }),
    digest_threshold: integer({
      default: 10,
      min: 0,
      max: 10_000,
      about: 'Messages to a destination per minute. Further ones become one message that lists them. 0: no limit.',
    }),
    max_attempts: integer({
      default: 100,
      min: 1,
      max: 10_000,
      about: 'Attempts to send a notification. The pause between them doubles from 5 seconds to 15 minutes.',
    }),
    max_age_seconds: integer({
      default: 86_400,
      min: 1,
      max: 31_536_000,
      unit: 'seconds',
      about: 'Age of a notification at which the server no longer tries to send it.',
    }),
    max_pending: integer({
      default: 10_000,
      min: 1,
      max: 1_000_000,
      about: 'Notifications that wait for one destination. Further ones are stored as suppressed.',
    }),
  },
  sensorcontainer: {
    enable: boolean({
      default: true,
      about: 'Run the sensors of packs. If off, they can be listed and none runs.',
    }),
    sensor_node_name: text({
      kind: 'name',
      default: 'sensornode1',
      problem: 'must be a name of letters, digits, ".", "_" and "-"',
      accepts: (name) => /^[\w.-]{1,255}$/.test(name),
      about: 'Name of this server where several divide the sensors among them.',
    }),
    partition_provider: {
      kind: 'list of name:value',
      defaultText: 'name:default',
      about:
        'Which sensors run here. name:default: all. name:kvstore: those in the datastore key <node>.sensor_partition, a comma separated list. name:file, partition_file:<path>: those that a YAML file lists below the name of the node. name:hash, hash_ranges:MIN..2147483648|…: those whose hash, from 0 to 4294967296, is in a range.',
      unit: undefined,
      range: undefined,
      secret: false,
      read: (given, { cwd }) => {
        const value = readPartition(given, cwd)
        return value === undefined
          ? {
              problem:
                'must be name:default, name:kvstore, name:file with partition_file:<path>, or name:hash with hash_ranges:<from>..<to>|…',
            }
          : { value }
      },
    } satisfies Option<PartitionRule>,
    sensor_ref: text({
      kind: 'reference or empty',
      default: '',
      problem: 'must be <pack>.<class>, or empty',
      accepts: (ref) => /^(\S+\.\S+)?$/.test(ref),
      about: 'The only sensor that runs here. Empty: all that partition_provider gives.',
    }),
    respawn_delay: decimal({
      default: 2.5,
      min: 0,
      max: 3600,
      unit: 'seconds; 0: svc does not start it again',
      about:
        'Time between an unexpected end of a sensor and its next start. After two such starts it is four times as long, then twice as long each time.',
    }),
    max_respawn_delay: integer({
      default: 300,
      min: 0,
      max: 86_400,
      unit: 'seconds; 0: svc gives up after two starts',
      about: 'The longest time between an unexpected end of a sensor and its next start.',
    }),
  },
  rulesengine: {
    logging: logging('messages about rules and their enforcements'),
  },
  rules: {
    max_depth: integer({
      default: 20,
      min: 0,
      max: 100_000,
      unit: 'rules; 0: no limit',
      about:
        'Rules that start each other: longest chain of executions that rules have started, each by the event of the one before. A longer chain is cut when its trace also has more than rules.max_cascade executions by rules.',
    }),
    max_cascade: integer({
      default: 100,
      min: 0,
      max: 1_000_000,
      unit: 'executions; 0: no limit',
      about: 'Executions that rules may start in one trace after its chain is longer than rules.max_depth.',
    }),
  },
  system_user: {
    user: text({
      kind: 'account name',
      default: 'svc',
      problem: 'must be an account name of at most 64 letters, digits and . _ @ - (not first)',
      accepts: (value) => /^[\p{L}\p{N}_][\p{L}\p{N}._@-]{0,63}\$?$/u.test(value),
      about:
        'User for actions that the system starts, and for all requests while authentication is off. Local commands run as the account with this name, if it exists and the server may switch to it with sudo without a password; otherwise as the account of the server.',
    }),
    ssh_key_file: text({
      kind: 'path or empty',
      default: '',
      problem: 'must be a path',
      accepts: (value) => !value.includes('\0'),
      about:
        'Private key for remote hosts, if an action sets neither key nor password. Empty: the first that exists of ~/.ssh/<user>_rsa, ~/.ssh/id_ed25519 and ~/.ssh/id_rsa in the home directory of the account of the server.',
    }),
  },
  rbac: {
    enable: boolean({
      default: false,
      about:
        'Role based access control: users have the permissions of their roles (directory rbac in system.base_path). If False, every logged-in user has all permissions. Needs auth.enable and rbac.backend = default.',
    }),
    backend: choice({
      values: ['noop', 'default'],
      default: 'noop',
      about: 'RBAC backend. rbac.enable needs the value default.',
    }),
    sync_remote_groups: boolean({
      default: false,
      about:
        'At each login, assign the roles that files in rbac/mappings map to the groups of the user. Needs an authentication backend with groups: ldap or pam.',
    }),
    permission_isolation: boolean({
      default: false,
      about: 'Limit users without an administrator role to their own executions and rules.',
    }),
  },
  webui: {
    webui_base_url: url({
      default: '',
      about: 'Base URL of the web_url of executions. Empty: the address of the API listener.',
    }),
  },
  database: {
    path: path({
      default: 'svc.db',
      relativeTo: 'basePath',
      about: 'Database file. It must be on a local disk. A relative path starts at system.base_path.',
    }),
    synchronous: choice({
      values: ['normal', 'full'],
      default: 'full',
      about:
        'Durability of commits. full: the disk has every commit before the server answers, so that what it accepted survives a power failure; only output of executions that still run may lose its last moments. normal: faster on slow disks; survives a crash of the server, but a power failure can lose the last commits.',
    }),
    reserve_bytes: integer({
      default: 67_108_864,
      min: 0,
      max: 1_000_000_000_000,
      unit: 'bytes',
      about:
        'Minimum free space on the file system of the database. Below it, the server answers new executions and webhooks with 507 and suspends timers, rules and queued executions. Running executions and deletions continue. 0: no minimum.',
    }),
  },
  backup: {
    directory: path({
      default: 'backups',
      relativeTo: 'basePath',
      about:
        'Directory of the database backups, preferably on another disk. Two servers must not share it. The server creates it if it is missing. A relative path starts at system.base_path.',
    }),
    interval: integer({
      default: DAY_SECONDS,
      min: 0,
      max: 366 * DAY_SECONDS,
      unit: 'seconds; 0: no backups',
      about: 'Interval of scheduled backups of the database.',
    }),
    keep: integer({
      default: 7,
      min: 1,
      max: 10_000,
      unit: 'backups',
      about:
        'Number of scheduled backups to keep. Backups made on request or before a migration stay until you delete them.',
    }),
    before_migration: boolean({
      default: true,
      about:
        'Create a backup before a new release migrates the database. If the backup fails, the server does not start.',
    }),
  },
  keyvalue: {
    enable_encryption: boolean({
      default: true,
      about: 'Encrypt secrets in the datastore and in triggers. If False, the server rejects secrets.',
    }),
    encryption_key_path: path({
      default: '',
      optional: true,
      relativeTo: 'basePath',
      about:
        'File of the keys that encrypt secrets. Keep a copy: without this file, stored secrets cannot be decrypted. Empty: keys/secrets.json in system.base_path, created with the first secret. A relative path starts at system.base_path.',
    }),
  },
  log: {
    level: choice({
      values: logLevels,
      default: 'INFO',
      about:
        'Minimum level of messages on standard error. At a terminal the default is WARNING. AUDIT messages: see log.audit.',
    }),
    audit: autoBoolean({
      about:
        'Write AUDIT messages to standard error. auto: not at a terminal, unless log.level is DEBUG or AUDIT. Messages that no file takes appear in any case.',
    }),
    format: choice({
      values: ['text', 'json'],
      default: 'text',
      about: 'Format of a log message: one line of text, or one JSON object.',
    }),
    mask_secrets: boolean({
      default: true,
      about:
        'Mask the values of secret names (password, token, secret, credentials …) as ******** in logs. If False, the API does not mask secrets either.',
    }),
    mask_secrets_blacklist: list({
      kind: 'comma separated names',
      default: '',
      problem: 'must be a comma separated list of names of letters, digits and . _ -',
      item: (name) => (/^[\w.-]{1,128}$/.test(name) ? name : undefined),
      about: 'Additional names whose values are masked in logs.',
    }),
    file: path({
      default: '',
      optional: true,
      relativeTo: 'basePath',
      about:
        'File for a copy of all log messages, such as logs/svc.log. SIGUSR1 reopens it after rotation. Empty: none. A relative path starts at system.base_path.',
    }),
    audit_file: path({
      default: 'logs/svc.audit.log',
      optional: true,
      relativeTo: 'basePath',
      about:
        'File for a copy of AUDIT messages, one JSON object per line. SIGUSR1 reopens it after rotation. Empty: none. A relative path starts at system.base_path.',
    }),
    audit_days: integer({
      default: 90,
      min: 0,
      max: 36_500,
      unit: 'days',
      about:
        'Time for which rotated audit files stay, even if there are more than log.backup_count. 0: the number alone decides, so that a flood of events removes the record of what came before.',
    }),
    max_bytes: integer({
      default: 104_857_600,
      min: 0,
      max: 1_000_000_000_000,
      unit: 'bytes',
      about:
        'Maximum size of a log file, including the audit file. The server rotates a larger file: it renames it to <file>.1, the previous one to <file>.2 and so on. 0: no rotation, for use with logrotate.',
    }),
    backup_count: integer({
      default: 10,
      min: 1,
      max: 1000,
      about:
        'Number of rotated files to keep per log file. The server deletes older ones; for audit files see log.audit_days.',
    }),
    excludes: list({
      kind: 'comma separated names',
      default: '',
      problem: 'must be a comma separated list of names of letters, digits and . _ -',
      item: (name) => (/^[\w.-]{1,128}$/.test(name) ? name : undefined),
      about:
        'Names of events not to log. A name also excludes all events below it: request excludes request.received. AUDIT messages are always logged.',
    }),
    redirect_stderr: boolean({
      default: false,
      about: 'Write standard error of other code in the server, and warnings of Node.js, to the log at level WARNING.',
    }),
  },
  metrics: {
    driver: choice({
      values: ['noop', 'statsd', 'echo'],
      default: 'noop',
      about:
        'Where to send counters, timers and gauges. statsd: to metrics.host and metrics.port over UDP. echo: to the log. noop: nowhere.',
    }),
    host: host({ default: '127.0.0.1', about: 'Address or host name of the statsd server.' }),
    port: integer({ default: 8125, min: 1, max: 65535, about: 'UDP port of the statsd server.' }),
    prefix: text({
      kind: 'name or empty',
      default: '',
      problem: 'must be words of letters, digits, _ and -, separated by dots, at most 100 characters',
      accepts: (value) => value === '' || (/^[\w-]+(\.[\w-]+)*$/.test(value) && value.length <= 100),
      about: 'Prefix after svc. in the names of statsd metrics: prod gives svc.prod.action.executions. Empty: none.',
    }),
    sample_rate: decimal({
      default: 1,
      min: 0,
      max: 1,
      about:
        'Fraction of counters and timers to send to statsd, sampled at random. statsd scales them by the rate. Gauges are always sent.',
    }),
    prometheus: boolean({
      default: true,
      about: 'Serve GET /metrics for Prometheus on the API listener.',
    }),
    prometheus_token: text({
      kind: 'word of at least 16 characters, or empty',
      default: '',
      secret: true,
      problem: 'must be a word of at least 16 letters, digits or other characters without blanks',
      accepts: (value) => value === '' || /^[\x21-\x7e]{16,512}$/.test(value),
      about:
        'Bearer token for /metrics while auth.enable is on. Empty: administrators only, with a token or an API key.',
    }),
  },
  compat: {
    stackstorm: boolean({
      default: false,
      about:
        'Accept the names of StackStorm beside those of svc: headers, events, trigger types, the datastore, variables of actions, and others (docs/compatibility.md). Requests that use them are answered with them. What is stored has the names of svc.',
    }),
  },
  tracing: {
    otlp_endpoint: url({
      default: '',
      about:
        'Address of an OpenTelemetry collector for OTLP over HTTP, such as http://127.0.0.1:4318. The server appends /v1/traces. Empty: no tracing.',
    }),
    otlp_headers: headers({
      default: '{}',
      about: 'HTTP headers for the collector: {"Authorization": "Bearer <key>"}.',
    }),
    service_name: text({
      kind: 'name',
      default: 'svc',
      problem: 'must be a name of 1 to 100 characters',
      accepts: (value) => value.length > 0 && value.length <= 100,
      about: 'Name of this server at the collector (service.name).',
    }),
  },
} as const satisfies Record<string, Record<string, Option<unknown>>>

type Options = typeof options
type ValueOf<O> = O extends Option<infer T> ? T : never

/** The frozen values of all options: `config.api.port`. A module gets its own section and nothing else. */
export type Config = {
  readonly [S in keyof Options]: { readonly [O in keyof Options[S]]: ValueOf<Options[S][O]> }
}

/** The title of each section, for the example file. */
export const sectionAbout = {
  system: 'The server as a whole.',
  action_sensor: 'Triggers for completed executions.',
  auth: 'Authentication and its listener.',
  api: 'The API listener.',
  stream: 'The listener of the event streams.',
  actionrunner: 'Running actions.',
  content: 'Pack directories.',
  packs: 'Pack features.',
  ssh_runner: 'Running actions on remote hosts.',
  http_runner: 'Actions that send HTTP requests.',
  garbagecollector: 'Garbage collection: retention of records.',
  scheduler: 'Scheduling of queued executions.',
  workflow_engine:
    'Workflows. Each goes on from its rows after a stop, so that no stop pauses them or waits for them: svc ignores exit_still_active_check and still_active_check_interval. It ignores the options that begin with retry_, because one process conducts all workflows and none waits for another.',
  timersengine: 'Timers.',
  notifier: 'Triggers and notifications of completed executions.',
  notifications: 'Notifications of failed, recovered and missed jobs.',
  sensorcontainer: 'Sensors of packs.',
  rulesengine: 'Rules.',
  rules: 'Rules that start each other.',
  system_user: 'The user of the system itself.',
  rbac: 'Role based access control.',
  webui: 'Links to the web client.',
  database: 'Storage.',
  backup: 'Backups of the database.',
  keyvalue: 'Secrets at rest.',
  log: 'Logging, to standard error and to files.',
  metrics: 'Metrics for monitoring.',
  compat: 'Clients and packs of StackStorm.',
  tracing: 'Tracing with OpenTelemetry.',
} as const satisfies Record<keyof Options, string>

export interface OptionEntry {
  section: string
  name: string
  /** `section.name` */
  key: string
  option: Option<unknown>
}

/** The table as a list, in its order. */
export const optionEntries: readonly OptionEntry[] = Object.entries(options).flatMap(([section, rows]) =>
  Object.entries<Option<unknown>>(rows).map(([name, option]) => ({ section, name, key: `${section}.${name}`, option })),
)

/** Flag of an option: `--api-port`. */
export const flagName = (entry: OptionEntry): string => `--${entry.section}-${entry.name}`.replaceAll('_', '-')

/** Type, range and unit of the values: `whole number, 1 to 100, seconds`. */
export function describeValues(option: Option<unknown>): string {
  return [option.kind, option.range, option.unit].filter((part) => part !== undefined).join(', ')
}

/**
 * Options of existing configuration files that this release ignores (contract 10, 10.2), by section; `*` is
 * every option of the section. The server lists them in one note instead of reporting them as unknown.
 */
export const unusedOptions: Readonly<Record<string, '*' | readonly string[]>> = {
  actionrunner: [
    'stream_output_buffer_size',
    'workflows_pool_size',
    'virtualenv_binary',
    'graceful_shutdown',
    'exit_still_active_check',
    'still_active_check_interval',
  ],
  api: ['debug'],
  auth: ['debug', 'sso', 'sso_backend', 'sso_backend_kwargs'],
  content: ['pack_group', 'runners_base_paths', 'system_runners_base_path'],
  coordination: '*',
  database: [
    'host',
    'port',
    'db_name',
    'username',
    'password',
    'authentication_mechanism',
    'connection_timeout',
    'connection_retry_max_delay_m',
    'connection_retry_backoff_max_s',
    'connection_retry_backoff_mul',
    'compressors',
    'zlib_compression_level',
    'ssl',
    'ssl_keyfile',
    'ssl_certfile',
    'ssl_cert_reqs',
    'ssl_ca_certs',
    'ssl_match_hostname',
    'tls',
    'tls_certificate_key_file',
    'tls_certificate_key_file_password',
    'tls_ca_file',
    'tls_allow_invalid_certificates',
    'tls_allow_invalid_hostnames',
  ],
  DEFAULT: '*',
  exporter: '*',
  messaging: '*',
  scheduler: [
    'execution_scheduling_timeout_threshold_min',
    'gc_interval',
    'pool_size',
    'retry_max_attempt',
    'retry_wait_msec',
  ],
  sensorcontainer: ['logging', 'single_sensor_mode'],
  stream: ['debug'],
  syslog: '*',
  timer: ['logging'],
  workflow_engine: [
    'exit_still_active_check',
    'logging',
    'retry_max_jitter_msec',
    'retry_stop_max_msec',
    'retry_wait_fixed_msec',
    'still_active_check_interval',
    'webui_base_url',
  ],
}

/** Old option name → current name. The current name wins when both are set. */
export const renamedOptions: Readonly<Record<string, string>> = {
  'timer.enable': 'timersengine.enable',
  'timer.local_timezone': 'timersengine.local_timezone',
}

/**
 * Ignored options that promise a protection which this release does not have: any value other than
 * `accepted` stops the start.
 */
export const refusedUnlessOff: Readonly<Record<string, { accepted: (text: string) => boolean; why: string }>> = {
  'auth.sso': {
    accepted: (value) => readBoolean(value) === false,
    why: 'this release has no single sign-on; remove the option',
  },
}
