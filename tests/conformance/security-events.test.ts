/**
 * What happened to others (the public reports named in each title), as far as it is about triggers, rules, webhooks, traces,
 * timers and the datastore, and does not happen here. Some reports are held where what they are about is:
 *
 * - CVE-2022-44009, st2#6379, CVE-2018-20345, for keys: `05-datastore-rights`
 * - CVE-2021-44657 templates: the corpus in `tests/helpers/escapes.ts`, through rules in `05-rules-hostile`
 * - CVE-2022-31044, CVE-2025-2877 secrets of the datastore in files and logs: `05-datastore`
 * - CVE-2026-39969 signatures that are missing, empty, malformed or given twice: `06-signatures`
 * - CVE-2026-21858 bodies that say they are of another type: `src/http/body.test.ts`
 * - CVE-2026-38428 SQL in filters: `00-bad-input`, `05-rules-hostile`, `05-datastore`, `06-webhooks`
 * - CVE-2026-53576 roles and credentials at each endpoint: `11-matrix`
 */
import { createHmac } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeFolder } from '../helpers/folders.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import { startServer, type Answer, type TestServer } from '../helpers/server.ts'
import { rowsOf, send, type ErrorAnswer, type RawAnswer } from './support.ts'

type Headers = Record<string, string>

const folder = makeFolder()
let server: TestServer
let administrator: Headers
const headersOf: Record<string, Headers> = {}

interface Grant {
  types: string[]
  on?: string
}

const vault = 'key_value_pair:svckv.system:vault'
/** Role → what it grants; the role is assigned to the user of its name. */
const roles: Record<string, Grant[]> = {
  author: [
    { types: ['rule_create', 'rule_modify', 'rule_view'], on: 'pack:web' },
    { types: ['action_execute'], on: 'action:core:echo' },
    { types: ['webhook_create'], on: 'webhook:shared' },
    { types: ['trigger_all'], on: 'trigger:core:svc.webhook' },
  ],
  // Rules run as the system user, which therefore needs a role.
  svc: [{ types: ['key_value_pair_view'], on: vault }],
  nobody: [],
}

function define(name: string, grants: readonly Grant[]): void {
  const items = grants.map(
    ({ types, on }) =>
      `  - permission_types: [${types.join(', ')}]\n${on === undefined ? '' : `    resource_uid: '${on}'\n`}`,
  )
  const list = items.length === 0 ? 'permission_grants: []\n' : `permission_grants:\n${items.join('')}`
  writeFileSync(join(folder.path, 'rbac/roles', `${name}.yaml`), `name: ${name}\n${list}`)
  assign(name, name)
}

function assign(user: string, role: string): void {
  writeFileSync(join(folder.path, 'rbac/assignments', `${user}.yaml`), `username: ${user}\nroles: [${role}]\n`)
}

const as = <T = Record<string, unknown>>(
  user: string,
  method: string,
  path: string,
  body?: unknown,
): Promise<Answer<T & ErrorAnswer>> => server.call<T & ErrorAnswer>(method, path, body, headersOf[user] ?? {})

beforeAll(async () => {
  for (const name of ['roles', 'assignments']) mkdirSync(join(folder.path, 'rbac', name), { recursive: true })
  assign('admin', 'system_admin')
  assign('root', 'admin')
  assign('observer', 'observer')
  for (const [name, grants] of Object.entries(roles)) define(name, grants)
  server = await startServer({
    basePath: folder.path,
    settings: {
      'auth.enable': 'True',
      'rbac.enable': 'True',
      'rbac.backend': 'default',
      'log.level': 'DEBUG',
      'auth.failures_per_address': '0',
    },
  })
  administrator = await signIn(server, 'admin', firstPassword(folder.path))
  for (const user of ['root', 'observer', ...Object.keys(roles)]) {
    const answer = await server.call<{ key: string }>('POST', '/v1/apikeys', { user }, administrator)
    if (answer.status !== 201) throw new Error(`no key (${answer.status}): ${answer.text}`)
    headersOf[user] = { 'Svc-Api-Key': answer.body.key }
  }
}, 60_000)

afterAll(async () => {
  await server.stop()
  folder.remove()
})

let made = 0
const fresh = (): string => `held${++made}`

interface Rule {
  id: string
  ref: string
  trigger: { ref: string; parameters: Record<string, unknown> }
  action: { parameters: Record<string, unknown> }
}

/** @param more replaces what it says anything about */
async function makeRule(user: string, more: Record<string, unknown> = {}): Promise<Rule> {
  const body = {
    name: fresh(),
    pack: 'web',
    enabled: true,
    trigger: { type: 'core.svc.generic.inquiry' },
    action: { ref: 'core.echo', parameters: { message: 'out' } },
    ...more,
  }
  const answer = await as<Rule>(user, 'POST', '/v1/rules', body)
  if (answer.status !== 201) throw new Error(`no rule (${answer.status}): ${answer.text}`)
  return answer.body
}

const signed = (url: string, signature: Record<string, unknown>): Record<string, unknown> => ({
  trigger: { type: 'core.svc.webhook', parameters: { url, signature } },
})

const post = (hook: string, body: string | Buffer, headers: Record<string, string | string[]> = {}) =>
  send(server.urls.api, {
    method: 'POST',
    path: `/v1/webhooks/${hook}`,
    headers: { 'Content-Type': 'application/json', ...headers },
    body,
  })

const codeOf = ({ status, text }: Pick<RawAnswer, 'status' | 'text'>): [number, string] => [
  status,
  (JSON.parse(text) as Partial<ErrorAnswer>).code ?? '',
]
/** Of webhooks. */
const countInstances = (): number =>
  rowsOf<{ n: number }>(
    server,
    "select count(*) as n from trigger_instances where trigger_type = 'core.svc.webhook'",
  )[0]?.n ?? -1

const hexOf = (secret: string, text: string): string => createHmac('sha256', secret).update(text).digest('hex')
const github = (secret: string, body = '{}'): Headers => ({ 'X-Hub-Signature-256': `sha256=${hexOf(secret, body)}` })
const seconds = (): number => Math.floor(Date.now() / 1000)

describe('CVE-2026-39969: requests that prove nothing', () => {
  it('what was signed and recorded is the same delivery, whoever brings it and whatever is left of it', async () => {
    const secrets = ['the secret until now', 'the secret from now on']
    await makeRule('root', signed('paid', { scheme: 'stripe', secret: secrets }))
    const time = seconds()
    const parts = secrets.map((secret) => `v1=${hexOf(secret, `${time}.{}`)}`)
    const first = await post('paid', '{}', { 'Stripe-Signature': `t=${time},${parts.join(',')}` })
    expect([first.status, first.headers['idempotent-replayed']]).toEqual([202, undefined])
    const before = countInstances()
    for (const headers of [{}, headersOf['nobody'], headersOf['root'], administrator]) {
      for (const given of [parts.join(','), ...parts, parts.toReversed().join(',')]) {
        const again = await post('paid', '{}', {
          'Stripe-Signature': `t=${time},${given}`,
          'Idempotency-Key': fresh(),
          ...headers,
        })
        expect([again.status, again.headers['idempotent-replayed']]).toEqual([202, 'true'])
      }
    }
    expect(countInstances()).toBe(before)
  })
})

describe('CVE-2022-44009: secrets that are read without the right to', () => {
  const secret = 'canary-of-the-vault'

  beforeAll(async () => {
    const { status } = await as('root', 'PUT', '/v1/keys/vault', { name: 'vault', value: secret, secret: true })
    expect(status).toBe(200)
  })

  it('the secret of a webhook is read for who wrote the rule, or made the trigger', async () => {
    const signature = { scheme: 'github', secret: '{{ svckv.system.vault | decrypt_kv }}' }
    const rule = await makeRule('author', signed('shared', signature))
    const before = countInstances()
    // The same for the right guess and a wrong one.
    for (const guess of [secret, 'another']) {
      expect(codeOf(await post('shared', '{}', github(guess)))).toEqual([503, 'SIGNATURE_UNCHECKABLE'])
    }
    const trigger = { type: 'core.svc.webhook', parameters: { url: 'elsewhere', signature } }
    expect((await as('author', 'POST', '/v1/triggers', trigger)).status).toBe(201)
    expect(codeOf(await post('elsewhere', '{}', github(secret)))).toEqual([503, 'SIGNATURE_UNCHECKABLE'])
    expect(countInstances()).toBe(before)

    const other = await makeRule('root', signed('shared', signature))
    expect(other.trigger.ref).not.toBe(rule.trigger.ref)
    const answer = await post('shared', '{}', github(secret))
    expect([answer.status, countInstances()]).toEqual([202, before + 1])
    expect(codeOf(await post('shared', '{}', github('another')))[0]).not.toBe(202)

    const { body, text } = await as<Rule>('root', 'GET', `/v1/rules/${rule.ref}`)
    expect([text.includes('vault'), text.includes('"author":')]).toEqual([false, false])
    const changed = await as<Rule>('root', 'PUT', `/v1/rules/${rule.ref}`, body)
    expect([changed.status, changed.body.trigger.ref]).toEqual([200, other.trigger.ref])
    for (const path of ['/v1/triggers', '/v1/webhooks', '/v1/webhooks/shared', '/v1/webhooks/elsewhere']) {
      const listed = await as('root', 'GET', path)
      expect([path, listed.status, /vault|"author"/.test(listed.text)]).toEqual([path, 200, false])
    }
  })
})
