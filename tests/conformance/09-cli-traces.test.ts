/** Contract 09, 9.6: traces on the command line, against a real server. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cell, header, missing, rows, jsonOf, runCli, type CliExit } from '../helpers/cli.ts'
import { makeFolder } from '../helpers/folders.ts'
import { createTestApp } from '../helpers/app.ts'
import { type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { unknownId, type ComponentAnswer, type TraceAnswer } from './support.ts'

const ACTION_TRIGGER = 'core.svc.generic.actiontrigger'

const folder = makeFolder()
let server: TestApp
/** A webhook → `first` → an execution → its end → `second` → another, whose end moves nobody. */
let trace: TraceAnswer
let rules: { first: string; second: string }

const svc = (...args: string[]): Promise<CliExit> =>
  runCli(args, { HOME: folder.path, SVC_API_URL: `${server.urls.api}/v1` })

const json = <T>(...args: string[]): Promise<T> => jsonOf<T>(svc, args)

async function makeRule(name: string, more: object): Promise<string> {
  const { status, body, text } = await server.call<{ id: string }>('POST', '/v1/rules', {
    name,
    enabled: true,
    ...more,
  })
  if (status !== 201) throw new Error(text)
  return body.id
}

beforeAll(async () => {
  server = await createTestApp()
  rules = {
    first: await makeRule('first', {
      trigger: { type: 'core.svc.webhook', parameters: { url: 'orders' } },
      action: { ref: 'core.local', parameters: { cmd: 'echo first' } },
    }),
    second: await makeRule('second', {
      trigger: { type: ACTION_TRIGGER },
      criteria: { 'trigger.action_ref': { type: 'equals', pattern: 'core.local' } },
      action: { ref: 'core.echo', parameters: { message: 'second' } },
    }),
  }
  const { status } = await server.call('POST', '/v1/webhooks/orders', {}, { 'Svc-Trace-Tag': 'order-17' })
  if (status !== 202) throw new Error(`the webhook answered ${status}`)
  trace = await waitFor('the whole trace', async () => {
    const [found] = (await server.call<TraceAnswer[]>('GET', '/v1/traces?trace_tag=order-17')).body
    return found?.trigger_instances.length === 3 && found
  })
  for (const tag of ['a', 'b']) {
    const answer = await server.call('POST', '/v1/executions', {
      action: 'core.noop',
      context: { trace_context: { trace_tag: tag } },
    })
    if (answer.status !== 201) throw new Error(answer.text)
  }
})
afterAll(async () => {
  await server.stop()
  folder.remove()
})

const of = (components: ComponentAnswer[], n: number): string => components[n]?.object_id ?? ''
/** Type and id of each row of the table of a trace. */
const members = ({ stdout }: CliExit): [string, string][] => rows(stdout).map(([id = '', type = '']) => [type, id])
const whole = (): [string, string][] => [
  ['trigger-instance', of(trace.trigger_instances, 0)],
  ['rule', rules.first],
  ['execution', of(trace.action_executions, 0)],
  ['trigger-instance', of(trace.trigger_instances, 1)],
  ['rule', rules.second],
  ['execution', of(trace.action_executions, 1)],
  ['trigger-instance', of(trace.trigger_instances, 2)],
]

describe('09.6 trace list', () => {
  it('09.6 a table of all, the newest last', async () => {
    const { code, stdout, stderr } = await svc('trace', 'list')
    expect([code, stderr]).toEqual([0, ''])
    expect(header(stdout)).toEqual(['id', 'uid', 'trace_tag', 'start_timestamp'])
    expect(rows(stdout).map(([, , tag]) => tag)).toEqual(['order-17', 'a', 'b'])
    expect(stdout).toMatch(/\| \w{3}, \d\d \w{3} \d{4} [\d:]{8} UTC +\|/)
  })

  it('09.6 -s: the order and, with -n, which ones; the note tells of the others', async () => {
    const tags = async (...args: string[]): Promise<unknown> =>
      rows((await svc('trace', 'list', ...args)).stdout).map(([, , tag]) => tag)
    expect(await tags('-s', 'asc')).toEqual(['order-17', 'a', 'b'])
    expect(await tags('-n', '2')).toEqual(['a', 'b'])
    expect(await tags('-n', '2', '--sort', 'asc')).toEqual(['order-17', 'a'])
    expect((await svc('trace', 'list', '-n', '2')).stderr).toContain('Note: Only first 2 Traces are displayed.')
    expect((await svc('trace', 'list', '-n', '-1')).stderr).toBe('')
  })

  it('09.6 exactly one is shown in full', async () => {
    const full = await svc('trace', 'get', trace.id)
    for (const filter of [
      ['-c', 'order-17'],
      ['--trace-tag', 'order-17'],
      ['-e', of(trace.action_executions, 1)],
      ['--execution', of(trace.action_executions, 0)],
      ['-r', rules.second],
      ['--rule', rules.first],
      ['-g', of(trace.trigger_instances, 2)],
      ['--trigger-instance', of(trace.trigger_instances, 0)],
    ]) {
      expect([filter, await svc('trace', 'list', ...filter)]).toEqual([filter, full])
    }
    const newest = await svc('trace', 'list', '-n', '1')
    expect(newest.stdout).toMatch(/^id: \w{24}\ntrace_tag: b\n/)
    expect(newest.stderr).toContain('Note: Only one Trace is displayed.')
  })

  it('09.6 nothing that fits, and attributes', async () => {
    expect(await svc('trace', 'list', '-c', 'unheard of')).toEqual({
      code: 0,
      stdout: 'No matching items found\n',
      stderr: '',
    })
    const { stdout } = await svc('trace', 'list', '-c', 'order-17', '-a', 'trace_tag', 'id')
    expect([header(stdout), rows(stdout)]).toEqual([['trace_tag', 'id'], [['order-17', trace.id]]])
  })

  it('09.2 machine output is a list of whole records, whatever their number', async () => {
    const listed = await json<TraceAnswer[]>('trace', 'list', '-c', 'order-17')
    expect(listed).toEqual([trace])
    expect((await json<TraceAnswer[]>('trace', 'list')).map(({ trace_tag: tag }) => tag)).toEqual([
      'order-17',
      'a',
      'b',
    ])
    expect(await json('trace', 'list', '-a', 'trace_tag', '-n', '1')).toEqual([{ trace_tag: 'b' }])
    expect((await svc('trace', 'list', '-c', 'order-17', '-y')).stdout).toMatch(/^---\n- action_executions:\n/)
  })

  it.each([
    [['-c', 'x', '-e', unknownId]],
    [['-e', unknownId, '-r', unknownId]],
    [['-r', unknownId, '-g', unknownId]],
    [['-s', 'sideways']],
    [['-n', '0']],
    [['extra']],
  ])('09.1 %j: 2', async (args) => {
    const { code, stdout, stderr } = await svc('trace', 'list', ...args)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(/^error: /)
  })
})

describe('09.6 trace get', () => {
  it('09.6 a header, and one table of everything in the order of time', async () => {
    const shown = await svc('trace', 'get', trace.id)
    expect([shown.code, shown.stderr]).toEqual([0, ''])
    expect(shown.stdout).toMatch(
      new RegExp(`^id: ${trace.id}\ntrace_tag: order-17\nstart_timestamp: \\w{3}, .* UTC\n\\+-`),
    )
    expect(header(shown.stdout)).toEqual(['id', 'type', 'ref', 'updated_at'])
    expect(members(shown)).toEqual(whole())
    expect(rows(shown.stdout).map(([, , ref]) => ref)).toEqual([
      trace.trigger_instances[0]?.ref,
      'default.first',
      'core.local',
      ACTION_TRIGGER,
      'default.second',
      'core.echo',
      ACTION_TRIGGER,
    ])
  })

  it('09.6 -e, -r, -g: only what led to it', async () => {
    const chain = async (...args: string[]): Promise<unknown> => members(await svc('trace', 'get', trace.id, ...args))
    expect(await chain('-e', of(trace.action_executions, 0))).toEqual(whole().slice(0, 3))
    expect(await chain('--execution', of(trace.action_executions, 1))).toEqual(whole().slice(0, 6))
    expect(await chain('-r', rules.first)).toEqual(whole().slice(0, 2))
    expect(await chain('--rule', `${rules.second}:${of(trace.trigger_instances, 1)}`)).toEqual(whole().slice(0, 5))
    expect(await chain('-g', of(trace.trigger_instances, 0))).toEqual(whole().slice(0, 1))
    expect(await chain('--trigger-instance', of(trace.trigger_instances, 2))).toEqual(whole())
  })

  it('09.6 --show-…, and -n: without what has caused nothing', async () => {
    const types = async (...args: string[]): Promise<string[]> =>
      members(await svc('trace', 'get', trace.id, ...args)).map(([type]) => type)
    expect(await types('--show-executions')).toEqual(['execution', 'execution'])
    expect(await types('--show-rules')).toEqual(['rule', 'rule'])
    expect(await types('--show-trigger-instances')).toEqual(Array.from({ length: 3 }, () => 'trigger-instance'))
    expect(await types('--show-rules', '--show-executions')).toEqual(['rule', 'execution', 'rule', 'execution'])
    expect(members(await svc('trace', 'get', trace.id, '-n'))).toEqual(whole().slice(0, 6))
    expect(await types('--hide-noop-triggers', '--show-trigger-instances')).toHaveLength(2)
    expect(await types('-e', of(trace.action_executions, 0), '--show-rules')).toEqual(['rule'])
  })

  it('09.2 machine output and attributes are of what is shown', async () => {
    expect(await json('trace', 'get', trace.id)).toEqual(trace)
    expect(await json('trace', 'get', trace.id, '-r', rules.first)).toEqual({
      ...trace,
      action_executions: [],
      rules: trace.rules.slice(0, 1),
      trigger_instances: trace.trigger_instances.slice(0, 1),
    })
    expect(await json('trace', 'get', trace.id, '-n', '-a', 'trigger_instances')).toEqual({
      trigger_instances: trace.trigger_instances.slice(0, 2),
    })
    const { stdout } = await svc('trace', 'get', trace.id, '-a', 'uid')
    expect(stdout).toMatch(cell(trace.uid))
    expect(rows(stdout)).toHaveLength(1)
  })

  it('09.6 what does not exist: 2; the others are shown', async () => {
    expect(await svc('trace', 'get', unknownId)).toEqual(missing('Trace', unknownId))
    expect(await svc('trace', 'get', 'x/../y')).toEqual(missing('Trace', 'x/../y'))
    const { code, stdout } = await svc('trace', 'get', unknownId, trace.id)
    expect([code, stdout]).toEqual([
      2,
      `${missing('Trace', unknownId).stdout}${(await svc('trace', 'get', trace.id)).stdout}`,
    ])
    for (const [flag, kind, id] of [
      ['-e', 'Action Execution', unknownId],
      ['-e', 'Action Execution', rules.first],
      ['-r', 'Rule', of(trace.action_executions, 0)],
      ['-g', 'Trigger Instance', 'x'],
    ] as const) {
      expect(await svc('trace', 'get', trace.id, flag, id)).toEqual(missing(`${kind} of trace ${trace.id}`, id))
    }
    expect((await svc('trace', 'get', trace.id, '-e', 'x', '-r', 'y')).code).toBe(2)
    expect((await svc('trace', 'get')).code).toBe(2)
  })

  it('09.6 a tag cannot look like more than a tag', async () => {
    const trace_tag = 'x\nstart_timestamp: never\u001b[2J'
    const { body } = await server.call<{ id: string }>('POST', '/v1/executions', {
      action: 'core.noop',
      context: { trace_context: { trace_tag } },
    })
    const { stdout } = await svc('trace', 'list', '-e', body.id)
    expect(stdout).not.toContain('\u001b')
    expect(stdout.match(/^start_timestamp: /gm)).toHaveLength(1)
    expect(stdout).toContain('\\u001b[2J')
  })
})
