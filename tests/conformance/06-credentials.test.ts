/** Contract 06, 6.4; ours: credential headers of requests are not kept in plain text, and rules read them all the same. */
import { readdirSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import type { TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { rowsOf } from './support.ts'

interface Instance {
  payload: { headers: Record<string, string>; headers_lower: Record<string, string> }
}

interface Outcome {
  executions: { id: string; status: string; result: { stdout: string } }[]
}

const MASK = '********'
const TOKEN = 'credential-canary-1'
let folder: TemporaryFolder
let server: TestApp
let made = 0

beforeAll(async () => {
  folder = makeFolder()
  server = await createTestApp({ basePath: folder.path })
})
afterAll(async () => {
  await server.stop()
  folder.remove()
})

async function makeHook(
  criteria: Record<string, unknown>,
  env: Record<string, string>,
  cmd = 'printf %s "$GIVEN" | tr a-z A-Z',
): Promise<string> {
  const name = `hook${++made}`
  const { status, text } = await server.call('POST', '/v1/rules', {
    name,
    enabled: true,
    trigger: { type: 'core.svc.webhook', parameters: { url: name } },
    criteria,
    action: { ref: 'core.local', parameters: { cmd, env } },
  })
  if (status !== 201) throw new Error(text)
  return name
}

async function send(hook: string, headers: Record<string, string>): Promise<{ id: string; outcome: Outcome }> {
  const answer = await server.call<Outcome>('POST', `/v1/webhooks/${hook}`, {}, { ...headers, Prefer: 'wait=30' })
  return { id: answer.headers.get('svc-trigger-instance-id') ?? '', outcome: answer.body }
}

const equals = (pattern: string) => ({ type: 'eq', pattern })
const read = async <T>(path: string): Promise<T> => (await server.call<T>('GET', path)).body

describe('06.4 a credential header of an unsigned webhook', () => {
  it.each([
    ['Authorization', `Token ${TOKEN}`],
    ['Proxy-Authorization', `Bearer ${TOKEN}`],
    ['X-Api-Key', TOKEN],
    ['X-Gitlab-Token', TOKEN],
    ['Ocp-Apim-Subscription-Key', TOKEN],
    ['X-Telegram-Bot-Api-Secret-Token', TOKEN],
  ])('%s meets criteria and templates, and is masked in the instance and in the execution', async (name, value) => {
    const hook = await makeHook(
      { [`trigger.headers['${name}']`]: equals(value) },
      { GIVEN: `{{ trigger.headers_lower['${name.toLowerCase()}'] }}` },
    )
    const { id, outcome } = await send(hook, { [name]: value, 'X-Key-Count': '12345' })
    // The action had the value; its upper case is another text.
    expect(outcome.executions.map(({ result }) => result.stdout)).toEqual([value.toUpperCase()])
    const { payload } = await read<Instance>(`/v1/triggerinstances/${id}`)
    expect(payload.headers).toMatchObject({ [name]: MASK, 'X-Key-Count': '12345' })
    expect(payload.headers_lower[name.toLowerCase()]).toBe(MASK)
    const [execution] = outcome.executions
    const shown = await read<{ parameters: unknown }>(`/v1/executions/${execution?.id ?? ''}`)
    expect(shown.parameters).toMatchObject({ env: { GIVEN: MASK } })
  })

  it('is in no file of the server and in no answer about the event', async () => {
    const value = `Basic ${Buffer.from(`joe:${TOKEN}-file`).toString('base64')}`
    const hook = await makeHook(
      { 'trigger.headers.Authorization': equals('something else') },
      { GIVEN: '{{ trigger.headers.Authorization }}' },
    )
    const { id } = await send(hook, { Authorization: value })
    const [rule] = await read<{ id: string; ref: string }[]>(`/v1/rules?name=${hook}`)
    const test = await server.call('POST', '/v1/rules/test', { rule_ref: rule?.ref, trigger_instance_id: id })
    expect(test.body).toMatchObject({ matches: false })
    const answers = [
      test.text,
      (await server.call('GET', `/v1/triggerinstances/${id}`)).text,
      (await server.call('GET', `/v1/triggerinstances/${id}/explain`)).text,
      (await server.call('POST', `/v1/triggerinstances/${id}/re_emit`, {})).text,
    ]
    expect(answers.filter((text) => text.includes(value) || text.includes(TOKEN))).toEqual([])
    const files = readdirSync(folder.path, { recursive: true, withFileTypes: true }).filter((file) => file.isFile())
    expect(files.map(({ name }) => name)).toContain('svc.db')
    expect(files.filter((file) => readFileSync(join(file.parentPath, file.name)).includes(value))).toEqual([])
  })

  it('is masked in the output of its action as programs encode it', async () => {
    const secret = `${TOKEN} "äöü"/+`
    const hook = await makeHook(
      {},
      { GIVEN: '{{ trigger.headers.Authorization }}' },
      `python3 -c "import html, os, urllib.parse as p; s = os.environ['GIVEN']; print(p.quote(s), p.quote_plus(s), s.encode().hex())"`,
    )
    const basic = Buffer.from(`joe:${secret}`).toString('base64')
    const { outcome } = await send(hook, { Authorization: `Basic ${basic}` })
    expect(outcome.executions.map(({ result }) => result.stdout)).toEqual([`${MASK} ${MASK} ${MASK}`])
  })

  it('is masked in the reason of a rule that fails with it', async () => {
    const hook = await makeHook(
      { "trigger.headers['X-Api-Key']": { type: 'greaterthan', pattern: 5 } },
      { GIVEN: 'unused' },
    )
    const { id } = await send(hook, { 'X-Api-Key': `${TOKEN}-fails` })
    const text = (await server.call('GET', `/v1/ruleenforcements/?trigger_instance=${id}`)).text
    expect(text).toContain('failure_reason')
    expect(text).not.toContain(TOKEN)
  })

  it('is there again for a replay', async () => {
    const hook = await makeHook({ "trigger.headers['X-Api-Key']": equals(TOKEN) }, { GIVEN: 'ran' })
    const { id } = await send(hook, { 'X-Api-Key': TOKEN })
    const again = await server.call('POST', `/v1/triggerinstances/${id}/re_emit`, {})
    const newId = again.headers.get('svc-trigger-instance-id') ?? ''
    const executions = await waitFor('the execution of the replay', () => {
      const rows = rowsOf<{ status: string }>(server, 'select status from executions where trigger_instance = ?', newId)
      return rows.length === 0 ? undefined : rows
    })
    expect(executions).toHaveLength(1)
    const sealed = rowsOf<{ sealed_headers: string | null; payload: string }>(
      server,
      'select sealed_headers, payload from trigger_instances where id = ?',
      newId,
    )
    expect(sealed[0]?.sealed_headers).toMatch(/^[0-9A-F]+$/)
    expect(sealed[0]?.payload).toContain(MASK)
    expect(again.text).not.toContain(TOKEN)
  })

  it('is stored masked only where there is one', async () => {
    const hook = await makeHook({}, { GIVEN: 'x' })
    const { id } = await send(hook, { 'X-Token-Count': '3', 'Idempotency-Key': 'k1' })
    expect(rowsOf(server, 'select sealed_headers from trigger_instances where id = ?', id)).toEqual([
      { sealed_headers: null },
    ])
  })
})

describe('06.4 a credential header whose key file is missing', () => {
  it.each<[string, () => Record<string, string>, string]>([
    ['the own file', () => ({}), 'CRYPTO_KEY_MISSING'],
    ['another path', () => ({ 'keyvalue.encryption_key_path': join(folder.path, 'nothing') }), 'CRYPTO_KEY_MISSING'],
    ['encryption is off', () => ({ 'keyvalue.enable_encryption': 'False' }), 'CRYPTO_KEY_MISSING'],
    ['another key', () => ({}), 'CIPHER_TEXT_INVALID'],
  ])('%s: the event is shown, and what would need the header says what is missing', async (_, settings, code) => {
    const hook = await makeHook({ "trigger.headers['X-Api-Key']": equals(TOKEN) }, { GIVEN: 'ran' })
    const { id } = await send(hook, { 'X-Api-Key': TOKEN })
    const pending = await send(hook, { 'X-Api-Key': TOKEN })
    const [rule] = await read<{ ref: string }[]>(`/v1/rules?name=${hook}`)
    await server.stop()
    const setStatus = 'update trigger_instances set status = ? where id = ?'
    const database = new Sqlite(join(folder.path, 'svc.db'))
    database.prepare(setStatus).run('pending', pending.id)
    database.close()
    const name = readdirSync(folder.path, { recursive: true, encoding: 'utf8' }).find((path) =>
      path.endsWith('secrets.json'),
    )
    const keyFile = join(folder.path, name ?? 'no key file')
    renameSync(keyFile, `${keyFile}.away`)
    server = await createTestApp({ basePath: folder.path, settings: settings() })
    // It encrypts with a key of its own.
    if (code === 'CIPHER_TEXT_INVALID') await send(hook, { 'X-Api-Key': 'another' })
    const shown = await server.call<Instance>('GET', `/v1/triggerinstances/${id}`)
    expect(shown).toMatchObject({ status: 200, body: { payload: { headers: { 'X-Api-Key': MASK } } } })
    expect((await server.call('GET', '/v1/triggerinstances')).status).toBe(200)
    for (const [method, path, body] of [
      ['GET', `/v1/triggerinstances/${id}/explain`],
      ['POST', `/v1/triggerinstances/${id}/re_emit`, {}],
      ['POST', '/v1/rules/test', { rule_ref: rule?.ref, trigger_instance_id: id }],
    ] as const) {
      const answer = await server.call<{ faultstring: string }>(method, path, body)
      expect({ path, ...answer }).toMatchObject({ path, status: 400, body: { code } })
      expect(answer.body.faultstring).toContain(`the credential headers of trigger instance ${id}`)
    }
    const waiting = await waitFor('the waiting instance to end', async () => {
      const { status } = await read<{ status: string }>(`/v1/triggerinstances/${pending.id}`)
      return status === 'pending' ? undefined : status
    })
    expect(waiting).toBe('processing_failed')
    await server.stop()
    renameSync(`${keyFile}.away`, keyFile)
    server = await createTestApp({ basePath: folder.path })
    expect((await server.call('POST', `/v1/triggerinstances/${pending.id}/re_emit`, {})).status).toBe(200)
    expect((await server.call('GET', `/v1/triggerinstances/${id}/explain`)).text).toContain('"verdict":"matched"')
  })
})
