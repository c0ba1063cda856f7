/** Contract 04: the general event stream and the output stream of one execution. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { basicAuth, firstPassword } from '../helpers/logins.ts'
import { createTestApp } from '../helpers/app.ts'
import { call, run, runToEnd, waitForStatus, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'
import { openEvents, outputOf, type EventClient, type EventFrame } from '../helpers/sse.ts'
import { waitFor } from '../helpers/wait.ts'
import {
  create,
  idPattern,
  impossibleIds,
  send,
  createAppWithExamples,
  startWithExamples,
  timestampPattern,
  unknownId,
  type ErrorAnswer,
} from './support.ts'
import { fullOnly, rounds } from '../helpers/tiers.ts'

const outputEvent = 'svc.execution.output__create'
const eof = 'event: EOF\ndata:\n\n'

interface OutputRecord {
  id: string
  execution_id: string
  action_ref: string
  runner_ref: string
  output_type: string
  data: string
  timestamp: string
}

let server: TestApp
const clients: EventClient[] = []
beforeAll(async () => {
  const settings = { 'stream.heartbeat': '0.2', 'api.allow_origin': 'http://page.example' }
  server = await createAppWithExamples({ settings })
})
afterAll(async () => {
  for (const client of clients) client.close()
  await server.stop()
})

async function open(path: string, headers?: Record<string, string>, on = server): Promise<EventClient> {
  const client = await openEvents(`${on.urls.stream}${path}`, headers)
  clients.push(client)
  return client
}
/** Open, and sure to hear what happens from now on. */
async function follow(query = '', on = server): Promise<EventClient> {
  const client = await open(`/v1/stream${query}`, {}, on)
  await waitFor('the first byte', () => client.raw() !== '')
  return client
}
const streamOf = (id: string, query = '', headers?: Record<string, string>) =>
  open(`/v1/executions/${id}/output${query}`, headers)
const outputRecords = (frames: readonly EventFrame[]): OutputRecord[] =>
  frames.filter(({ event }) => event === outputEvent).map(({ data }) => JSON.parse(data) as OutputRecord)
const executionOf = ({ data }: EventFrame): ExecutionAnswer => JSON.parse(data) as ExecutionAnswer
const isFinalOf =
  (id: string) =>
  (frame: EventFrame): boolean =>
    frame.event === 'svc.execution__update' && executionOf(frame).id === id && 'end_timestamp' in executionOf(frame)
/** A command that goes on until it is let go, and then does the rest. */
function held(rest: string): { cmd: string; letGo: () => void } {
  held.count += 1
  const flag = join(server.basePath, `let-go-${held.count}`)
  return { cmd: `until [ -e ${flag} ]; do sleep 0.02; done; ${rest}`, letGo: () => writeFileSync(flag, '') }
}
held.count = 0
const names = (client: EventClient, id: string): string[] =>
  client.frames.filter(({ data }) => data.includes(id)).map(({ event }) => event)

describe('04.1 common wire rules', () => {
  it.each(['/v1/stream', () => `/v1/executions/${unknownId}/output`])('04.1 headers of %s', async (path) => {
    let url: string
    if (typeof path === 'string') url = path
    else url = `/v1/executions/${(await runToEnd(server, { cmd: 'true' })).id}/output`
    const client = await open(url, { Origin: 'http://page.example', 'X-Request-ID': 'stream-1' })
    expect(client.status).toBe(200)
    expect(client.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=UTF-8',
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
      'x-request-id': 'stream-1',
      'access-control-allow-origin': 'http://page.example',
      'transfer-encoding': 'chunked',
    })
    expect(client.headers).not.toHaveProperty('content-encoding')
    client.close()
  })

  it('04.1 frames: event, data, a blank line; compact JSON on one line, UTF-8; no ids, no retry', async () => {
    const client = await follow()
    const { id } = await run(server, { cmd: 'echo "é 😀"' })
    await client.frame(isFinalOf(id))
    client.close()
    const raw = client.raw().replace(/^\n+/, '')
    expect(raw).not.toMatch(/^(id|retry):/m)
    expect(raw).not.toContain('\r')
    for (const block of raw.split('\n\n').filter((text) => text.trim() !== '')) {
      expect(block.replace(/^\n+/, '')).toMatch(/^event: svc\.[\w.]+\ndata: \{[^\n]*\}$/)
    }
    for (const { data } of client.frames) expect(JSON.stringify(JSON.parse(data))).toBe(data)
    expect(raw).toContain('é 😀')
  })

  it('04.1 first bytes: a single line feed', async () => {
    const client = await follow('?events=svc.nothing')
    expect(client.raw()[0]).toBe('\n')
    client.close()
  })

  it('04.1 keepalive: a line feed after each silence, on both streams', async () => {
    const { id } = await run(server, { cmd: 'sleep 60' })
    for (const client of [await follow('?events=svc.nothing'), await streamOf(id)]) {
      await waitFor('three heartbeats', () => client.raw().length >= 4)
      expect(client.raw()).toMatch(/^\n+$/)
      expect(client.frames).toEqual([])
      client.close()
    }
    await server.call('DELETE', `/v1/executions/${id}`)
    await waitForStatus(server, id)
  })

  it.each([
    ['unknown id', `/v1/executions/${unknownId}/output`, {}, 404, unknownId],
    ...impossibleIds.map((id) => ['impossible id', `/v1/executions/${id}/output`, {}, 404, 'resource'] as const),
    ['Last-Event-ID of no stream', '/v1/executions/last/output', { 'Last-Event-ID': 'abc' }, 400, 'Last-Event-ID'],
    [
      'Last-Event-ID of an execution that is gone, on last',
      '/v1/executions/last/output',
      { 'Last-Event-ID': `${unknownId}/5` },
      404,
      'last',
    ],
    ['unknown path', '/v1/executions/x/y/z', {}, 404, 'could not be found'],
    ['undecodable path', '/v1/executions/%ff/output', {}, 400, '%ff'],
  ] as const)('04.1 errors before streaming are JSON: %s', async (_, path, headers, status, text) => {
    await runToEnd(server, { cmd: 'true' })
    const answer = await send(server.urls.stream, { path, headers })
    expect(answer.status).toBe(status)
    expect(answer.headers['content-type']).toBe('application/json; charset=UTF-8')
    expect((JSON.parse(answer.text) as ErrorAnswer).faultstring).toContain(text)
    expect(answer.headers['x-request-id']).toBeTypeOf('string')
  })

  it('04.1 method: GET only', async () => {
    for (const path of ['/v1/stream', '/v1/executions/last/output']) {
      const answer = await send(server.urls.stream, { method: 'POST', path })
      expect([answer.status, answer.headers['content-type']]).toEqual([405, 'application/json; charset=UTF-8'])
    }
  })
})

fullOnly(describe)('04.1 authentication', () => {
  it('04.1 authentication: by header or query, at connect only; an expired token does not close a stream', async () => {
    const own = await createTestApp({ settings: { 'auth.enable': 'True' } })
    try {
      const password = firstPassword(own.basePath)
      const Authorization = basicAuth('admin', password)
      const tokenFor = async (ttl: number): Promise<string> =>
        (await call<{ token: string }>(`${own.urls.auth}/tokens`, 'POST', { ttl }, { Authorization })).body.token
      const lasting = { 'X-Auth-Token': await tokenFor(600) }
      const parameters = { cmd: 'echo early; while [ ! -e go ]; do sleep 0.02; done; echo late', cwd: own.basePath }
      const created = await create(own, { action: 'core.local', parameters }, lasting)
      const path = `/v1/executions/${created.body.id}/output`
      for (const refused of ['/v1/stream', path]) {
        const answer = await send(own.urls.stream, { path: refused })
        expect([answer.status, answer.headers['content-type']]).toEqual([401, 'application/json; charset=UTF-8'])
      }

      // Time enough to open both streams on a busy machine.
      const short = await tokenFor(5)
      const byQuery = await open(`${path}?x-auth-token=${short}`, {}, own)
      const byHeader = await open('/v1/stream', { 'X-Auth-Token': short }, own)
      expect([byQuery.status, byHeader.status]).toEqual([200, 200])
      await waitFor('the token to expire', async () => {
        const { status } = await own.call('GET', '/v1/user', undefined, { 'X-Auth-Token': short })
        return status === 401
      })
      writeFileSync(join(own.basePath, 'go'), '')
      expect(await byQuery.ended).toBe('end')
      expect(outputOf(byQuery.frames)).toBe('early\nlate\n')
      await byHeader.frame(isFinalOf(created.body.id))
      byHeader.close()
    } finally {
      await own.stop()
    }
  })
})

describe('04.2 general stream', () => {
  it('04.2 default events: execution and live action, created and updated, no output', async () => {
    const client = await follow()
    const { id, liveaction } = await run(server, { cmd: 'echo out' })
    await client.frame(isFinalOf(id))
    client.close()
    const mine = client.frames.filter(({ data }) => data.includes(String(liveaction['id'])))
    expect(new Set(mine.map(({ event }) => event))).toEqual(
      new Set(['svc.execution__create', 'svc.execution__update', 'svc.liveaction__create', 'svc.liveaction__update']),
    )
  })

  it('04.2 execution events: the record as in the API, create and then the updates in order', async () => {
    const client = await follow('?events=svc.execution__*')
    const created = await run(server, { cmd: 'echo out' })
    await client.frame(isFinalOf(created.id))
    client.close()
    const mine = client.frames.filter(({ data }) => executionOf({ event: '', id: undefined, data }).id === created.id)
    expect(mine.map((frame) => [frame.event, executionOf(frame).status])).toEqual([
      ['svc.execution__create', 'requested'],
      ['svc.execution__update', 'scheduled'],
      ['svc.execution__update', 'running'],
      ['svc.execution__update', 'succeeded'],
    ])
    expect(executionOf(mine[0] ?? { event: '', data: '{}', id: undefined })).toEqual(created)
    const last = mine.at(-1)
    const { body } = await server.call('GET', `/v1/executions/${created.id}`)
    expect(JSON.parse(last?.data ?? '{}')).toEqual(body)
  })

  it('04.2 live action events: their record', async () => {
    const client = await follow('?events=svc.liveaction__*')
    const { liveaction } = await run(server, { cmd: 'echo out' }, { callback: { a: 1 }, delay: 10 })
    const of = ({ data }: EventFrame): Record<string, unknown> => JSON.parse(data) as Record<string, unknown>
    await client.frame((frame) => of(frame)['id'] === liveaction['id'] && of(frame)['status'] === 'succeeded')
    client.close()
    const mine = client.frames.filter((frame) => of(frame)['id'] === liveaction['id'])
    expect(mine[0]?.event).toBe('svc.liveaction__create')
    expect(of(mine[0] ?? { event: '', data: '{}', id: undefined })).toEqual({
      ...liveaction,
      status: 'requested',
      result: {},
      context: { user: 'svc', pack: 'core' },
      start_timestamp: expect.stringMatching(timestampPattern),
      delay: 10,
    })
    expect(mine.slice(1).map(({ event }) => event)).toEqual(mine.slice(1).map(() => 'svc.liveaction__update'))
    expect(of(mine.at(-1) ?? { event: '', data: '{}', id: undefined })).toMatchObject({
      status: 'succeeded',
      result: { stdout: 'out' },
      runner_info: { pid: process.pid },
      end_timestamp: expect.stringMatching(timestampPattern) as string,
    })
  })

  it('04.2 output events: only when asked for, all before the final update', async () => {
    const client = await follow(`?events=svc.execution__update,${outputEvent}`)
    const { id } = await run(server, { cmd: 'seq 1 3000; printf rest; echo err >&2' })
    await client.frame(isFinalOf(id))
    client.close()
    const mine = client.frames.filter(({ data }) => data.includes(id))
    const final = mine.findIndex(isFinalOf(id))
    expect(mine.slice(final + 1)).toEqual([])
    const records = outputRecords(mine)
    expect(Object.keys(records[0] ?? {})).toEqual([
      'id',
      'execution_id',
      'action_ref',
      'runner_ref',
      'output_type',
      'data',
      'timestamp',
    ])
    for (const record of records) {
      expect(record).toMatchObject({
        id: expect.stringMatching(idPattern) as string,
        execution_id: id,
        action_ref: 'core.local',
        runner_ref: 'local-shell-cmd',
        timestamp: expect.stringMatching(timestampPattern) as string,
      })
    }
    const text = (type: string): string =>
      records
        .filter((record) => record.output_type === type)
        .map(({ data }) => data)
        .join('')
    expect(text('stdout')).toBe(`${Array.from({ length: 3000 }, (_, i) => `${i + 1}\n`).join('')}rest`)
    expect(text('stderr')).toBe('err\n')
    expect(new Set(records.map((record) => record.id)).size).toBe(records.length)
    for (const frame of mine) expect(frame.id).toBeUndefined()
  })

  it.each([
    ['svc.execution*', ['svc.execution__create', outputEvent, 'svc.execution__update']],
    ['svc.execution__?pdate', ['svc.execution__update']],
    ['svc.execution__[cx]reate', ['svc.execution__create']],
    ['svc.execution__[!c]*', ['svc.execution__update']],
    ['*output*', [outputEvent]],
    ['SVC.EXECUTION__*', []],
    ['svc.execution__create, svc.execution.output__create', ['svc.execution__create', outputEvent]],
    ['svc.execution', []],
  ])('04.2 events=%s', async (events, expected) => {
    const witness = await follow()
    const client = await follow(`?events=${encodeURIComponent(events)}`)
    const { id } = await run(server, { cmd: 'echo out' })
    await witness.frame(isFinalOf(id))
    // The witness came first, and what it was sent was sent to the client before it.
    const [, marker] = [await waitForStatus(server, id), await run(server, { cmd: 'true' })]
    await witness.frame(isFinalOf(marker.id))
    await waitFor('the events', () => new Set(names(client, id)).size >= expected.length)
    expect([...new Set(names(client, id))].toSorted()).toEqual(expected.toSorted())
    client.close()
    witness.close()
  })

  it('04.2 action_refs and execution_ids: only their events; live action events have no execution id', async () => {
    const { cmd, letGo } = held('true')
    const slow = await run(server, { cmd })
    const byAction = await follow('?action_refs=core.noop,core.unheard_of')
    const byId = await follow(`?execution_ids=${slow.id},${unknownId}`)
    letGo()
    const noop = (await create(server, { action: 'core.noop' })).body
    await byAction.frame(isFinalOf(noop.id))
    await byId.frame(isFinalOf(slow.id))
    const refs = byAction.frames.map(({ data }) => {
      const { action } = JSON.parse(data) as { action: string | { ref: string } }
      return typeof action === 'string' ? action : action.ref
    })
    expect(new Set(refs)).toEqual(new Set(['core.noop']))
    expect(byAction.frames.some(({ event }) => event.startsWith('svc.liveaction'))).toBe(true)
    expect(new Set(byId.frames.map(({ event }) => event))).toEqual(new Set(['svc.execution__update']))
    expect(new Set(byId.frames.map((frame) => executionOf(frame).id))).toEqual(new Set([slow.id]))
    byAction.close()
    byId.close()
  })

  it('04.2 end_event and end_execution_id: the event is delivered, then the stream ends without EOF', async () => {
    const { cmd, letGo } = held('echo tail')
    const { id } = await run(server, { cmd })
    const client = await follow(
      `?events=svc.execution__update,${outputEvent}&end_event=svc.execution__update&end_execution_id=${id}`,
    )
    const other = await runToEnd(server, { cmd: 'true' })
    letGo()
    expect(await client.ended).toBe('end')
    const last = client.frames.at(-1)
    expect(last !== undefined && isFinalOf(id)(last)).toBe(true)
    expect(names(client, other.id)).toContain('svc.execution__update')
    expect(client.raw()).not.toContain('EOF')
    expect(outputOf(client.frames.filter(({ data }) => data.includes(id)))).toBe('tail\n')
  })

  it('04.2 end: also when the filters leave the event out; not at one parameter alone', async () => {
    const { cmd, letGo } = held('true')
    const { id } = await run(server, { cmd })
    const filtered = await follow(`?events=svc.nothing&end_event=svc.execution__update&end_execution_id=${id}`)
    const eventOnly = await follow('?end_event=svc.execution__update')
    const idOnly = await follow(`?end_execution_id=${id}`)
    letGo()
    expect(await filtered.ended).toBe('end')
    expect(filtered.frames).toEqual([])
    const { id: later } = await run(server, { cmd: 'true' })
    for (const client of [eventOnly, idOnly]) {
      await client.frame(isFinalOf(later))
      client.close()
    }
  })

  it('04.2 end: canceling does not end it, canceled does', async () => {
    const { id } = await run(server, { cmd: 'sleep 60' })
    await waitForStatus(server, id, ['running'])
    const client = await follow(`?end_event=svc.execution__update&end_execution_id=${id}`)
    await server.call('DELETE', `/v1/executions/${id}`)
    expect(await client.ended).toBe('end')
    const statuses = client.frames
      .filter(({ event }) => event === 'svc.execution__update')
      .map((f) => executionOf(f).status)
    expect(statuses).toEqual(['running', 'canceling', 'canceled'])
  })

  it('04.2 end: an execution that has ended before the stream begins is told again, and ends it', async () => {
    const query = `events=svc.execution__update,${outputEvent}&end_event=svc.execution__update`
    const { id } = await runToEnd(server, { cmd: 'echo one; echo two >&2; exit 3' })
    const client = await follow(`?${query}&end_execution_id=${id}`)
    expect(await client.ended).toBe('end')
    expect(client.frames.map(({ event }) => event)).toEqual([
      'svc.execution__update',
      outputEvent,
      outputEvent,
      'svc.execution__update',
    ])
    expect(outputOf(client.frames).split('\n').toSorted()).toEqual(['', 'one', 'two'])
    const [first, last] = [client.frames[0], client.frames.at(-1)].map((frame) => frame && executionOf(frame))
    expect([first?.status, first?.log.at(-1)?.status, last?.status]).toEqual(['running', 'running', 'failed'])
    expect([first?.result, first?.end_timestamp]).toEqual([undefined, undefined])
    expect(last?.result).toMatchObject({ return_code: 3, stdout: 'one' })
  })

  it('04.2 end: the loop of the clients, who post first and open the stream then: none waits for ever', async () => {
    const query = `events=svc.execution__update,${outputEvent}&end_event=svc.execution__update`
    for (let round = 0; round < rounds({ daily: 25, full: 200 }); round++) {
      const { id } = await run(server, { cmd: `echo round ${round}` })
      const client = await follow(`?${query}&end_execution_id=${id}`)
      expect(await client.ended).toBe('end')
      const own = client.frames.filter(({ data }) => data.includes(id))
      expect(outputOf(own)).toBe(`round ${round}\n`)
      const statuses = own.filter(({ event }) => event !== outputEvent).map((frame) => executionOf(frame).status)
      // Each once; those from before the run began come only to a client that was there.
      expect(statuses.slice(-2)).toEqual(['running', 'succeeded'])
      expect(new Set(statuses).size).toBe(statuses.length)
    }
  })

  it('04.2 end: what others do comes as without the parameter, from the connection on', async () => {
    const { id: before } = await runToEnd(server, { cmd: 'echo before' })
    const { cmd, letGo } = held('echo mine')
    const { id } = await run(server, { cmd })
    const client = await follow(`?events=*&end_event=svc.execution__update&end_execution_id=${id}`)
    const { id: other } = await runToEnd(server, { cmd: 'echo other' })
    letGo()
    expect(await client.ended).toBe('end')
    expect(names(client, before)).toEqual([])
    expect(names(client, other).filter((name) => name === 'svc.execution__update')).toHaveLength(3)
  })

  it('04.2 exclude_attributes, include_attributes, max_parameters_size: as in lists, of executions alone', async () => {
    const whole = await follow('?events=svc.execution__*')
    const without = await follow('?events=svc.execution__*&exclude_attributes=result')
    const few = await follow(
      `?events=svc.execution__*,${outputEvent}&include_attributes=status,action.ref,parameters&max_parameters_size=40`,
    )
    const short = await runToEnd(server, { cmd: 'echo out' })
    const long = await runToEnd(server, { cmd: `echo ${'x'.repeat(40)}` })
    for (const client of [whole, without, few]) {
      await client.frame(({ data }) => data.includes(long.id) && data.includes('succeeded'))
      client.close()
    }
    const of = (client: EventClient, id: string): Record<string, unknown>[] =>
      client.frames
        .filter(({ event }) => event !== outputEvent)
        .map((frame): Record<string, unknown> => ({ ...executionOf(frame) }))
        .filter((record) => record['id'] === id)
    for (const { id } of [short, long]) {
      const records = of(whole, id)
      expect(records.map(({ status }) => status)).toEqual(['requested', 'scheduled', 'running', 'succeeded'])
      expect(records.at(-1)).toHaveProperty('result')
      const withoutResult = records.map((record) => Object.entries(record).filter(([name]) => name !== 'result'))
      expect(of(without, id)).toEqual(withoutResult.map((entries) => Object.fromEntries(entries)))
    }
    const action = { ref: 'core.local' }
    const { parameters } = short
    expect(of(few, short.id)).toEqual(of(whole, short.id).map(({ id, status }) => ({ id, status, action, parameters })))
    const size = JSON.stringify(long.parameters).length
    expect(of(few, long.id)).toEqual(
      of(whole, long.id).map(({ id, status }) => ({ id, status, action, parameters_size: size })),
    )
    expect(outputOf(few.frames.filter(({ data }) => data.includes(short.id)))).toBe('out\n')
  })

  it.each([
    ['exclude_attributes=action', 'Invalid or unsupported exclude attribute'],
    ['include_attributes=unheard_of', 'Invalid or unsupported include attribute'],
    ['include_attributes=id&exclude_attributes=result', 'mutually exclusive'],
    ['max_parameters_size=-1', 'max_parameters_size'],
  ])('04.2 %s → 400', async (query, text) => {
    const answer = await send(server.urls.stream, { path: `/v1/stream?${query}` })
    expect(answer.status).toBe(400)
    expect((JSON.parse(answer.text) as ErrorAnswer).faultstring).toContain(text)
  })

  it('04.2 the end comes also where the status is left out', async () => {
    const { cmd, letGo } = held('true')
    const { id } = await run(server, { cmd })
    const query = 'exclude_attributes=status&end_event=svc.execution__update'
    const client = await follow(`?${query}&end_execution_id=${id}`)
    letGo()
    expect(await client.ended).toBe('end')
    expect(client.raw()).not.toContain('"status":"succeeded","start')
  })

  it('04.2 start point: nothing from before the connection', async () => {
    const before = await runToEnd(server, { cmd: 'true' })
    const client = await follow()
    const { id } = await run(server, { cmd: 'true' })
    await client.frame(isFinalOf(id))
    expect(names(client, before.id)).toEqual([])
    client.close()
  })

  it('04.2 visibility: all users, children included', async () => {
    const client = await follow()
    const parent = await run(server, { cmd: 'true' }, { user: 'ada' })
    const child = await run(server, { cmd: 'true' }, { context: { parent: { execution_id: parent.id } } })
    await client.frame(isFinalOf(child.id))
    expect(names(client, parent.id)).toContain('svc.execution__create')
    client.close()
  })

  it('04.1 masking: always, show_secrets does nothing here', async () => {
    const client = await follow('?show_secrets=true&events=*')
    const answer = await create(server, {
      action: 'examples.secretive',
      parameters: { token: 'stream-secret', account: { password: 'stream-secret' } },
    })
    await client.frame(isFinalOf(answer.body.id))
    const { id } = await run(server, { cmd: 'echo done', sudo_password: 'stream-secret' })
    await client.frame(isFinalOf(id))
    client.close()
    expect(client.raw()).toContain('"token":"********"')
    expect(client.raw()).toContain('"sudo_password":"********"')
    expect(client.raw()).not.toContain('stream-secret')
  })
})

describe('04.3 output of one execution', () => {
  it('04.3 finished: replay in order, then EOF, byte for byte', async () => {
    const { id } = await runToEnd(server, { cmd: 'echo one; echo two' })
    const client = await streamOf(id)
    expect(await client.ended).toBe('end')
    const raw = client.raw()
    expect(raw.endsWith(eof)).toBe(true)
    const records = outputRecords(client.frames)
    const frames = records.map(
      (record, i) => `id: ${id}/${i + 1}\nevent: ${outputEvent}\ndata: ${JSON.stringify(record)}\n\n`,
    )
    expect(raw).toBe(`${frames.join('')}${eof}`)
    expect(outputOf(client.frames)).toBe('one\ntwo\n')
    expect(records[0]).toMatchObject({ execution_id: id, action_ref: 'core.local', runner_ref: 'local-shell-cmd' })
  })

  it('04.3 finished without output: EOF alone, exactly these bytes', async () => {
    const client = await streamOf((await runToEnd(server, { cmd: 'true' })).id)
    await client.ended
    expect(client.raw()).toBe('event: EOF\ndata:\n\n')
  })

  it('04.3 live: what is there, then each record as it comes, then EOF', async () => {
    const { id } = await run(server, {
      cmd: 'echo early; while [ ! -e go ]; do sleep 0.02; done; echo late',
      cwd: server.basePath,
    })
    await waitFor('output', async () => (await server.call('GET', `/v1/executions/${id}/output`)).text !== '')
    const client = await streamOf(id)
    await waitFor('the replay', () => outputOf(client.frames) === 'early\n')
    expect(client.raw()).not.toContain('EOF')
    await runToEnd(server, { cmd: 'touch go', cwd: server.basePath })
    expect(await client.ended).toBe('end')
    expect(outputOf(client.frames)).toBe('early\nlate\n')
    expect(client.frames.at(-1)).toEqual({ event: 'EOF', data: '', id: undefined })
  })

  it('04.3 before it starts: waits for it', async () => {
    const { id } = await run(server, { cmd: 'echo later' }, { delay: 300 })
    const client = await streamOf(id)
    expect(await client.ended).toBe('end')
    expect(outputOf(client.frames)).toBe('later\n')
  })

  it.each([
    ['stdout', 'one\nthree\n'],
    ['stderr', 'two\n'],
    ['other', ''],
    ['unheard_of', ''],
  ])('04.3 output_type=%s, live and replayed', async (type, expected) => {
    const { id } = await run(server, { cmd: 'echo one; echo two >&2; echo three' }, { delay: 100 })
    const live = await streamOf(id, `?output_type=${type}`)
    await live.ended
    const replayed = await streamOf(id, `?output_type=${type}`)
    await replayed.ended
    for (const client of [live, replayed]) {
      expect(outputOf(client.frames)).toBe(expected)
      expect(client.raw().endsWith(eof)).toBe(true)
    }
    expect(replayed.frames).toEqual(live.frames)
  })

  it.each(['', '?output_type=all', '?output_type='])('04.3 output_type: everything with %j', async (query) => {
    const { id } = await runToEnd(server, { cmd: 'echo one; echo two >&2' })
    const client = await streamOf(id, query)
    await client.ended
    expect(outputOf(client.frames).split('\n').toSorted()).toEqual(['', 'one', 'two'])
  })

  it('04.3 last: the newest execution', async () => {
    await runToEnd(server, { cmd: 'echo newest' })
    const client = await open('/stream/v1/executions/last/output')
    await client.ended
    expect(outputOf(client.frames)).toBe('newest\n')
  })

  it.each([
    ['timeout', { cmd: 'echo begun; sleep 60', timeout: 3 }],
    ['failed', { cmd: 'echo begun; exit 1' }],
  ])('04.3 end: %s', async (status, parameters) => {
    const { id } = await run(server, parameters)
    const client = await streamOf(id)
    expect(await client.ended).toBe('end')
    expect(client.raw().endsWith(eof)).toBe(true)
    expect(outputOf(client.frames)).toBe('begun\n')
    expect((await waitForStatus(server, id)).status).toBe(status)
  })

  fullOnly(it)('04.3 end: canceling does not end it, canceled does', async () => {
    const { id } = await run(server, {
      cmd: 'trap "sleep 0.3; echo parting; exit" TERM; echo begun; while :; do sleep 0.05; done',
    })
    const client = await streamOf(id, '?output_type=stdout')
    await waitFor('output', () => outputOf(client.frames) !== '')
    expect((await server.call<ExecutionAnswer>('DELETE', `/v1/executions/${id}`)).body.status).toBe('canceling')
    expect(await client.ended).toBe('end')
    expect(outputOf(client.frames)).toBe('begun\nparting\n')
    expect((await waitForStatus(server, id)).status).toBe('canceled')
  })

  it('04.3 children: only the execution’s own records', async () => {
    const parent = await run(server, { cmd: 'echo own' }, { delay: 300 })
    await runToEnd(server, { cmd: 'echo child' }, { context: { parent: { execution_id: parent.id } } })
    const client = await streamOf(parent.id)
    await client.ended
    expect(outputOf(client.frames)).toBe('own\n')
  })

  fullOnly(it)('04.3 reconnection without Last-Event-ID: everything again, and EOF again', async () => {
    const { id } = await runToEnd(server, { cmd: 'seq 1 100' })
    const [first, second] = [await streamOf(id), await streamOf(id)]
    await Promise.all([first.ended, second.ended])
    expect(second.raw()).toBe(first.raw())
  })
})

describe('04.3 resuming', () => {
  const lines = (count: number): string => Array.from({ length: count }, (_, i) => `${i + 1}\n`).join('')

  it('04.3 Last-Event-ID: goes on after every single record, also on last, also for one type', async () => {
    // Each line is a record of its own: the next one is written when it has been received.
    const flag = join(server.basePath, 'seen-')
    const wait = (line: string): string => `until [ -e ${flag}${line} ]; do sleep 0.02; done`
    const { id } = await run(server, {
      cmd: `for i in 1 2; do echo out$i; ${wait('out$i')}; echo err$i >&2; ${wait('err$i')}; done`,
    })
    const live = await streamOf(id)
    for (const line of ['out1', 'err1', 'out2', 'err2']) {
      await waitFor(line, () => outputOf(live.frames).includes(line))
      writeFileSync(flag + line, '')
    }
    await live.ended
    const whole = await streamOf(id)
    await whole.ended
    const records = whole.frames.filter(({ event }) => event === outputEvent)
    expect(records).toHaveLength(4)
    for (const [i, { id: position = '' }] of records.entries()) {
      for (const target of [id, 'last']) {
        const rest = await streamOf(target, '', { 'Last-Event-ID': position })
        expect(await rest.ended).toBe('end')
        expect(rest.frames).toEqual(whole.frames.slice(i + 1))
      }
      const some = await streamOf(id, '?output_type=stderr', { 'Last-Event-ID': position })
      await some.ended
      expect(outputRecords(some.frames)).toEqual(
        outputRecords(records.slice(i + 1)).filter(({ output_type: type }) => type === 'stderr'),
      )
    }
  })

  it('04.3 Last-Event-ID: an empty one is none; one of another execution starts at the beginning', async () => {
    const other = await runToEnd(server, { cmd: 'echo other' })
    const { id } = await runToEnd(server, { cmd: 'echo mine' })
    for (const position of ['', `${other.id}/1`]) {
      const client = await streamOf(id, '', { 'Last-Event-ID': position })
      await client.ended
      expect(outputOf(client.frames)).toBe('mine\n')
    }
  })

  fullOnly(it)(
    '04.3 Last-Event-ID: a connection cut again and again while it runs loses and repeats nothing',
    async () => {
      // After every thirtieth line it goes on when that has been received: it runs for as long as there are cuts.
      const flag = join(server.basePath, 'received-')
      const { id } = await run(server, {
        cmd: `for i in $(seq 1 300); do echo $i; [ $((i % 30)) != 0 ] || until [ -e ${flag}$i ]; do sleep 0.02; done; done`,
      })
      const received: EventFrame[] = []
      let lineCount = 0
      let cuts = 0
      for (;;) {
        const position = received.at(-1)?.id
        const client = await streamOf(id, '', position === undefined ? {} : { 'Last-Event-ID': position })
        await waitFor('a frame', () => client.frames.length > 0)
        // However many came, the first is all that this client has read before it is cut.
        const [frame] = client.frames
        client.close()
        if (frame === undefined || frame.event === 'EOF') break
        received.push(frame)
        cuts += 1
        const before = lineCount
        lineCount = outputOf(received).split('\n').length - 1
        for (let line = before + 1; line <= lineCount; line += 1)
          if (line % 30 === 0) writeFileSync(`${flag}${line}`, '')
      }
      expect(cuts).toBeGreaterThanOrEqual(10)
      expect(outputOf(received)).toBe(lines(300))
      expect(new Set(received.map((frame) => frame.id)).size).toBe(received.length)
    },
  )

  fullOnly(it)(
    '04.5 shutdown: streams end without EOF; after a restart Last-Event-ID goes on where it was',
    async () => {
      const own = await startWithExamples({ settings: { 'actionrunner.shutdown_grace_seconds': '0' } })
      try {
        const { id } = await run(own, { cmd: 'seq 1 500; sleep 60' })
        const output = await open(`/v1/executions/${id}/output`, {}, own)
        const general = await follow('', own)
        await waitFor('all lines', () => outputOf(output.frames) === lines(500))
        process.kill(own.pid, 'SIGTERM')
        await own.exited
        await Promise.all([output.ended, general.ended])
        expect(output.raw()).not.toContain('EOF')
        expect(general.raw()).not.toContain('EOF')
        const next = await createTestApp({ basePath: own.basePath })
        try {
          const position = output.frames.at(-1)?.id ?? ''
          const rest = await open(`/v1/executions/${id}/output`, { 'Last-Event-ID': position }, next)
          expect(await rest.ended).toBe('end')
          expect(rest.raw()).toBe(eof)
          const middle = output.frames[0]?.id ?? ''
          const more = await open(`/v1/executions/${id}/output`, { 'Last-Event-ID': middle }, next)
          await more.ended
          expect(outputOf([...output.frames.slice(0, 1), ...more.frames])).toBe(lines(500))
        } finally {
          await next.stop()
        }
      } finally {
        await own.stop()
      }
    },
  )
})

describe('04.3 under load', () => {
  it('04.3 no gap and no duplicate, whenever a client comes; all output before the final update', async () => {
    const total = 20_000
    const general = await follow(`?events=svc.execution__update,${outputEvent}`)
    const expected = Array.from({ length: total }, (_, i) => `${i + 1}\n`).join('')
    const executions = await Promise.all(
      Array.from({ length: rounds({ daily: 2, full: 4 }) }, () =>
        run(server, { cmd: `for i in 1 2 3 4 5; do seq $(((i-1)*4000+1)) $((i*4000)); sleep 0.05; done` }),
      ),
    )
    const followers: { id: string; client: EventClient }[] = []
    for (let round = 0; round < 5; round++) {
      for (const { id } of executions) followers.push({ id, client: await streamOf(id) })
      await delay(round * 10)
    }
    for (const { id } of executions) await general.frame(isFinalOf(id), 60_000)
    await Promise.all(followers.map(({ client }) => client.ended))
    for (const { client } of followers) {
      expect(outputOf(client.frames) === expected).toBe(true)
      expect(client.raw().endsWith(eof)).toBe(true)
      expect(
        client.frames.filter(({ event }) => event === outputEvent).map(({ id }) => Number(id?.split('/')[1])),
      ).toEqual(client.frames.slice(0, -1).map((_, i) => i + 1))
    }
    for (const { id } of executions) {
      const mine = general.frames.filter(({ data }) => data.includes(id))
      expect(mine.findIndex(isFinalOf(id))).toBe(mine.length - 1)
      expect(outputOf(mine) === expected).toBe(true)
    }
    general.close()
  })

  fullOnly(it)(
    '04.1 a client that does not read is disconnected from the general stream, and slows nobody',
    async () => {
      const own = await createTestApp({ settings: { 'stream.client_buffer_bytes': '65536' } })
      try {
        const stuck = await follow(`?events=${outputEvent}`, own)
        const witness = await follow('?events=svc.execution__update', own)
        stuck.pause()
        // Far more than the buffers of the operating system take on both sides of a connection.
        const { id } = await run(own, { cmd: 'head -c 40000000 /dev/zero | tr "\\0" x | fold -w 1000' })
        await witness.frame(isFinalOf(id), 100_000)
        stuck.resume()
        expect(await stuck.ended).toBe('cut')
        expect(outputOf(stuck.frames).length).toBeLessThan(40_040_000)
        expect((await own.call<ExecutionAnswer>('GET', `/v1/executions/${id}`)).body.status).toBe('succeeded')
      } finally {
        await own.stop()
      }
    },
  )

  fullOnly(it)(
    '04.3 a client of an output stream that does not read for a while gets everything all the same',
    async () => {
      const { id } = await run(server, { cmd: 'head -c 20000000 /dev/zero | tr "\\0" x | fold -w 999' })
      const client = await streamOf(id)
      client.pause()
      await waitForStatus(server, id)
      client.resume()
      expect(await client.ended).toBe('end')
      const text = outputOf(client.frames)
      // fold puts a line feed between its lines.
      expect([text.length, text.replaceAll('\n', '').length]).toEqual([
        20_000_000 + Math.floor(20_000_000 / 999),
        20_000_000,
      ])
      expect(client.raw().endsWith(eof)).toBe(true)
    },
  )

  it('04.5 many streams at once', async () => {
    const { id } = await run(server, { cmd: 'echo shared' }, { delay: 1000 })
    const many = await Promise.all(Array.from({ length: rounds({ daily: 50, full: 200 }) }, () => streamOf(id)))
    await Promise.all(many.map(({ ended }) => ended))
    expect(many.filter((client) => outputOf(client.frames) !== 'shared\n' || !client.raw().endsWith(eof))).toEqual([])
  })
})
