/** Contract 02, 2.11. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { waitForStatus, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import {
  auditRecords,
  create,
  idPattern,
  rowsOf,
  createAppWithExamples,
  unknownId,
  type ErrorAnswer,
  type TraceAnswer,
} from './support.ts'
import { fullOnly, rounds, variants } from '../helpers/tiers.ts'

interface Policy {
  id: string
  ref: string
  name: string
  enabled: boolean
  resource_ref: string
  policy_type: string
  parameters: Record<string, unknown>
}

/** More than the commands that this file holds up at once. */
const SLOTS = 24
const settings = { 'actionrunner.actions_pool_size': String(SLOTS) }

let server: TestApp
let scratch: TemporaryFolder
beforeAll(async () => {
  scratch = makeFolder()
  server = await createAppWithExamples({ settings })
})
afterAll(async () => {
  await server.stop()
  scratch.remove()
})

const post = <T = Policy>(body: unknown, on = server) => on.call<T>('POST', '/v1/policies', body)
const get = <T = Policy[]>(path: string) => server.call<T>('GET', `/v1${path}`)

async function make(
  action: string,
  type: string,
  parameters: Record<string, unknown>,
  more: Record<string, unknown> = {},
): Promise<Policy> {
  const body = {
    name: `${action}_${type}`,
    resource_ref: `examples.${action}`,
    policy_type: `action.${type}`,
    parameters,
  }
  const answer = await post({ ...body, ...more })
  expect([answer.text, answer.status]).toEqual([answer.text, 201])
  return answer.body
}

async function request(action: string, parameters: object, more: object = {}, on = server): Promise<ExecutionAnswer> {
  const answer = await create(on, { action: `examples.${action}`, parameters, ...more })
  expect([answer.text, answer.status]).toEqual([answer.text, 201])
  return answer.body
}

const statuses = ({ log }: ExecutionAnswer): string => log.map(({ status }) => status).join(' ')
/** When an execution got a status, in milliseconds since the epoch. */
const timeOf = ({ log }: ExecutionAnswer, wanted: string): number =>
  Date.parse(log.find(({ status }) => status === wanted)?.timestamp ?? '')
const read = async (id: string, on = server) => (await on.call<ExecutionAnswer>('GET', `/v1/executions/${id}`)).body
const countOf = (action: string, status: string, on = server): number =>
  rowsOf<{ n: number }>(
    on,
    'select count(*) as n from executions where action_ref = ? and status = ?',
    `examples.${action}`,
    status,
  )[0]?.n ?? -1

/** A command that runs until `go` is called, and a look at who runs it. */
function gate(name: string): { cmd: string; go: () => void; running: () => string[] } {
  const folder = join(scratch.path, name)
  mkdirSync(folder)
  return {
    cmd: `touch ${folder}/$SVC_ACTION_EXECUTION_ID; until [ -e ${folder}.go ]; do sleep 0.05; done`,
    go: () => writeFileSync(`${folder}.go`, ''),
    running: () => readdirSync(folder),
  }
}

/** Prints how many, itself included, were seen at work in the same folder. */
function countingCommand(name: string): string {
  const folder = join(scratch.path, name)
  mkdirSync(folder, { recursive: true })
  return `touch ${folder}/$$; ls ${folder} | wc -l; sleep 0.01; ls ${folder} | wc -l; rm ${folder}/$$`
}

const mostSeen = (executions: readonly ExecutionAnswer[]): number =>
  Math.max(...executions.flatMap(({ result }) => String(result['stdout']).trim().split('\n').map(Number)))

describe('02.11 the records', () => {
  const body = {
    name: 'some',
    pack: 'records',
    description: 'd',
    resource_ref: 'examples.nothing_yet',
    policy_type: 'action.concurrency',
    parameters: { threshold: 2 },
  }

  it('02.11 a policy from its making to its end, with audit lines', async () => {
    const made = await post(body)
    expect(made.status).toBe(201)
    expect(made.body).toEqual({
      ...body,
      id: expect.stringMatching(idPattern),
      uid: 'policy:records:some',
      ref: 'records.some',
      enabled: true,
      parameters: { threshold: 2, action: 'delay' },
    })
    const { id } = made.body
    expect((await post<ErrorAnswer>(body)).body).toMatchObject({ code: 'NAME_TAKEN', 'conflict-id': id })
    expect((await post<ErrorAnswer>(body)).status).toBe(409)
    for (const name of [id, 'records.some']) expect((await get(`/policies/${name}`)).body).toEqual(made.body)

    // An id that is not its own changes nothing.
    const changes = { ...made.body, id: unknownId, enabled: false, description: null }
    const put = await server.call<Policy>('PUT', '/v1/policies/records.some', changes)
    expect([put.status, put.body]).toEqual([200, { ...made.body, enabled: false, description: '' }])
    const renamed = await server.call<Policy>('PUT', `/v1/policies/${id}`, { ...body, name: 'other' })
    expect(renamed.body).toMatchObject({ id, ref: 'records.other', uid: 'policy:records:other', enabled: true })
    expect((await get('/policies/records.some')).status).toBe(404)

    const gone = await server.call('DELETE', '/v1/policies/records.other')
    expect([gone.status, gone.text]).toEqual([204, ''])
    for (const method of ['GET', 'DELETE']) {
      expect((await server.call(method, `/v1/policies/${id}`)).status).toBe(404)
    }
    for (const event of ['policy.created', 'policy.updated', 'policy.deleted']) {
      await waitFor(`${event} in the audit log`, () =>
        auditRecords(server, event).some((record) => record['_policy_id'] === id && record['_user'] !== undefined),
      )
    }
  })

  it.each([
    [{ policy_type: 'action.none' }, 'POLICY_TYPE_UNKNOWN', 'action.concurrency.attr'],
    [{ parameters: {} }, 'PARAMETERS_INVALID', "'threshold' is a required property"],
    [{ parameters: { threshold: 1.5 } }, 'PARAMETERS_INVALID', 'threshold'],
    [{ parameters: { threshold: 1, action: 'wait' } }, 'PARAMETERS_INVALID', 'action'],
    [{ parameters: { threshold: 1, more: 1 } }, 'PARAMETERS_INVALID', 'more'],
    [{ policy_type: 'action.concurrency.attr', parameters: {} }, 'PARAMETERS_INVALID', 'threshold'],
    [
      {
        policy_type: 'action.concurrency.attr',
        resource_ref: 'examples.first',
        parameters: { threshold: 1, attributes: ['host', 'hots'] },
      },
      'PARAMETERS_INVALID',
      '"hots"',
    ],
    [{ policy_type: 'action.retry', parameters: {} }, 'PARAMETERS_INVALID', 'retry_on'],
    [{ policy_type: 'action.retry', parameters: { retry_on: 'luck' } }, 'PARAMETERS_INVALID', 'retry_on'],
    [
      { policy_type: 'action.retry', parameters: { retry_on: 'failure', max_retry_count: 6 } },
      'PARAMETERS_INVALID',
      'max_retry_count',
    ],
    [
      { policy_type: 'action.retry', parameters: { retry_on: 'failure', max_retry_count: 0 } },
      'PARAMETERS_INVALID',
      'max_retry_count',
    ],
    [{ policy_type: 'action.retry', parameters: { retry_on: 'failure', delay: 121 } }, 'PARAMETERS_INVALID', 'delay'],
    [{ pack: 'core' }, 'SYSTEM_PACK_FIXED', 'core.some'],
    [{ resource_ref: 'nodot' }, 'BODY_INVALID', 'resource_ref'],
    [{ surplus: 1 }, 'BODY_INVALID', 'surplus'],
    [{ name: undefined }, 'BODY_INVALID', 'name'],
    [{ name: '../etc' }, 'BODY_INVALID', 'name'],
  ])('02.11 %j is refused', async (more, code, named) => {
    const answer = await post<ErrorAnswer>({ ...body, ...more })
    expect([answer.status, answer.body.code]).toEqual([400, code])
    expect(answer.body.faultstring).toContain(named)
  })

  it('02.11 attributes of an action that is not known yet are believed; defaults are filled in', async () => {
    const attr = { ...body, name: 'attr', policy_type: 'action.concurrency.attr' }
    const made = await post({ ...attr, parameters: { threshold: 1, action: null, attributes: ['anything'] } })
    expect(made.body.parameters).toEqual({ threshold: 1, attributes: ['anything'], action: 'delay' })
    const retry = { ...body, name: 'retry', policy_type: 'action.retry', parameters: { retry_on: 'timeout' } }
    expect((await post(retry)).body.parameters).toEqual({ retry_on: 'timeout', max_retry_count: 2 })
  })

  it('02.11 lists are filtered, in the order of pack and name, page by page', async () => {
    for (const [pack, name] of [
      ['lists-b', 'one'],
      ['lists-a', 'two'],
      ['lists-a', 'one'],
    ]) {
      const made = await post({ ...body, pack, name, resource_ref: `lists.${name}` })
      expect(made.status).toBe(201)
    }
    const refs = async (query: string) => (await get(`/policies?${query}`)).body.map(({ ref }) => ref)
    expect(await refs('pack=lists-a')).toEqual(['lists-a.one', 'lists-a.two'])
    expect(await refs('resource_ref=lists.one')).toEqual(['lists-a.one', 'lists-b.one'])
    expect(await refs('name=one&pack=lists-b')).toEqual(['lists-b.one'])
    expect(await refs('resource_ref=lists.one&policy_type=action.retry')).toEqual([])
    const page = await get('/policies?resource_ref=lists.one&limit=1&offset=1')
    expect(page.body.map(({ ref }) => ref)).toEqual(['lists-b.one'])
    expect([page.headers.get('x-total-count'), page.headers.get('x-limit')]).toEqual(['2', '1'])
    expect((await get('/policies?pack=lists-b&include_attributes=enabled')).body).toEqual([
      { id: expect.any(String), ref: 'lists-b.one', pack: 'lists-b', name: 'one', enabled: true },
    ])
  })

  it('02.11 the types', async () => {
    const { body: types, headers } = await get<(Policy & { resource_type: string })[]>('/policytypes')
    expect(types.map(({ ref }) => ref)).toEqual(['action.concurrency', 'action.concurrency.attr', 'action.retry'])
    expect(headers.get('x-total-count')).toBe('3')
    expect((await get('/policytypes?resource_type=rule')).body).toEqual([])
    const sorted = await get('/policytypes?sort=-name&limit=1')
    expect(sorted.body).toMatchObject([{ uid: 'policy_type:action:retry', resource_type: 'action' }])
    const [concurrency] = types
    for (const name of ['action.concurrency', concurrency?.id]) {
      expect((await get(`/policytypes/${name}`)).body).toEqual(concurrency)
    }
    expect(concurrency?.parameters).toMatchObject({
      threshold: { type: 'integer', required: true },
      action: { enum: ['delay', 'cancel'], default: 'delay' },
    })
    expect((await get('/policytypes/action.none')).status).toBe(404)
  })
})

const REQUESTS = rounds({ daily: 16, full: 200 })

describe('02.11 concurrency', () => {
  it.concurrent.each(
    variants<[string, number]>([
      ['second', 3],
      ['first', 1],
    ]),
  )(`02.11 of ${REQUESTS} requests at once, those of %s never run more than %i together`, async (action, threshold) => {
    await make(action, 'concurrency', { threshold })
    // As many as may run wait for each other, and for all others to be delayed; then each counts.
    const holding = gate(`held-${action}`)
    const cmd = `${holding.cmd}; ${countingCommand(action)}`
    const requested = await Promise.all(Array.from({ length: REQUESTS }, () => request(action, { cmd })))
    await waitFor('the others to be delayed', () => countOf(action, 'delayed') === REQUESTS - threshold)
    await waitFor('as many as may to run', () => holding.running().length === threshold)
    holding.go()
    await waitFor('all to succeed', () => countOf(action, 'succeeded') === requested.length, 110_000)
    const ended = await Promise.all(requested.map(({ id }) => read(id)))
    expect(mostSeen(ended)).toBeLessThanOrEqual(threshold)
    const histories = new Set(ended.map(statuses))
    expect([...histories].toSorted()).toEqual([
      'requested delayed requested scheduled running succeeded',
      'requested scheduled running succeeded',
    ])
  })

  it.concurrent(
    '02.11 delayed ones run in the order of their requests, leave the slots to others, and can be cancelled',
    async () => {
      await make('third', 'concurrency', { threshold: 1 })
      const { cmd, go, running } = gate('third')
      const holder = await request('third', { cmd })
      await waitFor('the first to run', () => running().length === 1)
      const order = join(scratch.path, 'order')
      writeFileSync(order, '')
      const waiting: string[] = []
      for (let n = 0; n < 2 * SLOTS; n++) {
        waiting.push((await request('third', { cmd: `echo ${n} >> ${order}` })).id)
      }
      await waitFor('all of them to be delayed', () => countOf('third', 'delayed') === waiting.length)
      const other = await create(server, { action: 'core.local', parameters: { cmd: 'true' } })
      await waitForStatus(server, other.body.id, ['succeeded'])

      const cancelled = waiting[1] ?? ''
      expect((await server.call('DELETE', `/v1/executions/${cancelled}`)).body).toMatchObject({ status: 'canceled' })
      go()
      const ended = await Promise.all([holder.id, ...waiting].map((id) => waitForStatus(server, id)))
      expect(ended.map(({ status }) => status).filter((status) => status !== 'succeeded')).toEqual(['canceled'])
      expect(readFileSync(order, 'utf8').trim().split('\n').map(Number)).toEqual(
        waiting.map((_, n) => n).filter((n) => n !== 1),
      )
      expect(ended[2]?.log.map(({ status }) => status)).toEqual(['requested', 'delayed', 'canceled'])
    },
  )

  it.concurrent('02.11 `cancel`: what would be more is cancelled, and says which policy did it', async () => {
    const policy = await make('fourth', 'concurrency', { threshold: 1, action: 'cancel' })
    const { cmd, go, running } = gate('fourth')
    const holder = await request('fourth', { cmd })
    await waitFor('the first to run', () => running().length === 1)
    const refused = await request('fourth', { cmd: 'true' })
    const ended = await waitForStatus(server, refused.id)
    expect(statuses(ended)).toBe('requested canceling canceled')
    expect(ended.result).toMatchObject({ message: expect.stringContaining(policy.ref), policy: policy.ref })
    go()
    await waitForStatus(server, holder.id, ['succeeded'])
    const next = await request('fourth', { cmd: 'true' })
    expect(statuses(await waitForStatus(server, next.id))).toBe('requested scheduled running succeeded')
  })

  it.concurrent('02.11 `concurrency.attr`: only equal values of the named parameters count together', async () => {
    const attributes = ['host', 'options', 'password']
    await make('fifth', 'concurrency.attr', { threshold: 1, attributes })
    const { cmd, go, running } = gate('fifth')
    const groups = [
      { host: 'a', options: { x: 1, y: [1, { b: 2, a: 1 }] }, password: 'p' },
      { host: 'a', options: { x: 1, y: [{ a: 1, b: 2 }, 1] }, password: 'p' },
      { host: 'a', options: { x: 1 }, password: 'q' },
      // The default of `host`.
      {},
    ]
    const alike = [{ host: 'a', options: { y: [1, { a: 1, b: 2 }], x: 1 }, password: 'p' }, { host: 'here' }]
    const first = await Promise.all(groups.map((parameters) => request('fifth', { cmd, ...parameters })))
    await waitFor('one of each group to run', () => running().length === groups.length)
    const second = await Promise.all(alike.map((parameters) => request('fifth', { cmd, ...parameters })))
    await waitFor('the others to be delayed', () => countOf('fifth', 'delayed') === alike.length)
    expect(running().toSorted()).toEqual(first.map(({ id }) => id).toSorted())
    go()
    for (const { id } of [...first, ...second]) await waitForStatus(server, id, ['succeeded'])
  })

  fullOnly(it.concurrent)(
    '02.11 several policies: a disabled one does not count, the first in the order of references decides',
    async () => {
      const off = await make('sixth', 'concurrency', { threshold: 0, action: 'cancel' }, { name: 'a', enabled: false })
      await make('sixth', 'concurrency', { threshold: 1 }, { name: 'b' })
      await make('sixth', 'concurrency', { threshold: 1, action: 'cancel' }, { name: 'c' })
      const { cmd, go, running } = gate('sixth')
      const holder = await request('sixth', { cmd })
      await waitFor('the first to run', () => running().length === 1)
      const delayed = await request('sixth', { cmd: 'true' })
      await waitForStatus(server, delayed.id, ['delayed'])
      await server.call('PUT', `/v1/policies/${off.id}`, { ...off, enabled: true })
      expect((await waitForStatus(server, delayed.id)).result).toMatchObject({ policy: off.ref })
      go()
      await waitForStatus(server, holder.id, ['succeeded'])
    },
  )

  it.concurrent('02.11 those that wait go on when their policy is changed, disabled or deleted', async () => {
    const policy = await make('seventh', 'concurrency', { threshold: 0 })
    const { cmd, go, running } = gate('seventh')
    const requested = await Promise.all(Array.from({ length: 6 }, () => request('seventh', { cmd })))
    await waitFor('all to be delayed', () => countOf('seventh', 'delayed') === 6)
    const put = async (more: object) => {
      const { status } = await server.call('PUT', `/v1/policies/${policy.id}`, { ...policy, ...more })
      expect(status).toBe(200)
    }
    await put({ parameters: { threshold: 2 } })
    await waitFor('two to run', () => running().length === 2)
    expect(countOf('seventh', 'delayed')).toBe(4)
    await put({ resource_ref: 'examples.elsewhere' })
    await waitFor('all to run', () => running().length === 6)
    await put({ parameters: { threshold: 0 } })
    const later = await request('seventh', { cmd })
    await waitForStatus(server, later.id, ['delayed'])
    expect((await server.call('DELETE', `/v1/policies/${policy.id}`)).status).toBe(204)
    go()
    for (const { id } of [...requested, later]) await waitForStatus(server, id, ['succeeded'])
  })

  it.concurrent('02.11 what has a delay of its own waits for its time first', async () => {
    await make('eighth', 'concurrency', { threshold: 0 })
    const { id } = await request('eighth', { cmd: 'true' }, { delay: 300 })
    const history = await waitFor('it to wait for others', async () => {
      const found = statuses(await read(id))
      return found.split(' ').length === 4 && found
    })
    expect(history).toBe('requested delayed requested delayed')
  })
})

describe('02.11 retry', () => {
  /** Executions of an action, oldest first, once there are so many and all have ended. */
  const allOf = (action: string, count: number): Promise<ExecutionAnswer[]> =>
    waitFor(`${count} executions of ${action} to have ended`, async () => {
      const { body } = await get<ExecutionAnswer[]>(`/executions?action=examples.${action}&limit=50`)
      const haveEnded = body.every(({ end_timestamp: end }) => end !== undefined)
      return body.length === count && haveEnded && Promise.all(body.toReversed().map(({ id }) => read(id)))
    })
  const retryOf = ({ context }: ExecutionAnswer) => (context['policies'] as { retry: unknown } | undefined)?.retry
  const causesOf = async (trace: string) =>
    (await get<TraceAnswer>(`/traces/${trace}`)).body.action_executions.map((component) => component.caused_by.id)

  it.concurrent(
    '02.11 what has failed is run again so often, with all that it was given, as part of the same trace',
    async () => {
      const policy = await make('ninth', 'retry', { retry_on: 'failure', max_retry_count: 2, delay: 0.3 })
      await make('ninth', 'retry', { retry_on: 'timeout' }, { name: 'ninth_of_time_outs' })
      const hidden = 'a-very-hidden-word'
      const original = await request(
        'ninth',
        {
          cmd: `[ "{{ password }}" = ${hidden} ] && [ "$(echo '{{ host }}' | cut -c 1-2)" = '{{ "{{" }}' ] && exit 3; exit 4`,
          // A text that looks like a template from then on.
          host: '{{ "{{ no_such_thing }}" }}',
          password: hidden,
        },
        {
          // Nobody but the server says how often it has been retried.
          context: { mine: 1, policies: { retry: { retry_count: -7, applied_policy: 'x.y' } } },
          notify: { 'on-success': { routes: ['r'] } },
        },
      )
      const ended = await allOf('ninth', 3)
      expect(ended.map(({ status, result }) => [status, result['return_code']])).toEqual(
        Array.from({ length: 3 }, () => ['failed', 3]),
      )
      const live = ended.map(({ liveaction }) => liveaction['id'])
      expect(ended.map(retryOf)).toEqual([
        undefined,
        { applied_policy: policy.ref, retry_count: 1, retried_liveaction_id: live[0] },
        { applied_policy: policy.ref, retry_count: 2, retried_liveaction_id: live[1] },
      ])
      expect(new Set(live).size).toBe(3)
      expect(ended.map(({ attempt, retry_of }) => [attempt, retry_of])).toEqual([
        [undefined, undefined],
        [2, ended[0]?.id],
        [3, ended[1]?.id],
      ])
      for (const each of ended) {
        expect(each.parameters).toEqual(ended[0]?.parameters)
        expect(each.parameters).toMatchObject({ host: '{{ no_such_thing }}', password: '********' })
        expect(each.context).toMatchObject({ mine: 1, user: original.context['user'], pack: 'examples' })
        expect(each.liveaction['notify']).toEqual({ 'on-success': { routes: ['r'] } })
        expect(JSON.stringify(each)).not.toContain(hidden)
      }
      // A retry that the scheduler looks at after its delay is never delayed: what lasts is when it was scheduled.
      const undelayed = ended.map(statuses).map((history) => history.replace('requested delayed ', ''))
      expect(undelayed).toEqual(Array.from({ length: 3 }, () => 'requested scheduled running failed'))
      expect(ended.map(({ delay }) => delay)).toEqual([undefined, 300, 300])
      for (const retry of ended.slice(1)) {
        expect(timeOf(retry, 'scheduled') - Date.parse(retry.start_timestamp)).toBeGreaterThanOrEqual(300)
      }
      const [trace] = (await get<TraceAnswer[]>(`/traces?execution=${original.id}`)).body
      expect(await causesOf(trace?.id ?? '')).toEqual([undefined, ended[0]?.id, ended[1]?.id])
      const stored = rowsOf<{ text: string }>(
        server,
        'select parameters || context || log || liveaction as text from executions where action_ref = ?',
        'examples.ninth',
      )
      expect(stored.filter(({ text }) => text.includes(hidden))).toEqual([])
      await waitFor('the retries in the audit log', () => {
        const lines = auditRecords(server, 'execution.requested').filter((line) => line['_policy'] === policy.ref)
        return (
          lines.map((line) => line['_retried_execution_id']).join() ===
          ended
            .slice(0, 2)
            .map(({ id }) => id)
            .join()
        )
      })
    },
  )

  fullOnly(it.concurrent)(
    '02.11 a time-out is retried where the policy says so, a failure is not; a success ends it',
    async () => {
      await make('tenth', 'retry', { retry_on: 'timeout', max_retry_count: 5 })
      const mark = join(scratch.path, 'tenth')
      const failed = await request('tenth', { cmd: 'exit 1' })
      await waitForStatus(server, failed.id, ['failed'])
      await request('tenth', { cmd: `[ -e ${mark} ] && exit 0; touch ${mark}; sleep 60`, timeout: 1 })
      expect((await allOf('tenth', 3)).map(({ status }) => status)).toEqual(['failed', 'timeout', 'succeeded'])
    },
  )

  fullOnly(it.concurrent)('02.11 parts of larger runs, and what could not be tried, are not retried', async () => {
    await make('eleventh', 'retry', { retry_on: 'failure' })
    const parent = await create(server, { action: 'core.noop' })
    const child = await request('eleventh', { cmd: 'false' }, { context: { parent: { execution_id: parent.body.id } } })
    await waitForStatus(server, child.id, ['failed'])
    const unrendered = await create(server, {
      action: 'examples.eleventh',
      parameters: { cmd: '{{ nothing.at.all }}' },
    })
    expect(unrendered.status).toBe(400)
    const settled = await request('eleventh', { cmd: 'true' }, { delay: 60_000 })
    await waitForStatus(server, settled.id, ['delayed'])
    await server.call('PUT', `/v1/executions/${settled.id}`, { status: 'failed' })
    const succeeded = await request('eleventh', { cmd: 'true' })
    await waitForStatus(server, succeeded.id, ['succeeded'])
    expect((await allOf('eleventh', 4)).map(retryOf)).toEqual([undefined, undefined, undefined, undefined])
  })

  fullOnly(it.concurrent)('02.11 retries wait like all others when an action has both', async () => {
    await make('twelfth', 'concurrency', { threshold: 1 })
    await make('twelfth', 'retry', { retry_on: 'failure', max_retry_count: 1 })
    const cmd = `${countingCommand('twelfth')}; exit 1`
    await Promise.all(Array.from({ length: 10 }, () => request('twelfth', { cmd })))
    const ended = await allOf('twelfth', 20)
    expect(ended.filter(({ status }) => status !== 'failed')).toEqual([])
    expect(mostSeen(ended)).toBe(1)
    const retried = ended.flatMap((each) => (retryOf(each) as { retried_liveaction_id: string } | undefined) ?? [])
    expect(new Set(retried.map(({ retried_liveaction_id: id }) => id)).size).toBe(10)
  })
})

describe('02.11 concurrency and the queue', () => {
  it('02.11 those that wait because of a policy count in the queue until they run', async () => {
    const limit = rounds({ daily: 50, full: 300 })
    const limited = await createAppWithExamples({
      settings: { ...settings, 'actionrunner.queue_limit': String(limit) },
    })
    try {
      const policy = (
        await post(
          {
            name: 'crowd',
            resource_ref: 'examples.first',
            policy_type: 'action.concurrency',
            parameters: { threshold: 0 },
          },
          limited,
        )
      ).body
      await Promise.all(Array.from({ length: limit }, () => request('first', { cmd: 'true' }, {}, limited)))
      await waitFor('all to be delayed', () => countOf('first', 'delayed', limited) === limit)
      const refused = await create(limited, { action: 'core.noop' })
      expect([refused.status, refused.body]).toMatchObject([503, { code: 'QUEUE_FULL' }])
      await limited.call('DELETE', `/v1/policies/${policy.id}`)
      await waitFor('all to run', () => countOf('first', 'succeeded', limited) === limit)
      expect((await create(limited, { action: 'core.noop' })).status).toBe(201)
    } finally {
      await limited.stop()
    }
  })
})
