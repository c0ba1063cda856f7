/** Contract 02, 2.7 to 2.9 and 2.13: packs on disk, what is wrong with them, their configurations, their files. */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp, withApp } from '../helpers/app.ts'
import { runCli } from '../helpers/cli.ts'
import { makeFolder } from '../helpers/folders.ts'
import { waitForStatus, withServer, type Answer, type TestApp } from '../helpers/server.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import { auditRecords, send, type ErrorAnswer } from './support.ts'

const fixture = join(import.meta.dirname, '../fixtures/packs/everything')

const manifest = 'name: Mine\ndescription: d\nversion: 1.0.0\nauthor: a\n'
const good = 'name: good\nrunner_type: noop\n'

type Problem = { pack: string; file: string; line?: number; key?: string; message: string }
type Registered = Record<string, number> & { problems?: Problem[]; warnings?: Problem[] }

function write(path: string, content: string | Uint8Array): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, content)
}

/** A pack with one good action, and what else is given. */
function writePack(basePath: string, name: string, files: Readonly<Record<string, string | Uint8Array>> = {}): string {
  const folder = join(basePath, 'packs', name)
  for (const [path, content] of Object.entries({ 'pack.yaml': manifest, 'actions/good.yaml': good, ...files })) {
    write(join(folder, path), content)
  }
  return folder
}

describe('a pack with requirements', () => {
  it('2.8 shows which of them are not installed, alone and in the list', () =>
    withPack(
      'needy',
      { 'requirements.txt': 'pip\nno_such.Package-of-ours>=1\nother-of-ours; python_version < "3"\n' },
      async (server) => {
        const { body } = await server.call<{ warnings?: unknown }>('POST', '/v1/packs/register', { packs: ['needy'] })
        expect(body.warnings).toEqual([
          {
            pack: 'needy',
            file: 'requirements.txt',
            message:
              'not installed: no-such-package-of-ours; svc installs this before the next action of the pack runs',
          },
        ])
        const expected = { ref: 'needy', python_environment: { missing: ['no-such-package-of-ours'] } }
        const one = await server.call('GET', '/v1/packs/needy')
        expect(one.body).toMatchObject(expected)
        const list = await server.call<Record<string, unknown>[]>(
          'GET',
          '/v1/packs?include_attributes=python_environment',
        )
        expect(list.body.filter(({ ref }) => ref === 'needy')).toMatchObject([expected])
        expect(list.body.filter((pack) => 'python_environment' in pack)).toHaveLength(1)
      },
    ))
})

describe('a configuration file that is not used', () => {
  const files = {
    'config.schema.yaml': 'host: {type: string, default: localhost}\nport: {type: integer}\n',
    'actions/show.yaml': 'name: show\nrunner_type: python-script\nentry_point: show.py\n',
    'actions/show.py':
      'from svc.action import Action\n\n\nclass Show(Action):\n    def run(self):\n        return self.config\n',
    'actions/tell.yaml':
      'name: tell\nrunner_type: noop\nparameters: {host: {type: string, default: "{{ config_context.host }}"}}\n',
  }

  it('2.9 is said by the pack, fails the actions that need it, and no others', () =>
    withPack('sited', files, async (server) => {
      const file = join(server.basePath, 'configs', 'sited.yaml')
      const register = () =>
        server.call<Registered>('POST', '/v1/packs/register', { packs: ['sited'], fail_on_failure: false })
      const problem = async (): Promise<unknown> =>
        (await server.call<Record<string, unknown>>('GET', '/v1/packs/sited')).body['config_problem']
      const run = async (action: string): Promise<[string, Record<string, unknown>]> => {
        const { body } = await server.call<{ id: string } & ErrorAnswer>('POST', '/v1/executions', { action })
        const ended = await waitForStatus(server, body.id, ['succeeded', 'failed'])
        return [String(ended['status']), ended['result'] as Record<string, unknown>]
      }
      expect(await problem()).toBe(undefined)
      expect(await run('sited.show')).toMatchObject(['succeeded', { result: { host: 'localhost' } }])

      write(file, 'port: many\n')
      await register()
      const why = `configs/sited.yaml:1 (port): Failed validating attribute "port" in config for pack "sited" (configs/sited.yaml): port: 'many' is not of type 'integer', 'null'`
      expect(await problem()).toBe(`${why}; actions that use it fail`)
      const list = await server.call<Record<string, unknown>[]>('GET', '/v1/packs?include_attributes=config_problem')
      expect(list.body.filter((pack) => 'config_problem' in pack)).toMatchObject([{ ref: 'sited' }])
      const listed = await runCli(['pack', 'list'], { SVC_API_URL: server.urls.api, SVC_AUTH_URL: server.urls.auth })
      expect(listed.stderr).toContain(`WARNING: The configuration of pack "sited" has a problem: ${why}`)
      const reason = `The configuration file of pack "sited" is not used: ${why}. Correct it, then register the pack.`
      expect(await run('sited.show')).toMatchObject(['failed', { error: expect.stringContaining(reason) }])
      const refused = await server.call<ErrorAnswer>('POST', '/v1/executions', { action: 'sited.tell' })
      expect(refused.body.faultstring).toContain(reason)
      expect((await run('sited.good'))[0]).toBe('succeeded')

      // What has been valid once goes on, and the pack says so.
      write(file, 'port: 1\n')
      await register()
      expect(await problem()).toBe(undefined)
      write(file, 'port: [\n')
      await register()
      expect(await problem()).toMatch(
        /^configs\/sited\.yaml:\d: .*; svc uses the configuration as it was registered last$/,
      )
      // Each execution that needs it says so.
      const remark =
        /^The configuration file of pack "sited" is not used: configs\/sited\.yaml:\d: .*; svc uses the configuration as it was registered last\.\n$/
      expect(await run('sited.show')).toMatchObject([
        'succeeded',
        { result: { port: 1 }, stderr: expect.stringMatching(remark) },
      ])
      // Registering the configuration alone, or storing one, takes the problem away.
      expect((await server.call('PUT', '/v1/configs/sited', { port: 2 })).status).toBe(200)
      expect(await problem()).toBe(undefined)
      write(file, 'port: many\n')
      const alone = { packs: ['sited'], types: ['config'], fail_on_failure: false }
      await server.call('POST', '/v1/packs/register', alone)
      expect(await problem()).toContain('configs/sited.yaml:1 (port)')
      write(file, 'port: 3\n')
      await server.call('POST', '/v1/packs/register', alone)
      expect(await problem()).toBe(undefined)
    }))

  it('2.9 is used unchecked when the schema cannot be used, and not under another name', () =>
    withPack('sited', { ...files, 'config.schema.yaml': 'port: [\n' }, async (server) => {
      const register = () => server.call('POST', '/v1/packs/register', { packs: ['sited'], fail_on_failure: false })
      const problem = async (): Promise<unknown> =>
        (await server.call<Record<string, unknown>>('GET', '/v1/packs/sited')).body['config_problem']
      // Without a file there is none.
      expect(await problem()).toBe(undefined)
      write(join(server.basePath, 'configs', 'sited.yaml'), 'port: 1\n')
      await register()
      const unchecked = 'configs/sited.yaml: config.schema.yaml is invalid, so the configuration is used unchecked'
      expect(await problem()).toBe(unchecked)
      const listed = await runCli(['pack', 'list'], { SVC_API_URL: server.urls.api, SVC_AUTH_URL: server.urls.auth })
      expect(listed.stderr).toContain(`WARNING: The configuration of pack "sited" has a problem: ${unchecked}`)
      const { body } = await server.call<{ id: string }>('POST', '/v1/executions', { action: 'sited.show' })
      expect(await waitForStatus(server, body.id, ['succeeded', 'failed'])).toMatchObject({
        status: 'succeeded',
        result: { result: { port: 1 } },
      })
      renameSync(join(server.basePath, 'configs', 'sited.yaml'), join(server.basePath, 'configs', 'sited.yml'))
      write(join(server.basePath, 'packs', 'sited', 'config.schema.yaml'), 'port: {type: integer}\n')
      await register()
      expect(await problem()).toBe('configs/sited.yml: rename the file to sited.yaml; actions that use it fail')
    }))
})

describe('metadata files that end in .yml', () => {
  it('2.8 count like .yaml, and after them; of the manifest and the schema one name is read', () =>
    withPack(
      'short',
      {
        'actions/one.yml': 'name: one\nrunner_type: noop\n',
        'actions/two.yml': 'name: two\nrunner_type: noop\ndescription: In the second file.\n',
        'actions/two.yaml': 'name: two\nrunner_type: noop\n',
        'rules/r.yml': 'name: r\ntrigger: {type: core.svc.webhook, parameters: {url: r}}\naction: {ref: short.one}\n',
        'triggers/t.yml': 'name: t\n',
        'aliases/a.yml': 'name: a\naction_ref: short.one\nformats: [run one]\n',
        'policies/p.yml':
          'name: p\nresource_ref: short.one\npolicy_type: action.concurrency\nparameters: {threshold: 1}\n',
        'config.schema.yml': 'a: {type: string}\n',
      },
      async (server) => {
        const { body } = await server.call<Registered>('POST', '/v1/packs/register', {
          packs: ['short'],
          fail_on_failure: false,
        })
        expect(body).toMatchObject({ actions: 3, rules: 1, triggers: 1, aliases: 1, policies: 1 })
        expect(body.problems?.map(({ file, message }) => `${file}: ${message}`)).toEqual([
          'config.schema.yml: rename the file to config.schema.yaml',
        ])
        expect(body.warnings?.map(({ file, message }) => `${file}: ${message}`)).toEqual([
          'actions/two.yml: Action "short.two" is defined in actions/two.yaml as well; this file counts.',
        ])
        expect((await server.call('GET', '/v1/actions/short.two')).body).toMatchObject({
          description: 'In the second file.',
          metadata_file: 'actions/two.yml',
        })
      },
    ))

  it('2.8 a manifest must be renamed, which is told', () =>
    withPack('other', { 'pack.yml': manifest }, async (server, folder) => {
      const registered = () =>
        server.call<ErrorAnswer>('POST', '/v1/packs/register', { packs: ['other'], fail_on_failure: true })
      expect((await registered()).text).toContain('pack.yaml and pack.yml are both there: delete pack.yml')
      rmSync(join(folder, 'pack.yaml'))
      expect((await registered()).text).toContain('pack.yml')
    }))
})

describe('a default that does not fit its type', () => {
  it('2.4 is a warning that says what to do', () =>
    withPack(
      'wrong',
      {
        'actions/versioned.yaml':
          'name: versioned\nrunner_type: noop\nparameters:\n  version:\n    type: string\n    default: 1.10\n',
      },
      async (server) => {
        const { body } = await server.call<Registered>('POST', '/v1/packs/register', {
          packs: ['wrong'],
          fail_on_failure: false,
        })
        expect(body['actions']).toBe(2)
        expect(body.problems).toBeUndefined()
        expect(body.warnings).toEqual([
          expect.objectContaining({
            file: 'actions/versioned.yaml',
            line: 6,
            key: 'parameters.version.default',
            message: expect.stringContaining(`put it in quotes, exactly as it is meant, such as '1.10'`),
          }),
        ])
      },
    ))
})

/** A server that has such a pack when it starts. */
async function withPack(
  name: string,
  files: Readonly<Record<string, string>>,
  test: (server: TestApp, folder: string) => Promise<void>,
): Promise<void> {
  const folder = makeFolder()
  try {
    const pack = writePack(folder.path, name, files)
    await withApp({ basePath: folder.path }, (server) => test(server, pack))
  } finally {
    folder.remove()
  }
}

describe('a pack that uses every key', () => {
  const folder = makeFolder()
  let server: TestApp
  const get = <T = Record<string, unknown>>(path: string): Promise<Answer<T & ErrorAnswer>> =>
    server.call<T & ErrorAnswer>('GET', `/v1${path}`)

  beforeAll(async () => {
    const pack = join(folder.path, 'packs', 'everything')
    cpSync(fixture, pack, { recursive: true })
    write(join(pack, 'debug.log'), 'ignored by name')
    write(join(pack, 'generated/a.txt'), 'ignored by folder')
    write(join(pack, '.env'), 'SECRET=1')
    write(join(pack, 'lib/__pycache__/shared.pyc'), 'compiled')
    write(join(pack, 'tests/page.html'), '<script>alert(1)</script>')
    write(join(pack, 'large.txt'), 'x'.repeat(500_001))
    symlinkSync('/etc/passwd', join(pack, 'outside.txt'))
    write(
      join(folder.path, 'configs', 'everything.yaml'),
      [
        'region: south',
        'token: "{{ svckv.system.service_token }}"',
        'account:',
        '  user: "{{ svckv.system.account_user }}"',
        '  password: hunter2',
        'hosts:',
        '  - name: one',
        '    key: first-key',
        '  - name: two',
        'labels:',
        '  color: red',
        '  secret_word: sesame',
        'pair: [a, 1, hidden]',
        'extra: unheard of',
      ].join('\n'),
    )
    server = await createTestApp({ basePath: folder.path })
  })
  afterAll(async () => {
    await server.stop()
    folder.remove()
  })

  it('2.8 is there with its whole manifest, and the files that count', async () => {
    const { body } = await get('/packs/everything')
    expect(body).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{24}$/),
      uid: 'pack:everything',
      ref: 'everything',
      name: 'Everything there is',
      description: 'Uses every key of every kind of metadata.',
      keywords: ['example', 'metadata'],
      version: '2.10.3',
      svc_version: '>=0.1.0, <99.0.0',
      python_versions: ['3'],
      author: 'Somebody',
      email: 'somebody@example.com',
      contributors: ['Another <another@example.com>'],
      dependencies: ['core', 'other=1.2.0'],
      icon: 'icon.png',
      system: { os: ['debian'] },
      homepage: 'https://example.com/everything',
      path: join(folder.path, 'packs', 'everything'),
      files: [
        'README.md',
        'actions/all.sh',
        'actions/all.yaml',
        'actions/lib/helper.py',
        'actions/older.yaml',
        'actions/plain.json',
        'actions/workflows/flow.yaml',
        'aliases/do.yaml',
        'config.schema.yaml',
        'everything.yaml.example',
        'icon.png',
        'large.txt',
        'lib/shared.py',
        'outside.txt',
        'pack.yaml',
        'policies/few.yaml',
        'requirements.txt',
        'rules/react.yaml',
        'rules/watched.yaml',
        'sensors/watcher.py',
        'sensors/watcher.yaml',
        'tests/page.html',
        'triggers/happened.yaml',
        'triggers/keyed.yaml',
      ],
    })
    expect((await get(`/packs/${String(body['id'])}`)).body).toEqual(body)
  })

  it('2.8 the list is filtered and paged', async () => {
    const all = await get<{ ref: string }[]>('/packs')
    expect(all.headers.get('x-total-count')).toBe(String(all.body.length))
    expect(all.body.map(({ ref }) => ref)).toEqual(expect.arrayContaining(['core', 'everything']))
    expect((await get<{ ref: string }[]>('/packs?ref=everything')).body).toMatchObject([{ ref: 'everything' }])
    expect((await get<{ ref: string }[]>('/packs?name=Everything%20there%20is')).body).toHaveLength(1)
    expect((await get('/packs?name=everything')).body).toEqual([])
    expect((await get('/packs?limit=1&offset=1')).body).toHaveLength(1)
    expect((await get('/packs/nothing')).status).toBe(404)
  })

  it('2.7 its actions are there with every attribute', async () => {
    const { body } = await get<{ parameters: Record<string, unknown> }>('/actions/everything.all')
    expect(body).toMatchObject({
      description: 'Has parameters of every kind.',
      runner_type: 'local-shell-script',
      entry_point: 'all.sh',
      metadata_file: 'actions/all.yaml',
      output_schema: { properties: { password: { secret: true } } },
      tags: [{ name: 'kind', value: 'example' }],
      notify: { 'on-complete': { message: 'Done.', routes: ['ops'] }, 'on-failure': { channels: ['ops'] } },
    })
    expect(body.parameters).toMatchObject({
      text: { type: 'string', required: true, position: 0, minLength: 1, maxLength: 20, pattern: '^[a-z ]+$' },
      count: { enum: [1, 2, 3] },
      flag: { immutable: true },
      token: { secret: true },
      options: { properties: { password: { secret: true } }, additionalProperties: false },
      either: { anyOf: [{ type: 'string' }, { type: 'integer' }] },
      sudo: { immutable: true, default: false },
    })
    expect((await get('/actions/everything.plain')).body).toMatchObject({ metadata_file: 'actions/plain.json' })
    expect((await get('/actions/everything.older')).body).toMatchObject({ runner_type: 'local-shell-cmd' })
  })

  it('5.1, 5.5 its triggers and rules are there, those of sensors too', async () => {
    expect((await get('/triggertypes/everything.happened')).body).toMatchObject({
      payload_schema: { properties: { token: { secret: true } } },
      metadata_file: 'triggers/happened.yaml',
    })
    expect((await get('/triggertypes/everything.keyed')).body).toMatchObject({
      parameters_schema: { additionalProperties: false },
    })
    expect((await get('/triggertypes/everything.seen')).body).toMatchObject({ metadata_file: 'sensors/watcher.yaml' })
    expect((await get('/rules/everything.react')).body).toMatchObject({
      enabled: true,
      criteria: { 'trigger.level': { type: 'gt', pattern: 2 } },
      action: { ref: 'everything.all' },
      metadata_file: 'rules/react.yaml',
    })
    expect((await get('/rules/everything.watched')).body).toMatchObject({ enabled: false })
  })

  it('2.13 its aliases are there', async () => {
    const { body } = await get('/actionalias/everything.do')
    expect(body).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{24}$/),
      uid: 'action_alias:everything:do',
      ref: 'everything.do',
      name: 'do',
      pack: 'everything',
      description: 'Does everything.',
      enabled: true,
      action_ref: 'everything.all',
      formats: [
        'do {{ text }} with {{ number = 1.5 }}',
        {
          display: 'do it all {{ text }}',
          representation: ['do it all {{ text }}', '(please )?do all of {{ text }}'],
          match_multiple: true,
        },
      ],
      ack: { enabled: true, format: 'Doing it.', append_url: true, extra: { color: 'green' } },
      result: { enabled: true, format: 'Done: {{ execution.result }}', extra: { color: 'blue' } },
      extra: { help: true },
      immutable_parameters: { count: 3 },
      metadata_file: 'aliases/do.yaml',
    })
    expect((await get('/actionalias?pack=everything')).body).toEqual([body])
    expect((await get(`/actionalias/${String(body['id'])}`)).body).toEqual(body)
    expect((await get('/actionalias?name=nothing')).body).toEqual([])
  })

  it('2.11 its policies are there', async () => {
    expect((await get('/policies/everything.few')).body).toMatchObject({
      description: 'Few at a time.',
      resource_ref: 'everything.all',
      policy_type: 'action.concurrency',
      parameters: { threshold: 3, action: 'delay' },
    })
  })

  it('2.8 registering counts every kind, and only those that were asked for', async () => {
    const register = async (body: object): Promise<Registered> => {
      const answer = await server.call<Registered>('POST', '/v1/packs/register', body)
      expect([answer.status, answer.text]).toEqual([200, expect.any(String)])
      return answer.body
    }
    expect(await register({ packs: ['everything'] })).toEqual({
      runners: expect.any(Number),
      rule_types: 2,
      policy_types: 3,
      triggers: 3,
      sensors: 1,
      actions: 3,
      rules: 2,
      aliases: 1,
      policies: 1,
      configs: 1,
    })
    expect(await register({ packs: ['everything'], types: ['action', 'aliases'] })).toEqual({ actions: 3, aliases: 1 })
    expect(await register({ packs: [join(folder.path, 'packs/everything')], types: ['configs'] })).toEqual({
      configs: 1,
    })
    expect(await register({ types: ['rule_type', 'runner'] })).toEqual({ rule_types: 2, runners: expect.any(Number) })
    await waitFor('the audit lines', () => auditRecords(server, 'pack.registered').length === 4)
  })

  it.each([
    ['nothing'],
    ['/etc'],
    ['/tmp'],
    ['../packs/everything'],
    ['packs/everything/actions'],
    ['everything/../../packs'],
    ['everything\0'],
  ])('2.8 %j is no pack', async (name) => {
    const { status, body } = await server.call<ErrorAnswer>('POST', '/v1/packs/register', { packs: [name] })
    expect([status, body.code]).toEqual([400, 'PACK_NOT_ON_DISK'])
    expect(body.faultstring).toMatch(/not found on disk/)
  })

  it('2.8 a type that does not exist is refused', async () => {
    const { status, body } = await server.call<ErrorAnswer>('POST', '/v1/packs/register', { types: ['actoin'] })
    expect([status, body.faultstring]).toEqual([400, expect.stringContaining("'actoin' is not one of")])
  })

  it('2.9 its configuration is there, with masks for secrets', async () => {
    const values = (shown: boolean) => ({
      region: 'south',
      token: shown ? '{{ svckv.system.service_token }}' : '********',
      account: { user: '{{ svckv.system.account_user }}', password: shown ? 'hunter2' : '********' },
      hosts: [{ name: 'one', key: shown ? 'first-key' : '********' }, { name: 'two' }],
      labels: { color: 'red', secret_word: shown ? 'sesame' : '********' },
      pair: ['a', 1, shown ? 'hidden' : '********'],
      extra: 'unheard of',
    })
    const { body } = await get('/configs/everything')
    expect(body).toEqual({ id: expect.any(String), pack: 'everything', values: values(false) })
    expect((await get('/configs')).body).toEqual([body])
    expect((await get('/configs/everything?show_secrets=true')).body).toMatchObject({ values: values(true) })
    expect((await get('/config_schemas/everything')).body).toMatchObject({
      pack: 'everything',
      attributes: { token: { secret: true }, account: { properties: { limits: { properties: {} } } } },
    })
    for (const path of ['/configs/core', '/configs/nothing', '/config_schemas/core', '/config_schemas/nothing']) {
      const missing = await get(path)
      expect([path, missing.status, missing.body.faultstring]).toEqual([
        path,
        404,
        `Unable to identify resource with pack_ref "${path.split('/')[2] ?? ''}".`,
      ])
    }
  })

  it('2.9 its secrets are nowhere in the database', () => {
    const bytes = Buffer.concat(
      ['svc.db', 'svc.db-wal'].map((name) => {
        try {
          return readFileSync(join(folder.path, name))
        } catch {
          return Buffer.alloc(0)
        }
      }),
    )
    expect(bytes.includes('unheard of')).toBe(false)
    for (const secret of ['hunter2', 'first-key', 'sesame'])
      expect([secret, bytes.includes(secret)]).toEqual([secret, false])
  })

  it('2.9 writing it keeps what is masked, and is seen in the file', async () => {
    const file = join(folder.path, 'configs', 'everything.yaml')
    const before = (await get<{ values: Record<string, unknown> }>('/configs/everything')).body.values
    const changed = {
      ...before,
      region: 'north',
      labels: { color: 'yes', secret_word: '********', when: '2024-01-01' },
    }
    const answer = await server.call<{ values: unknown }>('PUT', '/v1/configs/everything', changed)
    expect([answer.status, answer.body.values]).toEqual([200, changed])
    expect((await get('/configs/everything?show_secrets=true')).body).toMatchObject({
      values: { region: 'north', account: { password: 'hunter2' }, labels: { color: 'yes', secret_word: 'sesame' } },
    })
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readFileSync(file, 'utf8')).toMatch(/^region: north$/m)
    const again = await server.call<Registered>('POST', '/v1/packs/register', {
      packs: ['everything'],
      types: ['config'],
    })
    expect(again.body).toEqual({ configs: 1 })
    expect((await get('/configs/everything')).body).toMatchObject({ values: changed })
    await waitFor('the audit line', () => auditRecords(server, 'pack.configured').length === 1)
    expect(auditRecords(server, 'pack.configured')).toMatchObject([{ _pack: 'everything', _user: 'svc' }])
  })

  it.each<[string, object, string]>([
    ['a wrong type', { port: 'many' }, 'port'],
    ['something nested', { account: { user: 1 } }, 'account.user'],
    ['something in a list', { hosts: [{ name: 'a' }, { port: 1 }] }, 'hosts.1.name'],
    ['what is not in an enum', { region: 'west' }, 'region'],
    ['an unknown name where names are closed', { account: { user: 'a', more: 1 } }, 'account.more'],
    ['a template where no text may be', { port: '{{ svckv.system.port }}' }, 'port'],
    ['a secret that decrypts itself', { token: '{{ svckv.system.a | decrypt_kv }}' }, 'token'],
    [
      'a mask of nothing',
      {
        hosts: [
          { name: 'a', key: '********' },
          { name: 'b', key: '********' },
        ],
      },
      'hosts.1.key',
    ],
  ])('2.9 %s is refused with the path of the attribute', async (_, values, path) => {
    const before = (await get('/configs/everything')).text
    const { status, body } = await server.call<ErrorAnswer>('PUT', '/v1/configs/everything', values)
    expect([status, body.code]).toEqual([400, 'CONFIG_INVALID'])
    expect(body.faultstring).toContain(
      `Failed validating attribute "${path}" in config for pack "everything" (configs/everything.yaml): `,
    )
    expect((await get('/configs/everything')).text).toBe(before)
  })

  it('2.9 a value that is wrong and secret is not repeated', async () => {
    const values = { account: { user: 'a', password: 12345678 } }
    const { status, text } = await server.call('PUT', '/v1/configs/everything', values)
    expect([status, text.includes('12345678')]).toEqual([400, false])
  })

  it('2.9 there is none of a pack that does not exist', async () => {
    expect((await server.call('PUT', '/v1/configs/nothing', {})).status).toBe(404)
    expect((await server.call('PUT', '/v1/configs/..%2F..%2Fescaped', {})).status).toBe(404)
  })

  it('2.9 actions get it as templates', async () => {
    const action =
      'name: tells\nrunner_type: local-shell-cmd\nparameters:\n  cmd:\n    immutable: true\n    default: >-\n      echo {{ config_context.region }} {{ config_context.port }} {{ config_context.account.limits.calls }}\n      {{ config_context.account.user }} {{ config_context.hosts[1].port }}\n'
    write(join(folder.path, 'packs/everything/actions/tells.yaml'), action)
    await server.call('PUT', '/v1/keys/account_user', { name: 'account_user', value: 'somebody' })
    const registered = await server.call<Registered>('POST', '/v1/packs/register', { packs: ['everything'] })
    expect([registered.status, registered.body['actions']]).toEqual([200, 4])
    const { body } = await server.call<{ id: string }>('POST', '/v1/executions', { action: 'everything.tells' })
    const { result } = await waitForStatus(server, body.id)
    expect(result).toMatchObject({ stdout: 'north 8080 100 somebody 22' })
  })

  describe('2.8 its files', () => {
    it('can be read together: text that is not too large', async () => {
      const { body } = await get<{ file_path: string; content: string }[]>('/packs/views/files/everything')
      const paths = body.map(({ file_path: path }) => path)
      expect(paths).toContain('actions/all.sh')
      for (const path of ['icon.png', 'large.txt', 'outside.txt', '.env', 'debug.log'])
        expect(paths).not.toContain(path)
      expect(body.find(({ file_path: path }) => path === 'README.md')?.content).toBe('Example.\n')
      expect((await get('/packs/views/files/nothing')).status).toBe(404)
    })

    it('can be read alone, and need not be read again', async () => {
      const path = '/v1/packs/views/file/everything/actions/all.sh'
      const first = await send(server.urls.api, { path })
      expect([first.status, first.text]).toEqual([200, '#!/bin/sh\necho "$1"\n'])
      const { etag, 'last-modified': modified } = first.headers
      const [tag, time] = [String(etag), String(modified)]
      expect((await send(server.urls.api, { path, headers: { 'If-None-Match': tag } })).status).toBe(304)
      expect((await send(server.urls.api, { path, headers: { 'If-None-Match': '"other"' } })).status).toBe(200)
      expect((await send(server.urls.api, { path, headers: { 'If-Modified-Since': time } })).status).toBe(304)
      expect(
        (await send(server.urls.api, { path, headers: { 'If-Modified-Since': new Date(0).toUTCString() } })).status,
      ).toBe(200)
    })

    it('do nothing in a browser', async () => {
      const { status, headers } = await send(server.urls.api, {
        path: '/v1/packs/views/file/everything/tests/page.html',
      })
      expect([status, headers['content-type'], headers['x-content-type-options']]).toEqual([
        200,
        'text/plain; charset=UTF-8',
        'nosniff',
      ])
      expect(headers['content-security-policy']).toContain('sandbox')
    })

    it('the icon is a picture', async () => {
      const { status, headers, bytes } = await send(server.urls.api, {
        path: '/v1/packs/views/file/everything/icon.png',
      })
      expect([status, headers['content-type']]).toEqual([200, 'image/png'])
      expect(bytes).toEqual(readFileSync(join(fixture, 'icon.png')))
    })

    it.each([
      ['nothing', 404],
      ['actions', 404],
      ['large.txt', 400],
      ['.env', 404],
      ['.gitignore', 404],
      ['debug.log', 404],
      ['outside.txt', 404],
      ['lib/__pycache__/shared.pyc', 404],
      ['%2e%2e/%2e%2e/svc.db', 404],
      ['..%2f..%2fsvc.db', 404],
      ['actions/..%2F..%2F..%2Fsvc.db', 404],
      ['%2Fetc%2Fpasswd', 404],
      ['a%00b', 404],
    ])('but not %s', async (path, status) => {
      const answer = await send(server.urls.api, { path: `/v1/packs/views/file/everything/${path}` })
      expect([answer.status, answer.text.includes('root:')]).toEqual([status, false])
    })
  })
})

/** What is wrong, in which file of a pack; where, exactly. */
interface Malformed {
  what: string
  file: string
  content: string | Uint8Array | ((pack: string) => void)
  /** `file:line (key)`; the file is the one above unless it says another. */
  at: [line: number | undefined, key: string | undefined]
  says: RegExp
  /** Where the problem is told, when that is another file. */
  told?: string
  /** Nothing of the pack can be used. */
  isFatal?: true
  /** It is registered all the same. */
  isWarning?: true
  more?: Record<string, string>
}

const action = (rest: string): string => `name: bad\nrunner_type: local-shell-cmd\n${rest}`
const rule = (rest: string): string =>
  `name: bad\ntrigger:\n  type: core.svc.generic.inquiry\naction:\n  ref: core.noop\n${rest}`
const alias = (rest: string): string => `name: bad\naction_ref: core.noop\n${rest}`

const malformed: Malformed[] = [
  // Manifest
  {
    what: 'a manifest without a version',
    file: 'pack.yaml',
    content: 'name: m\ndescription: d\nauthor: a\n',
    at: [undefined, undefined],
    says: /'version' is a required property/,
    isFatal: true,
  },
  {
    what: 'a version that is none',
    file: 'pack.yaml',
    content: manifest.replace('1.0.0', '1.0'),
    at: [3, 'version'],
    says: /is not of type 'string'/,
    isFatal: true,
  },
  {
    what: 'a reference that cannot be one',
    file: 'pack.yaml',
    content: `ref: Mine-1\n${manifest}`,
    at: [1, 'ref'],
    says: /'Mine-1' does not match/,
    isFatal: true,
  },
  {
    what: 'an address that is none',
    file: 'pack.yaml',
    content: `${manifest}email: nobody\n`,
    at: [5, 'email'],
    says: /'nobody' is not a 'email'/,
    isFatal: true,
  },
  {
    what: 'keywords that are no list',
    file: 'pack.yaml',
    content: `${manifest}keywords: a, b\n`,
    at: [5, 'keywords'],
    says: /is not of type 'array'/,
    isFatal: true,
  },
  {
    what: 'a manifest that is a list',
    file: 'pack.yaml',
    content: '- name: m\n',
    at: [undefined, undefined],
    says: /is not of type 'object'/,
    isFatal: true,
  },
  {
    what: 'an empty manifest',
    file: 'pack.yaml',
    content: '',
    at: [undefined, undefined],
    says: /one YAML document is needed/,
    isFatal: true,
  },
  {
    what: 'a Python that does not exist',
    file: 'pack.yaml',
    content: `${manifest}python_versions:\n  - '4'\n`,
    at: [6, 'python_versions.0'],
    says: /'4' is not one of/,
    isFatal: true,
  },
  {
    what: 'a constraint that is none',
    file: 'pack.yaml',
    content: `${manifest}svc_version: newest\n`,
    at: [5, 'svc_version'],
    says: /'newest' does not match/,
    isFatal: true,
  },
  {
    what: 'an icon outside of the pack',
    file: 'pack.yaml',
    content: `${manifest}icon: ../icon.png\n`,
    at: [5, 'icon'],
    says: /does not match/,
    isFatal: true,
  },
  // Actions
  {
    what: 'an action without a runner',
    file: 'actions/bad.yaml',
    content: 'name: bad\n',
    at: [undefined, undefined],
    says: /'runner_type' is a required property/,
  },
  {
    what: 'a runner that does not exist',
    file: 'actions/bad.yaml',
    content: 'name: bad\nrunner_type: nothing\n',
    at: [2, 'runner_type'],
    says: /nothing is not found/,
  },
  {
    what: 'an unknown key',
    file: 'actions/bad.yaml',
    content: action('enable: true\n'),
    at: [3, 'enable'],
    says: /'enable' was unexpected/,
  },
  {
    what: 'an action of another pack',
    file: 'actions/bad.yaml',
    content: action('pack: core\n'),
    at: [3, 'pack'],
    says: /belongs to pack/,
  },
  {
    what: 'a name with a slash',
    file: 'actions/bad.yaml',
    content: 'name: b/ad\nrunner_type: noop\n',
    at: [1, 'name'],
    says: /'b\/ad' does not match/,
  },
  {
    what: 'an entry point that is missing',
    file: 'actions/bad.yaml',
    content: action('entry_point: bad.sh\n'),
    at: [3, 'entry_point'],
    says: /"bad\.sh".*missing; the action fails when it runs/,
    isWarning: true,
  },
  {
    what: 'an entry point outside of the pack',
    file: 'actions/bad.yaml',
    content: action('entry_point: ../../core/pack.yaml\n'),
    at: [3, 'entry_point'],
    says: /does not lead out of the pack/,
  },
  {
    what: 'an absolute entry point',
    file: 'actions/bad.yaml',
    content: action('entry_point: /bin/sh\n'),
    at: [3, 'entry_point'],
    says: /does not lead out of the pack/,
  },
  {
    what: 'an entry point that is a folder',
    file: 'actions/bad.yaml',
    content: action('entry_point: lib\n'),
    more: { 'actions/lib/a.py': '' },
    at: [3, 'entry_point'],
    says: /not a regular file/,
    isWarning: true,
  },
  {
    what: 'an entry point that leads out',
    file: 'actions/bad.yaml',
    content: (pack) => {
      write(join(pack, 'actions/bad.yaml'), action('entry_point: link.sh\n'))
      symlinkSync('/bin/sh', join(pack, 'actions/link.sh'))
    },
    at: [3, 'entry_point'],
    says: /outside of the folder/,
  },
  {
    what: 'a parameter with an unknown key',
    file: 'actions/bad.yaml',
    content: action('parameters:\n  a:\n    type: string\n    order: 1\n'),
    at: [6, 'parameters.a.order'],
    says: /'order' was unexpected/,
  },
  {
    what: 'a parameter of an unknown type',
    file: 'actions/bad.yaml',
    content: action('parameters:\n  a:\n    type: text\n'),
    at: [5, 'parameters.a.type'],
    says: /'text' is not one of/,
  },
  {
    what: 'required as a list',
    file: 'actions/bad.yaml',
    content: action('parameters:\n  a:\n    type: object\n    required: [x]\n'),
    at: [6, 'parameters.a.required'],
    says: /is not of type 'boolean'/,
  },
  {
    what: 'immutable without a default',
    file: 'actions/bad.yaml',
    content: action('parameters:\n  a:\n    type: string\n    immutable: true\n'),
    at: [4, 'parameters.a'],
    says: /Immutable param a requires a default value/,
  },
  {
    what: 'two parameters in one place',
    file: 'actions/bad.yaml',
    content: action('parameters:\n  a:\n    position: 1\n  b:\n    position: 1\n'),
    at: [7, 'parameters.b.position'],
    says: /same position 1/,
  },
  {
    what: 'places with a gap',
    file: 'actions/bad.yaml',
    content: action('parameters:\n  a:\n    position: 0\n  b:\n    position: 2\n'),
    at: [3, 'parameters'],
    says: /not contiguous/,
  },
  {
    what: 'a type of the runner that is overridden',
    file: 'actions/bad.yaml',
    content: action('parameters:\n  cmd:\n    type: integer\n'),
    at: [5, 'parameters.cmd.type'],
    says: /cannot be overridden/,
  },
  {
    what: 'a pattern that is none',
    file: 'actions/bad.yaml',
    content: action('parameters:\n  a:\n    type: string\n    pattern: "("\n'),
    at: [6, 'parameters.a.pattern'],
    says: /pattern.*svc refuses every value of this parameter/,
    isWarning: true,
  },
  {
    what: 'a name that is taken',
    file: 'actions/second.yaml',
    content: `${good}description: The second.\n`,
    at: [1, 'name'],
    says: /is defined in actions\/good\.yaml as well; this file counts/,
    isWarning: true,
  },
  // Rules and triggers
  {
    what: 'a rule without an action',
    file: 'rules/bad.yaml',
    content: 'name: bad\ntrigger:\n  type: core.svc.webhook\n',
    at: [undefined, undefined],
    says: /'action' is a required property/,
  },
  {
    what: 'a rule with an unknown key',
    file: 'rules/bad.yaml',
    content: rule('when: now\n'),
    at: [6, 'when'],
    says: /'when' was unexpected/,
  },
  {
    what: 'an unknown trigger type',
    file: 'rules/bad.yaml',
    content: rule('').replace('core.svc.generic.inquiry', 'core.nothing'),
    at: [2, 'trigger'],
    says: /core\.nothing/,
  },
  {
    what: 'an unknown operator',
    file: 'rules/bad.yaml',
    content: rule('criteria:\n  trigger.a:\n    type: like\n    pattern: x\n'),
    at: [6, 'criteria'],
    says: /operator like not in list/,
  },
  {
    what: 'a payload schema that is none',
    file: 'triggers/bad.yaml',
    content: 'name: bad\npayload_schema:\n  type: nothing\n',
    isWarning: true,
    at: [2, 'payload_schema'],
    says: /'nothing' is not one of/,
  },
  {
    what: 'a trigger type without a name',
    file: 'triggers/bad.yaml',
    content: 'description: d\n',
    at: [undefined, undefined],
    says: /'name' is a required property/,
  },
  {
    what: 'a sensor without a class',
    file: 'sensors/bad.yaml',
    content: 'entry_point: s.py\n',
    more: { 'sensors/s.py': '' },
    at: [undefined, undefined],
    says: /'class_name' is a required property/,
  },
  {
    what: 'a sensor whose file is missing',
    file: 'sensors/bad.yaml',
    content: 'class_name: Bad\nentry_point: s.py\n',
    at: [2, 'entry_point'],
    says: /"s\.py".*missing; the sensor fails when it runs/,
    isWarning: true,
  },
  {
    what: 'a sensor whose file lies outside',
    file: 'sensors/bad.yaml',
    content: 'class_name: Bad\nentry_point: ../../s.py\n',
    at: [2, 'entry_point'],
    says: /does not lead out of the pack/,
  },
  {
    what: 'a trigger type of another pack in a sensor',
    file: 'sensors/bad.yaml',
    content: 'class_name: Bad\nentry_point: s.py\ntrigger_types:\n  - name: ev\n    pack: other\n',
    more: { 'sensors/s.py': '' },
    at: [5, 'trigger_types.0.pack'],
    says: /says pack "other"; it is one of pack "case_\d+"/,
    isWarning: true,
  },
  // Aliases
  {
    what: 'an alias without formats',
    file: 'aliases/bad.yaml',
    content: alias(''),
    at: [undefined, undefined],
    says: /'formats' is a required property/,
  },
  {
    what: 'a format with an open brace',
    file: 'aliases/bad.yaml',
    content: alias('formats:\n  - do {{ this\n'),
    at: [4, 'formats.0'],
    says: /without \}\}/,
    isWarning: true,
  },
  {
    what: 'a format with a strange name',
    file: 'aliases/bad.yaml',
    content: alias('formats:\n  - ok\n  - do {{ this-that }}\n'),
    at: [5, 'formats.1'],
    says: /neither \{\{ name \}\}/,
    isWarning: true,
  },
  {
    what: 'a format that is no regular expression',
    file: 'aliases/bad.yaml',
    content: alias('formats:\n  - display: d\n    representation:\n      - do (it\n'),
    at: [6, 'formats.0.representation.0'],
    says: /regular expression is invalid/,
    isWarning: true,
  },
  {
    what: 'an unknown key of an acknowledgement',
    file: 'aliases/bad.yaml',
    content: alias('formats: [a]\nack:\n  shown: true\n'),
    at: [5, 'ack.shown'],
    says: /'shown' was unexpected/,
  },
  // Policies
  {
    what: 'a policy of an unknown type',
    file: 'policies/bad.yaml',
    content: 'name: bad\nresource_ref: core.noop\npolicy_type: action.nothing\n',
    at: [3, 'policy_type'],
    says: /action\.nothing/,
  },
  {
    what: 'a policy with wrong parameters',
    file: 'policies/bad.yaml',
    content:
      'name: bad\nresource_ref: core.noop\npolicy_type: action.retry\nparameters:\n  retry_on: failure\n  max_retry_count: 9\n',
    at: [6, 'parameters.max_retry_count'],
    says: /9 is greater than the maximum of 5/,
  },
  {
    what: 'a policy without a resource',
    file: 'policies/bad.yaml',
    content: 'name: bad\npolicy_type: action.retry\n',
    at: [undefined, undefined],
    says: /'resource_ref' is a required property/,
  },
  // Configuration
  {
    what: 'a configuration schema that is a list',
    file: 'config.schema.yaml',
    content: '- a\n',
    at: [undefined, undefined],
    says: /mapping of names to schemas/,
  },
  {
    what: 'an attribute with an unknown key',
    file: 'config.schema.yaml',
    content: 'a:\n  type: string\n  hidden: true\n',
    at: [3, 'a.hidden'],
    says: /'hidden' was unexpected/,
  },
  {
    what: 'an attribute of a wrong type, deep inside',
    file: 'config.schema.yaml',
    content: 'a:\n  type: object\n  properties:\n    b:\n      type: word\n',
    at: [5, 'a.properties.b.type'],
    says: /'word'/,
  },
  {
    what: 'a configuration that does not fit',
    file: '../../configs/PACK.yaml',
    told: 'configs/PACK.yaml',
    content: 'a:\n  b: 1\n',
    more: { 'config.schema.yaml': 'a:\n  type: object\n  properties:\n    b:\n      type: string\n' },
    at: [2, 'a.b'],
    says: /Failed validating attribute "a\.b" in config for pack/,
  },
  {
    what: 'a configuration that lacks something',
    file: '../../configs/PACK.yaml',
    told: 'configs/PACK.yaml',
    content: 'b: 1\n',
    more: { 'config.schema.yaml': 'a:\n  type: string\n  required: true\n' },
    at: [undefined, 'a'],
    says: /Failed validating attribute "a".*'a' is a required property/,
  },
  {
    what: 'a configuration that is a list',
    file: '../../configs/PACK.yaml',
    told: 'configs/PACK.yaml',
    content: '- 1\n',
    at: [1, undefined],
    says: /mapping of names to values/,
  },
  {
    what: 'a configuration that is no YAML',
    file: '../../configs/PACK.yaml',
    told: 'configs/PACK.yaml',
    content: 'a: [\n',
    at: [2, undefined],
    says: /a value is missing/,
  },
  // Files
  {
    what: 'YAML that is not finished',
    file: 'actions/bad.yaml',
    content: 'name: bad\nparameters: [a, b\n',
    at: [3, undefined],
    says: /a comma or ] is missing/,
  },
  {
    what: 'a tab for indentation',
    file: 'actions/bad.yaml',
    content: 'name: bad\nparameters:\n\ta: 1\n',
    at: [3, undefined],
    says: /./,
  },
  {
    what: 'a key that is there twice',
    file: 'actions/bad.yaml',
    content: 'name: bad\nrunner_type: noop\nname: worse\n',
    at: [3, undefined],
    says: /duplicate key "name"; this one counts, not that of line 1/,
    isWarning: true,
  },
  {
    what: 'two documents in a file',
    file: 'actions/bad.yaml',
    content: 'name: bad\n---\nname: worse\n',
    at: [2, undefined],
    says: /here another one begins/,
  },
  {
    what: 'a template without quotes',
    file: 'actions/bad.yaml',
    content: action('parameters:\n  a:\n    default: {{ b }}\n'),
    at: [5, undefined],
    says: /needs quotes/,
  },
  {
    what: 'a date that there is not',
    file: 'actions/bad.yaml',
    content: action('parameters:\n  a:\n    default: 2024-02-30\n'),
    at: [5, undefined],
    says: /no such date/,
  },
  {
    what: 'JSON that is none',
    file: 'actions/bad.json',
    content: '{\n  "name": "bad",\n}\n',
    at: [3, undefined],
    says: /double-quoted/,
  },
  {
    what: 'bytes that are no text',
    file: 'actions/bad.yaml',
    content: Uint8Array.of(0x61, 0x3a, 0x20, 0xff, 0xfe),
    at: [undefined, undefined],
    says: /not valid UTF-8/,
  },
  {
    what: 'a file that is too large',
    file: 'actions/bad.yaml',
    content: `a: ${'x'.repeat(1_100_000)}\n`,
    at: [undefined, undefined],
    says: /larger than 1048576 bytes/,
  },
  {
    what: 'aliases that stand for very much',
    file: 'actions/bad.yaml',
    content: `a: &a [x,x,x,x,x,x,x,x,x]\n${'bcdefgh'
      .split('')
      .map((key, i) => `${key}: &${key} [${`*${'abcdefg'[i] ?? ''},`.repeat(9).slice(0, -1)}]`)
      .join('\n')}\n`,
    at: [1, undefined],
    says: /more than 20000 values/,
  },
  {
    what: 'a link that leads out',
    file: 'actions/bad.yaml',
    content: (pack) => symlinkSync('/etc/passwd', join(pack, 'actions/bad.yaml')),
    at: [undefined, undefined],
    says: /outside of the folder/,
  },
  {
    what: 'a link to nothing',
    file: 'actions/bad.yaml',
    content: (pack) => symlinkSync('nothing.yaml', join(pack, 'actions/bad.yaml')),
    at: [undefined, undefined],
    says: /missing/,
  },
  {
    what: 'a named pipe',
    file: 'actions/bad.yaml',
    content: (pack) => execFileSync('mkfifo', [join(pack, 'actions/bad.yaml')]),
    at: [undefined, undefined],
    says: /not a regular file/,
  },
]

describe('2.8 what is wrong is told with file, line and key, and costs no more than its file', () => {
  const folder = makeFolder()
  let server: TestApp
  let told: Map<string, Problem[]>
  let warned: Map<string, Problem[]>
  const nameOf = (index: number): string => `case_${index}`

  beforeAll(async () => {
    for (const [i, { file, content, more }] of malformed.entries()) {
      const pack = writePack(folder.path, nameOf(i), more)
      const path = join(pack, file.replace('PACK', nameOf(i)))
      mkdirSync(dirname(path), { recursive: true })
      if (typeof content === 'function') content(pack)
      else writeFileSync(path, content)
    }
    server = await createTestApp({ basePath: folder.path })
    const { status, body, text } = await server.call<Registered>('POST', '/v1/packs/register', {
      packs: malformed.map((_, i) => nameOf(i)),
      fail_on_failure: false,
    })
    if (status !== 200) throw new Error(text)
    told = Map.groupBy(body.problems ?? [], ({ pack }) => pack)
    warned = Map.groupBy(body.warnings ?? [], ({ pack }) => pack)
  })
  afterAll(async () => {
    await server.stop()
    folder.remove()
  })

  it.each(malformed.map((one, i): [string, number, Malformed] => [one.what, i, one]))('%s', async (_, i, one) => {
    const name = nameOf(i)
    const { file, told: place = file, at, says, isFatal, isWarning } = one
    expect((isWarning ? told : warned).get(name)).toBeUndefined()
    expect((isWarning ? warned : told).get(name)).toEqual([
      {
        pack: name,
        file: place.replace('PACK', name),
        ...(at[0] === undefined ? {} : { line: at[0] }),
        ...(at[1] === undefined ? {} : { key: at[1] }),
        message: expect.stringMatching(says),
      },
    ])
    expect((await server.call('GET', `/v1/actions/${name}.good`)).status).toBe(isFatal ? 404 : 200)
    expect((await server.call('GET', `/v1/packs/${name}`)).status).toBe(isFatal ? 404 : 200)
  })

  it('the server has started all the same, and has warned', () => {
    expect(server.log()).toContain('actions/bad.yaml:3 (entry_point)')
  })

  it('registering fails unless told otherwise, and says why', async () => {
    const index = malformed.findIndex(({ what }) => what === 'an unknown key')
    const { status, body } = await server.call<ErrorAnswer & { details: { problems: Problem[] } }>(
      'POST',
      '/v1/packs/register',
      { packs: [nameOf(index)] },
    )
    expect([status, body.code, body.faultstring]).toEqual([
      400,
      'PACK_INVALID',
      `Pack "${nameOf(index)}": actions/bad.yaml:3 (enable): Additional properties are not allowed ('enable' was unexpected)`,
    ])
    expect(JSON.stringify(body)).toContain('"line":3')
    expect(JSON.stringify(body)).not.toContain(folder.path)
  })
})

describe('2.8 several folders of packs', () => {
  fullOnly(it)('of packs with the same reference the first counts, and the other is told', async () => {
    const folder = makeFolder()
    const more = makeFolder()
    writePack(folder.path, 'twice', { 'actions/first.yaml': 'name: first\nrunner_type: noop\n' })
    for (const name of ['twice', 'other']) {
      write(join(more.path, name, 'pack.yaml'), manifest)
      write(join(more.path, name, 'actions/second.yaml'), 'name: second\nrunner_type: noop\n')
    }
    write(join(more.path, 'impostor', 'pack.yaml'), `ref: core\n${manifest}`)
    write(join(more.path, '.hidden', 'pack.yaml'), manifest)
    await withApp({ basePath: folder.path, settings: { 'content.packs_base_paths': more.path } }, async (server) => {
      for (const [ref, status] of [
        ['twice.first', 200],
        ['twice.second', 404],
        ['other.second', 200],
        ['core.local', 200],
      ] as const) {
        expect([ref, (await server.call('GET', `/v1/actions/${ref}`)).status]).toEqual([ref, status])
      }
      const { body } = await server.call<Registered>('POST', '/v1/packs/register', { fail_on_failure: false })
      expect(body.problems).toEqual([
        { pack: 'impostor', file: 'pack.yaml', key: 'ref', message: expect.stringContaining('comes with the program') },
        { pack: 'twice', file: 'pack.yaml', key: 'ref', message: expect.stringContaining('counts instead') },
      ])
      expect((await server.call('GET', '/v1/packs/core')).body['version']).not.toBe('1.0.0')
    })
    folder.remove()
    more.remove()
  })

  it('what one pack needs of a later one is found', async () => {
    const folder = makeFolder()
    writePack(folder.path, 'a_first', {
      'rules/uses.yaml': 'name: uses\ntrigger:\n  type: z_last.event\naction:\n  ref: core.noop\n',
    })
    writePack(folder.path, 'z_last', { 'triggers/event.yaml': 'name: event\n' })
    await withApp({ basePath: folder.path }, async (server) => {
      expect((await server.call('GET', '/v1/rules/a_first.uses')).status).toBe(200)
      expect(server.log()).not.toContain('uses.yaml')
    })
    folder.remove()
  })
})

describe('2.8 a restart', () => {
  it('reads only what has changed, and keeps what was changed meanwhile', async () => {
    const folder = makeFolder()
    const settings = { 'log.level': 'DEBUG' }
    const pack = writePack(folder.path, 'mine', {
      'rules/r.yaml':
        'name: r\nenabled: true\ntrigger:\n  type: core.svc.webhook\n  parameters: {url: r}\naction:\n  ref: core.noop\n',
    })
    write(join(folder.path, 'configs/mine.yaml'), 'a: 1\n')
    let before: Record<string, unknown> = {}
    await withApp({ basePath: folder.path, settings }, async (server) => {
      before = (await server.call('GET', '/v1/rules/mine.r')).body
      expect((await server.call('PUT', '/v1/rules/mine.r', { ...before, enabled: false })).status).toBe(200)
    })
    await withApp({ basePath: folder.path, settings }, async (server) => {
      expect((await server.call('GET', '/v1/rules/mine.r')).body).toMatchObject({ id: before['id'], enabled: false })
      const { body } = await server.call<{ id: string }>('POST', '/v1/executions', { action: 'mine.good' })
      expect((await waitForStatus(server, body.id)).status).toBe('succeeded')
    })
    writeFileSync(join(folder.path, 'configs/mine.yaml'), 'a: 2\n')
    writeFileSync(join(pack, 'actions/good.yaml'), 'name: better\nrunner_type: noop\n')
    await withApp({ basePath: folder.path, settings }, async (server) => {
      expect((await server.call('GET', '/v1/configs/mine')).body).toMatchObject({ values: { a: 2 } })
      expect((await server.call('GET', '/v1/actions/mine.good')).status).toBe(404)
      expect((await server.call('GET', '/v1/actions/mine.better')).status).toBe(200)
    })
    renameSync(pack, join(folder.path, 'elsewhere'))
    await withApp({ basePath: folder.path, settings }, async (server) => {
      expect((await server.call('GET', '/v1/actions/mine.better')).status).toBe(200)
      expect(server.log()).toContain('has no folder any more')
    })
    folder.remove()
  })
})

describe('content.watch', () => {
  const folder = makeFolder()
  let server: TestApp
  const status = async (path: string): Promise<number> => (await server.call('GET', `/v1${path}`)).status

  beforeAll(async () => {
    writePack(folder.path, 'watched')
    server = await createTestApp({ basePath: folder.path, settings: { 'content.watch': 'True' } })
    // Until it watches, changes are found when it begins to.
    write(join(folder.path, 'packs/watched/actions/probe.yaml'), 'name: probe\nrunner_type: noop\n')
    await waitFor('the first change to be noticed', async () => (await status('/actions/watched.probe')) === 200)
  })
  afterAll(async () => {
    await server.stop()
    folder.remove()
  })

  it('what is added, changed and taken away in a pack is registered', async () => {
    const file = join(folder.path, 'packs/watched/actions/new.yaml')
    write(file, 'name: new\nrunner_type: noop\n')
    await waitFor('the new action', async () => (await status('/actions/watched.new')) === 200)
    write(file, 'name: new\nrunner_type: noop\ndescription: changed\n')
    await waitFor('the changed action', async () => {
      return (await server.call('GET', '/v1/actions/watched.new')).body['description'] === 'changed'
    })
    rmSync(file)
    await waitFor('the action to go', async () => (await status('/actions/watched.new')) === 404)
    expect(await status('/actions/watched.good')).toBe(200)
  })

  fullOnly(it)('so is a new pack, however it comes', async () => {
    writePack(folder.path, 'fresh')
    const moved = writePack(join(folder.path, 'aside'), 'moved')
    renameSync(moved, join(folder.path, 'packs', 'moved'))
    const linked = writePack(join(folder.path, 'aside'), 'linked')
    symlinkSync(linked, join(folder.path, 'packs', 'linked'))
    for (const name of ['fresh', 'moved', 'linked']) {
      await waitFor(`the pack ${name}`, async () => (await status(`/actions/${name}.good`)) === 200)
    }
    write(join(linked, 'actions/more.yaml'), 'name: more\nrunner_type: noop\n')
    await waitFor('a change behind a link', async () => (await status('/actions/linked.more')) === 200)
    expect((await server.call('GET', '/v1/packs/linked')).body).toMatchObject({
      path: join(folder.path, 'packs/linked'),
    })
  })

  fullOnly(it)('and a configuration', async () => {
    write(join(folder.path, 'configs/watched.yaml'), 'a: 1\n')
    await waitFor('the configuration', async () => (await status('/configs/watched')) === 200)
    rmSync(join(folder.path, 'configs/watched.yaml'))
    await waitFor('the configuration to go', async () => (await status('/configs/watched')) === 404)
    expect(await status('/packs/watched')).toBe(200)
  })

  it('a pack that is gone keeps its records, and is told', async () => {
    writePack(folder.path, 'leaving')
    await waitFor('the pack', async () => (await status('/actions/leaving.good')) === 200)
    rmSync(join(folder.path, 'packs/leaving'), { recursive: true })
    await waitFor('the warning', () => server.log().includes('Pack "leaving" has no folder any more'))
    expect(await status('/actions/leaving.good')).toBe(200)
    for (const path of ['files/leaving', 'file/leaving/pack.yaml', 'file/leaving/icon.png']) {
      expect([path, await status(`/packs/views/${path}`)]).toEqual([path, 404])
    }
  })

  it('what is broken is told, and what is repaired is registered', async () => {
    const file = join(folder.path, 'packs/watched/actions/broken.yaml')
    write(file, 'name: [\n')
    await waitFor('the warning', () => server.log().includes('actions/broken.yaml:2'))
    write(file, 'name: broken\nrunner_type: noop\n')
    await waitFor('the action', async () => (await status('/actions/watched.broken')) === 200)
    expect(server.log().split('actions/broken.yaml:2')).toHaveLength(2)
  })

  fullOnly(it)('ends with the server', async () => {
    await withServer({ settings: { 'content.watch': 'True' } }, async (other) => {
      write(join(other.basePath, 'packs/late/pack.yaml'), manifest)
      expect((await other.stop()).code).toBe(0)
    })
  })
})
