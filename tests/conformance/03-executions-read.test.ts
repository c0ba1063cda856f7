/** Contract 03, 3.3: lists, single executions and their parts. */
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { run, runToEnd, waitForStatus, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { create, idPattern, impossibleIds, rowsOf, send, unknownId, type ErrorAnswer } from './support.ts'

let server: TestApp
/** Oldest first. */
let all: ExecutionAnswer[]
let parent: ExecutionAnswer
let child: ExecutionAnswer
let failed: ExecutionAnswer
let noop: ExecutionAnswer
let canceled: ExecutionAnswer

const get = <T = ErrorAnswer>(path: string) => server.call<T>('GET', `/v1${path}`)
const list = async (query: string) => {
  const answer = await get<ExecutionAnswer[]>(`/executions?${query}`)
  expect([answer.text.slice(0, 200), answer.status]).toEqual([expect.any(String), 200])
  return { records: answer.body, total: Number(answer.headers.get('x-total-count')) }
}
const idsOf = (records: readonly { id: string }[]): string[] => records.map(({ id }) => id)

beforeAll(async () => {
  server = await createTestApp()
  parent = await runToEnd(server, { cmd: 'echo parent' }, { user: 'ada', context: { team: { name: 'red' } } })
  child = await runToEnd(
    server,
    { cmd: 'echo child', env: { COLOUR: 'blue' } },
    { user: 'eve', context: { parent: { execution_id: parent.id } } },
  )
  failed = await runToEnd(server, { cmd: 'exit 4' }, { user: 'ada' })
  noop = await waitForStatus(server, (await create(server, { action: 'core.noop' })).body.id)
  const delayed = await run(server, { cmd: 'true' }, { user: 'grace', delay: 3_600_000 })
  canceled = (await server.call<ExecutionAnswer>('DELETE', `/v1/executions/${delayed.id}`)).body
  const echo = await create(server, { action: 'core.echo', parameters: { message: 'six' } })
  await waitForStatus(server, echo.body.id)
  all = (await list('limit=-1')).records.toReversed()
})
afterAll(async () => {
  await server.stop()
})

describe('03.3 list', () => {
  it('03.3 list: newest first, children included, with result', async () => {
    const { records, total } = await list('')
    expect(total).toBe(6)
    expect(idsOf(records)).toEqual(idsOf(all).toReversed())
    expect(idsOf(records)).toContain(child.id)
    expect(records.find(({ id }) => id === failed.id)).toEqual(failed)
  })

  /** Each filter as a test on the records, so that every combination can be checked. */
  const filters: Record<string, [string, (record: ExecutionAnswer) => boolean][]> = {
    action: [
      ['core.local', ({ action }) => action['ref'] === 'core.local'],
      ['core.unheard_of', () => false],
    ],
    search: [
      ['local', ({ action }) => action['ref'] === 'core.local'],
      ['ADA core.LO', ({ action, context }) => action['ref'] === 'core.local' && context['user'] === 'ada'],
      ['core', () => true],
      ['unheard_of', () => false],
    ],
    status: [
      ['succeeded', ({ status }) => status === 'succeeded'],
      ['failed,canceled', ({ status }) => status === 'failed' || status === 'canceled'],
      ['failed, unheard_of,failed', ({ status }) => status === 'failed'],
      ['canceled', ({ status }) => status === 'canceled'],
      ['unheard_of', () => false],
    ],
    user: [
      ['ada', ({ context }) => context['user'] === 'ada'],
      ['svc', ({ context }) => context['user'] === 'svc'],
    ],
    runner: [
      ['noop', ({ runner }) => runner['name'] === 'noop'],
      ['local-shell-cmd', ({ runner }) => runner['name'] === 'local-shell-cmd'],
    ],
    rule: [
      ['null', () => true],
      ['x', () => false],
    ],
    trigger: [['NULL', () => true]],
    trigger_type: [['null', () => true]],
    trigger_instance: [['null', () => true]],
    timestamp_gt: [['2020-01-01T00:00:00Z', () => true]],
    timestamp_lt: [['2020-01-01T00:00:00Z', () => false]],
  }

  it.each(Object.entries(filters).flatMap(([name, cases]) => cases.map(([value]) => [name, value] as const)))(
    '03.3 filter %s=%s: records and X-Total-Count',
    async (name, value) => {
      const fits = filters[name]?.find(([given]) => given === value)?.[1] ?? (() => false)
      const expected = all.filter(fits)
      const { records, total } = await list(`${name}=${encodeURIComponent(value)}`)
      expect(idsOf(records).toSorted()).toEqual(idsOf(expected).toSorted())
      expect(total).toBe(expected.length)
    },
  )

  it('03.3 filters: every pair of them matches both, and X-Total-Count says so, with a small page too', async () => {
    const cases = Object.entries(filters).flatMap(([name, some]) =>
      some.map(([value, fits]) => ({ name, value, fits })),
    )
    cases.push(
      { name: 'parent', value: 'null', fits: (record) => record.parent === undefined },
      { name: 'parent', value: parent.id, fits: (record) => record.parent === parent.id },
      { name: 'liveaction', value: String(noop.liveaction['id']), fits: ({ id }) => id === noop.id },
      { name: 'id', value: `${noop.id},${failed.id}`, fits: ({ id }) => id === noop.id || id === failed.id },
      { name: 'filter', value: 'context.team.name:red', fits: ({ id }) => id === parent.id },
      {
        name: 'timestamp',
        value: `${failed.start_timestamp}..${canceled.start_timestamp}`,
        fits: ({ id }) => id >= failed.id && id <= canceled.id,
      },
    )
    for (const [i, a] of cases.entries()) {
      for (const b of cases.slice(i + 1)) {
        if (a.name === b.name) continue
        const expected = all.filter((record) => a.fits(record) && b.fits(record))
        const query = `${a.name}=${encodeURIComponent(a.value)}&${b.name}=${encodeURIComponent(b.value)}`
        const { records, total } = await list(`${query}&limit=2`)
        expect([query, total, records.length]).toEqual([query, expected.length, Math.min(2, expected.length)])
        expect(idsOf(expected)).toEqual(expect.arrayContaining(idsOf(records)))
      }
    }
  })

  it('03.3 filter parent: an id, or null for top-level only', async () => {
    expect(idsOf((await list(`parent=${parent.id}`)).records)).toEqual([child.id])
    expect((await list(`parent=${noop.id}`)).total).toBe(0)
    const top = await list('parent=null')
    expect([top.records.length, top.total]).toEqual([5, 5])
    expect(idsOf(top.records)).not.toContain(child.id)
  })

  it('03.3 filter liveaction', async () => {
    expect(idsOf((await list(`liveaction=${String(child.liveaction['id'])}`)).records)).toEqual([child.id])
    expect((await list(`liveaction=${child.id}`)).total).toBe(0)
  })

  it('03.3 filter timestamp: exact, and ranges with both ends, in both directions', async () => {
    const at = (execution: ExecutionAnswer): string => execution.start_timestamp
    expect(idsOf((await list(`timestamp=${at(failed)}`)).records)).toEqual([failed.id])
    const up = await list(`timestamp=${at(child)}..${at(noop)}`)
    expect([idsOf(up.records), up.total]).toEqual([[child.id, failed.id, noop.id], 3])
    const down = await list(`timestamp=${at(noop)}..${at(child)}`)
    expect([idsOf(down.records), down.total]).toEqual([[noop.id, failed.id, child.id], 3])
  })

  it('03.3 filter timestamp_gt and timestamp_lt: both exclusive, to the microsecond', async () => {
    const [from, to] = [child.start_timestamp, noop.start_timestamp]
    const after = await list(`timestamp_gt=${from}`)
    // Ascending, because nothing bounds it above.
    expect(idsOf(after.records)).toEqual(idsOf(all.filter(({ id }) => id > child.id)))
    expect(after.total).toBe(after.records.length)
    const before = await list(`timestamp_lt=${to}`)
    expect(idsOf(before.records)).toEqual(idsOf(all.filter(({ id }) => id < noop.id)).toReversed())
    expect(before.total).toBe(before.records.length)
    const between = await list(`timestamp_gt=${from}&timestamp_lt=${to}`)
    expect([idsOf(between.records), between.total]).toEqual([[failed.id], 1])
    expect((await list(`timestamp_gt=${to}&timestamp_lt=${from}`)).total).toBe(0)
  })

  it.each(['timestamp=x', 'timestamp=2020-01-01T00:00:00Z..', 'timestamp=..', 'timestamp=1..2..3'])(
    '03.3 filter %s → 400',
    async (query) => {
      const { status, body } = await get(`/executions?${query}`)
      expect(status).toBe(400)
      expect(body.faultstring).toContain('timestamp')
    },
  )

  it.each([
    ['status:failed', () => [failed.id]],
    ['action.ref:core.noop', () => [noop.id]],
    ['runner.name:noop', () => [noop.id]],
    ['context.user:ada', () => [failed.id, child.id, parent.id]],
    ['context.user:ada status:failed', () => [failed.id]],
    ['context.user:ada  status:canceled', () => []],
    ['status:failed status:succeeded', () => []],
    ['context.team.name:red', () => [parent.id]],
    ['parameters.env.COLOUR:blue', () => [child.id]],
    ['parameters.cmd:true', () => [canceled.id]],
    ['liveaction.action:core.noop', () => [noop.id]],
    ['liveaction.parameters.cmd:true', () => [canceled.id]],
    ['action.ref:core.noop liveaction.action:core.local', () => []],
    ['result.return_code:4', () => [failed.id]],
    ['result.stdout:child', () => [child.id]],
    ['action.name:noop', () => [noop.id]],
    ['action.pack:core action.runner_type:noop action.enabled:true', () => [noop.id]],
    ['runner.enabled:false', () => []],
    ['rule.ref:default.on_call', () => []],
  ] as [string, () => string[]][])('03.3 filter=%s', async (filter, expected) => {
    const { records, total } = await list(`filter=${encodeURIComponent(filter)}`)
    expect([idsOf(records), total]).toEqual([expected(), expected().length])
  })

  it('03.3 filter: values may hold colons; ids and parents are found', async () => {
    const { id } = await run(server, { cmd: 'true', cwd: '/' }, { context: { when: '12:30:00' }, delay: 3_600_000 })
    try {
      expect(idsOf((await list('filter=context.when:12:30:00')).records)).toEqual([id])
      expect(idsOf((await list(`filter=id:${id}`)).records)).toEqual([id])
      expect(idsOf((await list(`filter=parent:${parent.id}`)).records)).toEqual([child.id])
      expect((await list(`filter=id:${id}&id=${parent.id}`)).total).toBe(0)
    } finally {
      await server.call('DELETE', `/v1/executions/${id}`)
    }
  })

  it('03.3 search: ids by their beginning, which has 12 digits or more, together with other words', async () => {
    for (const length of [12, 17, 24]) {
      const beginning = failed.id.slice(0, length)
      const expected = idsOf(all.filter(({ id }) => id.startsWith(beginning))).toReversed()
      const { records, total } = await list(`search=${beginning}`)
      expect([length, idsOf(records), total]).toEqual([length, expected, expected.length])
    }
    expect(idsOf((await list(`search=${noop.id}+core`)).records)).toEqual([noop.id])
    expect(idsOf((await list(`search=${noop.id}+${noop.id.slice(0, 20)}`)).records)).toEqual([noop.id])
    for (const search of [`${noop.id}+local`, `${noop.id}+${failed.id}`, noop.id.slice(0, 11)]) {
      expect([search, (await list(`search=${search}`)).total]).toEqual([search, 0])
    }
  })

  it('03.3 search: what patterns are made of is text; too many words → 400', async () => {
    for (const text of ['%', '_', '*', '"', "'", 'local%', 'c.re']) {
      expect([text, (await list(`search=${encodeURIComponent(text)}`)).total]).toEqual([text, 0])
    }
    const { status, body } = await get(`/executions?search=${'a+'.repeat(11)}`)
    expect([status, body.faultstring]).toEqual([400, expect.stringContaining('10 words')])
  })

  it('03.3 before_id and after_id: pages go on from an id, and are not counted', async () => {
    const page = async (query: string): Promise<[string[], string | null]> => {
      const answer = await get<ExecutionAnswer[]>(`/executions?${query}${query.includes('limit') ? '' : '&limit=2'}`)
      expect([query, answer.status]).toEqual([query, 200])
      return [idsOf(answer.body), answer.headers.get('x-total-count')]
    }
    const newest = idsOf(all).toReversed()
    const [, second = '', , fourth = ''] = newest
    expect(await page(`before_id=${second}`)).toEqual([newest.slice(2, 4), null])
    expect(await page(`before_id=${second}&offset=1`)).toEqual([newest.slice(3, 5), null])
    // Others have added some since.
    const [after, none] = await page(`after_id=${fourth}&limit=10`)
    expect([after.slice(-3), none]).toEqual([newest.slice(0, 3), null])
    expect(await page(`after_id=${fourth}&sort_asc=1`)).toEqual([newest.slice(1, 3).toReversed(), null])
    expect(await page(`after_id=${fourth}&before_id=${second}`)).toEqual([newest.slice(2, 3), null])
    expect(await page(`before_id=${second}&parent=null&status=succeeded,failed`)).toEqual([[noop.id, failed.id], null])
    expect(await page(`before_id=${noop.id}&search=ada`)).toEqual([[failed.id, child.id], null])
    expect(await page(`before_id=${'0'.repeat(24)}`)).toEqual([[], null])
  })

  it.each(['before_id=x', 'after_id=last', `before_id=${'f'.repeat(24)}&sort=status`])(
    '03.3 %s → 400',
    async (query) => {
      const { status, body } = await get(`/executions?${query}`)
      expect([status, body.faultstring]).toEqual([400, expect.stringMatching(/before_id|after_id/)])
    },
  )

  it.each([
    ['nonsense', 'invalid format for filter "nonsense"'],
    ['status:', 'invalid format for filter "status:"'],
    [':failed', 'invalid format for filter ":failed"'],
    ['a..b:c', 'invalid format for filter "a..b:c"'],
    ['unheard_of:1', 'unheard_of'],
    ['unheard.of:1', 'unheard.of'],
    ['liveaction.unheard_of:1', 'liveaction.unheard_of'],
    ['liveaction.parameters:1', 'liveaction.parameters'],
    ['action.parameters:{}', 'action.parameters'],
    ['trigger.parameters.secret:a', 'trigger.parameters.secret'],
  ])('03.3 filter=%s → 400', async (filter, text) => {
    const { status, body } = await get(`/executions?filter=${encodeURIComponent(filter)}`)
    expect(status).toBe(400)
    expect(body.faultstring).toContain(text)
  })

  it.each([
    ['sort=id', () => idsOf(all)],
    ['sort=-id', () => idsOf(all).toReversed()],
    ['sort=%2Bstart_timestamp', () => idsOf(all)],
    ['sort=-timestamp', () => idsOf(all).toReversed()],
    ['sort_asc=1', () => idsOf(all)],
    ['sort_asc=yes', () => idsOf(all)],
    ['sort_desc=1', () => idsOf(all).toReversed()],
    ['timestamp_gt=2020-01-01T00:00:00Z&sort_desc=1', () => idsOf(all).toReversed()],
    ['sort=unheard_of', () => idsOf(all).toReversed()],
    ['sort=', () => idsOf(all).toReversed()],
  ] as [string, () => string[]][])('00.9 %s', async (query, expected) => {
    // Others made and removed nothing, but added some since.
    const known = new Set(idsOf(all))
    const { records } = await list(`limit=-1&${query}`)
    expect(idsOf(records).filter((id) => known.has(id))).toEqual(expected())
  })

  it('00.9 sort: several fields, the rest of the order is newest first', async () => {
    const { records } = await list(`limit=-1&id=${idsOf(all).join(',')}&sort=status,-action`)
    const key = (record: ExecutionAnswer): string => record.status
    expect(records.map(key)).toEqual(records.map(key).toSorted())
    const succeeded = records.filter(({ status }) => status === 'succeeded').map(({ action }) => String(action['ref']))
    expect(succeeded).toEqual(succeeded.toSorted().toReversed())
  })
})

describe('00.11 include and exclude attributes', () => {
  const only = async (query: string): Promise<Record<string, unknown>> => {
    const { body } = await get<Record<string, unknown>>(`/executions/${child.id}?${query}`)
    const [listed] = (await list(`id=${child.id}&${query}`)).records
    expect(listed).toEqual(body)
    return body
  }

  it('00.11 include: only those, and the id', async () => {
    expect(await only('include_attributes=status')).toEqual({ id: child.id, status: 'succeeded' })
    expect(await only('include_attributes=result,parent')).toEqual({
      id: child.id,
      result: child.result,
      parent: parent.id,
    })
  })

  it('00.11 include: a nested path gives the object holding just that key', async () => {
    expect(await only('include_attributes=action.ref,context.user')).toEqual({
      id: child.id,
      action: { ref: 'core.local' },
      context: { user: 'ada' },
    })
  })

  it('00.11 include: a parent and its child together give the whole parent', async () => {
    for (const order of ['context,context.user', 'context.user,context']) {
      expect(await only(`include_attributes=${order}`)).toEqual({ id: child.id, context: child.context })
    }
  })

  it('00.11 exclude: result, trigger_instance, status', async () => {
    const { result: _, status: __, ...rest } = child
    expect(await only('exclude_attributes=result,trigger_instance,status')).toEqual(rest)
  })

  it.each([
    [
      'include_attributes=status&exclude_attributes=result',
      'exclude_fields and include_fields arguments are mutually exclusive.',
    ],
    ['exclude_attributes=action', 'Invalid or unsupported exclude attribute specified: action'],
    ['exclude_attributes=result,unheard_of', 'Invalid or unsupported exclude attribute specified: unheard_of'],
    ['include_attributes=unheard_of', 'Invalid or unsupported include attribute specified: unheard_of'],
    ['include_attributes=unheard.of', 'Invalid or unsupported include attribute specified: unheard.of'],
    ['include_attributes=__proto__', 'Invalid or unsupported include attribute specified: __proto__'],
  ])('00.11 %s → 400', async (query, text) => {
    for (const path of [`/executions?${query}`, `/executions/${child.id}?${query}`]) {
      const { status, body } = await get(path)
      expect([path, status]).toEqual([path, 400])
      expect(body.faultstring).toContain(text)
    }
  })

  it('00.11 max_parameters_size: larger ones are left out, and their size is told', async () => {
    const { parameters, liveaction, ...rest } = child
    const size = Buffer.byteLength(JSON.stringify(parameters))
    const { parameters: _, ...live } = liveaction
    expect(await only(`max_parameters_size=${size}`)).toEqual(child)
    expect(await only(`max_parameters_size=${size - 1}`)).toEqual({ ...rest, liveaction: live, parameters_size: size })
    const cut = { id: child.id, parameters_size: size }
    expect(await only('max_parameters_size=0&include_attributes=parameters')).toEqual(cut)
    expect(await only('max_parameters_size=0&include_attributes=parameters,liveaction.id')).toEqual({
      ...cut,
      liveaction: { id: liveaction['id'] },
    })
    expect(await only('max_parameters_size=0&include_attributes=liveaction.parameters')).toEqual({
      ...cut,
      liveaction: {},
    })
    expect(await only('max_parameters_size=0&include_attributes=status')).toEqual({
      id: child.id,
      status: 'succeeded',
    })
    const { status, body } = await get(`/executions?max_parameters_size=-1`)
    expect([status, body.faultstring]).toEqual([400, 'max_parameters_size must be a positive number'])
  })

  it('03.13 what the web client asks of its history list', async () => {
    const wanted =
      'id,status,start_timestamp,action.ref,action.name,action.runner_type,action.parameters,parameters,rule.ref,trigger.type,context.user'
    const { records, total } = await list(`parent=null&limit=50&offset=0&include_attributes=${wanted}`)
    expect(total).toBeGreaterThanOrEqual(5)
    for (const record of records) {
      expect(Object.keys(record.action).toSorted()).toEqual(['name', 'parameters', 'ref', 'runner_type'])
      expect(Object.keys(record.context)).toEqual(['user'])
    }
  })
})

describe('03.3 one execution', () => {
  it('03.3 get: the record', async () => {
    const { status, body } = await get<ExecutionAnswer>(`/executions/${parent.id}`)
    expect(status).toBe(200)
    expect(body).toMatchObject({ id: expect.stringMatching(idPattern), children: [child.id] })
  })

  it.each(['', '/output', '/result', '/attribute/status', '/attribute/result', '/children'])(
    '03.3 get: unknown id%s → 404 naming it',
    async (rest) => {
      for (const id of [unknownId, ...impossibleIds]) {
        const answer = await send(server.urls.api, { path: `/v1/executions/${id}${rest}` })
        expect([id, answer.status]).toEqual([id, 404])
        expect((JSON.parse(answer.text) as ErrorAnswer).faultstring).toMatch(
          /^Unable to identify resource with id ".*"\.$/,
        )
      }
    },
  )

  it('03.3 max_result_size: a larger result is left out, 0 is no limit', async () => {
    const size = child.result_size
    for (const [limit, isThere] of [
      [size - 1, false],
      [size, true],
      [0, true],
      [14 * 1024 * 1024, true],
    ] as const) {
      const { body } = await get<ExecutionAnswer>(`/executions/${child.id}?max_result_size=${limit}`)
      expect([limit, 'result' in body, body.result_size]).toEqual([limit, isThere, size])
    }
  })

  it.each([
    ['-1', 'max_result_size must be a positive number'],
    [String(14 * 1024 * 1024 + 1), 'max_result_size query parameter must be smaller than 14 MB'],
    ['x', 'Parameter "max_result_size" is not of type integer'],
  ])('03.3 max_result_size=%s → 400', async (value, text) => {
    const { status, body } = await get(`/executions/${child.id}?max_result_size=${value}`)
    expect([status, body.faultstring]).toEqual([400, text])
  })

  it('03.3 max_result_size with a malformed id → 404', async () => {
    expect((await get('/executions/x?max_result_size=5')).status).toBe(404)
  })
})

describe('03.3 last', () => {
  it('03.3 last: none at all → 400', async () => {
    const empty = await createTestApp()
    try {
      for (const [url, path] of [
        [empty.urls.api, '/v1/executions/last'],
        [empty.urls.api, '/v1/executions/last/output'],
        [empty.urls.stream, '/v1/executions/last/output'],
      ] as const) {
        const answer = await send(url, { path })
        expect([path, answer.status]).toEqual([path, 400])
        expect(JSON.parse(answer.text)).toMatchObject({ faultstring: 'No executions found in the database' })
      }
      const list = await empty.call<unknown[]>('GET', '/v1/executions')
      expect([list.body, list.headers.get('x-total-count')]).toEqual([[], '0'])
    } finally {
      await empty.stop()
    }
  })

  it('03.3 last: the greatest id, any user, children included', async () => {
    const { id } = (
      await create(server, { action: 'core.noop', user: 'zoe', context: { parent: { execution_id: parent.id } } })
    ).body
    expect((await get<ExecutionAnswer>('/executions/last')).body.id).toBe(id)
    await waitForStatus(server, id)
  })

  it('03.3 last: works on output', async () => {
    const { id } = await runToEnd(server, { cmd: 'echo newest' })
    expect((await get('/executions/last/output')).text).toBe('newest\n')
    expect((await get<ExecutionAnswer>('/executions/last?include_attributes=status')).body).toEqual({
      id,
      status: 'succeeded',
    })
    const streamed = await send(server.urls.stream, { path: '/v1/executions/last/output' })
    expect(streamed.text).toContain('newest')
  })

  it.each(['children', 'attribute/status', 'attribute/result', 'result'])(
    '03.3 last: not on %s → 404',
    async (rest) => {
      expect((await get(`/executions/last/${rest}`)).status).toBe(404)
    },
  )
})

describe('03.3 output', () => {
  it('03.3 output: types', async () => {
    const { id } = await runToEnd(server, { cmd: 'echo one; echo two >&2; echo three' })
    const output = async (query: string) => (await get(`/executions/${id}/output${query}`)).text
    expect(await output('?output_type=stdout')).toBe('one\nthree\n')
    expect(await output('?output_type=stderr')).toBe('two\n')
    expect(await output('?output_type=other')).toBe('')
    expect(await output('?output_type=unheard_of')).toBe('')
    for (const query of ['', '?output_type=all', '?output_type=']) {
      const text = await output(query)
      expect(text.split('\n').toSorted()).toEqual(['', 'one', 'three', 'two'])
      expect(text).toMatch(/one[^]*three/)
    }
  })

  it('03.3 output: of a running execution, what there is so far', async () => {
    const { id } = await run(server, { cmd: 'echo begun; sleep 60; echo never' })
    const answer = await waitFor('output', async () => {
      const found = await get(`/executions/${id}/output`)
      return found.text !== '' && found
    })
    expect([answer.status, answer.text]).toEqual([200, 'begun\n'])
    expect(answer.headers.get('content-type')).toBe('text/plain; charset=UTF-8')
    await server.call('DELETE', `/v1/executions/${id}`)
    await waitForStatus(server, id)
  })

  it('03.3 output: every byte, also beyond what the result holds', async () => {
    const small = await createTestApp({ settings: { 'actionrunner.max_result_bytes': '1000' } })
    try {
      const execution = await runToEnd(small, { cmd: 'seq 1 200000' })
      const expected = Array.from({ length: 200_000 }, (_, i) => `${i + 1}\n`).join('')
      const { text } = await small.call('GET', `/v1/executions/${execution.id}/output`)
      expect(text.length).toBe(expected.length)
      expect(text === expected).toBe(true)
      expect(execution.result).toMatchObject({ stdout_truncated: true, return_code: 0 })
      expect(String(execution.result['stdout']).length).toBeLessThanOrEqual(1000)
    } finally {
      await small.stop()
    }
  })
})

describe('03.3 result', () => {
  it('03.3 result: raw, as text/json', async () => {
    const answer = await send(server.urls.api, { path: `/v1/executions/${child.id}/result` })
    expect(answer.status).toBe(200)
    expect(answer.headers['content-type']).toMatch(/^text\/json/)
    expect(answer.text).toBe(JSON.stringify(child.result))
    expect(answer.bytes.length).toBe(child.result_size)
    expect(answer.headers).not.toHaveProperty('content-disposition')
  })

  it('03.3 result: pretty_format=1 indents by 2', async () => {
    const { text } = await send(server.urls.api, { path: `/v1/executions/${child.id}/result?pretty_format=1` })
    expect(text).toBe(JSON.stringify(child.result, null, 2))
  })

  it('03.3 result: download=1 names a file', async () => {
    const { headers } = await send(server.urls.api, { path: `/v1/executions/${child.id}/result?download=1` })
    expect(headers['content-disposition']).toBe(`attachment; filename=execution_${child.id}_result.json`)
  })

  it('03.3 result: compress=1 is gzip, alone and with download and pretty_format', async () => {
    for (const [more, name, text] of [
      ['', undefined, JSON.stringify(child.result)],
      ['&download=1', `attachment; filename=execution_${child.id}_result.json.gz`, JSON.stringify(child.result)],
      ['&pretty_format=1', undefined, JSON.stringify(child.result, null, 2)],
    ] as const) {
      const answer = await send(server.urls.api, { path: `/v1/executions/${child.id}/result?compress=1${more}` })
      expect(answer.headers['content-type']).toBe('application/x-gzip')
      expect(answer.headers['content-encoding']).toBe('gzip')
      expect(answer.headers['content-disposition']).toBe(name)
      expect(gunzipSync(answer.bytes).toString()).toBe(text)
    }
  })

  it('03.3 result: none yet is null', async () => {
    const { id } = await run(server, { cmd: 'true' }, { delay: 3_600_000 })
    const answer = await send(server.urls.api, { path: `/v1/executions/${id}/result` })
    expect([answer.status, answer.text]).toEqual([200, 'null'])
    await server.call('DELETE', `/v1/executions/${id}`)
  })
})

describe('03.3 attribute', () => {
  it('03.3 attribute: bare JSON values', async () => {
    const attribute = async (name: string) => (await get<unknown>(`/executions/${child.id}/attribute/${name}`)).body
    expect(await attribute('result')).toEqual(child.result)
    expect(await attribute('status')).toBe('succeeded')
    expect(await attribute('trigger_instance')).toBeNull()
    expect((await get(`/executions/${child.id}/attribute/status`)).text).toBe('"succeeded"')
  })

  it.each(['parameters', 'unheard_of', 'constructor', '__proto__'])('03.3 attribute: %s → 400', async (name) => {
    const { status, body } = await get(`/executions/${child.id}/attribute/${name}`)
    expect([status, body.faultstring]).toEqual([
      400,
      `Invalid attribute "${name}" specified. Valid attributes are: result, trigger_instance, status`,
    ])
  })
})

describe('03.3 children', () => {
  let tree: Record<'root' | 'a' | 'b' | 'aa' | 'ab' | 'ba', ExecutionAnswer>
  beforeAll(async () => {
    const make = async (under?: ExecutionAnswer): Promise<ExecutionAnswer> =>
      (
        await create(server, {
          action: 'core.noop',
          ...(under === undefined ? {} : { context: { parent: { execution_id: under.id } } }),
        })
      ).body
    const root = await make()
    const a = await make(root)
    const b = await make(root)
    const ba = await make(b)
    const aa = await make(a)
    const ab = await make(a)
    tree = { root, a, b, aa, ab, ba }
    for (const { id } of Object.values(tree)) await waitForStatus(server, id)
  })

  it.each([
    ['', ['a', 'aa', 'ab', 'b', 'ba']],
    ['?depth=-1', ['a', 'aa', 'ab', 'b', 'ba']],
    ['?depth=1', ['a', 'b']],
    ['?depth=2', ['a', 'aa', 'ab', 'b', 'ba']],
    ['?result_fmt=default', ['a', 'aa', 'ab', 'b', 'ba']],
    ['?result_fmt=sorted', ['a', 'b', 'ba', 'aa', 'ab']],
  ] as [string, (keyof typeof tree)[]][])('03.3 children%s', async (query, expected) => {
    const { body } = await get<ExecutionAnswer[]>(`/executions/${tree.root.id}/children${query}`)
    const names = new Map(Object.entries(tree).map(([name, { id }]) => [id, name]))
    expect(body.map(({ id }) => names.get(id))).toEqual(expected)
  })

  it('03.3 children: of a leaf none; include and exclude; ids on the parent, oldest first', async () => {
    expect((await get(`/executions/${tree.ba.id}/children`)).body).toEqual([])
    const { body } = await get<ExecutionAnswer[]>(
      `/executions/${tree.root.id}/children?depth=1&include_attributes=status`,
    )
    expect(body).toEqual([
      { id: tree.a.id, status: 'succeeded' },
      { id: tree.b.id, status: 'succeeded' },
    ])
    const root = (await get<ExecutionAnswer>(`/executions/${tree.root.id}`)).body
    expect(root.children).toEqual([tree.a.id, tree.b.id])
    const some = await list(`parent=${tree.root.id}&exclude_attributes=result,trigger_instance`)
    expect(some.records.every((record) => !('result' in record))).toBe(true)
  })

  it('03.3 children: limit, those nearest to the execution before others', async () => {
    const limited = async (limit: number): Promise<string[]> =>
      idsOf((await get<ExecutionAnswer[]>(`/executions/${tree.root.id}/children?limit=${limit}`)).body)
    expect(await limited(1)).toEqual([tree.a.id])
    expect(await limited(2)).toEqual([tree.a.id, tree.b.id])
    expect(await limited(3)).toEqual([tree.a.id, tree.b.id, tree.ba.id])
    expect(await limited(10_000)).toEqual(
      idsOf((await get<ExecutionAnswer[]>(`/executions/${tree.root.id}/children`)).body),
    )
    for (const limit of [0, -1, 10_001]) {
      const { status, body } = await get(`/executions/${tree.root.id}/children?limit=${limit}`)
      expect([status, body.faultstring]).toEqual([400, expect.stringContaining('between 1 and 10000')])
    }
  })

  it('03.3 children: depth that is no number → 400', async () => {
    expect((await get(`/executions/${tree.root.id}/children?depth=x`)).status).toBe(400)
  })
})

describe('03.3 views/filters', () => {
  interface Views {
    [name: string]: (string | null)[]
  }

  it('03.3 views/filters: distinct values', async () => {
    const { body } = await get<Views>('/executions/views/filters')
    expect(Object.keys(body).toSorted()).toEqual(
      ['action', 'status', 'rule', 'runner', 'trigger', 'trigger_type', 'user'].toSorted(),
    )
    for (const [name, column] of [
      ['action', 'action_ref'],
      ['status', 'status'],
      ['runner', 'runner'],
      ['user', 'user'],
    ] as const) {
      const rows = rowsOf<{ value: string }>(server, `select distinct ${column} as value from executions order by 1`)
      expect([name, body[name]?.toSorted()]).toEqual([name, rows.map(({ value }) => value)])
    }
    for (const name of ['rule', 'trigger', 'trigger_type']) expect(body[name]).toEqual([null])
  })

  it('03.3 views/filters: types restricts', async () => {
    expect(Object.keys((await get<Views>('/executions/views/filters?types=status,user')).body).toSorted()).toEqual([
      'status',
      'user',
    ])
    expect((await get<Views>('/executions/views/filters?types=unheard_of')).body).toEqual({})
  })
})
