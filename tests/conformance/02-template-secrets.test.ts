/**
 * Whose templates read the secrets of a pack's configuration (contract 02, 2.6 and 2.9): those of its actions, whoever
 * runs them, and those of callers and authors of rules with the permission "pack_config".
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import { createRbacFiles } from '../helpers/rbac.ts'
import { finalStatuses, type Answer, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'

type Headers = Record<string, string>

const TOKEN = 'canary-token-of-the-vault'
const INNER = 'canary-inner-of-the-vault'
const NAMED = 'canary-named-of-the-vault'
const PIN = 'canary-pin-in-the-metadata'

const files: Record<string, string> = {
  'packs/vault/pack.yaml': 'name: vault\nref: vault\ndescription: For tests.\nversion: 1.0.0\nauthor: tests\n',
  'packs/vault/config.schema.yaml': `
token: {type: string, secret: true}
region: {type: string}
deep: {type: object, properties: {inner: {type: string, secret: true}, open: {type: string}}}
list: {type: array, items: {type: object, properties: {key: {type: string, secret: true}}}}
fetched: {type: string}
`,
  'configs/vault.yaml': `
token: ${TOKEN}
region: north
deep: {inner: ${INNER}, open: south}
list: [{key: ${INNER}}]
fetched: '{{ svckv.system.sealed | decrypt_kv }}'
db_password: ${NAMED}
`,
  'packs/vault/actions/use.yaml': `
name: use
runner_type: local-shell-cmd
parameters:
  text: {type: string, default: ''}
  any: {}
  open: {type: string, default: '{{ config_context.region }}'}
  hidden: {type: string, default: '{{ config_context.token }}'}
  fixed: {type: string, default: '{{ config_context.token }}', immutable: true}
  chained: {type: string, default: '{{ hidden }}!'}
  echoed: {type: string, default: '{{ text }} of {{ region }}'}
  region: {type: string, default: here}
  pin: {type: string, secret: true, default: ${PIN}}
  cmd: {default: 'cat; [ "$FIXED" = "$HIDDEN" ] && [ "\${#FIXED}" = ${TOKEN.length} ] && printf " %s" "same"', immutable: true}
  stdin: {default: '{{ text }}', immutable: true}
  env: {default: {FIXED: '{{ fixed }}', HIDDEN: '{{ hidden }}'}, immutable: true}
`,
  'packs/vault/rules/own.yaml': `
name: own
enabled: true
trigger: {type: core.svc.webhook, parameters: {url: own}}
action: {ref: vault.use, parameters: {text: 'x{{ config_context.token | length }}'}}
`,
}

function writeFiles(folder: TemporaryFolder): void {
  for (const [name, text] of Object.entries(files)) {
    const path = join(folder.path, name)
    mkdirSync(join(path, '..'), { recursive: true })
    writeFileSync(path, text)
  }
}

/** What a template reads, what it prints for those who may read it, and whether that needs the permission. */
const sources: [template: string, printed: string, needs: boolean][] = [
  ['{{ config_context.token | length }}', String(TOKEN.length), true],
  ["{{ config_context['token'][0:6] }}", TOKEN.slice(0, 6), true],
  ["{{ config_context.token | default('none') | length }}", String(TOKEN.length), true],
  ["{{ 'set' if config_context.token else 'not' }}", 'set', true],
  ['{{ config_context.token is defined }}', 'True', true],
  ['{% set c = config_context %}{{ c.token | length }}', String(TOKEN.length), true],
  ['{{ config_context | to_json_string | length > 9 }}', 'True', true],
  ['{{ config_context.deep.inner | length }}', String(INNER.length), true],
  ['{{ config_context.deep | to_json_string | length > 9 }}', 'True', true],
  ['{{ config_context.list[0].key | length }}', String(INNER.length), true],
  ["{{ config_context.list | map(attribute='key') | join | length }}", String(INNER.length), true],
  ['{{ config_context.db_password | length }}', String(NAMED.length), true],
  ['{{ config_context.fetched | length }}', '6', true],
  ['{{ config_context.region }}', 'north', false],
  ['{{ config_context.deep.open }}', 'south', false],
  ["{{ config_context.nothing | default('none') }}", 'none', false],
  ['{{ hidden | length }}', String(TOKEN.length), true],
  ['{{ fixed | length }}', String(TOKEN.length), true],
  ['{{ chained | length }}', String(TOKEN.length + 1), true],
  ['{% if true %}{{ chained[0:4] }}{% endif %}', 'cana', true],
  // What stands in the metadata is no secret of the configuration.
  ['{{ pin | length }}', String(PIN.length), false],
  ['{{ open }}', 'north', false],
  ['{{ region }}', 'here', false],
  ['{{ action_context.pack }}', 'vault', false],
]
const secrets = [TOKEN, INNER, NAMED]

let folder: TemporaryFolder
let server: TestApp
const headersOf: Record<string, Headers> = {}
const allowed: Record<string, boolean> = {
  root: true,
  configurer: true,
  runner: false,
  viewer: false,
  observer: false,
  scoped: false,
}

beforeAll(async () => {
  folder = makeFolder()
  writeFiles(folder)
  const { define, assign } = createRbacFiles(folder.path)
  const runs = { types: ['action_execute'], on: 'pack:vault' }
  const hooks = ['stolen', 'plain', 'tried'].map((url) => ({ types: ['webhook_create'], on: `webhook:${url}` }))
  const reads = { types: ['key_value_pair_view'], on: 'key_value_pair:svckv.system:sealed' }
  assign('admin', 'system_admin')
  assign('root', 'admin')
  define('runner', [runs, reads])
  define('viewer', [runs, reads, { types: ['pack_view'], on: 'pack:vault' }])
  define('configurer', [runs, reads, { types: ['pack_config'] }])
  define('author', [runs, reads, { types: ['rule_create'], on: 'pack:vault' }, ...hooks])
  define('svc', [reads])
  define('observing', [runs, reads])
  writeFileSync(
    join(folder.path, 'rbac/assignments/observer.yaml'),
    'username: observer\nroles: [observer, observing]\n',
  )
  server = await createTestApp({
    basePath: folder.path,
    settings: { 'auth.enable': 'True', 'rbac.enable': 'True', 'rbac.backend': 'default' },
  })
  const administrator = await signIn(server, 'admin', firstPassword(folder.path))
  const makeKey = async (user: string, more: object = {}): Promise<Headers> => {
    const answer = await server.call<{ key: string }>('POST', '/v1/apikeys', { user, ...more }, administrator)
    expect([answer.status, answer.text]).toEqual([201, answer.text])
    return { 'Svc-Api-Key': answer.body.key }
  }
  for (const user of ['root', 'runner', 'viewer', 'configurer', 'observer', 'author']) {
    headersOf[user] = await makeKey(user)
  }
  const scopes = [
    { permission_types: ['action_execute'], resource_uid: 'pack:vault' },
    { permission_types: ['key_value_pair_view'] },
  ]
  headersOf['scoped'] = await makeKey('root', { scopes })
  const item = { name: 'sealed', value: 'sealed', secret: true }
  await server.call('PUT', '/v1/keys/sealed', item, headersOf['root'])
})
afterAll(async () => {
  await server.stop()
  folder.remove()
})

const request = (parameters: object, headers: Headers = {}, app = server): Promise<Answer<ExecutionAnswer>> =>
  app.call<ExecutionAnswer>('POST', '/v1/executions', { action: 'vault.use', parameters }, headers)
const end = (id: string, headers: Headers = headersOf['root'] ?? {}, app = server): Promise<ExecutionAnswer> =>
  waitFor(`execution ${id} to end`, async () => {
    const { body } = await app.call<ExecutionAnswer>('GET', `/v1/executions/${id}`, undefined, headers)
    return finalStatuses.includes(body.status) && body
  })

/** What the action prints of the template, or `refused` for the missing permission; else the answer. */
async function outcomeOf(text: string, headers: Headers | undefined): Promise<unknown> {
  const { status, body, text: said } = await request({ text }, headers)
  if (secrets.some((secret) => said.includes(secret))) return `the secret itself: ${said}`
  if (status === 201) return (await end(body.id)).result['stdout']
  return status === 400 && /pack_config|a namespace cannot/.test(said) ? 'refused' : said
}

describe('templates of callers', () => {
  for (const [user, may] of Object.entries(allowed)) {
    it(`${user}: ${may ? 'reads secrets of the configuration' : 'is refused what is secret, and reads the rest'}`, async () => {
      for (const [text, printed, needs] of sources) {
        const outcome = await outcomeOf(text, headersOf[user])
        expect([text, outcome]).toEqual([text, may || !needs ? `${printed} same` : 'refused'])
      }
    })
  }

  it('in keys, lists and other parameters are no different', async () => {
    for (const any of [['{{ hidden }}'], { '{{ config_context.token }}': 1 }, { a: [{ b: '{{ chained }}' }] }]) {
      const { status, text } = await request({ any }, headersOf['runner'])
      expect([status, text]).toEqual([400, expect.stringContaining('pack_config')])
    }
  })

  it('read a parameter that the caller has given, and defaults made of it', async () => {
    const answer = await request({ text: '{{ pin | length }}', pin: 'mine!' }, headersOf['runner'])
    expect((await end(answer.body.id)).result['stdout']).toBe('5 same')
    const other = await request({ any: '{{ echoed }}', text: 'a' }, headersOf['runner'])
    expect(await end(other.body.id)).toMatchObject({ status: 'succeeded', parameters: { any: 'a of here' } })
  })
})

describe('defaults of the action', () => {
  it('read every secret, which is masked in the record and the output', async () => {
    const answer = await request({ text: 'mine' }, headersOf['runner'])
    const { result, parameters } = await end(answer.body.id, headersOf['runner'])
    expect(result['stdout']).toBe('mine same')
    expect(parameters).toMatchObject({ text: 'mine', hidden: '********', chained: '********!' })
  })

  it('are not given away by a re-run with a template', async () => {
    const first = await request({ text: 'mine', pin: 'own-canary-pin' }, headersOf['runner'])
    await end(first.body.id)
    const rerun = (parameters: object, user: string) =>
      server.call<ExecutionAnswer>('POST', `/v1/executions/${first.body.id}/re_run`, { parameters }, headersOf[user])
    for (const text of ['{{ hidden | length }}', '{{ chained | length }}']) {
      const { status, text: said } = await rerun({ text }, 'runner')
      expect([text, status, said]).toEqual([text, 400, expect.stringContaining('pack_config')])
    }
    const same = await rerun({ text: 'again' }, 'runner')
    expect((await end(same.body.id)).result['stdout']).toBe('again same')
    const root = await rerun({ text: '{{ hidden | length }}' }, 'root')
    expect((await end(root.body.id)).result['stdout']).toBe(`${TOKEN.length} same`)
  })
})

describe('rules', () => {
  interface Enforcement {
    status: string
    execution_id?: string
    failure_reason?: string
  }
  /** Fires the rule of a webhook. @returns its enforcement */
  async function fire(url: string, ref: string): Promise<Enforcement> {
    expect((await server.call('POST', `/v1/webhooks/${url}`, {}, headersOf['root'])).status).toBe(202)
    return waitFor(`the enforcement of ${ref}`, async () => {
      const path = `/v1/ruleenforcements?rule_ref=${ref}`
      return (await server.call<Enforcement[]>('GET', path, undefined, headersOf['root'])).body[0]
    })
  }
  const rule = (name: string, text: string) => ({
    name,
    pack: 'vault',
    enabled: true,
    trigger: { type: 'core.svc.webhook', parameters: { url: name } },
    action: { ref: 'vault.use', parameters: { text } },
  })

  it('read with the permissions of their authors', async () => {
    for (const [user, name, template, expected] of [
      ['author', 'stolen', 'x{{ config_context.token | length }}', 'refused'],
      ['author', 'plain', '{{ config_context.region }}', 'north same'],
      ['root', 'owned', 'x{{ config_context.token | length }}', `x${TOKEN.length} same`],
    ] as const) {
      const made = await server.call(
        'POST',
        '/v1/rules',
        rule(name, template),
        headersOf[name === 'owned' ? 'root' : user],
      )
      expect([name, made.status, made.text]).toEqual([name, 201, made.text])
      const { status, execution_id: id, failure_reason: reason = '' } = await fire(name, `vault.${name}`)
      const printed = id === undefined ? undefined : (await end(id)).result['stdout']
      const isRefused = status === 'failed' && reason.includes('pack_config')
      expect([name, isRefused ? 'refused' : printed]).toEqual([name, expected])
    }
  })

  it('of the pack read like defaults', async () => {
    const enforcement = await fire('own', 'vault.own')
    expect(enforcement.failure_reason).toBeUndefined()
    expect((await end(enforcement.execution_id ?? '')).result['stdout']).toBe(`x${TOKEN.length} same`)
  })

  it('are tested with the permissions of their author and of who tests them', async () => {
    const event = { trigger: 'core.svc.webhook', payload: {} }
    const body = { rule: rule('tried', 'x{{ config_context.token | length }}'), trigger_instance: event }
    const tried = await server.call('POST', '/v1/rules/test', body, headersOf['author'])
    expect([tried.status, tried.text.includes(`x${TOKEN.length}`)]).toEqual([200, false])
  })
})

describe('without access control', () => {
  it.each([
    ['everybody who has logged in reads all', 'True'],
    ['everybody reads all while authentication is off', 'False'],
  ])('%s', async (_, enable) => {
    const own = makeFolder()
    writeFiles(own)
    const app = await createTestApp({ basePath: own.path, settings: { 'auth.enable': enable } })
    try {
      const headers = enable === 'True' ? await signIn(app, 'admin', firstPassword(own.path)) : {}
      await app.call('PUT', '/v1/keys/sealed', { name: 'sealed', value: 'sealed', secret: true }, headers)
      for (const [text, printed] of sources) {
        const { body, status } = await request({ text }, headers, app)
        expect([text, status]).toEqual([text, 201])
        const { result } = await end(body.id, headers, app)
        expect([text, result['stdout']]).toEqual([text, `${printed} same`])
      }
    } finally {
      await app.stop()
      own.remove()
    }
  })
})
