/** One event and everything that it leads to, in one trace with exact causes (contract 07, 7.1, 7.3 and 7.4). */
import { expect, test } from 'vitest'
import { withApp } from '../helpers/app.ts'
import { waitForStatus, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import type { ComponentAnswer, TraceAnswer } from './support.ts'

const ACTION_TRIGGER = 'core.svc.generic.actiontrigger'

async function createRule(server: TestApp, rule: object): Promise<string> {
  const answer = await server.call<{ id: string }>('POST', '/v1/rules', { enabled: true, ...rule })
  expect(answer).toMatchObject({ status: 201 })
  return answer.body.id
}

/** The trace once it has so many components of each kind. */
function waitForTrace(server: TestApp, tag: string, counts: [runs: number, rules: number, instances: number]) {
  return waitFor(`the trace ${tag} to have ${counts.join(', ')} components`, async () => {
    const { body } = await server.call<TraceAnswer[]>('GET', `/v1/traces?trace_tag=${tag}`)
    const [trace, ...others] = body
    expect(others).toEqual([])
    const found = [trace?.action_executions, trace?.rules, trace?.trigger_instances].map((list) => list?.length ?? 0)
    return found.join() === counts.join() && trace
  })
}

const shapeOf = (components: readonly ComponentAnswer[]): [ref: string, cause: object][] =>
  components.map(({ ref, caused_by }) => [ref, caused_by])

test('webhook → rule → execution → ActionTrigger → rule → execution, with a re-run in the middle, is one trace', () =>
  withApp({}, async (server) => {
    const first = await createRule(server, {
      name: 'on_order',
      trigger: { type: 'core.svc.webhook', parameters: { url: 'orders' } },
      criteria: { 'trigger.body.kind': { type: 'equals', pattern: 'order' } },
      action: { ref: 'core.local', parameters: { cmd: 'echo {{ trigger.body.id }}' } },
    })
    const second = await createRule(server, {
      name: 'after_order',
      trigger: { type: ACTION_TRIGGER },
      criteria: {
        'trigger.action_ref': { type: 'eq', pattern: 'core.local' },
        'trigger.status': { type: 'eq', pattern: 'succeeded' },
      },
      action: {
        ref: 'core.echo',
        parameters: { message: 'order {{ trigger.result.stdout }} of {{ trigger.execution_id }}' },
      },
    })

    const body = { kind: 'order', id: 17 }
    const answer = await server.call('POST', '/v1/webhooks/orders', body, { 'Svc-Trace-Tag': 'order-17' })
    expect([answer.status, answer.body]).toEqual([202, body])

    const before = await waitForTrace(server, 'order-17', [2, 2, 3])
    const [run] = before.action_executions
    const original = await waitForStatus(server, run?.object_id ?? '')
    expect(original.result['stdout']).toBe('17')

    const again = await server.call<ExecutionAnswer>('POST', `/v1/executions/${original.id}/re_run`, {})
    expect(again).toMatchObject({ status: 201 })
    const trace = await waitForTrace(server, 'order-17', [4, 3, 5])

    const [hook, afterRun, afterEcho, afterAgain, afterSecondEcho] = trace.trigger_instances
    const [, echo, , secondEcho] = trace.action_executions
    const rule = (id: string, instance: ComponentAnswer | undefined): object => ({
      type: 'rule',
      id: `${id}:${instance?.object_id}`,
    })
    const instance = ({ object_id }: ComponentAnswer = none): object => ({ type: 'trigger_instance', id: object_id })
    const execution = ({ object_id }: ComponentAnswer = none): object => ({ type: 'action_execution', id: object_id })
    expect(trace.action_executions.map(({ object_id }) => object_id)).toEqual([
      original.id,
      echo?.object_id,
      again.body.id,
      secondEcho?.object_id,
    ])
    expect(shapeOf(trace.action_executions)).toEqual([
      ['core.local', rule(first, hook)],
      ['core.echo', rule(second, afterRun)],
      ['core.local', {}],
      ['core.echo', rule(second, afterAgain)],
    ])
    expect(shapeOf(trace.rules)).toEqual([
      ['default.on_order', instance(hook)],
      ['default.after_order', instance(afterRun)],
      ['default.after_order', instance(afterAgain)],
    ])
    expect(shapeOf(trace.trigger_instances)).toEqual([
      [expect.stringMatching(/^core\.[0-9a-f-]{36}$/), {}],
      [ACTION_TRIGGER, execution(trace.action_executions[0])],
      [ACTION_TRIGGER, execution(echo)],
      [ACTION_TRIGGER, execution(trace.action_executions[2])],
      [ACTION_TRIGGER, execution(secondEcho)],
    ])
    expect([afterEcho, afterSecondEcho].map((component) => component?.ref)).toEqual([ACTION_TRIGGER, ACTION_TRIGGER])

    const last = await waitForStatus(server, secondEcho?.object_id ?? '')
    expect(last.result['stdout']).toBe(`order 17 of ${again.body.id}`)
    expect(last.context).toMatchObject({
      user: 'svc',
      pack: 'core',
      trace_context: { id_: trace.id, trace_tag: 'order-17' },
      rule: { id: second, ref: 'default.after_order', name: 'after_order' },
      trigger_instance: { id: afterAgain?.object_id },
    })
    expect((await server.call<TraceAnswer[]>('GET', '/v1/traces')).body.map(({ id }) => id)).toEqual([trace.id])
  }))

const none: ComponentAnswer = { object_id: '', ref: '', updated_at: '', caused_by: {} }
