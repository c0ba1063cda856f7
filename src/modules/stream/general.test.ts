import { get, type IncomingMessage } from 'node:http'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { computedMs } from '../../../tests/helpers/work.ts'
import { startHttp, type TestHttp } from '../../../tests/helpers/http.ts'
import { openEvents, type EventClient } from '../../../tests/helpers/sse.ts'
import { waitFor } from '../../../tests/helpers/wait.ts'
import type { Bus } from '../../bus/bus.ts'
import { createMemoryBus } from '../../bus/memory.ts'
import type { Executions } from '../executions/index.ts'
import type { Execution, ExecutionRecord, ExecutionStatus, LiveactionEvent, OutputRecord } from '../executions/types.ts'
import { compileNames, defaultEvents } from './general.ts'
import { createStream, type Stream } from './index.ts'

const MAX_QUEUED_BYTES = 100_000

let bus: Bus
let encoded: number
let stream: Stream
let http: TestHttp

beforeEach(async () => {
  bus = createMemoryBus((error) => {
    throw error
  })
  encoded = 0
  const record = ({ id, status, action_ref, context }: Execution): ExecutionRecord => {
    encoded += 1
    // What the tests look at.
    const fields: Record<string, unknown> = { id, status, action: { ref: action_ref }, ...context }
    return fields as ExecutionRecord
  }
  const records: Pick<Executions, 'record' | 'liveactionRecord' | 'find'> = {
    record,
    find: () => undefined,
    liveactionRecord(execution) {
      const fields: Record<string, unknown> = { ...record(execution), id: execution.liveaction_id }
      return fields as LiveactionEvent
    },
  }
  // The general stream asks for nothing else of the executions.
  stream = createStream({ bus, executions: records as Executions })
  http = await startHttp(stream.routes ?? [], { events: { heartbeatSeconds: 60, maxQueuedBytes: MAX_QUEUED_BYTES } })
})

afterEach(async () => {
  await http.close()
})

function execution(id: string, status: ExecutionStatus = 'running', more: Partial<Execution> = {}): Execution {
  const fields: Partial<Execution> = {
    id,
    liveaction_id: `live-${id}`,
    status,
    action_ref: 'core.local',
    context: {},
    ...more,
  }
  // What the general stream and the records above look at.
  return fields as Execution
}

const created = (one: Execution): void => bus.publish({ name: 'execution.created', payload: { execution: one } })
const updated = (one: Execution): void =>
  bus.publish({ name: 'execution.updated', payload: { execution: one, from: 'requested' } })

function wrote(id: string, ...texts: string[]): void {
  const records = texts.map((data, i): OutputRecord => ({
    id: `output-${i}`,
    execution_id: id,
    seq: i + 1,
    output_type: 'stdout',
    host: null,
    data,
    timestamp: 't',
  }))
  bus.publish({
    name: 'execution.output',
    payload: {
      execution_id: id,
      action_ref: 'core.local',
      user: 'ada',
      runner_ref: 'local-shell-cmd',
      last_seq: texts.length,
      records,
    },
  })
}

/** Resolves once the server listens for this client. */
async function follow(query = ''): Promise<EventClient> {
  const client = await openEvents(`${http.urls.stream}/v1/stream${query}`)
  await waitFor('the first byte', () => client.raw() !== '')
  return client
}

/** What was received up to the mark, a last update that passes every default filter. */
async function eventsOf(client: EventClient): Promise<string[]> {
  updated(execution('mark'))
  await client.frame(({ event, data }) => event === 'svc.execution__update' && data.includes('"mark"'))
  client.close()
  const events = client.frames.map(({ event, data }) => `${event} ${(JSON.parse(data) as { id: string }).id}`)
  return events.filter((event) => !event.includes('mark'))
}

describe('announcements', () => {
  const announce = (route: string, message: unknown, more: Partial<Execution> = {}): void =>
    bus.publish({
      name: 'announcement.created',
      payload: { execution: execution('a1', 'running', { trace_id: 't1', ...more }), route, message },
    })
  const heard = async (query: string): Promise<[string, unknown][]> => {
    const client = await follow(query)
    announce('chat.ops', { message: { text: 'ä' } })
    announce('general', {}, { context: { trace_context: { trace_tag: 'tag' } } })
    updated(execution('mark'))
    await client.frame(({ event, data }) => event === 'svc.execution__update' && data.includes('"mark"'))
    client.close()
    return client.frames
      .filter(({ event }) => event.startsWith('svc.announcement'))
      .map(({ event, data }) => [event, JSON.parse(data)])
  }
  const chat = ['svc.announcement__chat.ops', { payload: { message: { text: 'ä' } }, trace_context: { id_: 't1' } }]
  const general = ['svc.announcement__general', { payload: {}, trace_context: { id_: 't1', trace_tag: 'tag' } }]

  test.each([
    ['', [chat, general]],
    ['?events=svc.announcement__chat*,svc.execution__update', [chat]],
    ['?events=svc.execution__update', []],
    ['?action_refs=core.local', [chat, general]],
    ['?execution_ids=a1,mark', []],
  ])('with %j', async (query, expected) => {
    expect(await heard(query)).toEqual(expected)
  })
})

describe('changes of content', () => {
  test('come once for a burst, and only to those who ask for them', async () => {
    const asks = await follow('?events=svc.content__change')
    const other = await follow('')
    const ofAction = await follow('?events=svc.*&action_refs=core.local')
    for (let n = 0; n < 300; n++) bus.publish({ name: 'content.changed', payload: { kind: 'trigger_type' } })
    bus.publish({ name: 'content.changed', payload: { kind: 'action' } })
    bus.publish({ name: 'trigger.created', payload: { id: 't1', type: 'mine.type' } })
    bus.publish({ name: 'rule.changed', payload: { id: 'r', ref: 'mine.r', change: 'created', trigger_ids: [] } })
    bus.publish({ name: 'policy.changed', payload: { id: 'p', ref: 'mine.p', change: 'created', action_refs: [] } })
    await asks.frame(({ event }) => event === 'svc.content__change')
    expect(asks.frames.map(({ event, data }) => [event, JSON.parse(data)])).toEqual([
      ['svc.content__change', { kinds: ['action', 'policy', 'rule', 'trigger', 'trigger_type'] }],
    ])
    bus.publish({ name: 'rule.changed', payload: { id: 'r', ref: 'mine.r', change: 'deleted', trigger_ids: [] } })
    await asks.frame(({ data }) => data === '{"kinds":["rule"]}')
    for (const client of [other, ofAction]) {
      updated(execution('mark'))
      await client.frame(({ event }) => event === 'svc.execution__update')
      expect(client.frames.filter(({ event }) => event === 'svc.content__change')).toEqual([])
    }
  })
})

describe('names', () => {
  test.each([
    ['svc.execution__create', 'svc.execution__create', true],
    ['svc.execution__create', 'svc.execution__creat', false],
    ['svc.execution__creat', 'svc.execution__create', false],
    ['svc.execution__Create', 'svc.execution__create', false],
    ['svc.execution*', 'svc.execution.output__create', true],
    ['svc.execution*', 'svc.execution', true],
    ['*', 'anything', true],
    ['*', '', true],
    ['', '', true],
    ['', 'a', false],
    ['*create', 'svc.execution__create', true],
    ['*create', 'svc.execution__created', false],
    ['svc.*__create', 'svc.execution.output__create', true],
    ['*a*b*c*', 'xxaxxbxxcxx', true],
    ['*a*b*c*', 'xxaxxcxxbxx', false],
    ['**', 'a', true],
    ['a*b', 'ab', true],
    ['a*ab', 'aab', true],
    ['a*ab', 'aaaab', true],
    ['?', 'a', true],
    ['?', '', false],
    ['?', 'ab', false],
    ['svc.execution__????te', 'svc.execution__update', true],
    ['svc?execution', 'svc.execution', true],
    ['svc.execution', 'svcxexecution', false],
    ['[ab]c', 'ac', true],
    ['[ab]c', 'bc', true],
    ['[ab]c', 'cc', false],
    ['[a-c]', 'b', true],
    ['[a-c]', 'd', false],
    ['[!a-c]', 'd', true],
    ['[!a-c]', 'b', false],
    ['[^a-c]', 'd', true],
    ['[]a]', ']', true],
    ['[]a]', 'a', true],
    ['[!]a]', ']', false],
    ['[!]a]', 'b', true],
    ['[a-]', '-', true],
    ['[-a]', '-', true],
    ['[c-a]', 'b', false],
    ['[*]', '*', true],
    ['[*]', 'a', false],
    ['[?]', '?', true],
    ['[a', '[a', true],
    ['[a', 'a', false],
    ['[]', '[]', true],
    ['[!]', '[!]', true],
    ['svc.execution__[cu]*', 'svc.execution__update', true],
    ['svc.execution__[cu]*', 'svc.execution__delete', false],
    ['a.b', 'a.b', true],
    ['a+', 'aa', false],
    ['(a|b)', 'a', false],
    ['a\\*', 'a*', false],
  ])('%j matches %j: %s', (pattern, name, expected) => {
    expect(compileNames([pattern])(name)).toBe(expected)
    expect(compileNames(['never', pattern])(name)).toBe(expected)
  })

  test('none match without a pattern, and none that is longer than 200 characters', () => {
    expect(compileNames([])('a')).toBe(false)
    expect(compileNames(['a'.repeat(200)])('a'.repeat(200))).toBe(true)
    expect(compileNames([`${'*'.repeat(200)}a`])('a')).toBe(false)
  })

  test('the worst pattern takes no noticeable time', () => {
    const matches = compileNames([`${'*a'.repeat(99)}*b`])
    const begun = computedMs()
    for (let i = 0; i < 100; i++) matches(`${i}${'a'.repeat(5000)}`)
    // 100 times 200 × 5000 comparisons at most, against 2^99 with naive backtracking.
    expect(computedMs() - begun).toBeLessThan(5_000)
  })

  test('answers stay right for more names than are remembered', () => {
    const matches = compileNames(['*7'])
    for (const round of [1, 2]) {
      const wrong = Array.from({ length: 3000 }, (_, i) => `${i}`).filter(
        (name) => matches(name) !== name.endsWith('7'),
      )
      expect([round, wrong]).toEqual([round, []])
    }
  })
})

describe('events', () => {
  test('begin with a line feed, and are framed exactly', async () => {
    const client = await follow('?events=svc.execution*,svc.liveaction__update')
    expect(client.raw()).toBe('\n')
    created(execution('e1', 'requested'))
    wrote('e1', 'line 1\n')
    updated(execution('e1', 'succeeded', { context: { text: 'ä\n\u2028' } }))
    await client.frame(({ data }) => data.includes('succeeded') && !data.includes('live'))
    expect(client.raw()).toBe(
      '\n' +
        'event: svc.execution__create\ndata: {"id":"e1","status":"requested","action":{"ref":"core.local"}}\n\n' +
        'event: svc.execution.output__create\ndata: {"id":"output-0","execution_id":"e1","action_ref":"core.local",' +
        '"runner_ref":"local-shell-cmd","output_type":"stdout","data":"line 1\\n","timestamp":"t"}\n\n' +
        'event: svc.liveaction__update\n' +
        'data: {"id":"live-e1","status":"succeeded","action":{"ref":"core.local"},"text":"ä\\n\u2028"}\n\n' +
        'event: svc.execution__update\n' +
        'data: {"id":"e1","status":"succeeded","action":{"ref":"core.local"},"text":"ä\\n\u2028"}\n\n',
    )
    client.close()
  })

  test('are those from after the connection, in order', async () => {
    created(execution('before'))
    const client = await follow('?events=svc.execution__*')
    for (let i = 0; i < 50; i++) {
      created(execution(`e${i}`))
      updated(execution(`e${i}`))
    }
    expect(await eventsOf(client)).toEqual(
      Array.from({ length: 50 }, (_, i) => [`svc.execution__create e${i}`, `svc.execution__update e${i}`]).flat(),
    )
  })

  test('without `events` are the default ones: output is not among them', async () => {
    expect(defaultEvents).toEqual([
      'svc.announcement__*',
      'svc.execution__create',
      'svc.execution__update',
      'svc.execution__delete',
      'svc.liveaction__create',
      'svc.liveaction__update',
      'svc.liveaction__delete',
    ])
    for (const query of ['', '?events=', '?events=,']) {
      const client = await follow(query)
      created(execution('e1'))
      wrote('e1', 'text')
      updated(execution('e1'))
      expect(await eventsOf(client)).toEqual([
        'svc.liveaction__create live-e1',
        'svc.execution__create e1',
        'svc.liveaction__update live-e1',
        'svc.execution__update e1',
      ])
    }
  })

  test.each([
    ['?events=svc.execution__update', ['svc.execution__update e1', 'svc.execution__update e2']],
    [
      '?events=svc.execution__update, svc.execution__create',
      ['svc.execution__create e1', 'svc.execution__update e1', 'svc.execution__update e2'],
    ],
    [
      '?events=svc.execution*&execution_ids=e1',
      ['svc.execution__create e1', 'svc.execution.output__create output-0', 'svc.execution__update e1'],
    ],
    ['?execution_ids=e2,e3', ['svc.execution__update e2']],
    ['?parent_ids=e1,e9', ['svc.execution__update e2']],
    ['?parent_ids=e2', []],
    ['?action_refs=core.noop', ['svc.liveaction__update live-e2', 'svc.execution__update e2']],
    ['?action_refs=core.noop&execution_ids=e1', []],
    ['?action_refs=core.nop*', []],
    ['?events=SVC.EXECUTION__UPDATE', []],
    ['?events=nothing', []],
  ])('%s', async (query, expected) => {
    const client = await openEvents(`${http.urls.stream}/v1/stream${query.replaceAll(' ', '%20')}`)
    // Sees everything, so that the end is known.
    const witness = await follow()
    await waitFor('the first byte', () => client.raw() !== '')
    created(execution('e1'))
    wrote('e1', 'text')
    updated(execution('e1'))
    updated(execution('e2', 'running', { action_ref: 'core.noop', parent: 'e1' }))
    await eventsOf(witness)
    await waitFor('the events', () => client.frames.length >= expected.length)
    stream.endAll()
    expect(await client.ended).toBe('end')
    const events = client.frames.map(({ event, data }) => `${event} ${(JSON.parse(data) as { id: string }).id}`)
    expect(events.filter((event) => !event.includes('mark'))).toEqual(expected)
  })

  test('are encoded once, however many clients listen, and not at all for none', async () => {
    updated(execution('e1'))
    expect(encoded).toBe(0)
    const query = '?events=svc.execution__update'
    const clients = await Promise.all(Array.from({ length: 10 }, () => follow(query)))
    updated(execution('e2'))
    await Promise.all(clients.map((client) => client.frame(() => true)))
    expect(encoded).toBe(1)
    for (const client of clients) client.close()
  })

  test('are encoded once for all clients that want the same parts, without touching what others get', async () => {
    let read = 0
    // Counts how often it is made text of.
    const result = {
      toJSON() {
        read += 1
        return 'the result'
      },
    }
    const query = '?events=svc.execution__update'
    const whole = await Promise.all([follow(query), follow(query)])
    const parts = await Promise.all(Array.from({ length: 5 }, () => follow(`${query}&exclude_attributes=result`)))
    const few = await Promise.all(Array.from({ length: 5 }, () => follow(`${query}&include_attributes=status`)))
    updated(execution('e1', 'running', { context: { result } }))
    const dataOf = async (clients: EventClient[]): Promise<string[]> => {
      const frames = await Promise.all(clients.map((client) => client.frame(() => true)))
      for (const client of clients) client.close()
      return [...new Set(frames.map(({ data }) => data))]
    }
    const rest = '"id":"e1","status":"running","action":{"ref":"core.local"}'
    expect(await dataOf(whole)).toEqual([`{${rest},"result":"the result"}`])
    expect(await dataOf(parts)).toEqual([`{${rest}}`])
    expect(await dataOf(few)).toEqual(['{"id":"e1","status":"running"}'])
    expect([encoded, read]).toEqual([1, 1])
  })
})

describe('the end', () => {
  const query = '?events=svc.execution__update&end_event=svc.execution__update&end_execution_id=e1'

  test.each<ExecutionStatus>(['succeeded', 'failed', 'timeout', 'canceled', 'abandoned'])(
    'comes with %s of the execution named, after that event and without another one',
    async (status) => {
      const client = await follow(query)
      updated(execution('e2', status))
      updated(execution('e1', 'canceling'))
      updated(execution('e1', status))
      updated(execution('e3', status))
      expect(await client.ended).toBe('end')
      expect(client.frames.map(({ event, data }) => [event, (JSON.parse(data) as { id: string }).id])).toEqual([
        ['svc.execution__update', 'e2'],
        ['svc.execution__update', 'e1'],
        ['svc.execution__update', 'e1'],
      ])
    },
  )

  test.each<ExecutionStatus>([
    'requested',
    'running',
    'canceling',
    'pausing',
    'paused',
    'resuming',
    'pending',
    'delayed',
  ])('does not come with %s', async (status) => {
    const client = await follow(query)
    updated(execution('e1', status))
    expect(await eventsOf(client)).toEqual(['svc.execution__update e1'])
  })

  test('comes although the event itself does not pass the filters', async () => {
    const client = await follow('?events=svc.execution__create&end_event=svc.execution__update&end_execution_id=e1')
    updated(execution('e1', 'succeeded'))
    expect(await client.ended).toBe('end')
    expect(client.raw()).toBe('\n')
  })

  test('can be that of a live action, by its own id', async () => {
    const client = await follow('?end_event=svc.liveaction__update&end_execution_id=live-e1')
    updated(execution('e1', 'succeeded'))
    expect(await client.ended).toBe('end')
    expect(client.frames.map(({ event }) => event)).toEqual(['svc.liveaction__update'])
  })

  test.each([
    '?end_event=svc.execution__update',
    '?end_execution_id=e1',
    '?end_event=svc.execution__create&end_execution_id=e1',
    '?end_event=svc.execution__*&end_execution_id=e1',
    '?end_event=svc.execution__update&end_execution_id=',
    '?end_event=svc.execution__update&end_execution_id=live-e1',
  ])('%s does not end it', async (incomplete) => {
    const client = await follow(incomplete)
    updated(execution('e1', 'succeeded'))
    expect(await eventsOf(client)).toEqual(['svc.liveaction__update live-e1', 'svc.execution__update e1'])
  })

  test('of the server is the end of every stream, old and new, without a last event', async () => {
    const client = await follow()
    stream.endAll()
    expect(await client.ended).toBe('end')
    const late = await openEvents(`${http.urls.stream}/v1/stream`)
    expect(await late.ended).toBe('end')
    expect([...client.frames, ...late.frames]).toEqual([])
  })
})

describe('clients', () => {
  test('that leave are forgotten', async () => {
    const clients = await Promise.all([follow(), follow()])
    for (const client of clients) client.close()
    const isForgotten = (): boolean => {
      const before = encoded
      updated(execution('e1'))
      return encoded === before
    }
    expect(await waitFor('nobody to be written to', isForgotten)).toBe(true)
  })

  test('that do not read are cut at the bound, and slow nobody down', async () => {
    const reader = await follow('?events=svc.execution__update')
    const lazy = await new Promise<IncomingMessage>((resolve, reject) => {
      get(`${http.urls.stream}/v1/stream`, { agent: false }, (response) => {
        response.pause()
        resolve(response)
      }).once('error', reject)
    })
    let cut = false
    lazy.once('error', () => (cut = true))
    // The operating system takes a few megabytes before the server has to hold anything back.
    const text = 'x'.repeat(50_000)
    let sent = 0
    await waitFor('the lazy one to be cut', async () => {
      updated(execution(`e${sent}`, 'running', { context: { text } }))
      sent += 1
      await reader.frame(({ data }) => data.includes(`"e${sent - 1}"`))
      // Written to by now, if it is still there: a live action is encoded for it alone.
      return encoded !== sent * 2
    })
    expect(reader.frames).toHaveLength(sent)
    expect(sent * text.length).toBeGreaterThan(MAX_QUEUED_BYTES)
    lazy.resume()
    await waitFor('the lazy one to notice', () => cut)
    reader.close()
  })
})
