/** Contract 07: what is in a trace, how traces are found, and which one something joins. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newId } from '../../src/core/ids.ts'
import { makeFolder } from '../helpers/folders.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import { createTestApp, withApp } from '../helpers/app.ts'
import { run, runToEnd, waitForStatus, type Answer, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import {
  create,
  idPattern,
  impossibleIds,
  timestampPattern,
  unknownId,
  type ErrorAnswer,
  type TraceAnswer,
} from './support.ts'
import { fullOnly } from '../helpers/tiers.ts'

/** Of `components`. */
interface TraceMember {
  seq: number
  kind: string
  object_id: string
}

const ACTION_TRIGGER = 'core.svc.generic.actiontrigger'

let server: TestApp

beforeAll(async () => {
  server = await createTestApp()
})
afterAll(async () => {
  await server.stop()
})

const get = <T = ErrorAnswer>(path: string) => server.call<T>('GET', `/v1${path}`)

/** What a list holds, and of how many. */
async function list(
  query: string,
  on = server,
): Promise<{ traces: TraceAnswer[]; total: number; limit: string | null }> {
  const { status, body, text, headers } = await on.call<TraceAnswer[]>('GET', `/v1/traces?${query}`)
  expect([text.slice(0, 200), status]).toEqual([expect.any(String), 200])
  return { traces: body, total: Number(headers.get('x-total-count')), limit: headers.get('x-limit') }
}

const idsOf = (traces: readonly { id: string }[]): string[] => traces.map(({ id }) => id)

/** The only trace that an execution is in. */
async function traceOf(execution: { id: string }): Promise<TraceAnswer> {
  const { traces, total } = await list(`execution=${execution.id}`)
  expect([traces.length, total]).toEqual([1, 1])
  return traces[0] ?? emptyTrace
}

const emptyTrace: TraceAnswer = {
  id: '',
  uid: '',
  trace_tag: '',
  start_timestamp: '',
  action_executions: [],
  rules: [],
  trigger_instances: [],
}

const noop = { action: 'core.noop' }

async function runNoop(context: Record<string, unknown> = {}): Promise<ExecutionAnswer> {
  const { status, body, text } = await create(server, { ...noop, context })
  expect([text, status]).toEqual([expect.any(String), 201])
  return waitForStatus(server, body.id)
}

const tagged = (trace_tag: string) => runNoop({ trace_context: { trace_tag } })

describe('07.1 record', () => {
  it('07.1 an execution by hand: every attribute, no cause, and what its end has dispatched', async () => {
    const execution = await runToEnd(server, { cmd: 'true' })
    const trace = await traceOf(execution)
    expect(Object.keys(trace).toSorted()).toEqual(Object.keys(emptyTrace).toSorted())
    expect(trace).toMatchObject({
      id: expect.stringMatching(idPattern),
      uid: expect.stringMatching(/^trace:[0-9a-f]{32}$/),
      trace_tag: `execution-${String(execution.liveaction['id'])}`,
      start_timestamp: execution.start_timestamp,
      action_executions: [
        {
          object_id: execution.id,
          ref: 'core.local',
          updated_at: expect.stringMatching(timestampPattern),
          caused_by: {},
        },
      ],
      rules: [],
    })
    expect(trace.trigger_instances).toEqual([
      {
        object_id: expect.stringMatching(idPattern),
        ref: ACTION_TRIGGER,
        updated_at: expect.stringMatching(timestampPattern),
        caused_by: { type: 'action_execution', id: execution.id },
      },
    ])
    const [instance] = trace.trigger_instances
    expect(instance?.updated_at.localeCompare(trace.start_timestamp)).toBe(1)
    expect((await get(`/triggerinstances/${instance?.object_id}`)).body).toMatchObject({ trigger: ACTION_TRIGGER })
  })

  it('07.1 uid: of each trace another one', async () => {
    const uids = await Promise.all(
      [tagged('uid'), runNoop(), runNoop()].map(async (each) => (await traceOf(await each)).uid),
    )
    expect(new Set(uids).size).toBe(3)
  })

  it('07.1 a child execution is caused by its parent, also in a trace of its own', async () => {
    const parent = await runNoop()
    const child = await runNoop({ parent: { execution_id: parent.id } })
    const apart = await runNoop({ parent: { execution_id: parent.id }, trace_context: { trace_tag: 'apart' } })
    const cause = { type: 'action_execution', id: parent.id }
    expect((await traceOf(parent)).action_executions).toMatchObject([
      { object_id: parent.id, caused_by: {} },
      { object_id: child.id, caused_by: cause },
    ])
    const other = await traceOf(apart)
    expect(other).toMatchObject({ trace_tag: 'apart', action_executions: [{ object_id: apart.id, caused_by: cause }] })
    expect(await traceOf(child)).toEqual(await traceOf(parent))
  })

  it('07.1 a re-run has no cause', async () => {
    const original = await runNoop()
    const { body: again } = await server.call<ExecutionAnswer>('POST', `/v1/executions/${original.id}/re_run`, {})
    expect((await traceOf(original)).action_executions).toMatchObject([
      { object_id: original.id, caused_by: {} },
      { object_id: again.id, ref: 'core.noop', caused_by: {} },
    ])
  })

  it('07.1 components stand in the order in which they were added, and only one kind in each list', async () => {
    const ended: ExecutionAnswer[] = []
    for (let n = 0; n < 12; n += 1) ended.push(await tagged('ordered'))
    const { action_executions: executions, trigger_instances: instances } = await traceOf(ended[0] ?? { id: '' })
    expect(executions.map(({ object_id }) => object_id)).toEqual(idsOf(ended))
    expect(instances.map(({ caused_by }) => caused_by.id)).toEqual(idsOf(ended))
    for (const times of [executions, instances].map((components) => components.map(({ updated_at }) => updated_at))) {
      expect(times).toEqual(times.toSorted())
    }
  })

  it('07.1 a tag is text, whatever stands in it', async () => {
    for (const tag of [
      '{{ 7 * 7 }}',
      '${7*7}',
      "' or 1=1 --",
      '../../x',
      '<b>ä€😀</b>',
      'a,b',
      ' x ',
      '__proto__',
      'null',
    ]) {
      const execution = await tagged(tag)
      expect((await traceOf(execution)).trace_tag).toBe(tag)
      const { traces, total } = await list(`trace_tag=${encodeURIComponent(tag)}`)
      expect([
        traces.map(({ action_executions }) => idsOf(action_executions.map(({ object_id: id }) => ({ id })))),
        total,
      ]).toEqual([[[execution.id]], 1])
    }
  })
})

describe('07.2 list and get', () => {
  /** Oldest first. */
  const traces: TraceAnswer[] = []
  let place: TestApp

  beforeAll(async () => {
    place = await createTestApp()
    const start = async (context: Record<string, unknown>): Promise<void> => {
      await waitForStatus(place, (await create(place, { ...noop, context })).body.id)
    }
    for (const tag of ['b', 'a', 'd', 'c']) {
      await start({ trace_context: { trace_tag: tag } })
      await start({ trace_context: { trace_tag: tag } })
    }
    await start({})
    traces.push(...(await list('sort_asc=True', place)).traces)
  })
  afterAll(async () => {
    await place.stop()
  })

  const seek = (query: string) => list(query, place)
  const at = (n: number): TraceAnswer => traces[n] ?? emptyTrace
  const execution = (n: number): string => at(n).action_executions[1]?.object_id ?? ''
  const instance = (n: number): string => at(n).trigger_instances[0]?.object_id ?? ''

  it('07.2 list: everything, newest first, with X-Total-Count and X-Limit', async () => {
    expect(await seek('')).toEqual({ traces: traces.toReversed(), total: 5, limit: '100' })
  })

  it('07.2 get: the record of the list', async () => {
    for (const trace of traces) {
      const { status, body } = await place.call<TraceAnswer>('GET', `/v1/traces/${trace.id}`)
      expect([status, body]).toEqual([200, trace])
    }
  })

  it.each([unknownId, ...impossibleIds])('07.2 get: %s → 404', async (id) => {
    const { status, body } = await get(`/traces/${id}`)
    const shownId = decodeURIComponent(id).replace('\0', '\ufffd')
    expect([status, body.faultstring]).toEqual([404, `Unable to identify resource with id "${shownId}".`])
  })

  it('07.2 filters: each alone, and all that go together', async () => {
    const of = async (query: string): Promise<string> => {
      const { traces: some, total } = await seek(query)
      expect(some).toHaveLength(total)
      return some.map(({ trace_tag: tag }) => tag.slice(0, 1)).join('')
    }
    expect(await of('trace_tag=a')).toBe('a')
    expect(await of('trace_tag=A')).toBe('')
    expect(await of('trace_tag=')).toBe('ecdab')
    expect(await of(`execution=${execution(2)}`)).toBe('d')
    expect(await of(`trigger_instance=${instance(2)}`)).toBe('d')
    expect(await of(`rule=${unknownId}`)).toBe('')
    expect(await of(`id=${at(0).id},${at(2).id},${unknownId},x`)).toBe('db')
    expect(await of('id=')).toBe('ecdab')
    // Each looks for its own kind.
    expect(await of(`execution=${instance(2)}`)).toBe('')
    expect(await of(`trigger_instance=${execution(2)}`)).toBe('')
    expect(await of(`rule=${execution(2)}`)).toBe('')
    expect(await of(`execution=${execution(2)}&trigger_instance=${instance(2)}&trace_tag=d&id=${at(2).id}`)).toBe('d')
    expect(await of(`execution=${execution(2)}&trigger_instance=${instance(3)}`)).toBe('')
    expect(await of(`execution=${execution(2)}&trace_tag=c`)).toBe('')
    expect(await of(`execution=${execution(2)}&id=${at(3).id}`)).toBe('')
    // Null asks for traces without any.
    expect(await of('rule=null')).toBe('ecdab')
    expect(await of('rule=NULL&trace_tag=c')).toBe('c')
    expect(await of('execution=null')).toBe('')
    expect(await of('trigger_instance=null')).toBe('')
    expect(await of('trace_tag_prefix=d')).toBe('d')
    expect(await of('trace_tag_prefix=D')).toBe('')
    expect(await of('trace_tag_prefix=execution-')).toBe('e')
    expect(await of(`trace_tag_prefix=execution-&id=${at(0).id},${at(4).id}`)).toBe('e')
    expect(await of('unheard_of=1')).toBe('ecdab')
    for (const hostile of ["' or 1=1 --", '%', '*', '"', '\\', 'x'.repeat(5000)]) {
      for (const name of ['trace_tag', 'trace_tag_prefix', 'execution', 'rule', 'trigger_instance', 'id']) {
        expect(await of(`${name}=${encodeURIComponent(hostile)}`)).toBe('')
      }
    }
  })

  it.each([
    ['', 'ecdab'],
    ['sort_asc=True', 'badce'],
    ['sort_desc=True', 'ecdab'],
    ['sort_asc=True&sort_desc=True', 'ecdab'],
    ['sort_asc=False', 'ecdab'],
    ['sort=id', 'badce'],
    ['sort=-id', 'ecdab'],
    ['sort=start_timestamp', 'badce'],
    ['sort=-start_timestamp,trace_tag', 'ecdab'],
    ['sort=trace_tag', 'abcde'],
    ['sort=-trace_tag', 'edcba'],
    ['sort=trace_tag,-start_timestamp', 'abcde'],
    ['sort=uid', 'ecdab'],
    ['sort=trace_tag&sort_asc=True', 'abcde'],
  ])('07.2 order %s', async (query, tags) => {
    const { traces: some } = await seek(query)
    expect(some.map(({ trace_tag: tag }) => tag.slice(0, 1)).join('')).toBe(tags)
  })

  it('07.2 pages follow each other, in every order', async () => {
    for (const order of ['', 'sort=id', 'sort=trace_tag', 'sort=-trace_tag', 'sort=trace_tag,-id', 'rule=null']) {
      const { traces: all } = await seek(order)
      const pages = await Promise.all([0, 2, 4, 6].map((offset) => seek(`${order}&limit=2&offset=${offset}`)))
      expect(pages.flatMap((page) => page.traces)).toEqual(all)
      expect(pages.map(({ traces: some, total, limit }) => [some.length, total, limit])).toEqual([
        [2, 5, '2'],
        [2, 5, '2'],
        [1, 5, '2'],
        [0, 5, '2'],
      ])
    }
    expect(await seek('limit=-1&offset=1')).toEqual({ traces: traces.toReversed().slice(1), total: 5, limit: null })
    expect((await seek('offset=20000')).traces).toEqual([])
  })

  it('07.2 a place to go on from stays where it is, whatever is added', async () => {
    const tagsOf = async (query: string): Promise<string> => {
      const answer = await place.call<TraceAnswer[]>('GET', `/v1/traces?${query}`)
      expect([answer.status, answer.headers.has('x-total-count')]).toEqual([200, false])
      return answer.body.map(({ trace_tag: tag }) => tag.slice(0, 1)).join('')
    }
    expect(await tagsOf(`before_id=${at(3).id}`)).toBe('dab')
    expect(await tagsOf(`before_id=${at(3).id}&offset=1&limit=1`)).toBe('a')
    expect(await tagsOf(`after_id=${at(1).id}`)).toBe('ecd')
    expect(await tagsOf(`after_id=${at(1).id}&before_id=${at(4).id}&sort_asc=True`)).toBe('dc')
    expect(await tagsOf(`after_id=${at(4).id}`)).toBe('')
    expect(await tagsOf(`before_id=${at(3).id}&trace_tag_prefix=a`)).toBe('a')
  })

  it('07.2 what a trace began with and how much it holds, for who asks by name', async () => {
    const { id, action_executions: executions } = at(1)
    const [first] = executions
    const names = 'include_attributes=origin,component_count'
    const summary = {
      id,
      origin: { seq: expect.any(Number) as number, kind: 'execution', ...first },
      component_count: 4,
    }
    expect((await place.call('GET', `/v1/traces/${id}?${names}`)).body).toEqual(summary)
    expect((await place.call('GET', `/v1/traces?id=${id}&${names}`)).body).toEqual([summary])
    expect((await place.call('GET', `/v1/traces/${id}?include_attributes=origin.object_id`)).body).toEqual({
      id,
      origin: { object_id: first?.object_id },
    })
    expect((await place.call('GET', `/v1/traces/${id}?exclude_attributes=origin`)).status).toBe(400)
  })

  it('07.2 components: of every kind, in the order in which they were added, page by page', async () => {
    const { id, action_executions: executions, trigger_instances: instances } = at(1)
    const seek = async (query = ''): Promise<{ members: TraceMember[]; total: string | null }> => {
      const { status, body, headers } = await place.call<TraceMember[]>('GET', `/v1/traces/${id}/components?${query}`)
      expect([query, status]).toEqual([query, 200])
      return { members: body, total: headers.get('x-total-count') }
    }
    const { members, total } = await seek()
    expect([members.length, total]).toEqual([4, '4'])
    const seqs = members.map(({ seq }) => seq)
    expect(seqs.toSorted((a, b) => a - b)).toEqual(seqs)
    const ofKind = (kind: string): TraceMember[] => members.filter((member) => member.kind === kind)
    expect([ofKind('execution'), ofKind('trigger_instance'), ofKind('rule')]).toMatchObject([executions, instances, []])
    expect(await seek('limit=3')).toEqual({ members: members.slice(0, 3), total: '4' })
    expect(await seek(`after_seq=${seqs[1]}`)).toEqual({ members: members.slice(2), total: null })
    expect(await seek(`after_seq=${seqs[3]}`)).toEqual({ members: [], total: null })
    expect(await seek(`before_seq=${seqs[3]}&sort_desc=1&limit=2`)).toEqual({
      members: [members[2], members[1]],
      total: null,
    })
    for (const query of ['limit=0', 'limit=1001', 'after_seq=x']) {
      expect([query, (await place.call('GET', `/v1/traces/${id}/components?${query}`)).status]).toEqual([query, 400])
    }
    expect((await place.call('GET', `/v1/traces/${unknownId}/components`)).status).toBe(404)
  })

  it.each([
    ['limit=0', 'Limit, "0" specified'],
    ['before_id=x', 'before_id: "x" is not an id'],
    [`after_id=${unknownId}&sort=trace_tag`, 'leave out "sort"'],
    ['limit=-2', 'Limit, "-2" specified'],
    ['limit=x', 'Parameter "limit" is not of type integer'],
    ['offset=2147483648', 'is more than 32-bit int'],
    [`id=${Array.from({ length: 101 }, () => unknownId).join()}`, 'Maximum of 100 items'],
    ['include_attributes=payload', 'payload'],
    ['exclude_attributes=id', 'id'],
    ['include_attributes=id&exclude_attributes=rules', 'mutually exclusive'],
  ])('07.2 %s → 400', async (query, text) => {
    const { status, body } = await get(`/traces?${query}`)
    expect([status, body.faultstring]).toEqual([400, expect.stringContaining(text)])
  })

  it('07.2 include and exclude attributes, of a list and of one', async () => {
    const { id, trace_tag } = at(1)
    const [first] = at(1).action_executions
    for (const path of [`/v1/traces?id=${id}&`, `/v1/traces/${id}?`]) {
      const one = async (query: string): Promise<unknown> => {
        const { status, body } = await place.call<TraceAnswer | TraceAnswer[]>('GET', `${path}${query}`)
        expect(status).toBe(200)
        return Array.isArray(body) ? body[0] : body
      }
      expect(await one('include_attributes=trace_tag')).toEqual({ id, trace_tag })
      expect(await one('include_attributes=rules,action_executions')).toEqual({
        id,
        action_executions: at(1).action_executions,
        rules: [],
      })
      expect(await one('include_attributes=action_executions.object_id,action_executions.caused_by')).toEqual({
        id,
        action_executions: at(1).action_executions.map(({ object_id, caused_by }) => ({ object_id, caused_by })),
      })
      expect(await one('exclude_attributes=action_executions,trigger_instances,rules,uid')).toEqual({
        id,
        trace_tag,
        start_timestamp: at(1).start_timestamp,
      })
    }
    expect(first?.caused_by).toEqual({})
  })

  it.each([
    ['POST', '/traces'],
    ['PUT', '/traces/x'],
    ['DELETE', '/traces/x'],
    ['DELETE', '/traces'],
  ])('07.2 there is no %s %s', async (method, path) => {
    const { status } = await server.call(method, `/v1${path}`, {})
    expect([404, 405]).toContain(status)
  })
})

describe('07.3 which trace', () => {
  /** What a trace context is answered with, in the body and in the header, and how many traces that made. */
  async function refusal(trace_context: unknown): Promise<{ answers: [number, string][]; made: number }> {
    const before = (await list('limit=1')).total
    const inBody = await create(server, { ...noop, context: { trace_context } })
    const inHeader = await create(server, noop, { 'svc-context': JSON.stringify({ trace_context }) })
    return {
      answers: [inBody, inHeader].map(({ status, body }) => [status, body.faultstring]),
      made: (await list('limit=1')).total - before,
    }
  }
  const refusedWith = (text: string): object => {
    const answer = [400, expect.stringContaining(text)]
    return { answers: [answer, answer], made: 0 }
  }

  it('07.3 step 1: an id joins that trace, whatever tag and parent say', async () => {
    const first = await tagged('step one')
    const parent = await runNoop()
    const { id } = await traceOf(first)
    const joined = await runNoop({
      trace_context: { id_: id, trace_tag: 'another' },
      parent: { execution_id: parent.id },
    })
    expect((await traceOf(joined)).id).toBe(id)
    expect((await list('trace_tag=another')).total).toBe(0)
  })

  it.each([
    ['an unknown id', unknownId],
    ['a malformed id', 'abc'],
    ['an id in capitals', 'ABCDEFABCDEFABCDEFABCDEF'],
    ['the id of an execution', 'execution'],
  ])('07.3 step 1: %s → 400 naming it, nothing kept', async (_, given) => {
    const id = given === 'execution' ? (await runNoop()).id : given
    for (const more of [{}, { trace_tag: 'not kept' }]) {
      expect(await refusal({ id_: id, ...more })).toEqual(refusedWith(`Unable to find Trace with id="${id}"`))
    }
    expect((await list('trace_tag=not%20kept')).total).toBe(0)
  })

  it('07.3 step 1b: a tag joins the trace there is, else starts one; letter case counts', async () => {
    const first = await tagged('Tag')
    const second = await tagged('Tag')
    const other = await tagged('tag')
    expect((await traceOf(second)).id).toBe((await traceOf(first)).id)
    expect((await traceOf(other)).id).not.toBe((await traceOf(first)).id)
  })

  it('07.3 step 1b: of several traces with the tag the newest', async () => {
    // Only tags that the server makes can be of several traces: here of two runs of one live action's name.
    await withApp({ basePath: folder.path }, async (place) => {
      await run(place, { cmd: 'true' }, { context: { trace_context: { trace_tag: 'first' } } })
    })
    const [older, newer] = [newId(), newId()]
    const database = new Sqlite(join(folder.path, 'svc.db'))
    const insert = database.prepare(
      `insert into traces (id, uid, trace_tag, start_timestamp) values (?, ?, 'several', '')`,
    )
    for (const id of [newer, older]) insert.run(id, `trace:${id}`)
    database.close()
    await withApp({ basePath: folder.path }, async (place) => {
      expect(idsOf((await list('trace_tag=several', place)).traces)).toEqual([newer, older])
      const { id } = await run(place, { cmd: 'true' }, { context: { trace_context: { trace_tag: 'several' } } })
      expect(idsOf((await list(`execution=${id}`, place)).traces)).toEqual([newer])
    })
  })
  const folder = makeFolder()
  afterAll(() => folder.remove())

  it('07.3 step 1b: requests at the same moment with a new tag share one trace', async () => {
    const made = await Promise.all(Array.from({ length: 40 }, () => tagged('at once')))
    const { traces, total } = await list('trace_tag=at%20once')
    expect([traces.length, total]).toEqual([1, 1])
    expect(traces[0]?.action_executions.map(({ object_id }) => object_id).toSorted()).toEqual(idsOf(made).toSorted())
  })

  it('07.3 step 2: the trace of the parent, and of its parent', async () => {
    const parent = await tagged('family')
    const child = await runNoop({ parent: { execution_id: parent.id } })
    const grandchild = await runNoop({ parent: { execution_id: child.id } })
    expect((await traceOf(grandchild)).action_executions.map(({ object_id }) => object_id)).toEqual(
      idsOf([parent, child, grandchild]),
    )
  })

  it('07.3 step 4: else a new one for each, tagged with the id of the live action', async () => {
    for (const context of [{}, { trace_context: {} }]) {
      const execution = await runNoop(context)
      const trace = await traceOf(execution)
      expect(trace.trace_tag).toBe(`execution-${String(execution.liveaction['id'])}`)
      expect(trace.action_executions).toHaveLength(1)
    }
  })

  it.each([
    ['an empty id', { id_: '' }],
    ['an empty tag', { trace_tag: '' }],
    ['both empty', { id_: '', trace_tag: '' }],
  ])('07.3 %s: neither is given → 400', async (_, value) => {
    expect(await refusal(value)).toEqual(refusedWith('at least one of "id_" and "trace_tag"'))
  })

  it.each([
    ['text', 'x'],
    ['a list', []],
    ['null', null],
    ['a foreign key', { trace_tag: 'x', tag: 'y' }],
    ['a tag that is null', { trace_tag: null }],
    ['an id that is a number', { id_: 1 }],
    ['a tag that is too long', { trace_tag: 'x'.repeat(1025) }],
  ])('07.3 %s → 400, in the body and in the header', async (_, value) => {
    expect(await refusal(value)).toEqual(refusedWith('trace_context'))
  })

  it('07.3 the longest tag is kept whole', async () => {
    const tag = '€'.repeat(1024)
    expect((await traceOf(await tagged(tag))).trace_tag).toBe(tag)
  })
})

describe('07.3 tags that nobody has chosen', () => {
  interface Instance {
    id: string
    trigger: string
  }

  /** The trace of the first instance of a trigger type. */
  async function traceOfFirst(type: string): Promise<{ trace: TraceAnswer; instance: Instance }> {
    const instance = await waitFor(`an instance of ${type}`, async () => {
      const { body } = await get<Instance[]>(`/triggerinstances?trigger_type=${type}&sort=id&limit=1`)
      return body[0]
    })
    const { traces, total } = await list(`trigger_instance=${instance.id}`)
    expect(total).toBe(1)
    return { trace: traces[0] ?? emptyTrace, instance }
  }

  it('07.3 a trigger instance without one: its own id', async () => {
    await server.call('PUT', '/v1/keys/traced', { name: 'traced', value: 'x' })
    const { trace, instance } = await traceOfFirst('core.svc.key_value_pair.create')
    expect(trace).toMatchObject({
      trace_tag: `trigger_instance-${instance.id}`,
      trigger_instances: [{ object_id: instance.id, ref: 'core.svc.key_value_pair.create', caused_by: {} }],
      rules: [],
      action_executions: [],
    })
  })

  it('07.3 the generic webhook: webhook-svc-…, or the tag of the header', async () => {
    const { body: type } = await server.call<{ ref: string }>('POST', '/v1/triggertypes', {
      name: 'traced',
      pack: 'shop',
    })
    for (const [headers, tag] of [
      [{}, /^webhook-svc-[0-9a-f]{32}$/],
      [{ 'Svc-Trace-Tag': 'injected' }, /^injected$/],
    ] as const) {
      const dispatched = { trigger: type.ref, payload: {} }
      const answer = await server.call('POST', '/v1/webhooks/svc', dispatched, headers)
      expect(answer.status).toBe(202)
      const { body } = await get<TraceAnswer>(`/traces/${answer.headers.get('svc-trace-id')}`)
      expect(body.trace_tag).toMatch(tag)
      expect(body.trigger_instances).toMatchObject([
        { object_id: answer.headers.get('svc-trigger-instance-id'), ref: 'shop.traced', caused_by: {} },
      ])
    }
  })

  it('07.3 a timer: its type and its name, and a trace for each time', async () => {
    const name = 'every-second'
    const parameters = { unit: 'seconds', delta: 1 }
    const { status, text } = await server.call('POST', '/v1/triggers', {
      name,
      pack: 'shop',
      type: 'core.svc.IntervalTimer',
      parameters,
    })
    expect([text, status]).toEqual([expect.any(String), 201])
    // It fires while a rule uses it, be it one that never matches.
    const trigger = { type: 'core.svc.IntervalTimer', parameters }
    const criteria = { 'trigger.executed_at': { type: 'eq', pattern: 'never' } }
    const rule = { name, pack: 'shop', enabled: true, trigger, criteria, action: { ref: 'core.noop' } }
    expect((await server.call('POST', '/v1/rules', rule)).status).toBe(201)
    const tag = `svc.IntervalTimer-${name}`
    const found = await waitFor('the timer to fire twice', async () => {
      const { traces, total } = await list(`trace_tag=${tag}`)
      return total >= 2 && { traces, total }
    })
    expect(found.traces).toHaveLength(found.total)
    for (const { trigger_instances: instances } of found.traces) {
      expect(instances).toMatchObject([{ ref: `shop.${name}`, caused_by: {} }])
    }
    await server.call('DELETE', `/v1/rules/shop.${name}`)
  })
})

describe('07.4 propagation', () => {
  it('07.4 what tells of the end of an execution joins its trace, and is caused by it', async () => {
    const section = { message: 'done', routes: ['first', 'second'] }
    const execution = await runToEnd(
      server,
      { cmd: 'true' },
      { notify: { 'on-complete': section }, context: { trace_context: { trace_tag: 'told' } } },
    )
    const cause = { type: 'action_execution', id: execution.id }
    const told = (await traceOf(execution)).trigger_instances
    expect(told.map(({ ref }) => ref).toSorted()).toEqual([
      ACTION_TRIGGER,
      'core.svc.generic.notifytrigger',
      'core.svc.generic.notifytrigger',
    ])
    expect(told.map(({ caused_by }) => caused_by)).toEqual([cause, cause, cause])
  })

  it('07.4 a re-run joins the trace of the original, and so does the re-run of that', async () => {
    const original = await tagged('again')
    const rerun = async ({ id }: { id: string }) =>
      (await server.call<ExecutionAnswer>('POST', `/v1/executions/${id}/re_run`, {})).body
    const second = await rerun(original)
    const third = await rerun(second)
    expect((await traceOf(third)).action_executions.map(({ object_id }) => object_id)).toEqual(
      idsOf([original, second, third]),
    )
  })

  it('07.4 an execution that fails before it begins is in a trace as well', async () => {
    const { status } = await create(server, {
      action: 'core.local',
      parameters: { cmd: '{{ 1 / 0 }}' },
      context: { trace_context: { trace_tag: 'broken' } },
    })
    expect(status).toBe(400)
    const { traces } = await list('trace_tag=broken')
    const id = traces[0]?.action_executions[0]?.object_id ?? ''
    expect((await get<ExecutionAnswer>(`/executions/${id}`)).body.status).toBe('failed')
  })
})

describe('07.4 a rule', () => {
  interface Rule {
    id: string
    ref: string
  }
  let rule: Rule
  let hook: string

  /** Sends to a webhook. @returns the ids of what it has brought about */
  async function send(
    body: object,
    headers: Record<string, string> = {},
  ): Promise<{ instance: string; trace: string }> {
    const answer = await server.call('POST', `/v1/webhooks/${hook}`, body, headers)
    expect(answer.status).toBe(202)
    const [instance, trace] = ['svc-trigger-instance-id', 'svc-trace-id'].map((name) => answer.headers.get(name) ?? '')
    return { instance: instance ?? '', trace: trace ?? '' }
  }

  const traceWith = (id: string, executions: number): Promise<TraceAnswer> =>
    waitFor(`trace ${id} to have ${executions} ended executions`, async () => {
      const { body } = await get<TraceAnswer>(`/traces/${id}`)
      const ends = body.trigger_instances.filter(({ ref }) => ref === ACTION_TRIGGER)
      return body.action_executions.length === executions && ends.length === executions && body
    })

  beforeAll(async () => {
    hook = 'traced'
    const { status, body, text } = await server.call<Rule>('POST', '/v1/rules', {
      name: 'on_traced',
      enabled: true,
      trigger: { type: 'core.svc.webhook', parameters: { url: hook } },
      criteria: { 'trigger.body.kind': { type: 'equals', pattern: 'order' } },
      action: { ref: 'core.local', parameters: { cmd: 'echo {{ trigger.body.id }}' } },
    })
    if (status !== 201) throw new Error(text)
    rule = body
  })

  it('07.6 a webhook with a tag, the rule that matched it and what that started, with their causes', async () => {
    const { instance, trace: id } = await send({ kind: 'order', id: 17 }, { 'Svc-Trace-Tag': 'order-17' })
    const trace = await traceWith(id, 1)
    const execution = trace.action_executions[0]?.object_id ?? ''
    expect(trace).toMatchObject({
      trace_tag: 'order-17',
      trigger_instances: [
        { object_id: instance, ref: expect.stringMatching(/^core\./), caused_by: {} },
        { ref: ACTION_TRIGGER, caused_by: { type: 'action_execution', id: execution } },
      ],
      rules: [{ object_id: rule.id, ref: rule.ref, caused_by: { type: 'trigger_instance', id: instance } }],
      action_executions: [{ ref: 'core.local', caused_by: { type: 'rule', id: `${rule.id}:${instance}` } }],
    })
    for (const query of [
      `rule=${rule.id}`,
      `trigger_instance=${instance}`,
      `execution=${execution}`,
      'trace_tag=order-17',
    ]) {
      expect(await list(query)).toEqual({ traces: [trace], total: 1, limit: '100' })
    }
    expect(
      (await list(`rule=${rule.id}&trigger_instance=${instance}&execution=${execution}&trace_tag=order-17`)).total,
    ).toBe(1)
    expect((await list(`rule=${rule.id}&rule=null`)).total).not.toBe(0)
    expect(idsOf((await list('rule=null')).traces)).not.toContain(id)
    expect((await get<ExecutionAnswer>(`/executions/${execution}`)).body.context['trace_context']).toEqual({
      id_: id,
      trace_tag: 'order-17',
    })
  })

  it('07.4 a rule that does not match is not in the trace', async () => {
    const { instance, trace: id } = await send({ kind: 'gossip' })
    await waitFor('the rules to have looked at it', async () => {
      return (await get<{ status: string }>(`/triggerinstances/${instance}`)).body.status === 'processed'
    })
    const { body } = await get<TraceAnswer>(`/traces/${id}`)
    expect(body).toMatchObject({ rules: [], action_executions: [], trigger_instances: [{ object_id: instance }] })
    expect(body.trace_tag).toMatch(/^webhook-traced-[0-9a-f]{32}$/)
    expect(idsOf((await list('execution=null')).traces)).toContain(id)
  })

  it('07.1 the same rule stands in a trace once for each time that it matched', async () => {
    const sent: string[] = []
    for (const n of [1, 2, 3]) {
      const { instance, trace } = await send({ kind: 'order', id: n }, { 'Svc-Trace-Tag': 'batch' })
      await traceWith(trace, n)
      sent.push(instance)
    }
    const { traces, total } = await list(`rule=${rule.id}&trace_tag=batch`)
    expect(total).toBe(1)
    expect(traces[0]?.rules.map(({ object_id, caused_by }) => [object_id, caused_by.id])).toEqual(
      sent.map((id) => [rule.id, id]),
    )
    expect(traces[0]?.action_executions.map(({ caused_by }) => caused_by.id)).toEqual(
      sent.map((id) => `${rule.id}:${id}`),
    )
  })

  it('07.4 a trigger instance that is emitted again starts a new trace', async () => {
    const { instance, trace } = await send({ kind: 'order', id: 5 }, { 'Svc-Trace-Tag': 'once more' })
    const original = await traceWith(trace, 1)
    const answer = await server.call<{ payload: unknown }>('POST', `/v1/triggerinstances/${instance}/re_emit`)
    expect(answer.status).toBe(200)
    const found = await waitFor('the other trace', async () => {
      const { traces } = await list(`rule=${rule.id}&limit=1`)
      return traces[0]?.id !== trace && traces[0]
    })
    expect(found.trigger_instances[0]?.object_id).not.toBe(instance)
    expect(found.trace_tag).toBe(`trigger_instance-${found.trigger_instances[0]?.object_id}`)
    expect((await get<TraceAnswer>(`/traces/${trace}`)).body).toEqual(original)
  })

  it('03.2 the execution that it started says which rule, trigger and trigger instance that was', async () => {
    const { instance, trace: id } = await send({ kind: 'order', id: 6 })
    const execution = (await traceWith(id, 1)).action_executions[0]?.object_id ?? ''
    const { body } = await get<Record<string, Record<string, unknown>>>(`/executions/${execution}`)
    expect(body['rule']).toMatchObject({ id: rule.id, ref: rule.ref, name: 'on_traced', pack: 'default' })
    expect(body['trigger']).toMatchObject({
      type: 'core.svc.webhook',
      pack: 'core',
      ref: expect.stringMatching(/^core\./),
    })
    expect(body['trigger_type']).toMatchObject({ ref: 'core.svc.webhook', name: 'svc.webhook' })
    const { body: occurred } = await get<Record<string, unknown>>(`/triggerinstances/${instance}`)
    const { trigger, occurrence_time } = occurred
    expect(body['trigger_instance']).toEqual({ id: instance, trigger, occurrence_time })
    expect((await get(`/executions/${execution}/attribute/trigger_instance`)).body).toEqual(body['trigger_instance'])

    const seek = async (query: string): Promise<string[]> => {
      const answer = await get<ExecutionAnswer[]>(`/executions?${query}&limit=-1`)
      expect(Number(answer.headers.get('x-total-count'))).toBe(answer.body.length)
      return idsOf(answer.body)
    }
    const triggerName = String(body['trigger']?.['name'])
    const bySameRule = await seek('rule=on_traced')
    expect(bySameRule).toContain(execution)
    expect(await seek(`trigger=${triggerName}`)).toEqual(bySameRule)
    expect(await seek('trigger_type=svc.webhook')).toEqual(bySameRule)
    expect(await seek(`trigger_instance=${instance}`)).toEqual([execution])
    expect(
      await seek(`rule=on_traced&trigger=${triggerName}&trigger_type=svc.webhook&trigger_instance=${instance}`),
    ).toEqual([execution])
    expect(await seek(`filter=rule.name:on_traced%20trigger_instance.id:${instance}`)).toEqual([execution])
    expect(await seek('rule=null')).not.toContain(execution)
    expect(await seek(`trigger_instance=${unknownId}`)).toEqual([])
    const { body: views } = await get<Record<string, unknown[]>>(
      '/executions/views/filters?types=rule,trigger,trigger_type',
    )
    expect(views).toEqual({
      rule: [null, 'on_traced'],
      trigger: [null, triggerName],
      trigger_type: [null, 'svc.webhook'],
    })
  })

  it('07.4 a re-run of it joins the trace, without a cause', async () => {
    const { trace: id } = await send({ kind: 'order', id: 7 })
    const execution = (await traceWith(id, 1)).action_executions[0]?.object_id ?? ''
    const { body } = await server.call<ExecutionAnswer>('POST', `/v1/executions/${execution}/re_run`, {})
    expect((await traceWith(id, 2)).action_executions[1]).toMatchObject({ object_id: body.id, caused_by: {} })
  })
})

describe('07.5 access control', () => {
  const folder = makeFolder()
  let place: TestApp
  let administrator: Record<string, string>
  const traces: string[] = []

  const write = (path: string, text: string): void => {
    mkdirSync(join(folder.path, 'rbac', path, '..'), { recursive: true })
    writeFileSync(join(folder.path, 'rbac', path), text)
  }
  const lists = '  - permission_types: [trace_list]\n'
  const grant = (type: string, uid: string): string => `  - permission_types: [${type}]\n    resource_uid: '${uid}'\n`

  async function keyOf(user: string, more: object = {}): Promise<Record<string, string>> {
    const { status, body, text } = await place.call<{ key: string }>(
      'POST',
      '/v1/apikeys',
      { user, ...more },
      administrator,
    )
    expect([text, status]).toEqual([expect.any(String), 201])
    return { 'Svc-Api-Key': body.key }
  }

  const seen = async (query: string, headers: Record<string, string>): Promise<[string[], number]> => {
    const answer = await place.call<TraceAnswer[]>('GET', `/v1/traces?${query}`, undefined, headers)
    expect(answer.status).toBe(200)
    return [idsOf(answer.body), Number(answer.headers.get('x-total-count'))]
  }
  const view = async (id: string | undefined, headers: Record<string, string>): Promise<Answer<ErrorAnswer>> =>
    place.call<ErrorAnswer>('GET', `/v1/traces/${id}`, undefined, headers)

  beforeAll(async () => {
    place = await createTestApp({
      basePath: folder.path,
      settings: { 'auth.enable': 'True', 'rbac.enable': 'True', 'rbac.backend': 'default' },
    })
    administrator = await signIn(place, 'admin', firstPassword(folder.path))
    for (const tag of ['one', 'two', 'three']) {
      const context = { trace_context: { trace_tag: tag } }
      const { body } = await create(place, { ...noop, context }, administrator)
      const { body: found } = await place.call<TraceAnswer[]>(
        'GET',
        `/v1/traces?execution=${body.id}`,
        undefined,
        administrator,
      )
      traces.push(found[0]?.id ?? '')
    }
    const roles = {
      lister: lists,
      one: lists + grant('trace_view', `trace:${traces[0]}`),
      both:
        lists +
        grant('trace_all', `trace:${traces[0]}`) +
        grant('trace_view', `trace:${traces[2]}`) +
        grant('trace_view', `trace:${unknownId}`) +
        grant('trace_view', 'trace:none'),
      viewer: grant('trace_view', `trace:${traces[0]}`),
    }
    for (const [name, grants] of Object.entries(roles)) {
      write(`roles/${name}.yaml`, `name: ${name}\npermission_grants:\n${grants}`)
      write(`assignments/${name}.yaml`, `username: ${name}\nroles: [${name}]\n`)
    }
    write('assignments/watcher.yaml', 'username: watcher\nroles: [observer]\n')
    write('assignments/admin.yaml', 'username: admin\nroles: [system_admin]\n')
    const { status, text } = await place.call('POST', '/v1/rbac/definitions/apply', {}, administrator)
    if (status !== 200) throw new Error(text)
  })
  afterAll(async () => {
    await place.stop()
    folder.remove()
  })

  it('07.5 who may view all sees all', async () => {
    const all = traces.toReversed()
    expect(await seen('', administrator)).toEqual([all, 3])
    expect(await seen('', await keyOf('watcher'))).toEqual([all, 3])
    expect(
      await seen('', await keyOf('admin', { scopes: [{ permission_types: ['trace_list', 'trace_view'] }] })),
    ).toEqual([all, 3])
  })

  it('07.5 a list holds only what may be viewed, whatever is asked for', async () => {
    expect(await seen('', await keyOf('lister'))).toEqual([[], 0])
    expect(await seen(`id=${traces[0]}`, await keyOf('lister'))).toEqual([[], 0])
    const one = await keyOf('one')
    expect(await seen('', one)).toEqual([[traces[0]], 1])
    expect(await seen('trace_tag=two', one)).toEqual([[], 0])
    expect(await seen(`id=${traces.join()}`, one)).toEqual([[traces[0]], 1])
    expect(await seen('rule=null', one)).toEqual([[traces[0]], 1])
    const both = await keyOf('both')
    expect(await seen('', both)).toEqual([[traces[2], traces[0]], 2])
    expect(await seen('sort_asc=True&limit=1', both)).toEqual([[traces[0]], 2])
    expect(await seen('limit=1&offset=1', both)).toEqual([[traces[0]], 2])
    expect(await seen('trace_tag=three', both)).toEqual([[traces[2]], 1])
    const scopes = [
      { permission_types: ['trace_list'] },
      { permission_types: ['trace_view'], resource_uid: `trace:${traces[1]}` },
    ]
    expect(await seen('', await keyOf('admin', { scopes }))).toEqual([[traces[1]], 1])
    expect(await seen('', await keyOf('one', { scopes }))).toEqual([[], 0])
  })

  it('07.5 one trace needs trace_view on it, a list trace_list', async () => {
    const one = await keyOf('one')
    expect((await view(traces[0], one)).status).toBe(200)
    const refused = await view(traces[1], one)
    expect([refused.status, refused.body.faultstring]).toEqual([
      403,
      `User "one" doesn't have required permission "trace_view" on resource "trace:${traces[1]}"`,
    ])
    expect((await view(unknownId, one)).status).toBe(404)
    const viewer = await keyOf('viewer')
    expect((await view(traces[0], viewer)).status).toBe(200)
    expect((await place.call('GET', '/v1/traces', undefined, viewer)).status).toBe(403)
    expect((await place.call('GET', '/v1/traces')).status).toBe(401)
  })
})

fullOnly(describe)('07.5 very long traces', () => {
  /** Of each of two kinds. */
  const COUNT = 50_000
  const folder = makeFolder()
  afterAll(() => folder.remove())

  it('07.5 one of 100,000 components is served whole, alone and in a list', async () => {
    await withApp({ basePath: folder.path }, async (place) => {
      await run(place, { cmd: 'true' }, { context: { trace_context: { trace_tag: 'long' } } })
    })
    const database = new Sqlite(join(folder.path, 'svc.db'))
    const { id } = database.prepare(`select id from traces where trace_tag = 'long'`).get() as { id: string } // it has been made
    const insert = database.prepare(
      `insert into trace_components (trace_id, kind, object_id, ref, updated_at, caused_by_type, caused_by_id)
        values (?, ?, ?, 'core.x', '2030-01-01T00:00:00.000000Z', ?, ?)`,
    )
    const rule = newId()
    database.transaction(() => {
      for (let n = 1; n < COUNT; n += 1) insert.run(id, 'execution', `e${n}`, 'rule', `${rule}:i${n}`)
      for (let n = 0; n < COUNT; n += 1) insert.run(id, 'rule', rule, 'trigger_instance', `i${n}`)
    })()
    database.close()

    await withApp({ basePath: folder.path }, async (place) => {
      const one = await place.call<TraceAnswer>('GET', `/v1/traces/${id}`)
      expect(one.body.action_executions).toHaveLength(COUNT)
      expect(one.body.action_executions.at(-1)).toEqual({
        object_id: `e${COUNT - 1}`,
        ref: 'core.x',
        updated_at: '2030-01-01T00:00:00.000000Z',
        caused_by: { type: 'rule', id: `${rule}:i${COUNT - 1}` },
      })
      const causes = one.body.rules.map(({ caused_by }) => caused_by.id)
      expect(causes.join()).toBe(Array.from({ length: COUNT }, (_, n) => `i${n}`).join())
      const found = await place.call('GET', `/v1/traces?rule=${rule}`)
      expect(found.text === `[${one.text}]`).toBe(true)
      expect(found.headers.get('x-total-count')).toBe('1')
      const { body } = await place.call<TraceAnswer>('GET', `/v1/traces/${id}?include_attributes=trace_tag`)
      expect(body).toEqual({ id, trace_tag: 'long' })
    })
  })
})
