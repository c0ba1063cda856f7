import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { CliFailure } from '../failures.ts'
import type { ConnectionFlags } from './setting-rows.ts'
import { loadSettings, type Settings } from './settings.ts'

const folder = mkdtempSync(join(tmpdir(), 'svc-settings-'))
afterAll(() => rmSync(folder, { recursive: true }))
const pipe = join(folder, 'pipe')
execFileSync('mkfifo', [pipe])

function writeConfig(text: string, mode = 0o600): string {
  const path = join(folder, 'my config')
  writeFileSync(path, text)
  chmodSync(path, mode)
  return path
}

function load(flags: ConnectionFlags = {}, env: Record<string, string> = {}) {
  return loadSettings({ ...(flags.configFile === undefined ? { skipConfig: true } : {}), ...flags }, env)
}

/** Variables that are set to nothing count as not set. */
function emptied(env: Record<string, string> = {}): Record<string, string> {
  return Object.fromEntries(Object.keys(env).map((name) => [name, '']))
}

describe('settings', () => {
  test('addresses are derived from the base URL', () => {
    expect(load().settings).toMatchObject({
      apiUrl: 'http://127.0.0.1:9101/v1',
      authUrl: 'http://127.0.0.1:9100',
      streamUrl: 'http://127.0.0.1:9102/v1',
    })
    expect(load({ url: 'https://svc.example.com/', apiVersion: 'v2' }).settings).toMatchObject({
      apiUrl: 'https://svc.example.com:9101/v2',
      authUrl: 'https://svc.example.com:9100',
      streamUrl: 'https://svc.example.com:9102/v2',
    })
  })

  test('when the API alone is named, the others are behind its listener', () => {
    expect(load({ apiUrl: 'https://svc.example.com/api/v1/' }).settings).toMatchObject({
      apiUrl: 'https://svc.example.com/api/v1',
      authUrl: 'https://svc.example.com/auth',
      streamUrl: 'https://svc.example.com/stream/v1',
    })
    expect(load({ apiUrl: 'http://a:1' }, { SVC_BASE_URL: 'http://b' }).settings.streamUrl).toBe('http://b:9102/v1')
    expect(load({ apiUrl: 'http://a:1', streamUrl: 'http://c:2/v1' }).settings.streamUrl).toBe('http://c:2/v1')
  })

  test('flag before environment before file before default', () => {
    const configFile = writeConfig('[api]\nurl = http://file:1\n[cli]\ntimezone = Asia/Tokyo\n')
    const urlOf = (flags: ConnectionFlags, env: Record<string, string>): string => load(flags, env).settings.apiUrl
    expect(urlOf({ configFile, apiUrl: 'http://flag:1' }, { SVC_API_URL: 'http://env:1' })).toBe('http://flag:1')
    expect(urlOf({ configFile }, { SVC_API_URL: 'http://env:1' })).toBe('http://env:1')
    expect(urlOf({ configFile }, { SVC_API_URL: '' })).toBe('http://file:1')
    expect(urlOf({}, {})).toBe('http://127.0.0.1:9101/v1')
    expect(load({ configFile }).settings.timezone).toBe('Asia/Tokyo')
    expect(load({}, { SVC_CONFIG_FILE: configFile, SVC_CLI_SKIP_CONFIG: '1' }).settings.timezone).toBe('UTC')
    expect(loadSettings({}, { SVC_CONFIG_FILE: configFile }).settings.timezone).toBe('Asia/Tokyo')
  })

  /** Where each setting can come from, strongest first; the last is the default. */
  const sources: {
    name: string
    read: (settings: Settings) => unknown
    flag?: ConnectionFlags
    env?: Record<string, string>
    file?: string
    /** What is read from flag, environment, file and default, as far as there are such. */
    values: unknown[]
  }[] = [
    {
      name: 'base_url',
      read: ({ authUrl }) => authUrl,
      flag: { url: 'http://flag' },
      env: { SVC_BASE_URL: 'http://env' },
      file: '[general]\nbase_url = http://file',
      values: ['http://flag:9100', 'http://env:9100', 'http://file:9100', 'http://127.0.0.1:9100'],
    },
    {
      name: 'api_version',
      read: ({ streamUrl }) => streamUrl,
      flag: { apiVersion: 'v2' },
      env: { SVC_API_VERSION: 'v3' },
      file: '[general]\napi_version = v4',
      values: ['v2', 'v3', 'v4', 'v1'].map((version) => `http://127.0.0.1:9102/${version}`),
    },
    {
      name: 'cacert',
      read: ({ cacert }) => cacert,
      flag: { cacert: '/flag.pem' },
      env: { SVC_CACERT: '/env.pem' },
      file: '[general]\ncacert = True',
      values: ['/flag.pem', '/env.pem', true, false],
    },
    {
      name: 'silence_ssl_warnings',
      read: ({ silenceSslWarnings }) => silenceSslWarnings,
      file: '[general]\nsilence_ssl_warnings = yes',
      values: [true, false],
    },
    {
      name: 'silence_schema_output',
      read: ({ silenceSchemaOutput }) => silenceSchemaOutput,
      file: '[general]\nsilence_schema_output = False',
      values: [false, true],
    },
    {
      name: 'debug',
      read: ({ debug }) => debug,
      flag: { debug: true },
      env: { SVC_CLI_DEBUG: '0' },
      file: '[cli]\ndebug = True',
      values: [true, false, true, false],
    },
    {
      name: 'cache_token',
      read: ({ cachesToken }) => cachesToken,
      file: '[cli]\ncache_token = False',
      values: [false, true],
    },
    {
      name: 'timezone',
      read: ({ timezone }) => timezone,
      file: '[cli]\ntimezone = Europe/Berlin',
      values: ['Europe/Berlin', 'UTC'],
    },
    {
      name: 'username and password',
      read: ({ account }) => account,
      file: '[credentials]\nusername = alice\npassword = a%b:c',
      values: [{ username: 'alice', password: 'a%b:c' }, undefined],
    },
    {
      name: 'token',
      read: ({ credential }) => credential?.value,
      flag: { token: 'flag' },
      env: { SVC_AUTH_TOKEN: 'env' },
      values: ['flag', 'env', undefined],
    },
    {
      name: 'api_key',
      read: ({ credential }) => credential?.value,
      flag: { apiKey: 'flag' },
      env: { SVC_API_KEY: 'env' },
      file: '[credentials]\napi_key = file',
      values: ['flag', 'env', 'file', undefined],
    },
    {
      name: 'basic_auth',
      read: ({ basicAuth }) => basicAuth,
      flag: { basicAuth: 'flag:a:b' },
      env: { SVC_BASIC_AUTH: 'env:a:b' },
      file: '[credentials]\nbasic_auth = file:a:b',
      values: ['flag:a:b', 'env:a:b', 'file:a:b', undefined],
    },
    ...(['api', 'auth', 'stream'] as const).map((surface) => ({
      name: `${surface} url`,
      read: (settings: Settings) => settings[`${surface}Url`],
      flag: { [`${surface}Url`]: 'http://flag:1/x' },
      env: { [`SVC_${surface.toUpperCase()}_URL`]: 'http://env:1/x/' },
      file: `[${surface}]\nurl = http://file:1/x`,
      values: [
        'http://flag:1/x',
        'http://env:1/x',
        'http://file:1/x',
        { api: 'http://127.0.0.1:9101/v1', auth: 'http://127.0.0.1:9100', stream: 'http://127.0.0.1:9102/v1' }[surface],
      ],
    })),
  ]
  test.each(sources)('$name: flag, environment, file, default', ({ read, flag, env, file, values }) => {
    const configFile = writeConfig(file ?? '')
    const found: unknown[] = []
    if (flag !== undefined) found.push(read(load({ configFile, ...flag }, env).settings))
    if (env !== undefined) found.push(read(load({ configFile }, env).settings))
    if (file !== undefined) found.push(read(load({ configFile }).settings))
    found.push(read(load({ configFile: writeConfig('') }, emptied(env)).settings))
    expect(found).toEqual(values)
  })

  test('every option is in that table', () => {
    const names = [...load().text.matchAll(/^(?:# )?(\w+) (?:=|is not set)/gm)].map(([, name]) => name)
    const tested = sources.flatMap(({ name }) => name.split(/ and | /))
    expect(names.filter((name) => name !== undefined && !tested.includes(name))).toEqual([])
  })

  test('values of the file are literal', () => {
    const configFile = writeConfig('[credentials]\napi_key = a%(b)s%%;c\nbasic_auth = user:pa:ss%\n')
    expect(load({ configFile }).settings).toMatchObject({
      credential: { header: 'Svc-Api-Key', value: 'a%(b)s%%;c' },
      basicAuth: 'user:pa:ss%',
    })
  })

  test('one credential is used: flags go first, then a token before a key', () => {
    const both = { SVC_AUTH_TOKEN: 'token', SVC_API_KEY: 'key' }
    expect(load().settings.credential).toBeUndefined()
    expect(load({}, both).settings.credential).toEqual({
      header: 'X-Auth-Token',
      value: 'token',
      origin: 'in SVC_AUTH_TOKEN',
    })
    expect(load({ token: 't', apiKey: 'k' }, both).settings.credential?.value).toBe('t')
    expect(load({ apiKey: 'k' }, both).settings.credential).toEqual({
      header: 'Svc-Api-Key',
      value: 'k',
      origin: 'given with --api-key',
    })
    expect(load({}, { SVC_API_KEY: 'key' }).settings.credential?.value).toBe('key')
  })

  test('certificates: unchecked, the system, or a bundle', () => {
    expect(load().settings.cacert).toBe(false)
    expect(load({ cacert: 'True' }).settings.cacert).toBe(true)
    expect(load({ cacert: '/x/ca.pem' }).settings.cacert).toBe('/x/ca.pem')
  })

  test.each<[string, () => unknown, RegExp]>([
    ['a missing file', () => load({ configFile: join(folder, 'none') }), /configuration file .*none does not exist/],
    [
      'a missing file of the environment',
      () => loadSettings({}, { SVC_CONFIG_FILE: '/nowhere' }),
      /nowhere does not exist/,
    ],
    ['a pipe as file', () => load({ configFile: pipe }), /is not a file/],
    ['a folder as file', () => load({ configFile: folder }), /is not a file/],
    [
      'lines that are none',
      () => load({ configFile: writeConfig('[api]\nurl\n[b\n') }),
      /line 2: "url" is neither[^]*line 3/,
    ],
    ['a URL without scheme', () => load({ apiUrl: 'localhost:9101' }), /api URL "localhost:9101" is not an http/],
    ['a URL with credentials', () => load({ apiUrl: 'http://u:p@h' }), /api URL must not carry credentials/],
    ['a URL with a query', () => load({ streamUrl: 'http://h/?a' }), /must not have a query/],
    ['a base URL with a port', () => load({ url: 'http://h:8080' }), /base URL http:\/\/h:8080 must not have a port/],
    ['a version with blanks', () => load({ apiVersion: 'v 1' }), /API version "v 1"/],
    ['a token of two lines', () => load({ token: 'a\nb' }), /token must be one word/],
    ['basic credentials without colon', () => load({ basicAuth: 'user' }), /must be user:password/],
    [
      'a zone that is none',
      () => load({ configFile: writeConfig('[cli]\ntimezone = Mars\n') }),
      /cli\.timezone is "Mars"/,
    ],
    [
      'a word that is no boolean',
      () => load({ configFile: writeConfig('[cli]\ndebug = maybe\n') }),
      /cli\.debug is "maybe"/,
    ],
  ])('refuses %s', (_what, action, message) => {
    expect(action).toThrow(CliFailure)
    expect(action).toThrow(message)
  })

  test('a file open to others, and options that do not exist, are warned of', () => {
    const configFile = writeConfig('[api]\nuri = x\n[nope]\na = b\n[credentials]\ntoken = x\n', 0o644)
    expect(load({ configFile }).warnings).toEqual([
      `${configFile} is open to other users; close it with: chmod o-rwx '${configFile}'`,
      expect.stringContaining('line 2: the client has no option [api] uri'),
      expect.stringContaining('line 4: the client has no option [nope] a'),
      expect.stringContaining('line 6: the client has no option [credentials] token'),
    ])
    expect(load({ configFile: writeConfig('[api]\nurl = http://x\n') }).warnings).toEqual([])
  })

  test('the description says where each value is from, and masks secrets', () => {
    const configFile = writeConfig('[credentials]\npassword = hush-1\n[cli]\ntimezone = UTC\n')
    const { text } = load({ configFile, basicAuth: 'u:hush-2' }, { SVC_AUTH_TOKEN: 'hush-3', SVC_BASE_URL: 'http://b' })
    expect(text).not.toContain('hush')
    expect(text).toContain(`# Configuration file: ${configFile}\n`)
    expect(text).toContain('# environment variable SVC_BASE_URL\nbase_url = http://b\n')
    expect(text).toContain('# file\npassword = ********\n')
    expect(text).toContain('# flag\nbasic_auth = ********\n')
    expect(text).toContain('# derived\nurl = http://b:9101/v1\n')
  })
})
