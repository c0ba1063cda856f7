import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from 'vitest'
import {
  ConfigProblems,
  collectFlags,
  configFlags,
  describeConfig,
  loadConfig,
  type Config,
  type ConfigRequest,
  type LoadedConfig,
} from './load.ts'
import { optionEntries, refusedUnlessOff, renamedOptions, unusedOptions } from './options.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-config-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function pipe(): string {
  written += 1
  const path = join(folder, `pipe-${written}`)
  spawnSync('mkfifo', [path])
  return path
}

let written = 0
function file(text: string | Uint8Array): string {
  written += 1
  const path = join(folder, `file-${written}.conf`)
  writeFileSync(path, text)
  return path
}

const load = (request: Partial<ConfigRequest>): LoadedConfig =>
  loadConfig({ files: [], env: {}, cwd: folder, systemFile: join(folder, 'no-such-file'), ...request })

const loadText = (text: string): LoadedConfig => load({ files: [file(text)] })

function problemsOf(act: () => unknown): readonly string[] {
  try {
    act()
  } catch (error) {
    if (error instanceof ConfigProblems) return error.problems
    throw error
  }
  return []
}

describe('values', () => {
  it('has defaults for everything', () => {
    const { config, sources, files } = load({})
    expect(config.api).toEqual({
      host: '127.0.0.1',
      port: 9101,
      allow_origin: [],
      allowed_hosts: [],
      mask_secrets: true,
      max_page_size: 100,
      max_body_bytes: 16_777_216,
      use_ssl: false,
      cert: '',
      key: '',
      logging: '',
      auth_cookie_secure: true,
      auth_cookie_same_site: 'lax',
    })
    expect(config.log.audit_file).toBe(join(folder, 'svc_data', 'logs', 'svc.audit.log'))
    expect(config.system.base_path).toBe(join(folder, 'svc_data'))
    expect(config.database.path).toBe(join(folder, 'svc_data', 'svc.db'))
    expect(config.auth.backend_kwargs).toEqual({})
    expect(new Set(Object.values(sources))).toEqual(new Set(['default']))
    expect(files).toEqual([])
  })

  it('is typed by the table', () => {
    expectTypeOf<Config['api']['port']>().toEqualTypeOf<number>()
    expectTypeOf<Config['auth']['enable']>().toEqualTypeOf<boolean>()
    expectTypeOf<Config['api']['allow_origin']>().toEqualTypeOf<readonly string[]>()
    expectTypeOf<Config['database']['synchronous']>().toEqualTypeOf<'normal' | 'full'>()
    expectTypeOf<Config['log']['format']>().toEqualTypeOf<'text' | 'json'>()
  })

  it.each([
    ['system.base_path', '/srv/x/../svc', '/srv/svc'],
    ['auth.enable', 'TRUE', true],
    ['auth.enable', 'yes', true],
    ['auth.enable', '1', true],
    ['auth.enable', 'On', true],
    ['auth.enable', 'oFf', false],
    ['auth.enable', '0', false],
    ['auth.host', '127.8.9.10', '127.8.9.10'],
    ['auth.host', '::1', '::1'],
    ['auth.host', '[::1]', '::1'],
    ['auth.host', 'LocalHost', 'LocalHost'],
    ['auth.port', '0', 0],
    ['auth.port', '65535', 65_535],
    ['auth.port', '+8080', 8080],
    ['auth.backend', 'ldap', 'ldap'],
    ['auth.backend_kwargs', '{"file_path": "/etc/x;y"}', { file_path: '/etc/x;y' }],
    ['auth.backend_kwargs', '', {}],
    ['auth.api_url', 'https://svc.example.com/api/', 'https://svc.example.com/api'],
    ['auth.trusted_proxies', '10.0.0.1, 10.1.0.0/16 ,::/0,10.0.0.1', ['10.0.0.1', '10.1.0.0/16', '::/0']],
    ['auth.trusted_proxies', '', []],
    ['api.allow_origin', 'https://A.example:443/, *', ['https://a.example', '*']],
    ['stream.heartbeat', '0.25', 0.25],
    ['actionrunner.shutdown_grace_seconds', '0', 0],
    ['system_user.user', 'jörg.m@example', 'jörg.m@example'],
    ['database.path', '/var/x.db', '/var/x.db'],
    ['database.synchronous', 'FULL', 'full'],
    ['log.level', 'warning', 'WARNING'],
    ['log.format', 'Json', 'json'],
    ['log.mask_secrets_blacklist', 'pin,\n puk', ['pin', 'puk']],
    ['tracing.otlp_headers', '{"X-Key": "geheimes Wört"}', { 'X-Key': 'geheimes Wört' }],
  ])('reads %s = %j', (key, text, expected) => {
    const [section = '', name = ''] = key.split('.')
    const sections: Record<string, Record<string, unknown>> = load({ flags: { [key]: text } }).config
    expect(sections[section]?.[name]).toEqual(expected)
  })

  const numberTexts = ['', 'x', '1x', '0x10', '1e3', '-', '1,5', 'NaN', 'Infinity', '٣', '99999999999999999999']
  it.each([
    ['system.base_path', ['', 'a\0b']],
    ['system.debug', ['', 'maybe', '2', 'truthy', 'None']],
    [
      'auth.host',
      ['', '*', '127.0.0.256', '1.2.3', 'a b', '-a', 'a..b', '[localhost]', '::1::', 'http://x', 'x'.repeat(300)],
    ],
    ['auth.port', [...numberTexts, '65536', '-1', '80.5']],
    ['auth.backend', ['', '../x', 'Flat File', 'a'.repeat(100)]],
    ['auth.backend_kwargs', ['[]', 'null', '1', '"x"', '{', '{"a": }', "{'a': 1}"]],
    ['auth.token_ttl', [...numberTexts, '0', '-5']],
    ['auth.api_url', ['x', 'ftp://x', 'http://', 'http://u:p@x', 'http://x/?a', 'http://x/#a', 'javascript:alert(1)']],
    [
      'auth.trusted_proxies',
      ['x', '10.0.0.0/33', '::/129', '10.0.0.0/', '10.0.0.0/8/8', '10.0.0.0/-1', 'fe80::1%eth0'],
    ],
    ['api.allow_origin', ['null', 'x', 'http://x/path', 'http://*.x', 'file://x', 'http://u@x', 'http://x, ,y']],
    ['api.max_page_size', [...numberTexts, '0', '10001']],
    ['api.max_body_bytes', [...numberTexts, '1023', '16M']],
    ['stream.heartbeat', [...numberTexts, '0', '-1', '3601']],
    ['actionrunner.actions_pool_size', [...numberTexts, '0', '0.5']],
    ['system_user.user', ['', '-u', 'a b', 'root:x', 'a\nb', 'x'.repeat(100)]],
    ['database.path', ['']],
    ['database.synchronous', ['', 'off', 'normal full']],
    ['log.level', ['', 'TRACE', '10']],
    ['log.mask_secrets_blacklist', ['a b', 'a;b', `${'x'.repeat(129)}`]],
    ['tracing.otlp_headers', ['[]', '{"a b": "x"}', '{"A": "Bearer x\\ny"}', '{"A": "…"}', '{"A": 1}', '{"": "x"}']],
  ])('refuses bad values of %s', (key, texts) => {
    const variable = `SVC_${key.replace('.', '__').toUpperCase()}`
    const expected = new RegExp(`^${key}: must be .* \\(${variable}\\)$`)
    const accepted = texts.filter((text) => {
      const problems = problemsOf(() => load({ env: { [variable]: text } }))
      return problems.length !== 1 || !expected.test(problems[0] ?? '')
    })
    expect(accepted).toEqual([])
  })

  it('tells what was found and where, except for secrets', () => {
    expect(problemsOf(() => loadText('[api]\nport = abc'))[0]).toMatch(
      /^api\.port: must be a whole number from 0 to 65535, not "abc" \(.*\.conf:2\)$/,
    )
    const [secret] = problemsOf(() => loadText('[auth]\nbackend_kwargs = {"bind_password": hunter2}'))
    expect(secret).toMatch(/^auth\.backend_kwargs: must be a JSON object/)
    expect(secret).not.toContain('hunter2')
    for (const password of ['hunter2', 'hunter2/x', 'x/ hunter2@']) {
      const [url] = problemsOf(() => loadText(`[auth]\napi_url = https://admin:${password}@svc.example.com/api`))
      expect(url).toContain('not "https://********@svc.example.com/api"')
    }
  })

  it.each([
    ['port = "9101"', 'without quotes'],
    ['port = 9101 ; the usual one', 'on a separate line'],
    ['host = 127.0.0.1\n  port = 9101', 'indented line continues'],
  ])('explains the customary mistake in %j', (line, advice) => {
    expect(problemsOf(() => loadText(`[api]\n${line}`))[0]).toContain(advice)
  })

  it('freezes everything', () => {
    const { config } = load({ flags: { 'auth.backend_kwargs': '{"a": {"b": [1]}}' } })
    const frozen = (value: unknown): boolean =>
      typeof value !== 'object' || value === null || (Object.isFrozen(value) && Object.values(value).every(frozen))
    expect(frozen(config)).toBe(true)
  })

  it('gives JSON arguments no power over prototypes', () => {
    load({ flags: { 'auth.backend_kwargs': '{"__proto__": {"polluted": true}}' } })
    expect('polluted' in {}).toBe(false)
  })
})

describe('all problems at once', () => {
  it('reports files, syntax, values and combinations together', () => {
    const good = file('[api]\nport = x\nbroken line\n[log]\nlevel = loud\n[auth]\nmode = sideways\n')
    const missing = join(folder, 'missing.conf')
    const problems = problemsOf(() =>
      load({
        files: [missing, good],
        env: { SVC_STREAM__PORT: '-1' },
        flags: { 'auth.host': '0.0.0.0', 'no.such': '1' },
      }),
    )
    const has = (...words: string[]): boolean =>
      problems.some((problem) => words.every((word) => problem.includes(word)))
    expect(has(missing, 'does not exist')).toBe(true)
    expect(has(`${good}:3:`, 'broken line')).toBe(true)
    expect(has('auth.mode:', 'standalone', `${good}:7`)).toBe(true)
    expect(has('no.such:', 'unknown option')).toBe(true)
    expect(has('stream.port: must', 'SVC_STREAM__PORT')).toBe(true)
    expect(has('api.port: must', `${good}:2`)).toBe(true)
    expect(has('log.level: must', `${good}:5`)).toBe(true)
    expect(has('auth.host: 0.0.0.0')).toBe(true)
    expect(problems).toHaveLength(8)
  })

  it('writes one problem per line of its message', () => {
    const error = new ConfigProblems(['a.b: x', 'c.d: y'])
    expect(error.message.split('\n').slice(1)).toEqual(['  a.b: x', '  c.d: y'])
  })

  it('leaves out combinations of values that are invalid themselves', () => {
    const problems = problemsOf(() => load({ flags: { 'auth.enable': 'perhaps', 'api.host': '0.0.0.0' } }))
    expect(problems).toHaveLength(1)
    expect(problems[0]).toMatch(/^auth\.enable: /)
  })
})

describe('precedence and places', () => {
  it('prefers flags to environment to later files to earlier files to defaults', () => {
    const first = file('[api]\nport = 1\nhost = 127.0.0.2\nmax_page_size = 11\n[stream]\nport = 5')
    const second = file('[api]\nport = 2\nhost = 127.0.0.3\nmax_page_size = 12')
    const { config, sources } = load({
      files: [first, second],
      env: { SVC_API__PORT: '3', SVC_API__HOST: ' 127.0.0.4 ', svc_api__port: '9', SVC_API_PORT: '9' },
      flags: { 'api.port': '4' },
    })
    expect([config.api.port, config.api.host, config.api.max_page_size, config.stream.port]).toEqual([
      4,
      '127.0.0.4',
      12,
      5,
    ])
    expect([sources['api.port'], sources['api.host'], sources['api.max_page_size'], sources['stream.port']]).toEqual([
      '--api-port',
      'SVC_API__HOST',
      `${second}:4`,
      `${first}:6`,
    ])
    expect(sources['auth.port']).toBe('default')
  })

  it('looks for SVC_CONFIG_FILE, ./svc.conf and the system file, in this order, and needs none', () => {
    const cwd = join(folder, 'places')
    mkdirSync(cwd)
    const systemFile = join(cwd, 'system.conf')
    const portOf = (env: Record<string, string>): number => {
      const request = { env, cwd, systemFile }
      return loadConfig(request).config.api.port
    }
    expect(portOf({})).toBe(9101)
    writeFileSync(systemFile, '[api]\nport = 1')
    expect(portOf({})).toBe(1)
    writeFileSync(join(cwd, 'svc.conf'), '[api]\nport = 2')
    expect(portOf({})).toBe(2)
    expect(portOf({ SVC_CONFIG_FILE: '' })).toBe(2)
    writeFileSync(join(cwd, 'other.conf'), '[api]\nport = 3')
    expect(portOf({ SVC_CONFIG_FILE: 'other.conf' })).toBe(3)
    expect(problemsOf(() => portOf({ SVC_CONFIG_FILE: 'none.conf' }))[0]).toContain('none.conf does not exist')
    expect(loadConfig({ files: [], env: {}, cwd, systemFile }).config.api.port).toBe(9101)
  })

  it('starts relative paths at the working directory and at the base path', () => {
    const { config } = load({ flags: { 'system.base_path': 'here', 'database.path': 'db/x.db' } })
    expect(config.system.base_path).toBe(join(folder, 'here'))
    expect(config.database.path).toBe(join(folder, 'here', 'db', 'x.db'))
  })

  it.each([
    ['a folder', () => folder, 'is a directory'],
    ['a file below a file', () => join(file(''), 'x'), 'does not exist'],
    ['an endless file', () => '/dev/zero', 'larger than'],
    ['a pipe without a writer', () => pipe(), 'is a pipe without data'],
    ['text that is not UTF-8', () => file(Buffer.from([0x5b, 0x61, 0x5d, 0x0a, 0xff])), ':2: is not valid UTF-8'],
  ])('reports %s', (_name, path, words) => {
    const problems = problemsOf(() => load({ files: [path()] }))
    expect(problems).toHaveLength(1)
    expect(problems[0]).toContain(words)
  })

  it('waits for the writer of a pipe', () => {
    const script = `
      const { loadConfig } = await import(${JSON.stringify(new URL('./load.ts', import.meta.url).href)})
      console.log(loadConfig({ files: [process.argv[1]], env: {}, cwd: '/' }).config.api.port)`
    const shell = '"$0" --input-type=module -e "$1" <(sleep 0.3; echo "[api]"; sleep 0.3; echo "port = 7")'
    const { stdout, stderr } = spawnSync('bash', ['-c', shell, process.execPath, script], { encoding: 'utf8' })
    expect([stdout, stderr]).toEqual(['7\n', ''])
  })

  it('reports a file it may not read', () => {
    const path = file('[api]')
    chmodSync(path, 0)
    // Root may read everything, so the question is asked by a process that has given root up.
    const script = `
      const { loadConfig } = await import(${JSON.stringify(new URL('./load.ts', import.meta.url).href)})
      if (process.getuid() === 0) process.seteuid(65534)
      try { loadConfig({ files: [${JSON.stringify(path)}], env: {}, cwd: '/' }) } catch (error) { console.log(error.message) }`
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
    expect(stdout).toContain('permission denied')
  })
})

describe('names', () => {
  it.each([
    ['[api]\nprot = 1', 'api.prot', 'api.port'],
    ['[api]\nhots = 1', 'api.hots', 'api.host'],
    ['[apo]\nport = 1', 'apo.port', 'api.port'],
    ['[api]\ntoken_ttl = 1', 'api.token_ttl', 'auth.token_ttl'],
    ['[API]\nport = 1', 'API.port', 'api.port'],
    ['[actionrunner]\nmax_result_byte = 1', 'actionrunner.max_result_byte', 'actionrunner.max_result_bytes'],
  ])('names the nearest option for %j', (text, key, meant) => {
    const { warnings, config } = loadText(text)
    expect(config).toEqual(load({}).config)
    expect(warnings[0]).toMatch(new RegExp(`^${key}: unknown option, ignored \\(.*:2\\); did you mean ${meant}\\?$`))
  })

  it('does not guess wildly, and warns about environment variables too', () => {
    const { warnings } = load({ env: { SVC_ZZZZ__QQQQQQ: 'secret value' } })
    expect(warnings[0]).toBe(
      'zzzz.qqqqqq: unknown option, ignored (SVC_ZZZZ__QQQQQQ); see svc.conf.example for all options',
    )
  })

  it('bounds what it says about a file full of unknown names', () => {
    const lines = Array.from({ length: 20_000 }, (_, index) => `${'n'.repeat(20)}${index} = 1`)
    const { warnings } = loadText(`[api]\n${lines.join('\n')}`)
    expect(warnings.length).toBeLessThan(60)
    expect(warnings).toContain('19950 more unknown options ignored')
  })

  it('names unknown options beside other problems, which they often cause', () => {
    const problems = problemsOf(() => loadText('[auth]\nenabel = True\n[api]\nhost = 0.0.0.0\nport = x'))
    expect(problems).toContainEqual(
      expect.stringMatching(/^auth\.enabel: unknown option.*did you mean auth\.enable\?$/),
    )
    expect(problems).toContainEqual(expect.stringMatching(/^api\.port: must/))
  })

  it('survives sections and options named like properties of objects', () => {
    const { warnings } = loadText('[__proto__]\nport = 1\n[constructor]\nname = 1\n[api]\n__proto__ = 1\ntoString = 1')
    expect(warnings.filter((warning) => warning.includes('unknown option'))).toHaveLength(4)
  })

  it('takes an existing configuration file with one calm line about what it does not use', () => {
    const { config, warnings, notes } = loadText(`[api]
host = 127.0.0.1
port = 9101
logging = /etc/svc/logging.api.conf
mask_secrets = True
allow_origin = http://127.0.0.1:3000
[sensorcontainer]
logging = /etc/svc/logging.sensorcontainer.conf
[system]
base_path = /opt/svc
[syslog]
host = 127.0.0.1
[log]
excludes = requests,paramiko
redirect_stderr = False
mask_secrets = True
[auth]
host = 127.0.0.1
use_ssl = False
mode = standalone
backend = flat_file
backend_kwargs = {"file_path": "/etc/svc/htpasswd"}
enable = True
api_url =
[rbac]
enable = False
[messaging]
url = amqp://guest:guest@127.0.0.1:5672/
[database]
host = 127.0.0.1
username = x
[coordination]
url = redis://127.0.0.1
`)
    expect(config.system.base_path).toBe('/opt/svc')
    expect(config.auth.enable).toBe(true)
    expect(config.api.logging).toBe('/etc/svc/logging.api.conf')
    expect(config.log.excludes).toEqual(['requests', 'paramiko'])
    expect(warnings).toEqual([])
    expect(notes).toHaveLength(1)
    for (const key of ['sensorcontainer.logging', 'messaging.url', 'database.host']) {
      expect(notes[0]).toContain(key)
    }
    expect(notes[0]).not.toContain('guest')
  })

  it.each([
    ['[auth]\nsso = 1', 'auth.sso'],
    ['[rbac]\nenable = yes\nbackend = default', 'rbac.enable'],
    ['[auth]\nenable = yes\n[rbac]\nenable = yes', 'rbac.backend'],
    ['[rbac]\nenable = garbage', 'rbac.enable'],
  ])('refuses to pass over protection that is asked for: %j', (text, key) => {
    const problems = problemsOf(() => loadText(text))
    expect(problems).toHaveLength(1)
    expect(problems[0]?.startsWith(`${key}: `)).toBe(true)
  })

  it('reads options by the names they had before', () => {
    const { config, warnings, notes } = loadText('[timer]\nenable = no\nlocal_timezone = Europe/Berlin')
    expect(config.timersengine).toMatchObject({ enable: false, local_timezone: 'Europe/Berlin', missed: 'once' })
    expect([...warnings, ...notes].join()).not.toContain('timer')
    const both = '[timersengine]\nlocal_timezone = UTC\n[timer]\nlocal_timezone = Asia/Kolkata\nenable = no'
    expect(loadText(both).config.timersengine).toMatchObject({ enable: false, local_timezone: 'UTC' })
    expect(problemsOf(() => loadText('[timer]\nlocal_timezone = Mars/Olympus'))).toEqual([
      expect.stringMatching(/^timersengine\.local_timezone: must be the name of a time zone .*"Mars\/Olympus".*:2\)$/),
    ])
    for (const [old, present] of Object.entries(renamedOptions)) {
      expect(optionEntries.map(({ key }) => key)).toContain(present)
      expect(optionEntries.map(({ key }) => key)).not.toContain(old)
    }
  })

  it('keeps the lists of unused names free of options', () => {
    const isUnused = (section: string, name: string): boolean =>
      unusedOptions[section] === '*' || unusedOptions[section]?.includes(name) === true
    expect(optionEntries.filter(({ section, name }) => isUnused(section, name)).map(({ key }) => key)).toEqual([])
    const missing = Object.keys(refusedUnlessOff).filter((key) => {
      const [section = '', name = ''] = key.split('.')
      return !isUnused(section, name)
    })
    expect(missing).toEqual([])
  })
})

describe('several options together', () => {
  it.each(['auth', 'api', 'stream'])('%s.use_ssl needs a certificate and its key', (section) => {
    expect(problemsOf(() => loadText(`[${section}]\nuse_ssl = True`))).toEqual([
      expect.stringMatching(`^${section}\\.cert: .*${section}\\.use_ssl`),
      expect.stringMatching(`^${section}\\.key: .*${section}\\.use_ssl`),
    ])
    const { config, warnings } = loadText(`[${section}]\nuse_ssl = True\ncert = tls/a.pem\nkey = /etc/a.key`)
    expect(config).toMatchObject({
      [section]: { use_ssl: true, cert: join(config.system.base_path, 'tls/a.pem'), key: '/etc/a.key' },
    })
    expect(warnings.join()).not.toContain('use_ssl')
  })

  it.each([
    ['trusted_proxies =', /^auth\.trusted_proxies: must not be empty/],
    ['trusted_proxies = 10.0.0.1, 0.0.0.0/0', /^auth\.trusted_proxies: .*0\.0\.0\.0\/0/],
    ['trusted_proxies = ::/0', /^auth\.trusted_proxies: .*::\/0/],
  ])('refuses with auth.mode = proxy: %s', (line, problem) => {
    expect(problemsOf(() => loadText(`[auth]\nenable = True\nmode = proxy\n${line}`))).toEqual([
      expect.stringMatching(problem),
    ])
    for (const calm of ['enable = True\nmode = standalone', 'enable = False\nmode = proxy']) {
      expect(problemsOf(() => loadText(`[auth]\n${calm}\n${line}`))).toEqual([])
    }
  })

  it('groups cannot bring roles where a web server in front knows the users; without access control nobody asks', () => {
    const text = '[auth]\nenable = True\nmode = proxy\n[rbac]\nsync_remote_groups = True'
    expect(problemsOf(() => loadText(`${text}\nenable = True\nbackend = default`))).toEqual([
      expect.stringMatching(/^rbac\.sync_remote_groups: .*auth\.mode/),
    ])
    expect(problemsOf(() => loadText(`${text}\nenable = False\nbackend = noop`))).toEqual([])
  })

  it('warns of whom auth.mode = proxy believes', () => {
    const { warnings } = loadText('[auth]\nenable = True\nmode = proxy\ntrusted_proxies = 10.0.0.1, 10.1.0.0/16')
    expect(warnings).toEqual([expect.stringMatching(/^auth\.mode: .*10\.0\.0\.1, 10\.1\.0\.0\/16/)])
  })

  it('warns of a certificate that is not used', () => {
    const { warnings } = loadText('[api]\ncert = /etc/a.pem\nkey = /etc/a.key')
    expect(warnings).toContainEqual(expect.stringMatching(/^api\.use_ssl: .*api\.cert/))
  })

  it('refuses a cookie that browsers refuse', () => {
    const text = '[api]\nauth_cookie_same_site = none'
    expect(problemsOf(() => loadText(`${text}\nauth_cookie_secure = False`))).toEqual([
      expect.stringMatching(/^api\.auth_cookie_same_site: .*api\.auth_cookie_secure/),
    ])
    expect(loadText(text).config.api.auth_cookie_same_site).toBe('none')
    expect(problemsOf(() => loadText('[api]\nauth_cookie_same_site = sometimes'))).toHaveLength(1)
  })

  const open = [
    '0.0.0.0',
    '::',
    '192.168.1.5',
    'svc.example.com',
    '::ffff:10.0.0.1',
    '128.0.0.1',
    'localhost.example.com',
  ]
  const closed = ['127.0.0.1', '127.255.0.1', '::1', '0:0::1', 'localhost', '::ffff:127.0.0.1']
  it.each(['api', 'auth', 'stream'])('refuses an open %s listener without authentication', (section) => {
    for (const host of open) {
      const flags = { [`${section}.host`]: host }
      const problems = problemsOf(() => load({ flags }))
      expect(problems).toHaveLength(1)
      expect(problems[0]).toContain(`${section}.host: ${host}`)
      expect(problems[0]).toContain('auth.enable = True')
      expect(problems[0]).toContain('system.allow_open_network = True')
      expect(problemsOf(() => load({ flags: { ...flags, 'auth.enable': 'True' } }))).toEqual([])
      const { warnings } = load({ flags: { ...flags, 'system.allow_open_network': 'True' } })
      expect(warnings).toHaveLength(1)
      expect(warnings[0]).toContain(`other machines can reach ${section}.host`)
    }
    const refused = closed.filter((host) => problemsOf(() => load({ flags: { [`${section}.host`]: host } })).length > 0)
    expect(refused).toEqual([])
  })

  it.each([
    ['127.0.0.1', '127.0.0.1', true],
    ['127.0.0.1', '127.0.0.2', false],
    ['0.0.0.0', '127.0.0.1', true],
    ['::', '127.0.0.1', true],
    ['::', '::1', true],
    ['0.0.0.0', '::1', false],
    ['0:0::1', '::1', true],
    ['localhost', '127.0.0.1', true],
    ['localhost', '10.0.0.1', false],
    ['A.example', 'a.example', true],
  ])('listeners on %s and %s with one port collide: %s', (first, second, collide) => {
    const flags = { 'auth.enable': 'True', 'auth.host': first, 'api.host': second, 'auth.port': '7000' }
    const problems = problemsOf(() => load({ flags: { ...flags, 'api.port': '7000' } }))
    expect(problems.map((problem) => problem.slice(0, 9))).toEqual(collide ? ['api.port:'] : [])
    expect(problemsOf(() => load({ flags: { ...flags, 'api.port': '7001' } }))).toEqual([])
  })

  it('lets any number of listeners take any free port', () => {
    expect(problemsOf(() => load({ flags: { 'auth.port': '0', 'api.port': '0', 'stream.port': '0' } }))).toEqual([])
  })

  it('warns about what is not safe everywhere', () => {
    expect(load({}).warnings).toEqual([expect.stringMatching(/^auth\.enable: authentication is off/)])
    const { config, warnings } = load({
      flags: { 'auth.enable': 'True', 'system.debug': 'True', 'log.level': 'ERROR' },
    })
    expect(warnings).toEqual([expect.stringMatching(/^system\.debug: /)])
    expect(config.log.level).toBe('DEBUG')
  })
})

describe('showing and flags', () => {
  it('masks secrets', () => {
    const described = describeConfig(load({ flags: { 'auth.backend_kwargs': '{"bind_password": "hunter2"}' } }).config)
    expect(JSON.stringify(described)).not.toContain('hunter2')
    expect(described['auth']?.['backend_kwargs']).toBe('********')
    expect(described['api']?.['port']).toBe(9101)
  })

  it('has a flag of its own for every option', () => {
    expect(new Set(configFlags.map(({ flag }) => flag)).size).toBe(optionEntries.length)
    expect(configFlags.every(({ flag }) => /^--[a-z]+(-[a-z]+)+$/.test(flag))).toBe(true)
    expect(configFlags.find(({ key }) => key === 'system_user.user')?.flag).toBe('--system-user-user')
  })

  it('collects parsed flags', () => {
    expect(
      collectFlags({
        apiPort: '8101',
        authEnable: true,
        actionrunnerMaxResultBytes: '5',
        configFile: ['x'],
        debug: true,
      }),
    ).toEqual({ 'api.port': '8101', 'auth.enable': 'True', 'actionrunner.max_result_bytes': '5' })
  })
})
