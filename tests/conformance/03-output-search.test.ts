/** Executions by their output: beside the filters of contract 03, 3.3. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { FoundLine } from '../../src/modules/executions/types.ts'
import { createTestApp } from '../helpers/app.ts'
import { runToEnd, type Answer, type TestApp } from '../helpers/server.ts'
import { fullOnly } from '../helpers/tiers.ts'
import type { ErrorAnswer } from './support.ts'

interface Found {
  id: string
  status: string
  output_matches?: FoundLine[]
}

let server: TestApp
const ids: Record<'both' | 'failed' | 'secret', string> = { both: '', failed: '', secret: '' }

beforeAll(async () => {
  server = await createTestApp({})
  const run = async (parameters: Record<string, unknown>): Promise<string> => (await runToEnd(server, parameters)).id
  ids.both = await run({
    cmd: 'echo before; echo "the Needle is here"; sleep 0.1; printf "a ne" >&2; sleep 0.1; echo edle >&2',
  })
  ids.failed = await run({ cmd: `printf '\\033[31mneedle\\033[0m 100%%_\\n'; exit 3` })
  ids.secret = await run({ cmd: 'echo needle is $TOKEN', env: { TOKEN: 'canary-4711' }, sudo_password: 'canary-4711' })
})
afterAll(() => server.stop())

function search(query: Record<string, string | number | boolean>): Promise<Answer<Found[] & ErrorAnswer>> {
  const pairs = Object.entries(query).map(([name, value]): [string, string] => [name, String(value)])
  return server.call<Found[] & ErrorAnswer>('GET', `/v1/executions?${new URLSearchParams(pairs).toString()}`)
}

const idsOf = ({ body }: Answer<Found[]>): string[] => body.map(({ id }) => id)

describe('03.3 executions by their output', () => {
  it('are found newest first, in stdout and stderr, with their first lines on request', async () => {
    const found = await search({ output: 'needle', include_matches: 5, include_attributes: 'status' })
    expect(idsOf(found)).toEqual([ids.secret, ids.failed, ids.both])
    expect(found.body[1]).toEqual({
      id: ids.failed,
      status: 'failed',
      output_matches: [{ seq: 1, output_type: 'stdout', line: 1, before: '', match: 'needle', after: ' 100%_' }],
    })
    expect(found.headers.get('x-output-searched')).toBe('3')
    expect([found.headers.get('x-output-cursor'), found.headers.get('x-total-count')]).toEqual([null, null])
    const whole = await search({ output: 'NEEDLE', output_ignore_case: true })
    expect(idsOf(await search({ output: 'NEEDLE' }))).toEqual([])
    expect(idsOf(whole)).toEqual([ids.secret, ids.failed, ids.both])
    expect(whole.body[0]).not.toHaveProperty('output_matches')
    // What a program has written in two parts, to stderr.
    const split = await search({ output: 'a needle', include_matches: 1 })
    expect(idsOf(split)).toEqual([ids.both])
    expect(split.body[0]?.output_matches).toEqual([
      { seq: 2, output_type: 'stderr', line: 3, before: '', match: 'a needle', after: '' },
    ])
  })

  it('are narrowed by other filters, and go on where the answer before has stopped', async () => {
    expect(idsOf(await search({ output: 'needle', status: 'failed' }))).toEqual([ids.failed])
    expect(idsOf(await search({ output: 'needle', status: 'failed,succeeded', user: 'nobody' }))).toEqual([])
    expect(idsOf(await search({ output: 'needle', timestamp_gt: '2020-01-01T00:00:00Z' }))).toHaveLength(3)
    expect(idsOf(await search({ output: 'needle', timestamp_lt: '2020-01-01T00:00:00Z' }))).toEqual([])
    const first = await search({ output: 'needle', limit: 1 })
    const cursor = first.headers.get('x-output-cursor') ?? ''
    expect([idsOf(first), cursor]).toEqual([[ids.secret], ids.secret])
    const rest = await search({ output: 'needle', output_cursor: cursor })
    expect([idsOf(rest), rest.headers.get('x-output-cursor')]).toEqual([[ids.failed, ids.both], null])
  })

  it('are not found by what is masked', async () => {
    expect(idsOf(await search({ output: 'canary' }))).toEqual([])
    expect(idsOf(await search({ output: 'needle is ********' }))).toEqual([ids.secret])
  })

  it.for([
    ['100%_', 'failed'],
    ['%', 'failed'],
    ['0%%', undefined],
    ['need_e', undefined],
    ['\u001b[31m', undefined],
    ['\0', undefined],
    ['\ufffd', undefined],
    ["' or 1=1 --", undefined],
    ['x'.repeat(1000), undefined],
  ] as const)('takes text as it is: %j', async ([output, name]) => {
    expect(idsOf(await search({ output }))).toEqual(name === undefined ? [] : [ids[name]])
  })

  it.for([
    [{ output: 'x'.repeat(1001) }, 'Parameter "output" is longer than 1000 characters'],
    [{ output: 'a\nb' }, 'Parameter "output" contains a line end: the search runs line by line'],
    [{ output: 'a', sort: 'id' }, 'Parameter "sort" does not go with "output"'],
    [{ output: 'a', offset: 1 }, 'Parameter "offset" does not go with "output"'],
    [{ output: 'a', include_matches: 21 }, 'Parameter "include_matches" must be from 0 to 20'],
    [{ output: 'a', output_cursor: 'x' }, 'Parameter "output_cursor": "x" is not what a header X-Output-Cursor'],
    [{ include_matches: 1 }, 'Parameter "include_matches" needs "output"'],
  ] as const)('says what it cannot do: %j', async ([query, message]) => {
    const { status, body } = await search(query)
    expect(status).toBe(400)
    expect(body.faultstring).toContain(message)
  })

  it('refuses bytes that are no text', async () => {
    const { status } = await server.call('GET', '/v1/executions?output=%ff%fe')
    expect([200, 400]).toContain(status)
  })

  fullOnly(it)('lets executions go on, and is refused rather than piled up', async () => {
    const searches = Array.from({ length: 30 }, () => search({ output: 'needle' }))
    const runs = Array.from({ length: 20 }, (_, n) => runToEnd(server, { cmd: `echo load ${n}` }))
    const statuses = (await Promise.all(searches)).map(({ status }) => status)
    expect(statuses.filter((status) => status !== 200 && status !== 503)).toEqual([])
    expect(statuses).toContain(200)
    expect((await Promise.all(runs)).map(({ status }) => status)).toEqual(runs.map(() => 'succeeded'))
    expect(idsOf(await search({ output: 'load 19' }))).toHaveLength(1)
  })
})
