import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { makeExecution } from '../../../../tests/helpers/execution.ts'
import { makeFolder, type TemporaryFolder } from '../../../../tests/helpers/folders.ts'
import { startTriggers, type TriggersWorld } from '../../../../tests/helpers/triggers.ts'
import { storedJson } from '../../../core/stored-json.ts'
import { TemplateError, type TemplateScope } from '../../../lib/template/render.ts'
import { executionStatuses, type Execution, type ExecutionStatus } from '../../executions/types.ts'
import type { Attempt } from '../../executions/ports.ts'
import type { Triggers } from '../index.ts'
import type { TemplateReader } from '../../../core/template-reader.ts'

let folder: TemporaryFolder
let world: TriggersWorld
let triggers: Triggers
let readers: TemplateReader[]

const templates = (reader: TemplateReader): TemplateScope => {
  readers.push(reader)
  return {
    variables: { svckv: { system: { team: 'night shift' }, user: {} } },
    filters: { decrypt_kv: (value) => `open ${String(value)}` },
  }
}

beforeEach(async () => {
  readers = []
  folder = makeFolder()
  world = await startTriggers(folder.path, { templates })
  triggers = world.triggers
})

afterEach(async () => {
  await world.stop()
  folder.remove()
})

const first = { attempt: 1, willRetry: false }
const times = { start_timestamp: '2030-01-02T03:04:05.000600Z', end_timestamp: '2030-01-02T03:04:06.700000Z' }

function ended(more: Partial<Execution> = {}): Execution {
  return makeExecution({ ...times, status: 'succeeded', result: { stdout: 'hi', return_code: 0 }, ...more })
}

/** What comes of an execution: its instances as they are stored, oldest first. */
async function react(
  execution: Execution,
  parameters: Record<string, unknown> = execution.parameters,
  by: Triggers = triggers,
  attempt: Attempt = first,
) {
  const unit = by.planReaction(execution, parameters, attempt)
  if (unit === undefined) return []
  const { build } = world.database
  const last = world.database.first(build.selectFrom('trigger_instances').select('id').orderBy('id', 'desc'))?.id ?? ''
  await world.database.write(unit)
  const rows = world.database.all(
    build.selectFrom('trigger_instances').selectAll().where('id', '>', last).orderBy('id'),
  )
  return rows.map(({ payload, ...row }) => ({ ...row, payload: JSON.parse(payload) as Record<string, unknown> }))
}

/** Payloads of the notifications alone. */
async function notifications(execution: Execution, parameters?: Record<string, unknown>) {
  const instances = await react(execution, parameters)
  return instances.filter(({ trigger }) => trigger === 'core.svc.generic.notifytrigger').map(({ payload }) => payload)
}

describe('the ActionTrigger', () => {
  test('has the fields of the contract and those of svc, and joins the trace of the execution', async () => {
    const execution = ended({ parameters: { cmd: 'x', password: 'open' } })
    const instances = await react(execution, { cmd: 'x', password: '********' })
    expect(instances).toHaveLength(1)
    expect(instances[0]).toMatchObject({
      trigger: 'core.svc.generic.actiontrigger',
      trigger_type: 'core.svc.generic.actiontrigger',
      trace_id: execution.trace_id,
      status: 'processed',
    })
    expect(Object.entries(instances[0]?.payload ?? {})).toEqual([
      ['execution_id', execution.id],
      ['status', 'succeeded'],
      ['start_timestamp', '2030-01-02 03:04:05.000600+00:00'],
      ['action_name', 'core.local'],
      ['action_ref', 'core.local'],
      ['runner_ref', 'local-shell-cmd'],
      ['parameters', { cmd: 'x', password: '********' }],
      ['result', { stdout: 'hi', return_code: 0 }],
      ['end_timestamp', '2030-01-02 03:04:06.700000+00:00'],
      ['elapsed_seconds', execution.elapsed_seconds],
      ['attempt', 1],
      ['will_retry', false],
      ['error', null],
      ['user', execution.user],
      ['rule', null],
      ['trace_id', execution.trace_id],
      ['web_url', `http://web.example/#/history/${execution.id}/general`],
    ])
    const [member, ...others] = world.database.all(world.database.build.selectFrom('trace_components').selectAll())
    expect(others).toEqual([])
    expect(member).toMatchObject({
      trace_id: execution.trace_id,
      kind: 'trigger_instance',
      object_id: instances[0]?.id,
      ref: 'core.svc.generic.actiontrigger',
      caused_by_type: 'action_execution',
      caused_by_id: execution.id,
    })
    expect(triggers.problemOfPayload('core.svc.generic.actiontrigger', instances[0]?.payload)).toBeUndefined()
  })

  test('of an attempt that has failed says why, which rule started it, and that another follows', async () => {
    const origin = {
      rule: { id: 'r', uid: 'rule:mine:backup', ref: 'mine.backup', name: 'backup', pack: 'mine', description: '' },
      trigger: { id: 't', uid: '', ref: 'core.t', name: 't', pack: 'core', type: 'core.t' },
      trigger_type: { id: 't', uid: '', ref: 'core.t', name: 't', pack: 'core', description: '' },
    }
    const execution = ended({ status: 'failed', origin, result: { return_code: 3, stderr: 'no space\n' } })
    const [instance] = await react(execution, {}, triggers, { attempt: 2, willRetry: true })
    expect(instance?.payload).toMatchObject({
      attempt: 2,
      will_retry: true,
      rule: 'mine.backup',
      error: 'exit code 3: no space',
    })
  })

  test('of a status before the end has no end', async () => {
    const settings = {
      validatePayload: true,
      validateParameters: true,
      emitWhen: ['running'],
      queueLimit: 1,
      maxPageSize: 1,
      webUrl: () => '',
    }
    const other = await world.restart({ settings })
    const [instance] = await react(
      ended({ status: 'running', end_timestamp: null, elapsed_seconds: null, result: null }),
      {},
      other,
    )
    expect(instance?.payload).toMatchObject({ end_timestamp: null, elapsed_seconds: null, error: null })
    expect(triggers.problemOfPayload('core.svc.generic.actiontrigger', instance?.payload)).toBeUndefined()
  })

  test.each(executionStatuses)('by default: %s', async (status) => {
    const emitted = ['succeeded', 'failed', 'timeout', 'canceled', 'abandoned'].includes(status)
    expect(await react(ended({ status }))).toHaveLength(emitted ? 1 : 0)
  })

  test.each<[readonly string[], ExecutionStatus, number]>([
    [[], 'succeeded', 0],
    [['failed'], 'succeeded', 0],
    [['failed'], 'failed', 1],
    [['running'], 'running', 1],
  ])('emitted when %j: %s → %i', async (emitWhen, status, count) => {
    const settings = {
      validatePayload: true,
      validateParameters: true,
      emitWhen,
      queueLimit: 1,
      maxPageSize: 1,
      webUrl: () => '',
    }
    const other = await world.restart({ settings })
    expect(await react(ended({ status }), {}, other)).toHaveLength(count)
  })

  test.each([
    [undefined, {}],
    [null, {}],
    [{ message: '"quotes" and \\ \u2028 ü' }, { message: '"quotes" and \\ \u2028 ü' }],
    ['text', 'text'],
    [0, 0],
    [[1], [1]],
  ])('result %j', async (result, expected) => {
    const [instance] = await react(ended({ result }))
    expect(instance?.payload['result']).toEqual(expected)
  })

  test('wakes the rule engine only if a rule exists', async () => {
    await react(ended())
    expect(world.takeFacts()).toEqual([])
    world.awaited.add(triggers.find('core.svc.generic.actiontrigger')?.id ?? '')
    const [instance] = await react(ended())
    expect(instance?.status).toBe('pending')
    expect(world.takeFacts()).toMatchObject([{ name: 'trigger_instance.created', payload: { id: instance?.id } }])
  })

  test('reuses the JSON texts of the parameters and the result', () => {
    const result = { stdout: 'x' }
    const parameters = { a: 'x' }
    const execution = ended({ result, liveaction: notifying({ 'on-success': { routes: ['a', 'b'] } }) })
    storedJson(result)
    storedJson(parameters)
    const made = vi.spyOn(JSON, 'stringify')
    try {
      triggers.planReaction(execution, parameters, first)
      const seen = made.mock.calls.map(([value]) => value as unknown)
      expect(seen.length).toBeGreaterThan(0)
      expect(seen.filter((value) => value === result || value === parameters)).toEqual([])
    } finally {
      made.mockRestore()
    }
  })

  test('a failure is logged and does not affect the execution', () => {
    const broken = ended()
    Object.defineProperty(broken, 'runner', {
      get() {
        throw new Error('no runner at hand')
      },
    })
    expect(triggers.planReaction(broken, {}, first)).toBeUndefined()
    expect(world.log()).toContain('trigger.reaction_failed')
    expect(world.log()).toContain(broken.id)
  })
})

/** Of the first notification. */
function dataOf([first]: Record<string, unknown>[]): { result: string } {
  if (first === undefined) throw new Error('there is no notification')
  return first['data'] as { result: string } // every one has it
}

function notifying(notify: Record<string, unknown>): Execution['liveaction'] {
  return { callback: {}, runner_info: {}, notify }
}

describe('notifications', () => {
  const executionId = expect.stringMatching(/^[0-9a-f]{24}$/) as unknown

  test('have exactly the fields of the contract', async () => {
    const execution = ended({
      liveaction: notifying({ 'on-complete': { message: 'done', data: { a: 1 }, routes: ['chat'] } }),
    })
    const instances = await react(execution)
    expect(instances.map(({ trigger }) => trigger)).toEqual([
      'core.svc.generic.notifytrigger',
      'core.svc.generic.actiontrigger',
    ])
    expect(Object.entries(instances[0]?.payload ?? {})).toEqual([
      ['execution_id', execution.id],
      ['status', 'succeeded'],
      ['start_timestamp', '2030-01-02T03:04:05.000600+00:00'],
      ['end_timestamp', '2030-01-02T03:04:06.700000+00:00'],
      ['action_ref', 'core.local'],
      ['runner_ref', 'local-shell-cmd'],
      ['channel', 'chat'],
      ['route', 'chat'],
      ['message', 'done'],
      ['data', { a: 1, result: '{"stdout":"hi","return_code":0}' }],
    ])
    expect(instances[0]?.trace_id).toBe(execution.trace_id)
    expect(triggers.problemOfPayload('core.svc.generic.notifytrigger', instances[0]?.payload)).toBeUndefined()
    const members = world.database.all(world.database.build.selectFrom('trace_components').selectAll())
    expect(members.map(({ caused_by_id }) => caused_by_id)).toEqual([execution.id, execution.id])
  })

  const every = {
    'on-success': { routes: ['s'] },
    'on-failure': { routes: ['f'] },
    'on-complete': { routes: ['c'] },
  }
  test.each<[ExecutionStatus, string[]]>([
    ['succeeded', ['s: Action core.local succeeded.', 'c: Action core.local completed.']],
    ['failed', ['f: Action core.local failed.', 'c: Action core.local completed.']],
    ['timeout', ['f: Action core.local failed.', 'c: Action core.local completed.']],
    ['abandoned', ['f: Action core.local failed.', 'c: Action core.local completed.']],
    ['canceled', ['c: Action core.local completed.']],
    ['running', []],
    ['requested', []],
    ['paused', []],
  ])('sections and messages when %s', async (status, expected) => {
    const sent = await notifications(ended({ status, liveaction: notifying(every) }))
    expect(sent.map(({ route, message }) => `${String(route)}: ${String(message)}`)).toEqual(expected)
  })

  test('one per route; channels is the older name of routes', async () => {
    const routes = async (section: Record<string, unknown>) =>
      (await notifications(ended({ liveaction: notifying({ 'on-complete': section }) }))).map(({ route }) => route)
    expect(await routes({ routes: ['a', 'b', 'a'] })).toEqual(['a', 'b'])
    expect(await routes({ channels: ['x'] })).toEqual(['x'])
    expect(await routes({ channels: ['x'], routes: ['y'] })).toEqual(['y'])
    expect(await routes({ channels: [], routes: [] })).toEqual([])
    expect(await routes({ channels: ['z'], routes: [] })).toEqual(['z'])
    expect(await routes({ routes: Array.from({ length: 500 }, (_, i) => `r${i}`) })).toHaveLength(100)
  })

  test('the section of the action replaces that of the request completely', async () => {
    const execution = ended({ liveaction: notifying(every) })
    const action = { ...execution.action, notify: { 'on-failure': { routes: ['of the action'] } } }
    expect(await notifications({ ...execution, action })).toEqual([])
    const sent = await notifications({ ...execution, action, status: 'failed' })
    expect(sent.map(({ route }) => route)).toEqual(['of the action'])
  })

  test('texts are templates that read the execution and the datastore', async () => {
    const execution = ended({
      context: { user: 'tester', pack: 'core', source_channel: 'chat' },
      liveaction: notifying({
        'on-success': {
          message: '{{ action_parameters.cmd }}: {{ action_results.stdout }} for {{ svckv.system.team }}',
          data: {
            user: '{{ action_context.user }}',
            code: '{{ action_results.return_code }}',
            deep: [{ a: '{{ action_context.source_channel }}' }],
            sealed: 'it is {{ "x" | decrypt_kv }}',
            result: 'not what was asked for',
            plain: 5,
          },
          routes: ['r'],
        },
      }),
    })
    const [sent] = await notifications(execution, { cmd: 'masked command' })
    expect(sent?.['message']).toBe('masked command: hi for night shift')
    expect(sent?.['data']).toEqual({
      user: 'tester',
      code: 0,
      deep: [{ a: 'chat' }],
      sealed: 'it is ********',
      plain: 5,
      result: '{"stdout":"hi","return_code":0}',
    })
    expect(readers).toEqual([{ user: 'tester', executionId }])
  })

  test('the result of a template is not rendered again', async () => {
    const execution = ended({
      result: { stdout: '{{ svckv.system.team }}' },
      liveaction: notifying({ 'on-success': { message: '{{ action_results.stdout }}', routes: ['r'] } }),
    })
    expect((await notifications(execution))[0]?.['message']).toBe('{{ svckv.system.team }}')
  })

  test('a message is text, whatever type its template renders to', async () => {
    const execution = ended({
      liveaction: notifying({ 'on-success': { message: '{{ action_results }}', routes: ['r'] } }),
    })
    expect((await notifications(execution))[0]?.['message']).toBe("{'stdout': 'hi', 'return_code': 0}")
  })

  test.each([
    '{{ nothing.at.all }}',
    '{{ action_results.stdout | nofilter }}',
    '{% for i in range(100000000) %}x{% endfor %}',
    '{{ broken',
  ])('a text that cannot be rendered stays unrendered, the others are rendered: %s', async (text) => {
    const execution = ended({
      liveaction: notifying({
        'on-success': { message: text, data: { bad: text, good: '{{ action_results.stdout }}' }, routes: ['r'] },
      }),
    })
    const [sent] = await notifications(execution)
    expect(sent).toMatchObject({ message: text, data: { bad: text, good: 'hi' } })
  })

  test('a denied read leaves the text unrendered', async () => {
    const refusing = await world.restart({
      templates: () => ({
        variables: { svckv: {} },
        filters: {
          decrypt_kv: () => {
            throw new TemplateError('FILTER', 'key_value_pair_view is missing')
          },
        },
      }),
    })
    const text = '{{ "a" | decrypt_kv }}'
    const execution = ended({ liveaction: notifying({ 'on-success': { message: text, routes: ['r'] } }) })
    const [instance] = await react(execution, {}, refusing)
    expect(instance?.payload['message']).toBe(text)
  })

  test('the datastore is read with the permissions of both the acting user and the author of the texts', async () => {
    const section = { 'on-success': { message: '{{ svckv.system.team }}', routes: ['r'] } }
    const scopes = [{ permission_types: ['key_value_pair_view'] }]
    await react(
      ended({
        user: 'bob',
        context: { user: 'bob', api_user: 'carol', scopes },
        liveaction: { ...notifying(section), notify_author: 'alice' },
      }),
    )
    const plain = ended({ user: 'bob', liveaction: { ...notifying({}), notify_author: 'alice' } })
    await react({ ...plain, action: { ...plain.action, notify: section } })
    await react(ended({ liveaction: notifying({ 'on-success': { message: 'no template', routes: ['r'] } }) }))
    expect(readers).toEqual([
      { user: 'carol', author: 'alice', scopes, executionId },
      { user: 'bob', executionId },
    ])
  })

  test('a result that is too large for all routes is replaced by its path', async () => {
    const routes = Array.from({ length: 20 }, (_, i) => `r${i}`)
    const execution = ended({
      result: { stdout: 'x'.repeat(1024 * 1024) },
      liveaction: notifying({ 'on-success': { routes } }),
    })
    const sent = await notifications(execution)
    expect(sent).toHaveLength(20)
    const { result } = dataOf(sent)
    expect(JSON.parse(result)).toEqual({
      message: expect.stringContaining(`/v1/executions/${execution.id}/result`) as string,
    })

    const few = await notifications({ ...execution, liveaction: notifying({ 'on-success': { routes: ['r'] } }) })
    expect(dataOf(few).result).toBe(JSON.stringify(execution.result))
  })

  test('sections of another type are ignored', async () => {
    const odd = [null, 5, [], 'x', { routes: 'a' }, { routes: [5, null] }, { routes: {} }]
    for (const section of odd) {
      expect(await notifications(ended({ liveaction: notifying({ 'on-success': section }) }))).toEqual([])
    }
  })
})
