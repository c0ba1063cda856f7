/**
 * What happened to others (the public reports named in each title), as far as it is about triggers, rules, webhooks, traces,
 * timers and the datastore, and does not happen here. Some reports are held where what they are about is:
 *
 * - CVE-2022-44009, st2#6379, CVE-2018-20345, for keys: `05-datastore-rights`
 * - CVE-2021-44657 ways out of templates: `src/lib/template/escape.test.ts`, and through rules `src/modules/rules/enforcement/engine.test.ts`
 * - CVE-2022-31044, CVE-2025-2877 secrets of the datastore in files and logs: `05-datastore`
 * - CVE-2026-39969 signatures that are missing, empty, malformed or given twice: `06-signatures`
 * - CVE-2026-21858 bodies that say they are of another type: `src/http/body.test.ts`
 * - CVE-2026-38428 SQL in filters: `00-bad-input`, `05-rules-hostile`, `05-datastore`, `06-webhooks`, `07-traces`
 * - CVE-2026-53576 roles and credentials at each endpoint: `11-matrix`
 */
import { createHmac, randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runCli } from '../helpers/cli.ts'
import { makeFolder } from '../helpers/folders.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import { createRbacFiles, type Grant } from '../helpers/rbac.ts'
import { createTestApp } from '../helpers/app.ts'
import { type Answer, type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { rowsOf, send, type ErrorAnswer, type RawAnswer } from './support.ts'

type Headers = Record<string, string>

const folder = makeFolder()
let server: TestApp
let administrator: Headers
const headersOf: Record<string, Headers> = {}

const secret = 'canary-of-the-vault'
const vault = 'key_value_pair:svckv.system:vault'
/** Role → what it grants; the role is assigned to the user of its name. */
const roles: Record<string, Grant[]> = {
  author: [
    { types: ['rule_create', 'rule_modify', 'rule_view'], on: 'pack:web' },
    { types: ['action_execute'], on: 'action:core:echo' },
    { types: ['webhook_create'], on: 'webhook:shared' },
    { types: ['trigger_all'], on: 'trigger:core:svc.webhook' },
  ],
  reader: [
    { types: ['rule_view'], on: 'pack:web' },
    {
      types: ['rule_list', 'rule_enforcement_list', 'trigger_list', 'webhook_list', 'timer_list', 'trace_list'],
    },
  ],
  // Rules run as the system user, which therefore needs a role.
  svc: [
    { types: ['key_value_pair_view'], on: vault },
    { types: ['key_value_pair_view'], on: 'key_value_pair:svckv.system:plain' },
  ],
  nobody: [],
}

const as = <T = Record<string, unknown>>(
  user: string,
  method: string,
  path: string,
  body?: unknown,
): Promise<Answer<T & ErrorAnswer>> => server.call<T & ErrorAnswer>(method, path, body, headersOf[user] ?? {})

beforeAll(async () => {
  const { define, assign } = createRbacFiles(folder.path)
  assign('admin', 'system_admin')
  assign('root', 'admin')
  assign('observer', 'observer')
  for (const [name, grants] of Object.entries(roles)) define(name, grants)
  server = await createTestApp({
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
  for (const [name, isSecret] of [
    ['vault', true],
    ['plain', false],
  ] as const) {
    const answer = await as('root', 'PUT', `/v1/keys/${name}`, { name, value: secret, secret: isSecret })
    if (answer.status !== 200) throw new Error(answer.text)
  }
})

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

  it.each<[name: string, ref: string, parameters: object, criteria?: object]>([
    ['a parameter of another type', 'core.local', { cmd: 'true', timeout: '{{ svckv.system.vault | decrypt_kv }}' }],
    ['an object', 'core.local', { cmd: 'true', env: '{{ svckv.system.vault | decrypt_kv }}' }],
    ['a plain item that is not for the caller', 'core.local', { cmd: 'true', timeout: '{{ svckv.system.plain }}' }],
    ['a failing filter', 'core.echo', { message: '{{ ({} | attr(svckv.system.vault | decrypt_kv)).x }}' }],
    [
      'a filter named in pieces',
      'core.echo',
      { message: "{{ [svckv.system.vault] | map('decrypt' ~ '_kv') | first }}" },
    ],
    ['cipher text from the payload', 'core.echo', { message: '{{ trigger.cipher | decrypt_kv }}' }],
    ['an action that is missing', 'no.such', { password: secret, message: '{{ svckv.system.vault | decrypt_kv }}' }],
    [
      'a pattern',
      'core.echo',
      { message: 'out' },
      { 'trigger.a': { type: 'matchregex', pattern: '({{ svckv.system.vault | decrypt_kv }}' } },
    ],
  ])('trying a rule of somebody else tells nothing of what it reads: %s', async (_, ref, parameters, criteria = {}) => {
    const { ref: rule } = await makeRule('root', { action: { ref, parameters }, criteria })
    const cipher = (await as<{ value: string }>('root', 'GET', '/v1/keys/vault')).body.value
    const trigger_instance = { trigger: 'core.svc.generic.inquiry', payload: { cipher, a: 'x' } }
    const { status, text } = await as('reader', 'POST', '/v1/rules/test', { rule_ref: rule, trigger_instance })
    expect([status, text.includes('canary'), text]).toEqual([200, false, expect.stringContaining('verdict')])
  })
})

describe('st2#6379: running as somebody who may do more', () => {
  it('what an API key with scopes has a rule do stays within them', async () => {
    const scopes = [
      { permission_types: ['rule_create'], resource_uid: 'pack:web' },
      { permission_types: ['action_execute'], resource_uid: 'action:core:local' },
    ]
    const { body: made } = await as<{ key: string }>('root', 'POST', '/v1/apikeys', { scopes })
    headersOf['limited'] = { 'Svc-Api-Key': made.key }
    const program =
      'fetch(`${process.env.SVC_ACTION_API_URL}/keys/vault`, { headers: { "X-Auth-Token": process.env.SVC_ACTION_AUTH_TOKEN } })' +
      '.then(({ status }) => console.log(status))'
    const trigger = await as<{ ref: string }>('root', 'POST', '/v1/triggertypes', { name: fresh(), pack: 'web' })
    const more = {
      trigger: { type: trigger.body.ref },
      action: { ref: 'core.local', parameters: { cmd: `"$NODE" -e '${program}'`, env: { NODE: process.execPath } } },
    }
    const rules = [await makeRule('limited', more), await makeRule('root', more)].map(({ ref }) => ref)
    const event = { trigger: trigger.body.ref, payload: {} }
    const { body } = await server.call<{ executions: { rule: string; result: { stdout: string } }[] }>(
      'POST',
      '/v1/webhooks/svc',
      event,
      { ...headersOf['root'], Prefer: 'wait=30' },
    )
    const seen = new Map(body.executions.map(({ rule, result }) => [rule, result.stdout]))
    expect(rules.map((ref) => seen.get(ref))).toEqual(['403', '200'])
  })
})

describe('CVE-2025-49521: templates in what is no template', () => {
  it('names, descriptions, tags, keys, headers and values of requests stay text', async () => {
    const text = '{{ 7 * 7 }}{% if 1 %}{{ svckv.system.plain }}{% endif %}'
    const url = fresh()
    const rule = await makeRule('root', {
      description: text,
      tags: [{ name: text, value: text }],
      trigger: { type: 'core.svc.webhook', parameters: { url }, description: text },
      action: { ref: 'core.echo', description: text, parameters: { message: "{{ trigger.body['a'] }}" } },
    })
    const answer = await post(url, JSON.stringify({ a: text, [text]: 1 }), {
      ...headersOf['root'],
      'Svc-Trace-Tag': text,
      'Idempotency-Key': text,
      'X-Text': text,
      Prefer: 'wait=20',
    })
    expect(answer.status).toBe(200)
    const [id] = (JSON.parse(answer.text) as { executions: { id: string }[] }).executions.map(({ id }) => id)
    const execution = await as('root', 'GET', `/v1/executions/${id ?? ''}`)
    expect(execution.body['result']).toMatchObject({ stdout: text })
    const type = { name: fresh(), pack: 'web', description: text, tags: [{ name: text, value: text }] }
    expect((await as('root', 'POST', '/v1/triggertypes', type)).status).toBe(201)
    const key = { name: text, value: text, description: text }
    expect((await as('root', 'PUT', `/v1/keys/${encodeURIComponent(text)}`, key)).body).toMatchObject(key)
    const paths = [
      `/v1/rules/${rule.ref}`,
      `/v1/rules/views/${rule.ref}`,
      `/v1/triggertypes/web.${type.name}`,
      `/v1/triggerinstances/${String(answer.headers['svc-trigger-instance-id'])}`,
      `/v1/triggerinstances/${String(answer.headers['svc-trigger-instance-id'])}/explain`,
      `/v1/traces/${String(answer.headers['svc-trace-id'])}`,
      `/v1/executions/${id ?? ''}`,
      '/v1/webhooks',
    ]
    for (const path of paths) {
      const read = await as('root', 'GET', path)
      expect([path, read.status, read.text.includes('49{'), read.text.includes('canary')]).toEqual([
        path,
        200,
        false,
        false,
      ])
    }
    const trace = await as('root', 'GET', `/v1/traces/${String(answer.headers['svc-trace-id'])}`)
    expect(trace.body['trace_tag']).toBe(text)
  })
})

describe('CVE-2021-44657: templates that try too much', () => {
  it('cannot work without an end', async () => {
    for (const message of [
      '{% for a in range(99999999) %}{% for b in range(99999999) %}x{% endfor %}{% endfor %}',
      "{{ 'x' * 9999999999 }}",
      '{{ 9 ** 9 ** 9 ** 9 }}',
      "{{ ('a' * 30000) | regex_match('^(a+)+b$') }}",
    ]) {
      const rule = {
        name: 'endless',
        pack: 'web',
        trigger: { type: 'core.svc.generic.inquiry' },
        action: { ref: 'core.echo', parameters: { message } },
      }
      const answer = await as('root', 'POST', '/v1/rules/test', {
        rule,
        trigger_instance: { trigger: 'core.svc.generic.inquiry', payload: { a: 1 } },
      })
      expect([message, answer.status, answer.text.length < 200_000]).toEqual([message, 200, true])
    }
  })
})

describe('CVE-2021-41111, CVE-2022-31044: secrets of senders in lists and at rest', () => {
  it('whoever may list and view gets no byte of them, and no file holds them', async () => {
    const secret = `canary-${randomBytes(8).toString('hex')}`
    const key = Buffer.from(secret).toString('base64')
    const rules = [
      await makeRule('root', signed(fresh(), { scheme: 'github', secret: [secret, `${secret}-old`] })),
      await makeRule('root', signed(fresh(), { scheme: 'standard', secret: `whsec_${key}` })),
      await makeRule('root', signed(fresh(), { scheme: 'hmac', secret, header: 'X-Signature' })),
    ]
    const options = ['', '?show_secrets=true', '?include_attributes=trigger,action', '?decrypt=true']
    for (const user of ['observer', 'reader', 'root']) {
      for (const path of ['/rules', '/rules/views', '/webhooks', '/triggers', '/triggertypes', '/timers', '/traces']) {
        for (const option of options) {
          const { status, text } = await as(user, 'GET', `/v1${path}${option}`)
          expect([user, path + option, text.includes(secret), text.includes(key), status < 500]).toEqual([
            user,
            path + option,
            false,
            false,
            true,
          ])
        }
      }
      for (const { ref, trigger } of rules) {
        const { status, text, body } = await as<Rule>(user, 'GET', `/v1/rules/${ref}?show_secrets=true`)
        expect([user, text.includes(secret), text.includes(key)]).toEqual([user, false, false])
        expect([user, status, status !== 200 || 'signature' in body.trigger.parameters]).toEqual([user, 200, true])
        const one = await as(user, 'GET', `/v1/triggers/${trigger.ref}`)
        expect([user, one.text.includes(secret), one.text.includes(key)]).toEqual([user, false, false])
      }
    }
    const names = readdirSync(folder.path, { recursive: true, withFileTypes: true }).flatMap((entry) =>
      entry.isFile() ? [join(entry.parentPath, entry.name)] : [],
    )
    expect(names.some((name) => name.endsWith('svc.db-wal'))).toBe(true)
    expect(names.filter((name) => [secret, key].some((text) => readFileSync(name).includes(text)))).toEqual([])
    expect([secret, key].some((text) => server.log().includes(text))).toBe(false)
  })
})

describe('CVE-2018-20345: what is asked for is never more than what may be seen', () => {
  it('lists of rules, enforcements, instances, webhooks, timers and traces, whatever the query', async () => {
    const url = fresh()
    const hidden = await makeRule('root', {
      pack: 'hidden',
      trigger: { type: 'core.svc.webhook', parameters: { url } },
    })
    await makeRule('root', {
      pack: 'hidden',
      trigger: { type: 'core.svc.IntervalTimer', parameters: { unit: 'days', delta: 99 } },
    })
    const sent = await post(url, '{}', { ...headersOf['root'], 'Svc-Trace-Tag': 'tag-of-hidden' })
    const instance = String(sent.headers['svc-trigger-instance-id'])
    await waitFor('the rule to be enforced', async () => {
      const { body } = await as<unknown[]>('root', 'GET', `/v1/ruleenforcements?trigger_instance=${instance}`)
      return body.length > 0
    })
    const readable = new Set(
      rowsOf<{ ref: string }>(server, "select ref from rules where pack = 'web'").map(({ ref }) => ref),
    )
    const paths = [
      ...['', 'pack=hidden', 'user=root', 'enabled=true', 'action=core.echo', 'limit=-1'].map((q) => `rules?${q}`),
      `rules?trigger=${hidden.trigger.ref},core.svc.webhook`,
      ...['', 'pack=hidden', 'name=held1', 'include_attributes=ref,last_enforcement'].map((q) => `rules/views?${q}`),
      ...['', `trigger_instance=${instance}`, 'sort=rule_ref', 'execution=null'].map((q) => `ruleenforcements?${q}`),
      ...['', `trigger_instance=${instance}`].map((query) => `ruleenforcements/views?${query}`),
      `ruleenforcements?trigger_instance=${instance},${'0'.repeat(24)}`,
      ...[`trigger=${hidden.trigger.ref},core.x`, `before_id=${'f'.repeat(24)}`, 'max_payload_size=1'].map(
        (query) => `triggerinstances?${query}`,
      ),
      `triggers?ref=${hidden.trigger.ref}`,
      ...['trace_tag_prefix=tag-of', `before_id=${'f'.repeat(24)}`, 'include_attributes=origin,component_count'].map(
        (query) => `traces?${query}`,
      ),
      ...['', `id=${instance}`, 'trigger_type=core.svc.webhook', 'status=processed', 'trigger=*'].map(
        (query) => `triggerinstances?${query}`,
      ),
      ...['', 'type=core.svc.webhook', 'pack=core'].map((query) => `triggers?${query}`),
      ...['', 'pack=core'].map((query) => `triggertypes?${query}`),
      ...['', 'timer_type=core.svc.IntervalTimer'].map((query) => `timers?${query}`),
      ...['', 'trace_tag=tag-of-hidden', `trigger_instance=${instance}`, 'rule=hidden.x'].map((q) => `traces?${q}`),
      'webhooks?',
    ]
    for (const path of paths) {
      for (const more of ['', '&limit=1', '&offset=0&sort=-id']) {
        const { status, text, headers } = await as('reader', 'GET', `/v1/${path}${more}`)
        // A query that the endpoint does not know the words of.
        if (status === 400 || (status === 403 && path.includes('limit=-1'))) continue
        const shown = JSON.parse(text) as { ref?: string; rule?: { ref: string } }[]
        const seen = shown.map(({ ref, rule }) => rule?.ref ?? ref ?? 'something')
        const most = path.startsWith('rule') ? readable.size : 0
        expect([path + more, status, seen.filter((ref) => !readable.has(ref))]).toEqual([path + more, 200, []])
        expect([path + more, Number(headers.get('x-total-count')) <= most]).toEqual([path + more, true])
      }
    }
    for (const path of [
      `triggerinstances/${instance}`,
      `triggerinstances/${instance}/explain`,
      `traces/${String(sent.headers['svc-trace-id'])}`,
      `traces/${String(sent.headers['svc-trace-id'])}/components`,
      `webhooks/${url}`,
    ]) {
      expect([path, (await as('reader', 'GET', `/v1/${path}`)).status]).toEqual([path, 403])
    }
    const trying = { rule_ref: 'web.held1', trigger_instance_id: instance }
    expect((await as('reader', 'POST', '/v1/rules/test', trying)).status).toBe(403)
  })

  it('what a rule has started last, without how that went for who may not view it', async () => {
    const url = fresh()
    const rule = await makeRule('root', { trigger: { type: 'core.svc.webhook', parameters: { url } } })
    await post(url, '{}', headersOf['root'])
    interface View {
      last_enforcement: { execution_id?: string; execution_status?: string } | null
    }
    const last = async (user: string): Promise<View['last_enforcement'] | undefined> => {
      const path = `/v1/rules/views?name=${rule.ref.slice('web.'.length)}&include_attributes=last_enforcement`
      return (await as<View[]>(user, 'GET', path)).body[0]?.last_enforcement
    }
    const whole = await waitFor('the execution', async () => {
      const seen = await last('root')
      return seen?.execution_status === 'succeeded' ? seen : undefined
    })
    const { execution_status: _, ...enforcement } = whole
    expect(enforcement.execution_id).toMatch(/^[0-9a-f]{24}$/)
    expect(await last('reader')).toEqual(enforcement)
  })
})

describe('CVE-2026-21858: a body that says it is something else', () => {
  it('is read as what it is declared to be, and names no file', async () => {
    const file = join(folder.path, 'svc.conf')
    const content = 'canary-of-a-file'
    writeFileSync(join(folder.path, 'there.txt'), content)
    const files = { files: { data: { filepath: join(folder.path, 'there.txt'), path: file, originalFilename: 'a' } } }
    const url = fresh()
    await makeRule('root', { trigger: { type: 'core.svc.webhook', parameters: { url } } })
    const sendAs = (type: string | string[], body: string): Promise<RawAnswer> =>
      post(url, body, { ...headersOf['root'], 'Content-Type': type })
    const json = JSON.stringify(files)
    const plain = await sendAs('application/json', json)
    expect([plain.status, JSON.parse(plain.text)]).toEqual([202, files])
    const part = (head: string, value: string): string =>
      `--b\r\nContent-Disposition: form-data; ${head}\r\n\r\n${value}\r\n`
    const form = await sendAs(
      'multipart/form-data; boundary=b',
      `${part('name="files"', json)}${part('name="up"; filename="/etc/passwd"', 'x')}--b--\r\n`,
    )
    expect([form.status, JSON.parse(form.text)]).toEqual([202, { files: [json] }])
    for (const [type, body] of [
      ['multipart/form-data', json],
      ['multipart/form-data; boundary=b', json],
      ['multipart/form-data; boundary=', json],
      ['application/json', `${part('name="a"', 'b')}--b--\r\n`],
      [['application/json', 'multipart/form-data; boundary=b'], json],
      ['application/x-www-form-urlencoded', json],
      ['application/octet-stream', json],
      ['text/html', json],
    ] as const) {
      const answer = await sendAs(typeof type === 'string' ? type : [...type], body)
      expect([type, answer.status, answer.text.includes(content)]).toEqual([type, 400, false])
    }
  })
})

describe('CVE-2025-61914, CVE-2025-46343: markup that comes back from a webhook', () => {
  it('is JSON, whatever the sender asks for, and no browser takes it for more', async () => {
    const url = fresh()
    await makeRule('root', { trigger: { type: 'core.svc.webhook', parameters: { url } } })
    const markup = '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(1)</script></svg>'
    const sent: [string, string, Record<string, string>][] = [
      [url, JSON.stringify({ markup }), { 'Content-Type': 'application/json' }],
      [url, JSON.stringify([markup]), { 'Content-Type': 'text/plain' }],
      [url, `markup=${encodeURIComponent(markup)}`, { 'Content-Type': 'application/x-www-form-urlencoded' }],
      [url, markup, { 'Content-Type': 'text/html' }],
      [url, markup, { 'Content-Type': 'image/svg+xml' }],
      [encodeURIComponent(markup), '{}', {}],
      ['svc', JSON.stringify({ trigger: markup, payload: {} }), {}],
    ]
    for (const [hook, body, headers] of sent) {
      const answer = await post(hook, body, { ...headersOf['root'], Accept: 'text/html, image/svg+xml', ...headers })
      expect([hook, answer.status < 500, answer.headers]).toEqual([
        hook,
        true,
        expect.objectContaining({
          'content-type': 'application/json; charset=UTF-8',
          'x-content-type-options': 'nosniff',
          'x-frame-options': 'DENY',
        }),
      ])
    }
  })
})

describe('CVE-2021-21297: prototypes that requests try to change', () => {
  const bodies: [type: string, body: string][] = [
    ['application/json', '{"__proto__": {"polluted": 1}}'],
    ['application/json', '{"a": {"__proto__": {"polluted": 1}}}'],
    ['application/json', String.raw`{"\u005f_proto__": {"polluted": 1}}`],
    ['application/json', '[{"__proto__": {"polluted": 1}}]'],
    ['application/x-www-form-urlencoded', '__proto__=1'],
    ['application/x-www-form-urlencoded', '__proto__=1&__proto__=2&a=1'],
    [
      'multipart/form-data; boundary=b',
      '--b\r\nContent-Disposition: form-data; name="__proto__"\r\n\r\n1\r\n--b--\r\n',
    ],
  ]
  const accepted: [type: string, body: string, field: string][] = [
    ['application/json', '{"constructor": {"prototype": {"polluted": 1}}}', 'constructor'],
    ['application/x-www-form-urlencoded', 'constructor[prototype][polluted]=1', 'constructor[prototype][polluted]'],
    ['application/x-www-form-urlencoded', '__proto__[polluted]=1', '__proto__[polluted]'],
    ['application/x-www-form-urlencoded', '__proto__.polluted=1', '__proto__.polluted'],
  ]

  it('by each way in', async () => {
    const url = fresh()
    const rule = await makeRule('root', { trigger: { type: 'core.svc.webhook', parameters: { url } } })
    const targets: [method: string, path: string][] = [
      ['POST', `/v1/webhooks/${url}`],
      ['POST', '/v1/webhooks/svc'],
      ['POST', '/v1/rules'],
      ['PUT', `/v1/rules/${rule.ref}`],
      ['POST', '/v1/rules/test'],
      ['POST', '/v1/triggertypes'],
      ['POST', '/v1/triggers'],
      ['PUT', '/v1/keys/polluted'],
    ]
    for (const [method, path] of targets) {
      for (const [type, body] of bodies) {
        const headers = { ...headersOf['root'], 'Content-Type': type }
        const { status } = await send(server.urls.api, { method, path, headers, body })
        expect([method, path, body, status]).toEqual([method, path, body, 400])
      }
    }
    for (const [type, body, field] of accepted) {
      const answer = await post(url, body, { ...headersOf['root'], 'Content-Type': type })
      expect([body, answer.status, Object.keys(JSON.parse(answer.text) as object)]).toEqual([body, 202, [field]])
    }
    for (const path of [
      'rules',
      'ruleenforcements',
      'triggerinstances',
      'triggers',
      'triggertypes',
      'keys',
      'traces',
    ]) {
      const query = '__proto__[polluted]=1&constructor.prototype.polluted=1&__proto__=x'
      expect((await as('root', 'GET', `/v1/${path}?${query}`)).status).toBe(200)
    }
    const sane = await as('root', 'GET', `/v1/rules/${rule.ref}`)
    expect([sane.status, sane.text.includes('polluted')]).toEqual([200, false])
  })
})

describe('CVE-2026-53576: addresses that lead around the question who it is', () => {
  const resources = ['rules', 'ruleenforcements', 'triggers', 'triggertypes', 'triggerinstances', 'traces', 'timers']
  const others = ['keys', 'webhooks', 'webhooks/held', 'webhooks/svc', 'ruletypes', 'rules/views', 'rules/test']
  const suffixes = [
    '',
    '/',
    '//',
    '/.',
    '/..',
    ';',
    ';a=b',
    '%2f',
    '%00',
    '%20',
    '?a',
    '/configs',
    '.json',
    '/views',
    '#',
    '%23',
  ]
  const prefixes = [
    '/v1/',
    '/api/v1/',
    '/v1//',
    '//v1/',
    '/V1/',
    '/v1/./',
    '/v1/x/../',
    '/stream/../v1/',
    '/auth/../v1/',
  ]

  it.each(['GET', 'POST', 'PUT', 'DELETE', 'HEAD'])(
    '%s',
    async (method) => {
      for (const surface of ['api', 'auth', 'stream'] as const) {
        for (const name of [...resources, ...others]) {
          const paths = [
            ...suffixes.map((suffix) => `/v1/${name}${suffix}`),
            ...prefixes.map((prefix) => prefix + name),
          ]
          const answers = await Promise.all(
            paths.map(async (path) => ({
              path,
              ...(await send(server.urls[surface], { method, path, cutsStreams: true })),
            })),
          )
          for (const { path, status, text } of answers) {
            expect([surface, method, path, [400, 401, 404, 405].includes(status), text.startsWith('[')]).toEqual([
              surface,
              method,
              path,
              true,
              false,
            ])
          }
        }
      }
    },
    240_000,
  )

  it('a header of a signature opens its own hook alone, and nothing by itself', async () => {
    const url = fresh()
    await makeRule('root', signed(url, { scheme: 'github', secret: 'canary-for-paths' }))
    const unsigned = fresh()
    await makeRule('root', { trigger: { type: 'core.svc.webhook', parameters: { url: unsigned } } })
    const before = countInstances()
    const headers = { ...github('canary-for-paths'), 'Content-Type': 'application/json' }
    for (const hook of [
      unsigned,
      'svc',
      'svc/',
      '/svc',
      '%73vc',
      `${url}/../svc`,
      `${url}%2f..%2fsvc`,
      `${url}x`,
      `${url}/a`,
    ]) {
      const { status } = await send(server.urls.api, {
        method: 'POST',
        path: `/v1/webhooks/${hook}`,
        headers,
        body: '{}',
      })
      expect([hook, status]).toEqual([hook, 401])
    }
    for (const [method, path] of [
      ['GET', `/v1/webhooks/${url}`],
      ['GET', '/v1/webhooks'],
      ['POST', '/v1/rules'],
      ['PUT', `/v1/keys/${url}`],
    ] as const) {
      const { status } = await send(server.urls.api, {
        method,
        path,
        headers,
        ...(method === 'GET' ? {} : { body: '{}' }),
      })
      expect([method, path, status]).toEqual([method, path, 401])
    }
    expect(countInstances()).toBe(before)
    expect((await post(url, '{}', headers)).status).toBe(202)
    expect((await post(`/${url}/`, '{}', headers)).status).toBe(202)
  })
})

describe('CVE-2021-28667: text that is no text', () => {
  const texts = [
    '\ud800',
    'a\udfffb',
    '\0',
    'a\0b',
    '\u202e\u2066',
    '\ufffe\uffff',
    '\u001b[2J',
    '\r\nX-Injected: 1',
    'é'.repeat(3000),
  ]

  it('in every field: refused or kept, logged in one line each, and never a 5xx', async () => {
    const url = fresh()
    await makeRule('root', { trigger: { type: 'core.svc.webhook', parameters: { url } } })
    for (const text of texts) {
      const trigger = { type: 'core.svc.webhook', parameters: { url: `${url}/${text}` } }
      const action = { ref: 'core.echo', parameters: { message: text } }
      const requests: [method: string, path: string, body: object][] = [
        ['POST', `/v1/webhooks/${url}`, { [text]: text }],
        ['POST', '/v1/webhooks/svc', { trigger: text, payload: { a: text } }],
        ['POST', '/v1/webhooks/svc', { trigger: 'core.svc.generic.inquiry', payload: { [text]: text } }],
        ['POST', '/v1/rules', { name: text, trigger, action }],
        ['POST', '/v1/rules', { name: fresh(), pack: 'web', description: text, trigger, action }],
        ['POST', '/v1/rules', { name: fresh(), pack: 'web', trigger: { type: text }, action: { ref: text } }],
        ['POST', '/v1/rules', { name: fresh(), pack: 'web', trigger, action, tags: [{ name: text, value: text }] }],
        ['POST', '/v1/rules', { name: fresh(), trigger, action, criteria: { [text]: { type: 'eq', pattern: text } } }],
        ['POST', '/v1/triggertypes', { name: text, description: text }],
        ['POST', '/v1/triggertypes', { name: fresh(), pack: 'web', description: text }],
        ['POST', '/v1/triggers', { type: text, name: text }],
        ['PUT', '/v1/keys/odd', { name: 'odd', value: text, description: text }],
        ['PUT', `/v1/keys/${encodeURIComponent(text.toWellFormed())}`, { name: text.toWellFormed(), value: 'x' }],
      ]
      for (const [method, path, body] of requests) {
        const answer = await as('root', method, path, body)
        expect([JSON.stringify(text), method, path, answer.status < 500]).toEqual([
          JSON.stringify(text),
          method,
          path,
          true,
        ])
        expect(answer.headers.get('x-injected')).toBeNull()
      }
    }
    const bytes = Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d])
    for (const type of ['application/json', 'text/plain', 'application/x-www-form-urlencoded']) {
      expect((await post(url, bytes, { ...headersOf['root'], 'Content-Type': type })).status).toBe(400)
    }
    const tag = Buffer.from('a\u0085b\u001b[2J', 'latin1').toString('latin1').replaceAll('\u001b', '')
    const tagged = await post(url, '{}', { ...headersOf['root'], 'Svc-Trace-Tag': tag, 'X-\u0021': 'x' })
    expect(tagged.status).toBe(202)
    for (const line of readFileSync(join(folder.path, 'logs', 'svc.audit.log'), 'utf8')
      .split('\n')
      .slice(0, -1)) {
      expect(() => JSON.parse(line) as unknown).not.toThrow()
    }
    expect(server.log()).not.toContain('\u001b')
    expect((await as('root', 'GET', '/v1/rules?limit=1')).status).toBe(200)
  })
})

describe('CVE-2021-39132: files of rules and trigger types that are more than data', () => {
  const path = join(folder.path, 'hostile.yaml')
  const marker = join(folder.path, 'was-run')
  const levels = Array.from({ length: 30 }, (_, i) => `a${i + 1}: &a${i + 1} [*a${i}, *a${i}, *a${i}, *a${i}]`).join(
    '\n',
  )
  const contents: Record<string, string> = {
    'a function': `name: x\ntrigger: !!js/function 'function () { require("fs").writeFileSync("${marker}", "") }'\n`,
    'an object of Python': `name: !!python/object/apply:os.system ["touch ${marker}"]\n`,
    'an object of Java': `!!javax.script.ScriptEngineManager [!!java.net.URL ["http://127.0.0.1/"]]\n`,
    'an object of Ruby': `--- !ruby/object:Gem::Installer\ni: x\n`,
    'a tag of its own': `name: !x {a: b}\n`,
    'anchors in anchors': `a0: &a0 [x, x, x, x]\n${levels}\nname: *a30\n`,
    'an anchor in itself': `name: &a [*a]\ntrigger: *a\n`,
    'lists in lists': `name: ${'['.repeat(100_000)}\n`,
    'ten million characters': `name: ${'x'.repeat(10_000_000)}\n`,
    'a prototype': `name: x\n__proto__: {polluted: 1}\n`,
    'a file to include': `name: !include /etc/passwd\n`,
  }

  it.each(Object.keys(contents))(
    '%s',
    async (name) => {
      writeFileSync(path, contents[name] ?? '')
      const { 'X-Auth-Token': token = '' } = administrator
      const env = { HOME: folder.path, SVC_API_URL: `${server.urls.api}/v1`, SVC_AUTH_TOKEN: token }
      const before = await as<unknown[]>('root', 'GET', '/v1/rules')
      for (const args of [
        ['rule', 'create', path],
        ['trigger', 'create', path],
      ]) {
        const { code, stdout, stderr } = await runCli(args, env)
        expect([args[0], code !== 0, stderr.includes('    at '), (stdout + stderr).includes('root:')]).toEqual([
          args[0],
          true,
          false,
          false,
        ])
      }
      expect(existsSync(marker)).toBe(false)
      const after = await as<unknown[]>('root', 'GET', '/v1/rules')
      expect(after.body.length).toBe(before.body.length)
    },
    240_000,
  )
})
