/** Why nothing happened, and trying rules out (contract 05, 5.12; ours: explain) on a running server. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { impossibleIds, rowsOf, unknownId, type ErrorAnswer } from './support.ts'

interface Verdict {
  rule: { id?: string; ref: string; uid: string; type: string }
  verdict: string
  criterion?: { key: string; type: string; pattern: unknown; value: unknown }
  reason?: string
  enforcement?: { id: string; status: string; execution_id?: string; failure_reason?: string }
}

interface Explanation {
  trigger_instance: { id: string; trigger: string; status: string; occurrence_time: string; trace_id: string }
  rules: Verdict[]
  hidden: number
  message: string
}

interface TestResult {
  matches: boolean
  verdict: Verdict
  criteria: object[]
  parameters?: Record<string, unknown>
  problem?: string
}

let server: TestApp
beforeAll(async () => {
  server = await createTestApp()
  await server.call('POST', '/v1/triggertypes', { name: 'ordered', pack: 'shop' })
})
afterAll(async () => {
  await server.stop()
})

const rule = (name: string, more: object = {}) => ({
  name,
  pack: 'shop',
  enabled: true,
  trigger: { type: 'shop.ordered' },
  action: { ref: 'core.local', parameters: { cmd: 'echo {{ trigger.total }}' } },
  ...more,
})
const total = (type: string, pattern: unknown) => ({ 'trigger.total': { type, pattern } })

async function make(name: string, more: object = {}): Promise<string> {
  const { status, body, text } = await server.call<{ id: string }>('POST', '/v1/rules', rule(name, more))
  if (status !== 201) throw new Error(text)
  return body.id
}

async function dispatch(payload: object): Promise<string> {
  const { headers, text } = await server.call('POST', '/v1/webhooks/svc', { trigger: 'shop.ordered', payload })
  const id = headers.get('svc-trigger-instance-id')
  if (id === null) throw new Error(text)
  await waitFor('the rules', async () => (await explain(id)).trigger_instance.status === 'processed')
  return id
}

const explain = async (id: string): Promise<Explanation> =>
  (await server.call<Explanation>('GET', `/v1/triggerinstances/${id}/explain`)).body

const test = (body: object) => server.call<TestResult & ErrorAnswer>('POST', '/v1/rules/test', body)

describe('05.7 why', () => {
  it('tells of each rule of the trigger what came of it, and in one sentence why', async () => {
    const early = await dispatch({ total: 1 })
    expect((await explain(early)).message).toBe('No rule is bound to trigger "shop.ordered".')
    await make('large', { criteria: total('gt', 100) })
    await make('small', { criteria: total('lt', 10) })
    await make('asleep', { enabled: false })
    await make('lost', { action: { ref: 'shop.nope' }, criteria: total('eq', 5) })
    await make('rest', { type: { ref: 'backstop' } })

    const id = await dispatch({ total: 5 })
    const explanation = await explain(id)
    const { body: instance } = await server.call<{ trace_id: string; occurrence_time: string }>(
      'GET',
      `/v1/triggerinstances/${id}`,
    )
    expect(explanation.trigger_instance).toEqual({
      id,
      trigger: 'shop.ordered',
      status: 'processed',
      occurrence_time: instance.occurrence_time,
      trace_id: instance.trace_id,
    })
    expect(explanation.rules.map((one) => [one.rule.ref, one.verdict, one.criterion, one.enforcement?.status])).toEqual(
      [
        ['shop.large', 'not_matched', { key: 'trigger.total', type: 'gt', pattern: 100, value: 5 }, undefined],
        ['shop.small', 'matched', undefined, 'succeeded'],
        ['shop.asleep', 'disabled', undefined, undefined],
        ['shop.lost', 'matched', undefined, 'failed'],
        ['shop.rest', 'not_needed', undefined, undefined],
      ],
    )
    expect([explanation.hidden, explanation.message]).toEqual([
      0,
      '1 rule started an execution: shop.small. Failed enforcements: shop.lost.',
    ])
    const failed = explanation.rules[3]?.enforcement
    expect(failed).toEqual({ id: failed?.id, status: 'failed', failure_reason: `Action "shop.nope" doesn't exist` })

    const text = await explain(await dispatch({ total: 'five' }))
    expect(text.rules[0]).toMatchObject({ verdict: 'failed', reason: expect.any(String) as string })
    expect(text.rules[4]).toMatchObject({ verdict: 'matched', enforcement: { status: 'succeeded' } })
  })

  it.each([unknownId, ...impossibleIds])('%s: 404', async (id) => {
    const { status, body } = await server.call<ErrorAnswer>('GET', `/v1/triggerinstances/${id}/explain`)
    expect([status, body.faultstring]).toEqual([
      404,
      expect.stringMatching(/^Unable to identify resource with id ".*"\.$/s),
    ])
  })
})

describe('05.12 trying a rule', () => {
  const instance = (payload: object) => ({ trigger: 'shop.ordered', payload })

  // Executions of other tests may finish meanwhile, which is stored as well.
  const counts = `select (select count(*) from executions) as e, (select count(*) from rules) as r,
    (select count(*) from trigger_instances where trigger_type = 'shop.ordered') as t`

  it('a match gives the parameters of the action, secrets masked; nothing is run or stored', async () => {
    const before = rowsOf(server, counts)
    const given = rule('tried', {
      criteria: total('gte', 1),
      action: {
        ref: 'core.local',
        parameters: { cmd: 'echo {{ trigger.total }}', timeout: '{{ trigger.total }}', sudo_password: 's3cret' },
      },
    })
    const refused = await test({ rule: given, trigger_instance: instance({ total: 7 }) })
    expect([refused.status, refused.body.faultstring]).toEqual([400, expect.stringContaining('gte')])
    const { status, body } = await test({
      rule: { ...given, criteria: total('gt', 1) },
      trigger_instance: instance({ total: 7 }),
    })
    expect([status, body]).toEqual([
      200,
      {
        matches: true,
        verdict: { rule: { ref: 'shop.tried', uid: 'rule:shop:tried', type: 'standard' }, verdict: 'matched' },
        criteria: [{ key: 'trigger.total', type: 'gt', pattern: 1, value: 7, holds: true }],
        parameters: { cmd: 'echo 7', timeout: 7, sudo_password: '********' },
      },
    ])
    expect(rowsOf(server, counts)).toEqual(before)
  })

  it('no match gives the criterion that failed and what it saw', async () => {
    const { body } = await test({
      rule: rule('tried', { criteria: total('eq', '7') }),
      trigger_instance: instance({ total: 7 }),
    })
    expect(body).toEqual({
      matches: false,
      verdict: {
        rule: { ref: 'shop.tried', uid: 'rule:shop:tried', type: 'standard' },
        verdict: 'not_matched',
        criterion: { key: 'trigger.total', type: 'eq', pattern: '7', value: 7 },
        reason: 'The value is a number, the pattern a text: eq compares types too.',
      },
      criteria: [{ key: 'trigger.total', type: 'eq', pattern: '7', value: 7, holds: false }],
    })
  })

  it('a secret of the datastore is decrypted for the action and for nobody else', async () => {
    const key = await server.call('PUT', '/v1/keys/pass', { name: 'pass', value: 'hunter2-secret', secret: true })
    expect(key.status).toBe(200)
    const parameters = { cmd: 'echo {{ svckv.system.pass | decrypt_kv }}', env: { A: '{{ svckv.system.none }}' } }
    const criteria = { 'trigger.total': { type: 'neq', pattern: '{{ svckv.system.pass | decrypt_kv }}' } }
    const given = rule('secretive', { criteria, action: { ref: 'core.local', parameters } })
    const { body, text } = await test({ rule: given, trigger_instance: instance({ total: 1 }) })
    expect(body).toMatchObject({ matches: true, parameters: { cmd: '********', env: { A: '' } } })
    expect(text).not.toContain('hunter2')
    const reversed = { 'trigger.total': { type: 'eq', pattern: '{{ svckv.system.pass | decrypt_kv }}' } }
    const no = await test({ rule: { ...given, criteria: reversed }, trigger_instance: instance({ total: 1 }) })
    expect(no.body).toMatchObject({ matches: false, verdict: { criterion: { pattern: '********', value: 1 } } })
    expect(no.text).not.toContain('hunter2')
    expect(server.log()).not.toContain('hunter2')
  })

  it('a stored rule and a recorded instance', async () => {
    const id = await dispatch({ total: 500 })
    const { body } = await test({ rule_ref: 'shop.large', trigger_instance_id: id })
    expect(body).toMatchObject({ matches: true, parameters: { cmd: 'echo 500' } })
    const other = await test({ rule_ref: 'shop.small', trigger_instance_id: id })
    expect(other.body).toMatchObject({ matches: false, verdict: { criterion: { value: 500 } } })
  })

  it('the trigger type of the rule must be that of the instance', async () => {
    const elsewhere = { trigger: 'core.svc.generic.actiontrigger', payload: {} }
    const { body } = await test({ rule: rule('tried'), trigger_instance: elsewhere })
    expect(body).toMatchObject({
      matches: false,
      problem: expect.stringMatching(/shop\.ordered.*actiontrigger/) as string,
    })
  })
})
