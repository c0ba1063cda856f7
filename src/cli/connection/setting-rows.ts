/**
 * Every setting of the client, one row each: what `settings.ts` reads, the global flags, and the tables of
 * `svc help configuration` and `svc help environment`.
 */

/** Flags for the connection to the server, under their commander names. */
export interface ConnectionFlags {
  url?: string
  authUrl?: string
  apiUrl?: string
  streamUrl?: string
  apiVersion?: string
  cacert?: string
  configFile?: string
  skipConfig?: boolean
  debug?: boolean
  basicAuth?: string
  token?: string
  apiKey?: string
}

export interface SettingRow {
  section: string
  name: string
  about: string
  flag?: keyof ConnectionFlags
  /** How the flag is written, such as `--url <url>`. */
  term?: string
  env?: string
  default?: string
  /** The default in words, where it is no constant. */
  defaultText?: string
  kind?: 'boolean' | 'secret'
  /** Not read from the file. */
  notInFile?: true
}

export const settingRows = [
  {
    section: 'general',
    name: 'base_url',
    about: 'base URL of the server, without a port',
    flag: 'url',
    term: '--url <url>',
    env: 'SVC_BASE_URL',
    default: 'http://127.0.0.1',
  },
  {
    section: 'general',
    name: 'api_version',
    about: 'API version in derived addresses',
    flag: 'apiVersion',
    term: '--api-version <version>',
    env: 'SVC_API_VERSION',
    default: 'v1',
  },
  {
    section: 'general',
    name: 'cacert',
    about: 'CA bundle to verify the server certificate; true: system CAs; false: no verification',
    flag: 'cacert',
    term: '--cacert <path|true|false>',
    env: 'SVC_CACERT',
    defaultText: 'false',
  },
  {
    section: 'general',
    name: 'silence_ssl_warnings',
    about: 'suppress the warning about an unverified server certificate',
    default: 'False',
    kind: 'boolean',
  },
  {
    section: 'general',
    name: 'silence_schema_output',
    about: 'suppress the hint that --with-schema suggests an output schema for an action without one',
    default: 'True',
    kind: 'boolean',
  },
  {
    section: 'api',
    name: 'url',
    about: 'address of the API',
    flag: 'apiUrl',
    term: '--api-url <url>',
    env: 'SVC_API_URL',
    defaultText: '<base_url>:9101/<api_version>',
  },
  {
    section: 'auth',
    name: 'url',
    about: 'address of the authentication service',
    flag: 'authUrl',
    term: '--auth-url <url>',
    env: 'SVC_AUTH_URL',
    defaultText: '<base_url>:9100',
  },
  {
    section: 'stream',
    name: 'url',
    about: 'address of the event streams',
    flag: 'streamUrl',
    term: '--stream-url <url>',
    env: 'SVC_STREAM_URL',
    defaultText: '<base_url>:9102/<api_version>',
  },
  {
    section: 'credentials',
    name: 'username',
    about: 'user to log in as when no token or API key is set; written by `svc login`',
    defaultText: 'none',
  },
  {
    section: 'credentials',
    name: 'password',
    about: 'password of that user, for automatic login; written by `svc login -w`',
    kind: 'secret',
  },
  {
    section: 'credentials',
    name: 'token',
    about: 'authentication token',
    flag: 'token',
    term: '-t, --token <token>',
    env: 'SVC_AUTH_TOKEN',
    kind: 'secret',
    notInFile: true,
  },
  {
    section: 'credentials',
    name: 'api_key',
    about: 'API key',
    flag: 'apiKey',
    term: '--api-key <key>',
    env: 'SVC_API_KEY',
    kind: 'secret',
  },
  {
    section: 'credentials',
    name: 'basic_auth',
    about: 'credentials for a proxy in front of the server',
    flag: 'basicAuth',
    term: '--basic-auth <user:password>',
    env: 'SVC_BASIC_AUTH',
    kind: 'secret',
  },
  {
    section: 'cli',
    name: 'debug',
    about: 'print each request as a curl command, and each response; secrets are masked',
    flag: 'debug',
    term: '--debug',
    env: 'SVC_CLI_DEBUG',
    default: 'False',
    kind: 'boolean',
  },
  {
    section: 'cli',
    name: 'cache_token',
    about: 'store the tokens of logins for later commands',
    default: 'True',
    kind: 'boolean',
  },
  { section: 'cli', name: 'timezone', about: 'time zone of printed times, such as Europe/Berlin', default: 'UTC' },
] as const satisfies readonly SettingRow[]

/** Which configuration file is read; these are not in it. */
export const fileRows = [
  {
    about: 'configuration file of the client',
    flag: 'configFile',
    term: '--config-file <path>',
    env: 'SVC_CONFIG_FILE',
    defaultText: '~/.svc/config',
  },
  {
    about: 'read no configuration file',
    flag: 'skipConfig',
    term: '--skip-config',
    env: 'SVC_CLI_SKIP_CONFIG',
    default: 'False',
    kind: 'boolean',
  },
] as const satisfies readonly Omit<SettingRow, 'section' | 'name'>[]
