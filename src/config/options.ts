/**
 * Every option of the server, one row each (contract 10, 10.2). The `Config` type, the loader, the flags and
 * `svc.conf.example` come from this table; to add an option, add a row and run `npm run generate`.
 */
import { isIP } from 'node:net'
import { isAbsolute, resolve } from 'node:path'
import { logLevels } from '../lib/log/index.ts'
import type { ExecutionStatus } from '../core/execution-status.ts'
import { isTimeZone } from '../lib/calendar/index.ts'

export type Reading<T> = { value: T } | { problem: string }

/** What relative paths are relative to. */
export interface ReadContext {
  cwd: string
  /** Absolute `system.base_path`. */
  basePath: string
}

export interface Option<T> {
  /** What a value looks like, for the example file and `--help`: `whole number`. */
  readonly kind: string
  /** As it would stand in the file; read by `read` like any other value. */
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

const maximumDays = 36_500

/** Days; 0 keeps for ever. */
const ttl = (row: RowBasics<number>): Option<number> =>
  integer({ ...row, min: 0, max: maximumDays, unit: 'days; 0: for ever' })

/** The same; empty: undefined. */
const optionalTtl = ({ about }: { about: string }): Option<number | undefined> => {
  const given = ttl({ default: 0, about })
  return {
    ...given,
    kind: 'whole number or nothing',
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

const maximumListItems = 1000

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
        if (item === undefined || value.length === maximumListItems) return { problem: row.problem }
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
  kind: row.optional === true ? 'path or nothing' : 'path',
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
  kind: 'URL or nothing',
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
      const value: unknown = JSON.parse(given)
      if (isJsonObject(value)) return { value }
      return { problem: 'must be a JSON object such as {"name": "value"}' }
    } catch (error) {
      // Only the place is repeated: the parser's message quotes the text, which may hold a password.
      const at = error instanceof Error ? /position (\d+)/.exec(error.message)?.[1] : undefined
      const where = at === undefined ? '' : `; it is malformed at character ${Number(at) + 1}`
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

/** The option of a part that existing installations know as a process of its own. */
const logging = (part: string): Option<string> =>
  path({
    default: '',
    optional: true,
    relativeTo: 'cwd',
    about: `Python logging configuration, as existing installations have them: ${part} is added to the files that its handlers name, at their levels. Files for everything are log.file and log.audit_file.`,
  })

const dayOfSeconds = 86_400

const defaultTimeZone = 'America/Los_Angeles'

/** The three options that put a listener on TLS. */
const tls = (section: string, listener: string, more = '') => ({
  use_ssl: boolean({
    default: false,
    about: `TLS (1.2 and 1.3) on the ${listener} listener, which then answers no plain HTTP.${more}`,
  }),
  cert: path({
    default: '',
    optional: true,
    relativeTo: 'basePath',
    about: `PEM file with the certificate for ${section}.use_ssl, followed by those of the authorities between it and a known one. It is read again on SIGHUP. A relative path starts at system.base_path.`,
  }),
  key: path({
    default: '',
    optional: true,
    relativeTo: 'basePath',
    about: `PEM file with the private key of ${section}.cert, without passphrase; no other account should be able to read it. It is read again on SIGHUP.`,
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
        'Folder of everything the server keeps: the database, packs, keys, the password file. It is created when missing. A relative path starts at the working directory.',
    }),
    debug: boolean({ default: false, about: 'Log at level DEBUG, whatever log.level says. Not meant for production.' }),
    allow_open_network: boolean({
      default: false,
      about:
        'Accept listeners on addresses other than loopback although auth.enable is off. Everybody who reaches such an address can run commands on this machine.',
    }),
    max_connections: integer({
      default: 16_000,
      min: 8,
      max: 1_000_000,
      unit: 'connections',
      about:
        'The most connections to all listeners together, of which three quarters may be streams; requests on further ones are refused with 503. The limit of open files of the process may allow less.',
    }),
    max_requests: integer({
      default: 1000,
      min: 1,
      max: 1_000_000,
      unit: 'requests',
      about:
        'The most requests that each listener works on at the same time; further ones are refused with 503. Streams, checks of the health and requests that stop executions do not count.',
    }),
    validate_trigger_parameters: boolean({
      default: true,
      about:
        'Refuse triggers, and rules, whose trigger parameters do not fit the schema of their trigger type. Webhooks and timers are always checked.',
    }),
    validate_trigger_payload: boolean({
      default: true,
      about:
        'Refuse events whose payload does not fit the schema of their trigger type, or whose type does not exist. Webhooks and timers are always checked.',
    }),
  },
  action_sensor: {
    enable: boolean({
      default: true,
      about: 'Dispatch the trigger core.svc.generic.actiontrigger when an execution reaches a status of emit_when.',
    }),
    emit_when: list({
      kind: 'comma separated statuses',
      default: finalStatusNames.join(','),
      problem: `must be a comma separated list of statuses: ${statusNames.join(', ')}`,
      item: (given) => statusNames.find((status) => status === given.toLowerCase()),
      about: 'Statuses of executions that dispatch core.svc.generic.actiontrigger.',
    }),
  },
  auth: {
    enable: boolean({
      default: false,
      about:
        'Require a token or an API key for every request. Needed as soon as a listener is reachable from other machines.',
    }),
    host: host({ default: '127.0.0.1', about: 'Address the authentication listener binds.' }),
    port: port({ default: 9100, about: 'Port of the authentication listener; 0 takes any free one.' }),
    ...tls('auth', 'authentication', ' The API listener then refuses logins over plain HTTP too.'),
    mode: choice({
      values: ['standalone', 'proxy'],
      default: 'standalone',
      about:
        'Who checks passwords: this server by auth.backend, or a web server in front, which then names the user in Remote-User, X-Remote-User or X-Forwarded-User; it is believed if it is one of auth.trusted_proxies.',
    }),
    backend: text({
      kind: 'name',
      default: 'flat_file',
      problem: 'must be the name of an authentication backend, such as flat_file',
      accepts: (value) => /^[a-z][a-z0-9_]{0,63}$/.test(value),
      about:
        'Where user names and passwords are checked: flat_file is a file in the format of htpasswd, ldap a directory, pam the accounts of this machine.',
    }),
    backend_kwargs: jsonObject({
      default: '{}',
      secret: true,
      about:
        'Arguments of the backend. For flat_file: {"file_path": "/etc/svc/htpasswd"}; without file_path it is htpasswd in system.base_path. For pam: {"service": "login"}. Those of ldap are in docs/access.md.',
    }),
    token_ttl: integer({
      default: dayOfSeconds,
      min: 1,
      max: 3650 * dayOfSeconds,
      unit: 'seconds',
      about: 'How long a new token is valid when its request does not say, and the most a request may ask for.',
    }),
    service_token_ttl: integer({
      default: dayOfSeconds,
      min: 1,
      max: 3650 * dayOfSeconds,
      unit: 'seconds',
      about:
        'How long the token is valid that an action finds in SVC_ACTION_AUTH_TOKEN. It ends with the run in any case, and is not limited by token_ttl.',
    }),
    api_url: url({
      default: '',
      about:
        "Public base URL of the API, without the version, that a successful login tells the client. Empty: the API listener's own address.",
    }),
    trusted_proxies: list({
      kind: 'comma separated addresses and networks',
      default: '127.0.0.0/8, ::1/128',
      problem: 'must be a comma separated list of addresses and networks such as 127.0.0.0/8, ::1/128',
      item: readNetwork,
      about:
        'Peers whose X-Forwarded-For and other forwarding headers are believed; with auth.mode = proxy also the user names that they send.',
    }),
    failures_per_user: integer({
      default: 20,
      min: 0,
      max: 100_000,
      unit: 'failures',
      about:
        'So many failed logins of one user within auth.failure_window, and the next ones have to wait, answered 429. From an address where this user has logged in before they are counted apart. 0 counts none.',
    }),
    failures_per_address: integer({
      default: 100,
      min: 0,
      max: 1_000_000,
      unit: 'failures',
      about:
        'The same for one address (of IPv6 the first 64 bits), whoever the user; tokens and API keys that nobody has count too, each once. Requests with a valid token or API key never wait. 0 counts none.',
    }),
    failure_window: integer({
      default: 300,
      min: 1,
      max: dayOfSeconds,
      unit: 'seconds',
      about: 'After it only half of the counted failures still count, and so on.',
    }),
    max_failure_wait: integer({
      default: 60,
      min: 1,
      max: 3600,
      unit: 'seconds',
      about: 'The longest wait after a failed login. The first is 1 second, and each further failure doubles it.',
    }),
    logging: logging('what is logged about logins and credentials'),
  },
  api: {
    host: host({
      default: '127.0.0.1',
      about: 'Address the API listener binds.',
    }),
    port: port({ default: 9101, about: 'Port of the API listener; 0 takes any free one.' }),
    ...tls(
      'api',
      'API',
      ' Actions are then told an https address: when the certificate does not name api.host, set auth.api_url; when its authority is of your own making, they must be told to trust it.',
    ),
    allow_origin: list({
      kind: 'comma separated origins',
      default: 'http://127.0.0.1:3000',
      problem: 'must be a comma separated list of origins such as https://svc.example.com:8443 (no path), or *',
      item: readOrigin,
      about: 'Web origins whose pages may call the API from a browser. * stands for all of them.',
    }),
    mask_secrets: boolean({
      default: true,
      about: 'Answer secret values as ********. Off, everybody who may read an execution also reads its secrets.',
    }),
    max_page_size: integer({
      default: 100,
      min: 1,
      max: 10_000,
      unit: 'records',
      about: 'The largest limit a list request may ask for.',
    }),
    max_body_bytes: integer({
      default: 16_777_216,
      min: 1024,
      max: 268_435_456,
      unit: 'bytes',
      about: 'A larger request body is refused with 413.',
    }),
    auth_cookie_secure: boolean({
      default: true,
      about:
        'Mark the cookie auth-token Secure, so that browsers send it over TLS only and do not take it over plain HTTP. A plain HTTP client of this machine gets it without the mark.',
    }),
    auth_cookie_same_site: choice({
      values: ['strict', 'lax', 'none', 'unset'],
      default: 'lax',
      about: 'Attribute SameSite of the cookie auth-token. none needs auth_cookie_secure; unset leaves it to browsers.',
    }),
    logging: logging('what is logged about requests, and whatever belongs to no other part,'),
  },
  stream: {
    host: host({ default: '127.0.0.1', about: 'Address the stream listener binds.' }),
    port: port({ default: 9102, about: 'Port of the stream listener; 0 takes any free one.' }),
    ...tls('stream', 'stream'),
    heartbeat: decimal({
      default: 25,
      min: 0.05,
      max: 3600,
      unit: 'seconds',
      about: 'Pause between the heartbeats of an idle stream; they keep proxies from closing it and find dead clients.',
    }),
    client_buffer_bytes: integer({
      default: 1_048_576,
      min: 16_384,
      max: 1_073_741_824,
      unit: 'bytes',
      about: 'Events that wait for one client of the general stream; a client further behind is disconnected.',
    }),
    logging: logging('what is logged about requests for event streams'),
  },
  actionrunner: {
    stream_output: boolean({
      default: true,
      about: 'Store the output of running actions and stream it live. Off, only the result holds it.',
    }),
    actions_pool_size: integer({
      default: 60,
      min: 1,
      max: 10_000,
      unit: 'executions',
      about: 'How many actions run at the same time; further ones wait.',
    }),
    max_result_bytes: integer({
      default: 10_485_760,
      min: 1,
      max: 268_435_456,
      unit: 'bytes',
      about:
        'The most text kept as stdout, and as stderr, in the result of an execution; with several hosts each has an equal share of it. Longer output is cut there and marked; the output itself stays complete.',
    }),
    decode_json_output: boolean({
      default: false,
      about:
        'Keep stdout and stderr of shell commands and scripts that are JSON as a whole as the value in the result, as StackStorm does: a number, a list, an object. Off, they are always text.',
    }),
    shutdown_grace_seconds: decimal({
      default: 10,
      min: 0,
      max: 86_400,
      unit: 'seconds',
      about:
        'How long running actions may still finish when the server stops. After that they are terminated, and killed 5 seconds later.',
    }),
    queue_limit: integer({
      default: 10_000,
      min: 1,
      max: 10_000_000,
      unit: 'executions',
      about: 'The most executions that may wait to run; requests beyond it are refused with 503.',
    }),
    python_binary: path({
      default: '',
      optional: true,
      relativeTo: 'cwd',
      about:
        'Python 3 that runs python-script actions of packs without a virtual environment, and makes the virtual environments. Empty: python3 in the PATH of the server.',
    }),
    python_runner_log_level: choice({
      values: ['AUDIT', 'CRITICAL', 'ERROR', 'WARNING', 'INFO', 'DEBUG'],
      default: 'DEBUG',
      about: 'The least severe level that self.logger of Python actions writes; their parameter log_level goes first.',
    }),
    python_pool_size: integer({
      default: 2,
      min: 0,
      max: 100,
      unit: 'processes',
      about:
        'How many started Python interpreters wait for the next action of an interpreter that was used in the last minutes. Each runs one action and ends. 0: every action waits for its own to start.',
    }),
    virtualenv_opts: list({
      kind: 'comma separated options',
      default: '--system-site-packages',
      problem: 'must be a comma separated list of options of the Python module venv',
      item: (given) => (given.startsWith('-') ? given : undefined),
      about: 'Options for making the virtual environment of a pack.',
    }),
    pip_opts: list({
      kind: 'comma separated options',
      default: '',
      problem: 'must be a comma separated list of options of pip install',
      item: (given) => (given.startsWith('-') ? given : undefined),
      about: 'Options for installing the requirements of a pack, such as --index-url=https://….',
    }),
    logging: logging('what is logged about executions'),
  },
  content: {
    system_packs_base_path: path({
      default: 'packs',
      relativeTo: 'basePath',
      about: 'Folder of the packs; new ones are installed here. A relative path starts at system.base_path.',
    }),
    packs_base_paths: paths({
      default: '',
      about:
        'Further folders of packs. Of packs with the same name the first counts. Relative paths start at system.base_path.',
    }),
    watch: boolean({
      default: true,
      about: 'Notice changes in the folders of packs and register what has changed. Off, svc pack register does.',
    }),
  },
  packs: {
    enable_common_libs: boolean({
      default: false,
      about: 'Let Python actions import modules from the folder lib of their pack.',
    }),
  },
  ssh_runner: {
    remote_dir: text({
      kind: 'absolute path',
      default: '/tmp',
      problem: 'must be an absolute path',
      accepts: (value) => value.startsWith('/') && !value.includes('\0'),
      about: 'Folder on other hosts below which scripts are put while they run, unless the action says another.',
    }),
    allow_partial_failure: boolean({
      default: false,
      about: 'An execution on several hosts succeeds when it has succeeded on one of them.',
    }),
    max_parallel_actions: integer({
      default: 50,
      min: 1,
      max: 1000,
      unit: 'hosts',
      about: 'On how many hosts one execution runs at the same time.',
    }),
    use_ssh_config: boolean({
      default: false,
      about: 'Take user, port, key and bastion of hosts from ssh_config_file_path where the action gives none.',
    }),
    ssh_config_file_path: text({
      kind: 'path',
      default: '~/.ssh/config',
      problem: 'must be a path',
      accepts: (value) => value !== '' && !value.includes('\0'),
      about: 'Configuration of the OpenSSH client. A path that begins with ~/ is in the home folder of the server.',
    }),
    ssh_connect_timeout: integer({
      default: 60,
      min: 1,
      max: 3600,
      unit: 'seconds',
      about: 'How long connecting to a host and logging in may take.',
    }),
    known_hosts_file: path({
      default: 'known_hosts',
      relativeTo: 'basePath',
      about: 'Keys of hosts, in the format of OpenSSH. A relative path starts at system.base_path.',
    }),
    host_key_checking: choice({
      values: ['accept-new', 'strict', 'off'],
      default: 'accept-new',
      about:
        'accept-new keeps the key of a host that is seen for the first time and refuses a changed one; strict also refuses hosts without a key; off accepts any key, and whoever sits in between.',
    }),
  },
  http_runner: {
    allowed_private_networks: list({
      kind: 'comma separated addresses and networks',
      default: '',
      problem: 'must be a comma separated list of IP addresses and networks, such as 10.0.0.0/8',
      item: readNetwork,
      about:
        'Private, loopback and link-local addresses that http-request actions may reach. All others of them are refused, also after a redirect.',
    }),
    max_body_bytes: integer({
      default: 10_485_760,
      min: 1,
      max: 268_435_456,
      unit: 'bytes',
      about: 'The longest answer that an http-request action takes; a longer one makes it fail.',
    }),
  },
  garbagecollector: {
    action_executions_ttl: ttl({
      default: 7,
      about: 'How long the stored output of executions is kept, unless action_executions_output_ttl says it.',
    }),
    action_executions_output_ttl: optionalTtl({
      about: 'How long the stored output of executions is kept. Empty: as long as action_executions_ttl says.',
    }),
    action_executions_record_ttl: ttl({
      default: 0,
      about: 'How long executions that have ended are kept, with their results and their output.',
    }),
    trigger_instances_ttl: ttl({ default: 0, about: 'How long trigger instances are kept that rules have looked at.' }),
    traces_ttl: ttl({ default: 0, about: 'How long traces are kept, from their start on, in which nothing goes on.' }),
    tokens_ttl: ttl({ default: 30, about: 'How long tokens are kept after they have expired.' }),
    rule_enforcements_ttl: ttl({ default: 0, about: 'How long rule enforcements are kept.' }),
    max_records: integer({
      default: 1_000_000,
      min: 0,
      max: 1_000_000_000,
      about:
        'How many executions, trigger instances, traces and rule enforcements are kept, of each. Of more the oldest go, unless they have not ended. 0: any number.',
    }),
    max_database_bytes: integer({
      default: 0,
      min: 0,
      max: 1_000_000_000_000_000,
      unit: 'bytes',
      about:
        'How much of the database may be in use. Of more the oldest records of all kinds go, unless they have not ended. 0: any size.',
    }),
    collection_interval: integer({
      default: 600,
      min: 1,
      max: 86_400,
      unit: 'seconds',
      about: 'Pause between two rounds of the garbage collector. SIGUSR2 starts one at once.',
    }),
    sleep_delay: decimal({
      default: 2,
      min: 0,
      max: 3600,
      unit: 'seconds',
      about: 'Pause between two kinds of records in a round.',
    }),
    purge_inquiries: boolean({
      default: true,
      about: 'End inquiries that nobody has answered in their time (ttl) with status timeout. Off, they wait for ever.',
    }),
    logging: logging('what is logged about the removal of old records'),
  },
  scheduler: {
    sleep_interval: decimal({
      default: 1,
      min: 0.01,
      max: 3600,
      unit: 'seconds',
      about:
        'Pause between two looks at the waiting executions when nothing announces one. New executions start at once and do not wait for it.',
    }),
  },
  timersengine: {
    enable: boolean({
      default: true,
      about: 'Fire timers. Off, timers can be made and looked at, and none fires.',
    }),
    local_timezone: text({
      kind: 'time zone',
      default: defaultTimeZone,
      problem: 'must be the name of a time zone in the IANA database, such as Europe/Berlin or UTC',
      // To ask takes the engine 20 ms at each start.
      accepts: (name) => name === defaultTimeZone || isTimeZone(name),
      about: 'Time zone of timers that name none.',
    }),
    missed: choice({
      values: ['once', 'skip'],
      default: 'once',
      about:
        'What becomes of a timer whose time came while the server was off: once fires it one time after the start, however often it was due; skip waits for its next time.',
    }),
    logging: logging('what is logged about timers'),
  },
  notifier: {
    logging: logging('what is logged about triggers, and about telling that executions have ended,'),
  },
  rulesengine: {
    logging: logging('what is logged about rules and their enforcement'),
  },
  system_user: {
    user: text({
      kind: 'account name',
      default: 'svc',
      problem: 'must be the name of an account: letters, digits and . _ @ - (not first), at most 64 characters',
      accepts: (value) => /^[\p{L}\p{N}_][\p{L}\p{N}._@-]{0,63}\$?$/u.test(value),
      about:
        'Acting user of what the system starts by itself, and of requests while authentication is off. Local commands run as the account of this name where this machine has one and lets the server switch to it by sudo without a password, else as the account of the server.',
    }),
    ssh_key_file: text({
      kind: 'path or nothing',
      default: '',
      problem: 'must be a path',
      accepts: (value) => !value.includes('\0'),
      about:
        'Private key for other hosts, where an action gives neither key nor password. Empty: ~/.ssh/<user>_rsa, ~/.ssh/id_ed25519 or ~/.ssh/id_rsa in the home folder of the server, whichever is there.',
    }),
  },
  rbac: {
    enable: boolean({
      default: false,
      about:
        'Role based access control: users may do what their roles grant, see the folder rbac in system.base_path. Off, everybody who is logged in may do everything. It needs auth.enable and rbac.backend = default.',
    }),
    backend: choice({
      values: ['noop', 'default'],
      default: 'noop',
      about: 'default must be set when rbac.enable is on.',
    }),
    sync_remote_groups: boolean({
      default: false,
      about:
        'At each login users get the roles that files in rbac/mappings give to their groups. The authentication backend must know groups: ldap and pam do.',
    }),
    permission_isolation: boolean({
      default: false,
      about: 'Users who are no administrators see only executions and rules of their own.',
    }),
  },
  webui: {
    webui_base_url: url({
      default: '',
      about: "Beginning of the web_url of an execution. Empty: the API listener's own address.",
    }),
  },
  database: {
    path: path({
      default: 'svc.db',
      relativeTo: 'basePath',
      about: 'The database file. A relative path starts at system.base_path. It must be on a local disk.',
    }),
    synchronous: choice({
      values: ['normal', 'full'],
      default: 'normal',
      about:
        'normal survives the death of the process, and a power cut may lose the last commits; full writes every commit to the disk before it is answered.',
    }),
    reserve_bytes: integer({
      default: 67_108_864,
      min: 0,
      max: 1_000_000_000_000,
      unit: 'bytes',
      about:
        'While the file system of the database has less room than this, new executions and webhooks are refused with 507, and timers, rules and waiting executions wait: what runs can then still finish, and old records can be deleted. 0: until the disk is full.',
    }),
  },
  backup: {
    directory: path({
      default: 'backups',
      relativeTo: 'basePath',
      about:
        'Folder of the backups of the database, best on another disk; no two servers may share it. It is created when missing. A relative path starts at system.base_path.',
    }),
    interval: integer({
      default: dayOfSeconds,
      min: 0,
      max: 366 * dayOfSeconds,
      unit: 'seconds; 0: none',
      about: 'Pause between two scheduled backups of the database.',
    }),
    keep: integer({
      default: 7,
      min: 1,
      max: 10_000,
      unit: 'backups',
      about:
        'How many scheduled backups are kept. Those made on request or before a migration stay until you remove them.',
    }),
    before_migration: boolean({
      default: true,
      about:
        'Make a backup before a new release changes the structure of the database, and do not start when that cannot be made.',
    }),
  },
  keyvalue: {
    enable_encryption: boolean({
      default: true,
      about: 'Encrypt secrets in the datastore and in triggers. Off, secrets are refused.',
    }),
    encryption_key_path: path({
      default: '',
      optional: true,
      relativeTo: 'basePath',
      about:
        'File of the keys that encrypt secrets. Empty: keys/secrets.json under system.base_path, made when the first secret is stored. Without this file no secret can be read again: keep a copy of it.',
    }),
  },
  log: {
    level: choice({
      values: logLevels,
      default: 'INFO',
      about: 'The least severe level that is logged. AUDIT lines always are.',
    }),
    format: choice({
      values: ['text', 'json'],
      default: 'text',
      about: 'One line of text, or one JSON object, per message.',
    }),
    mask_secrets: boolean({
      default: true,
      about:
        'Write the values of secret names (password, token, secret, credentials …) as ******** in logs. Off, the API stops masking too.',
    }),
    mask_secrets_blacklist: list({
      kind: 'comma separated names',
      default: '',
      problem: 'must be a comma separated list of names of letters, digits and . _ -',
      item: (name) => (/^[\w.-]{1,128}$/.test(name) ? name : undefined),
      about: 'Further names whose values are masked in logs.',
    }),
    file: path({
      default: '',
      optional: true,
      relativeTo: 'basePath',
      about:
        'File that everything logged is added to as well, such as logs/svc.log. SIGUSR1 opens it anew after it has been renamed. Empty: none. A relative path starts at system.base_path.',
    }),
    audit_file: path({
      default: 'logs/svc.audit.log',
      optional: true,
      relativeTo: 'basePath',
      about:
        'File that AUDIT lines are added to as well, one JSON object each. SIGUSR1 opens it anew after it has been renamed. Empty: none. A relative path starts at system.base_path.',
    }),
    max_bytes: integer({
      default: 104_857_600,
      min: 0,
      max: 1_000_000_000_000,
      unit: 'bytes',
      about:
        'A log file that would become larger than this is renamed to <file>.1, that one to <file>.2 and so on, and a new one is begun. It applies to the audit file too. 0: never, as where logrotate does it.',
    }),
    backup_count: integer({
      default: 10,
      min: 1,
      max: 1000,
      about: 'How many renamed files log.max_bytes keeps of each; older ones are deleted.',
    }),
    excludes: list({
      kind: 'comma separated names',
      default: '',
      problem: 'must be a comma separated list of names of letters, digits and . _ -',
      item: (name) => (/^[\w.-]{1,128}$/.test(name) ? name : undefined),
      about:
        'Events that are not logged: request leaves out all whose names begin with request. (such as request.received). AUDIT lines always are logged.',
    }),
    redirect_stderr: boolean({
      default: false,
      about:
        'Log what other code in the server writes to standard error, and warnings of Node.js, as messages at level WARNING.',
    }),
  },
  metrics: {
    driver: choice({
      values: ['noop', 'statsd', 'echo'],
      default: 'noop',
      about:
        'Where counters, timers and gauges are sent: statsd to metrics.host and metrics.port by UDP, echo to the log, noop nowhere.',
    }),
    host: host({ default: '127.0.0.1', about: 'Address or name of the statsd server.' }),
    port: integer({ default: 8125, min: 1, max: 65535, about: 'UDP port of the statsd server.' }),
    prefix: text({
      kind: 'name or nothing',
      default: '',
      problem: 'must be words of letters, digits, _ and - with a dot between two, at most 100 characters',
      accepts: (value) => value === '' || (/^[\w-]+(\.[\w-]+)*$/.test(value) && value.length <= 100),
      about: 'Stands behind svc. in the names that statsd gets: with prod it is svc.prod.action.executions.',
    }),
    sample_rate: decimal({
      default: 1,
      min: 0,
      max: 1,
      about:
        'Which part of the counters and timers is sent to statsd, chosen by chance; each says so, and the server multiplies. Gauges are always sent.',
    }),
    prometheus: boolean({
      default: true,
      about: 'Answer GET /metrics on the API listener, for Prometheus.',
    }),
    prometheus_token: text({
      kind: 'word of at least 16 characters, or nothing',
      default: '',
      secret: true,
      problem: 'must be a word of at least 16 letters, digits or other characters without blanks',
      accepts: (value) => value === '' || /^[\x21-\x7e]{16,512}$/.test(value),
      about:
        'What Prometheus sends as bearer token to read /metrics while auth.enable is on. Empty: only administrators may read it, with a token or an API key of theirs.',
    }),
  },
  tracing: {
    otlp_endpoint: url({
      default: '',
      about:
        'Address of an OpenTelemetry collector that takes OTLP over HTTP, such as http://127.0.0.1:4318; /v1/traces is added. Empty: no spans are made.',
    }),
    otlp_headers: headers({
      default: '{}',
      about: 'Headers that the collector asks for: {"Authorization": "Bearer <key>"}.',
    }),
    service_name: text({
      kind: 'name',
      default: 'svc',
      problem: 'must be a name of 1 to 100 characters',
      accepts: (value) => value.length > 0 && value.length <= 100,
      about: 'What the collector knows this server as (service.name).',
    }),
  },
} as const satisfies Record<string, Record<string, Option<unknown>>>

type Options = typeof options
type ValueOf<O> = O extends Option<infer T> ? T : never

/** The frozen values of all options: `config.api.port`. A module gets its own section and nothing else. */
export type Config = {
  readonly [S in keyof Options]: { readonly [O in keyof Options[S]]: ValueOf<Options[S][O]> }
}

/** What each section is about, for the example file. */
export const sectionAbout = {
  system: 'The server as a whole.',
  action_sensor: 'What executions tell rules.',
  auth: 'Authentication and its listener.',
  api: 'The API listener.',
  stream: 'The listener of the event streams.',
  actionrunner: 'Running actions.',
  content: 'Where packs are.',
  packs: 'What packs may do.',
  ssh_runner: 'Running actions on other hosts.',
  http_runner: 'Actions that send HTTP requests.',
  garbagecollector: 'What ends or goes by itself.',
  scheduler: 'Starting waiting executions.',
  timersengine: 'Timers.',
  notifier: 'Triggers, and telling that executions have ended.',
  rulesengine: 'Rules.',
  system_user: 'The account that stands for the system itself.',
  rbac: 'Who may do what.',
  webui: 'Links for people.',
  database: 'Storage.',
  backup: 'Copies of the database.',
  keyvalue: 'Secrets at rest.',
  log: 'Logging, to standard error and to files.',
  metrics: 'What is told to monitoring.',
  tracing: 'Spans for OpenTelemetry.',
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

/** One or two words more about the values: `whole number, 1 to 100, seconds`. */
export function describeValues(option: Option<unknown>): string {
  return [option.kind, option.range, option.unit].filter((part) => part !== undefined).join(', ')
}

/**
 * Options of existing configuration files that this release has no use for (contract 10, 10.2), by section; `*` is
 * every option of the section. They are named once, calmly, instead of being called unknown.
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
  content: ['pack_group', 'index_url', 'runners_base_paths', 'system_runners_base_path'],
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
  garbagecollector: ['workflow_executions_ttl', 'task_executions_ttl'],
  messaging: '*',
  scheduler: [
    'execution_scheduling_timeout_threshold_min',
    'gc_interval',
    'pool_size',
    'retry_max_attempt',
    'retry_wait_msec',
  ],
  sensorcontainer: '*',
  stream: ['debug'],
  syslog: '*',
  system: ['validate_output_schema'],
  timer: ['logging'],
  workflow_engine: '*',
}

/** Old names that older files use → the present one, which decides where both are given. */
export const renamedOptions: Readonly<Record<string, string>> = {
  'timer.enable': 'timersengine.enable',
  'timer.local_timezone': 'timersengine.local_timezone',
}

/**
 * Unused options that must not be passed over when they ask for protection this release does not give: any value but
 * `accepted` stops the start.
 */
export const refusedUnlessOff: Readonly<Record<string, { accepted: (text: string) => boolean; why: string }>> = {
  'auth.sso': {
    accepted: (value) => readBoolean(value) === false,
    why: 'this release has no single sign-on; remove the option',
  },
}
