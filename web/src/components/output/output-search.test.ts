import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { OutputMatches } from '../../api/records.ts'
import { createOutputSearch, placesOf, type OutputSearch, type SearchSource } from './output-search.ts'
import { fullOnly } from '../../../../tests/helpers/tiers.ts'

/** Lines in which something is found, among so many; each request looks through a hundred lines. */
function createServer(found: number[], total: number) {
  const server = {
    total,
    isComplete: true,
    failure: undefined as string | undefined,
    requests: 0,
    gate: Promise.resolve(),
  }
  const source: SearchSource = {
    async search(_, { from, limit }) {
      server.requests += 1
      await server.gate
      if (server.failure !== undefined) throw new Error(server.failure)
      const end = Math.min(server.total + 1, from + 100)
      const lines = found.filter((line) => line >= from && line < end).slice(0, limit)
      const answer: OutputMatches = {
        total: server.total,
        matches: lines.map((line) => ({ line, before: '', match: `m${line}`, after: '' })),
        next: { from: lines.length === limit ? (lines.at(-1) ?? 0) + 1 : end, offset: 0 },
        is_at_end: end > server.total,
        is_complete: server.isComplete,
      }
      return answer
    },
    messageOf: (error) => (error as Error).message,
  }
  return { server, source, found }
}

const terms = { query: 'x', matchesCase: false, isPattern: false }
let search: OutputSearch

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  search.end()
  vi.useRealTimers()
})

const settle = (ms = 0): Promise<unknown> => vi.advanceTimersByTimeAsync(ms)

describe('a search', () => {
  test('goes through everything, from what is looked at on', async () => {
    const { source, server } = createServer([5, 300, 450, 451, 999], 1000)
    const seen: (number | undefined)[] = []
    search = createOutputSearch(source, terms, { line: 440, total: 1000 }, () => seen.push(search.next(439, 1)))
    await settle()
    expect(search.state).toEqual({ count: 5, share: 1, phase: 'done', reason: undefined })
    expect(seen.find((line) => line !== undefined)).toBe(450)
    expect(server.requests).toBe(6 + 5)
    expect([5, 300, 450, 451, 999].map((line) => search.placeOf(line))).toEqual([1, 2, 3, 4, 5])
    expect([4, 5, 439, 440, 450, 452].map((line) => search.isFound(line))).toEqual([
      false,
      true,
      false,
      false,
      true,
      false,
    ])
  })

  test('leads from line to line, and around the ends', async () => {
    const { source } = createServer([5, 300, 450], 1000)
    search = createOutputSearch(source, terms, { line: 400, total: 1000 }, () => undefined)
    await settle()
    expect([1, 5, 300, 400, 450, 999].map((line) => search.next(line, 1))).toEqual([5, 300, 450, 450, 5, 5])
    expect([1, 5, 300, 400, 450, 999].map((line) => search.next(line, -1))).toEqual([450, 450, 5, 300, 300, 450])
  })

  test('that has found nothing leads nowhere', async () => {
    const { source } = createServer([], 0)
    search = createOutputSearch(source, terms, { line: 1, total: 0 }, () => undefined)
    await settle()
    expect(search.state).toMatchObject({ phase: 'done', count: 0, share: 1 })
    expect([search.next(1, 1), search.next(1, -1)]).toEqual([undefined, undefined])
  })

  test('leads around an end only once that was reached', async () => {
    const { source, server } = createServer([5, 300], 1000)
    let open: () => void = () => undefined
    search = createOutputSearch(source, terms, { line: 200, total: 1000 }, () => undefined)
    await vi.waitUntil(() => server.requests === 1)
    server.gate = new Promise((resolve) => (open = resolve))
    await settle()
    expect(search.next(250, 1)).toBeUndefined()
    expect(search.state.phase).toBe('searching')
    expect(search.state.share).toBeLessThan(0.5)
    open()
    await settle()
    expect(search.next(300, 1)).toBe(5)
  })

  test('can be stopped and taken up', async () => {
    const { source, server } = createServer([5, 300, 950], 1000)
    let isStopped = false
    search = createOutputSearch(source, terms, { line: 1, total: 1000 }, () => {
      if (server.requests !== 4 || isStopped) return
      isStopped = true
      search.stop()
    })
    await settle()
    expect(search.state).toMatchObject({ phase: 'stopped', count: 2 })
    const { requests } = server
    await settle(60_000)
    expect(server.requests).toBe(requests)
    search.goOn()
    await settle()
    expect(search.state).toMatchObject({ phase: 'done', count: 3 })
    expect(server.requests).toBeLessThan(13)
  })

  test('finds what is written later', async () => {
    const { source, server, found } = createServer([5], 10)
    server.isComplete = false
    search = createOutputSearch(source, terms, { line: 4, total: 10 }, () => undefined)
    await settle()
    expect(search.state).toMatchObject({ phase: 'done', count: 1 })
    found.push(12, 250)
    server.total = 300
    await settle(3100)
    expect(search.state).toMatchObject({ phase: 'done', count: 3 })
    expect(search.next(5, 1)).toBe(12)
    server.isComplete = true
    await settle(3100)
    const { requests } = server
    await settle(60_000)
    expect(server.requests).toBe(requests)
  })

  test('says why it failed, and can be taken up', async () => {
    const { source, server } = createServer([5], 10)
    server.failure = 'not usable'
    search = createOutputSearch(source, terms, { line: 1, total: 10 }, () => undefined)
    await settle()
    expect(search.state).toMatchObject({ phase: 'failed', reason: 'not usable' })
    server.failure = undefined
    search.goOn()
    await settle()
    expect(search.state).toMatchObject({ phase: 'done', count: 1 })
  })

  fullOnly(test)('stops at a hundred thousand lines', async () => {
    const { source } = createServer(
      Array.from({ length: 150_000 }, (_, i) => i + 1),
      150_000,
    )
    search = createOutputSearch(source, terms, { line: 1, total: 150_000 }, () => undefined)
    await settle()
    expect(search.state).toMatchObject({ phase: 'stopped', count: 100_000 })
    search.goOn()
    await settle()
    expect(search.state.count).toBe(100_000)
  })

  test('keeps what a pattern has found', async () => {
    const { source } = createServer([5, 300], 1000)
    search = createOutputSearch(source, { ...terms, isPattern: true }, { line: 1, total: 1000 }, () => undefined)
    await settle()
    expect([5, 300, 6].map((line) => search.textIn(line))).toEqual(['m5', 'm300', undefined])
  })
})

test.for<[string, string, boolean, [number, number][]]>([
  [
    'abcabc',
    'b',
    true,
    [
      [1, 2],
      [4, 5],
    ],
  ],
  ['aBc', 'b', true, []],
  ['aBc', 'b', false, [[1, 2]]],
  ['a.c abc', 'a.c', false, [[0, 3]]],
  ['(a)[b]{c}\\d/e-f', '(a)[b]{c}\\d/e-f', false, [[0, 15]]],
  ['x😀y', '😀', true, [[1, 3]]],
  ['aaa', 'aa', true, [[0, 2]]],
  ['abc', '', true, []],
])('places in %j of %j', ([text, query, matchesCase, places]) => {
  expect(placesOf(text, { query, matchesCase }).map(({ start, end }) => [start, end])).toEqual(places)
})
