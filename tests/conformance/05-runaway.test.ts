/** Rules that start each other (docs/events.md): svc cuts the chain, and says so. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import type { Answer, ExecutionAnswer, TestApp } from '../helpers/server.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import type { ErrorAnswer, TraceAnswer } from './support.ts'

const actionTrigger = 'core.svc.generic.actiontrigger'
const MAX_DEPTH = 3
const MAX_CASCADE = 5

let server: TestApp
beforeAll(async () => {
  server = await createTestApp({
    settings: { 'rules.max_depth': String(MAX_DEPTH), 'rules.max_cascade': String(MAX_CASCADE) },
  })
})
afterAll(() => server.stop())

const call = <T = Record<string, unknown>>(
  method: string,
  path: string,
  body?: unknown,
): Promise<Answer<T & ErrorAnswer>> => server.call<T & ErrorAnswer>(method, `/v1${path}`, body)

interface Enforcement {
  status: string
  failure_reason?: string
  trigger_instance_id: string
}

/** Newest first. */
const enforcementsOf = async (rule: string): Promise<Enforcement[]> =>
  (await call<Enforcement[]>('GET', `/ruleenforcements?rule_ref=${rule}&limit=100`)).body

async function makeRule(name: string, more: object): Promise<void> {
  const { status, text } = await call('POST', '/rules', { name, pack: 'loops', enabled: true, ...more })
  if (status !== 201) throw new Error(text)
}

test('a rule that starts itself is cut, with a reason, and status names the trace', async () => {
  await makeRule('endless', {
    trigger: { type: actionTrigger },
    criteria: { 'trigger.action_ref': { type: 'eq', pattern: 'core.noop' } },
    action: { ref: 'core.noop' },
  })
  // Whatever a caller says of the chain.
  const { body: first } = await call<ExecutionAnswer>('POST', '/executions', {
    action: 'core.noop',
    context: { depth: -100, trigger_instance: { depth: -100 } },
  })
  const [cut, ...others] = await waitFor('the cut', async () => {
    const all = await enforcementsOf('loops.endless')
    return all[0]?.status === 'failed' && all
  })
  expect(others.map(({ status }) => status)).toEqual(Array.from({ length: MAX_CASCADE }, () => 'succeeded'))
  const [trace] = (await call<TraceAnswer[]>('GET', `/traces?execution=${first.id}`)).body
  expect(cut?.failure_reason).toBe(
    `Cut: rule "loops.endless" is number 6 in a chain of rules that start each other (rules.max_depth is 3), and trace ${trace?.id} has 5 executions by rules (rules.max_cascade). Change the criteria of the rule so that it does not match what comes of its own action.`,
  )
  expect(trace?.action_executions).toHaveLength(1 + MAX_CASCADE)
  const { body } = await call<{ attention: string[]; cut_traces: object[] }>('GET', '/status')
  expect(body.cut_traces).toMatchObject([{ id: trace?.id, rule: 'loops.endless' }])
  expect(body.attention).toContain(
    `Rules start each other: trace ${trace?.id} was cut at rule "loops.endless". Change the criteria of the rule, or disable it.`,
  )
  // Each further event has its own chain.
  const again = await call<ExecutionAnswer>('POST', '/executions', { action: 'core.noop' })
  await waitFor('the second cut', async () => {
    const failed = (await enforcementsOf('loops.endless')).filter(({ status }) => status === 'failed')
    return failed.length === 2
  })
  expect(again.status).toBe(201)
  await call('DELETE', '/rules/loops.endless')
})

test('a rule on the ActionTrigger needs criteria, and those that match its own executions are warned of', async () => {
  const rule = { name: 'blind', pack: 'loops', trigger: { type: actionTrigger }, action: { ref: 'core.noop' } }
  const refused = await call('POST', '/rules', { ...rule, enabled: true })
  expect([refused.status, refused.body.faultstring]).toEqual([
    400,
    expect.stringContaining('needs criteria: each execution of its own action "core.noop" would fire it again'),
  ])
  // One that is off fires nothing, and is refused when somebody switches it on.
  const off = await call('POST', '/rules', rule)
  expect(off.status).toBe(201)
  expect((await call('PUT', '/rules/loops.blind', { ...off.body, enabled: true })).status).toBe(400)
  const warned = (name: string): boolean =>
    server
      .log()
      .split('\n')
      .some((line) => line.includes('event=rules.starts_itself') && line.includes(`loops.${name}"`))
  const pattern = 'core.noop'
  for (const [name, criteria, isWarned] of [
    ['own', { 'trigger.action_ref': { type: 'eq', pattern } }, true],
    ['failures', { 'trigger.status': { type: 'eq', pattern: 'failed' } }, true],
    ['others', { 'trigger.action_ref': { type: 'neq', pattern } }, false],
    ['unknown', { 'trigger.result.code': { type: 'eq', pattern: 1 } }, false],
  ] as const) {
    const made = await call('POST', '/rules', { ...rule, name, criteria, enabled: true })
    expect(made.status).toBe(201)
    await call('DELETE', `/rules/loops.${name}`)
    expect([name, warned(name)]).toEqual([name, isWarned])
  }
})

test('one event may start many executions', async () => {
  await call('POST', '/triggertypes', { name: 'wide', pack: 'loops' })
  const count = 2 * MAX_CASCADE
  for (let n = 0; n < count; n++) {
    await makeRule(`wide_${n}`, { trigger: { type: 'loops.wide' }, action: { ref: 'core.noop' } })
  }
  await call('POST', '/webhooks/svc', { trigger: 'loops.wide', payload: {} })
  for (let n = 0; n < count; n++) {
    const [only] = await waitFor(`rule ${n}`, async () => {
      const found = await enforcementsOf(`loops.wide_${n}`)
      return found.length > 0 && found
    })
    expect(only?.status).toBe('succeeded')
  }
})

fullOnly(test)('a chain through the retries of a rule is cut too', async () => {
  await makeRule('retried', {
    trigger: { type: actionTrigger },
    criteria: {
      'trigger.action_ref': { type: 'eq', pattern: 'core.local' },
      'trigger.will_retry': { type: 'eq', pattern: false },
    },
    action: { ref: 'core.local', parameters: { cmd: 'exit 1' }, retry: { attempts: 2 } },
  })
  await call('POST', '/executions', { action: 'core.local', parameters: { cmd: 'true' } })
  const all = await waitFor('the cut', async () => {
    const found = await enforcementsOf('loops.retried')
    return found[0]?.status === 'failed' && found
  })
  expect(all).toHaveLength(MAX_CASCADE + 1)
  await call('DELETE', '/rules/loops.retried')
})
