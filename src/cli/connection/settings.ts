/**
 * Where the server is and who is asking: flag before environment before file before default (contract 09, 9.7).
 */
import { statSync } from 'node:fs'
import { devNull } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'
import { absolutePath, homeFolder } from '../cli-process.ts'
import { readBoundedFileSync } from '../../lib/files/index.ts'
import { parseIniBytes, type IniFile } from '../../lib/text/index.ts'
import { secretMask } from '../../lib/log/index.ts'
import { quote } from '../../lib/process/index.ts'
import { CliFailure } from '../failures.ts'
import { clientEnvironment, isCalledAsStackstorm } from '../program-names.ts'
import { settingRows, type ConnectionFlags, type SettingRow } from './setting-rows.ts'

const MAX_FILE_BYTES = 1024 * 1024

/** Header and value that tell the server who is asking. */
export interface ClientCredential {
  header: 'X-Auth-Token' | 'Svc-Api-Key'
  value: string
  /** Its source, such as `in SVC_AUTH_TOKEN`; undefined for a login. */
  origin?: string
}

export interface Settings {
  apiUrl: string
  authUrl: string
  streamUrl: string
  /** Unix socket of the server, which replaces the host of the addresses; `address` is a short form of its path. */
  socket?: { path: string; address: string }
  /**
   * `false`: certificates are not checked; `true`: against the authorities that Node knows, NODE_EXTRA_CA_CERTS included;
   * else the path of a bundle.
   */
  cacert: boolean | string
  silenceSslWarnings: boolean
  /** Whether the note is left out that an action has no schema for its output. */
  silenceSchemaOutput: boolean
  debug: boolean
  timezone: string
  credential: ClientCredential | undefined
  /** `user:password` for a proxy in front of the server. */
  basicAuth: string | undefined
  /** Who logs in where no credential is given. */
  account: AccountSettings | undefined
  /** Whether to store the token of a login for the next command. */
  cachesToken: boolean
  /** The client's own: its configuration file, unless that is named, and the tokens of logins. Empty without a home. */
  folder: string
  /** Where the configuration file is, or would be; undefined when none is read. */
  configFile: ConfigFile | undefined
}

/** Of the configuration file. */
export interface AccountSettings {
  username: string
  password: string | undefined
}

type Source = 'default' | 'file' | 'environment' | 'flag' | 'derived'

interface Value {
  text: string
  source: Source
}

type Key = `${(typeof settingRows)[number]['section']}.${string}`

export interface LoadedSettings {
  settings: Settings
  /** For standard error. */
  warnings: string[]
  /** The effective configuration in the form of the file, secrets masked. */
  text: string
}

/** @throws CliFailure naming the flag, variable or line that cannot be used */
export function loadSettings(flags: ConnectionFlags, given: NodeJS.ProcessEnv): LoadedSettings {
  const env = clientEnvironment(given)
  const warnings: string[] = []
  const file = findFile(flags, env)
  const ini = file === undefined ? undefined : readFile(file, warnings)
  const values = new Map<string, Value>()
  for (const row of settingRows) {
    const value = valueOf(row, flags, env, ini)
    if (value !== undefined) values.set(`${row.section}.${row.name}`, value)
  }
  const folder = clientFolder()
  const read = toSettings(values)
  const settings = { ...read, cachesToken: read.cachesToken && folder !== '', folder, configFile: file }
  const text = describe(values, file, ini !== undefined, settings)
  return { settings, warnings, text }
}

export interface ConfigFile {
  /** Absolute. */
  path: string
  /** Named by a flag or the environment: it must be there. */
  isExplicit: boolean
  /**
   * No other program reads it, so that an option which the client does not know is a mistake. The server reads
   * `SVC_CONFIG_FILE` too.
   */
  isOurs: boolean
}

function findFile(flags: ConnectionFlags, env: NodeJS.ProcessEnv): ConfigFile | undefined {
  if (flags.configFile !== undefined) return { path: absolutePath(flags.configFile), isExplicit: true, isOurs: true }
  if (flags.skipConfig === true || isTrue(env['SVC_CLI_SKIP_CONFIG'] ?? '')) return undefined
  const named = env['SVC_CONFIG_FILE'] ?? ''
  if (named !== '') return { path: absolutePath(named), isExplicit: true, isOurs: false }
  const folder = clientFolder()
  return folder === '' ? undefined : { path: join(folder, 'config'), isExplicit: false, isOurs: true }
}

/**
 * The client's own folder; empty when the home directory is unknown, or relative: whoever owns the working directory
 * would then decide what is in it.
 */
function clientFolder(): string {
  let home: string
  try {
    home = homeFolder()
  } catch {
    // The account is in no list of accounts, as in containers.
    return ''
  }
  return isAbsolute(home) ? join(home, isCalledAsStackstorm() ? '.st2' : '.svc') : ''
}

function readFile({ path, isExplicit, isOurs }: ConfigFile, warnings: string[]): IniFile['sections'] | undefined {
  // Naming it is a usual way to say that nothing shall be read.
  const file = path === devNull ? { bytes: Buffer.alloc(0), mode: 0 } : readBoundedFileSync(path, MAX_FILE_BYTES)
  if ('problem' in file) {
    if (file.isMissing && !isExplicit) return undefined
    throw new CliFailure(`The configuration file ${path} ${file.problem}.`)
  }
  const { bytes, mode } = file
  const checkMode = (each: string, itsMode: number): void => {
    if ((itsMode & 0o007) === 0) return
    warnings.push(`${each} is open to other users; close it with: chmod o-rwx ${quote(each)}`)
  }
  checkMode(path, mode)
  if (!isExplicit) checkMode(dirname(path), statSync(dirname(path)).mode)
  const { sections, problems } = parseIniBytes(bytes)
  if (problems.length > 0) {
    const lines = problems.map(({ line, message }) => `  line ${line}: ${message}`)
    throw new CliFailure(`The configuration file ${path} cannot be used:\n${lines.join('\n')}`)
  }
  if (isOurs) warnings.push(...findUnknown(path, sections))
  return sections
}

/** A line for each option of a file that the client does not know. */
export function findUnknown(path: string, sections: IniFile['sections']): string[] {
  const known: readonly SettingRow[] = settingRows
  return [...sections].flatMap(([section, options]) =>
    [...options]
      .filter(([name]) => !known.some((row) => row.section === section && row.name === name && !row.notInFile))
      .map(([name, { line }]) => `${path}, line ${line}: the client has no option [${section}] ${name}`),
  )
}

function valueOf(
  row: SettingRow,
  flags: ConnectionFlags,
  env: NodeJS.ProcessEnv,
  ini: IniFile['sections'] | undefined,
): Value | undefined {
  const flag = row.flag === undefined ? undefined : flags[row.flag]
  if (flag !== undefined) return { text: String(flag), source: 'flag' }
  const variable = row.env === undefined ? '' : (env[row.env] ?? '')
  if (variable !== '') return { text: variable, source: 'environment' }
  const line = row.notInFile ? undefined : ini?.get(row.section)?.get(row.name)
  if (line !== undefined && line.text !== '') return { text: line.text, source: 'file' }
  return row.default === undefined ? undefined : { text: row.default, source: 'default' }
}

function toSettings(values: Map<string, Value>): Omit<Settings, 'folder' | 'configFile'> {
  const text = (key: Key): string | undefined => values.get(key)?.text
  const boolean = (key: Key): boolean => {
    const word = text(key) ?? 'False'
    if (isTrue(word)) return true
    if (isFalse(word)) return false
    throw new CliFailure(`${key} is "${word}"; it must be True or False.`)
  }
  const cacert = text('general.cacert') ?? 'False'
  const username = text('credentials.username')
  return {
    ...findUrls(values),
    cacert: isTrue(cacert) ? true : isFalse(cacert) ? false : absolutePath(cacert),
    silenceSslWarnings: boolean('general.silence_ssl_warnings'),
    silenceSchemaOutput: boolean('general.silence_schema_output'),
    debug: boolean('cli.debug'),
    timezone: checkTimezone(text('cli.timezone') ?? 'UTC'),
    credential: findCredential(values),
    basicAuth: checkBasicAuth(text('credentials.basic_auth')),
    account: username === undefined ? undefined : { username, password: text('credentials.password') },
    cachesToken: boolean('cli.cache_token'),
  }
}

const surfaces = [
  { key: 'api', port: 9101, path: true },
  { key: 'auth', port: 9100, path: false },
  { key: 'stream', port: 9102, path: true },
] as const

/**
 * An address that is not named is derived from the base URL. When only that of the API is named, the other two are
 * derived from it: its listener also answers for them, and the default base URL, this machine, is not meant.
 */
function findUrls(values: Map<string, Value>): Pick<Settings, 'apiUrl' | 'authUrl' | 'streamUrl'> {
  const version = values.get('general.api_version')?.text ?? 'v1'
  if (!/^[\w.-]{1,32}$/.test(version)) throw new CliFailure(`The API version "${version}" must be a word such as v1.`)
  const base = checkUrl('The base URL', values.get('general.base_url')?.text ?? '')
  const api = values.get('api.url')
  const front = api !== undefined && values.get('general.base_url')?.source === 'default' ? api.text : undefined
  const urls = surfaces.map(({ key, port, path }) => {
    const named = values.get(`${key}.url`)
    if (named !== undefined) return checkUrl(`The ${key} URL`, named.text)
    const end = path ? `/${version}` : ''
    if (front !== undefined) return `${new URL(front).origin}/${key}${end}`
    const url = new URL(base)
    if (url.port !== '' || url.pathname !== '/') {
      throw new CliFailure(
        `The base URL ${base} must not have a port or path, because the addresses differ in them; ` +
          `or set each address: --api-url, --auth-url, --stream-url.`,
      )
    }
    return `${url.protocol}//${url.hostname}:${port}${end}`
  })
  for (const [index, { key }] of surfaces.entries()) {
    if (!values.has(`${key}.url`)) values.set(`${key}.url`, { text: urls[index] ?? '', source: 'derived' })
  }
  const [apiUrl = '', authUrl = '', streamUrl = ''] = urls
  return { apiUrl, authUrl, streamUrl }
}

function checkUrl(what: string, text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !['http:', 'https:'].includes(url.protocol)) {
    // What stands before the last @ may be a password.
    const shown = text.replace(/^([a-z]+:\/\/)?.*@/is, `$1${secretMask}@`)
    throw new CliFailure(`${what} "${shown}" is not an http or https address such as http://127.0.0.1:9101.`)
  }
  if (url.username !== '' || url.password !== '') {
    throw new CliFailure(`${what} must not carry credentials; use --basic-auth or SVC_BASIC_AUTH.`)
  }
  if (url.search !== '' || url.hash !== '') throw new CliFailure(`${what} "${text}" must not have a query or fragment.`)
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '')
}

/** Only one is sent, since the server refuses two; flags go before the environment, a token before a key. */
function findCredential(values: Map<string, Value>): ClientCredential | undefined {
  const token = values.get('credentials.token')
  const key = values.get('credentials.api_key')
  if (token !== undefined && (token.source === 'flag' || key?.source !== 'flag')) {
    return { header: 'X-Auth-Token', value: checkHeaderValue('token', token.text), origin: originOf('token', token) }
  }
  if (key === undefined) return undefined
  return { header: 'Svc-Api-Key', value: checkHeaderValue('API key', key.text), origin: originOf('api_key', key) }
}

function originOf(name: string, { source }: Value): string {
  const row: SettingRow | undefined = settingRows.find((each) => each.section === 'credentials' && each.name === name)
  if (source === 'environment') return `in ${row?.env ?? ''}`
  return source === 'flag'
    ? `given with ${row?.term?.replace(/.*(--[a-z-]+).*/, '$1') ?? ''}`
    : 'in the configuration file'
}

/** Whether a header can carry it. */
export function isCredentialText(value: string): boolean {
  return /^[\x21-\x7e]{1,4096}$/.test(value)
}

function checkHeaderValue(what: string, value: string): string {
  if (!isCredentialText(value)) {
    throw new CliFailure(
      `The ${what} must be one word of printable ASCII characters. Check that you pasted nothing else.`,
    )
  }
  return value
}

function checkBasicAuth(value: string | undefined): string | undefined {
  if (value !== undefined && !value.includes(':')) {
    throw new CliFailure('The extra basic credentials must be user:password.')
  }
  return value
}

function checkTimezone(name: string): string {
  if (name === 'UTC') return name
  try {
    return new Intl.DateTimeFormat('en-GB', { timeZone: name }).resolvedOptions().timeZone
  } catch {
    throw new CliFailure(`cli.timezone is "${name}"; it must be a name such as UTC or Europe/Berlin.`)
  }
}

function describe(
  values: Map<string, Value>,
  file: ConfigFile | undefined,
  wasRead: boolean,
  settings: Settings,
): string {
  const lines = [
    file === undefined
      ? '# No configuration file is read'
      : `# Configuration file: ${file.path}${wasRead ? '' : ' (does not exist)'}`,
  ]
  let section = ''
  for (const row of settingRows as readonly SettingRow[]) {
    const value = values.get(`${row.section}.${row.name}`)
    if (row.section !== section) lines.push('', `[${row.section}]`)
    section = row.section
    if (value === undefined) {
      lines.push(`# ${row.name} is not set`)
      continue
    }
    const shownText = row.section === 'api' ? settings.apiUrl : value.text
    const text = row.kind === 'secret' ? secretMask : row.name === 'url' ? shownText : value.text
    lines.push(`# ${whence(value.source, row)}`, `${row.name} = ${text}`)
  }
  return `${lines.join('\n')}\n`
}

function whence(source: Source, row: SettingRow): string {
  if (source === 'environment') return `environment variable ${row.env}`
  return source
}

function isTrue(word: string): boolean {
  return /^(true|yes|on|1)$/i.test(word)
}

function isFalse(word: string): boolean {
  return /^(false|no|off|0|none)$/i.test(word)
}
