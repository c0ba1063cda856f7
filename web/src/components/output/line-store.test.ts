import { describe, expect, test } from 'vitest'
import { createRandom, seedOfRun } from '../../../../tests/helpers/random.ts'
import type { OutputLine, OutputLines, OutputType } from '../../api/records.ts'
import { createLineStore, PAGE_LINES, type LineStore, type LiveRecord } from './line-store.ts'

const line = (number: number, data = `line ${number}`): OutputLine => ({
  number,
  timestamp: 't',
  parts: [{ output_type: 'stdout', data }],
})

/** What the server answers about an output of so many lines. */
function answer(total: number, from: number, limit: number, isOpen = false): OutputLines {
  const end = Math.min(total + 1, from + limit)
  return {
    total,
    is_last_line_open: isOpen,
    bytes: { stdout: total, stderr: 0, other: 0 },
    is_complete: false,
    is_stored: true,
    is_beginning_removed: false,
    last_seq: 1,
    lines: Array.from({ length: Math.max(0, end - from) }, (_, i) => line(from + i)),
  }
}

const record = (data: string, more: Partial<LiveRecord> = {}): LiveRecord => ({
  output_type: 'stdout',
  data,
  timestamp: 't',
  ...more,
})

const textOf = (store: LineStore, number: number): string | undefined =>
  store
    .line(number)
    ?.parts.map(({ data }) => data)
    .join('')

describe('the end', () => {
  test('grows by records that end lines or do not', () => {
    const store = createLineStore()
    store.setEnd({ ...answer(2, 1, 200), is_last_line_open: true })
    store.append(record(' goes on'))
    expect([store.total, textOf(store, 2)]).toEqual([2, 'line 2 goes on'])
    store.append(record('\nthird\n\nfi'))
    store.append(record('fth', { output_type: 'stderr', timestamp: 'later' }))
    expect([store.total, store.isLastLineOpen]).toEqual([5, true])
    expect([3, 4, 5].map((number) => textOf(store, number))).toEqual(['third', '', 'fifth'])
    expect(store.line(5)?.parts.map(({ output_type: type }) => type)).toEqual(['stdout', 'stderr'])
    expect(store.line(5)?.timestamp).toBe('t')
  })

  const seed = seedOfRun()
  test(`has the lines of the text, whatever pieces it comes in (seed ${seed})`, () => {
    const random = createRandom(seed)
    for (let round = 0; round < 100; round++) {
      const store = createLineStore()
      let text = ''
      for (let n = random.below(40); n > 0; n--) {
        const data = Array.from({ length: 1 + random.below(6) }, () => random.pick(['a', 'b', '\n', '\r', '😀'])).join(
          '',
        )
        store.append(record(data, { output_type: random.pick<OutputType>(['stdout', 'stderr']) }))
        text += data
      }
      const lines = text.split('\n')
      if (lines.at(-1) === '') lines.pop()
      expect(Array.from({ length: store.total }, (_, i) => textOf(store, i + 1))).toEqual(lines)
    }
  })

  test('is bounded, and what went from it is missing', () => {
    const store = createLineStore()
    for (let i = 1; i <= 20_000; i++) store.append(record(`line ${i}\n`))
    expect(store.total).toBe(20_000)
    expect(textOf(store, 20_000)).toBe('line 20000')
    expect(store.line(10_000)).toBeUndefined()
    expect(store.missing(10_000, 10_050)).toEqual({ from: 9801, limit: PAGE_LINES })
    for (let i = 0; i < 100; i++) store.append(record(`${'x'.repeat(16_000)}\n`.repeat(10)))
    const kept = Array.from({ length: store.total }, (_, i) => store.line(i + 1)).filter((one) => one !== undefined)
    expect(kept.reduce((sum, { parts }) => sum + (parts[0]?.data.length ?? 0), 0)).toBeLessThan(7_000_000)
  })

  test('a line without end is cut, between characters, and its length is known', () => {
    const store = createLineStore()
    store.append(record(`a${'😀'.repeat(10_000)}`))
    store.append(record('€€'))
    const { parts = [], next_offset: next, length } = store.line(1) ?? {}
    expect(parts[0]?.data).toBe(`a${'😀'.repeat(8191)}`)
    expect(next).toBe(1 + 8191 * 4)
    expect(length).toBe(1 + 40_000 + 6)
    store.append(record('\nnext'))
    expect(textOf(store, 2)).toBe('next')
  })

  test('a line of a thousand parts is cut', () => {
    const store = createLineStore()
    for (let i = 0; i < 1000; i++) store.append(record('a', { output_type: i % 2 === 0 ? 'stdout' : 'stderr' }))
    expect(store.line(1)?.parts.length).toBeLessThanOrEqual(256)
    expect(store.line(1)?.length).toBe(1000)
  })
})

describe('pages', () => {
  test('are missing until they are added', () => {
    const store = createLineStore()
    store.setEnd(answer(10_000, 9801, 200))
    expect(store.missing(9801, 10_001)).toBeUndefined()
    expect(store.missing(500, 560)).toEqual({ from: 401, limit: 200 })
    store.addPage(answer(10_000, 401, 50))
    expect(store.missing(500, 560)).toEqual({ from: 451, limit: 150 })
    store.addPage(answer(10_000, 451, 150))
    expect(store.missing(500, 560)).toBeUndefined()
    expect(textOf(store, 600)).toBe('line 600')
    expect(store.missing(590, 620)).toEqual({ from: 601, limit: 200 })
  })

  test('that were used last are kept', () => {
    const store = createLineStore()
    store.setEnd(answer(1_000_000, 999_801, 200))
    for (let page = 0; page < 40; page++) {
      store.addPage(answer(1_000_000, page * 200 + 1, 200))
      expect(store.line(1)).toBeDefined()
    }
    expect(store.line(201)).toBeUndefined()
    expect(store.line(39 * 200 + 1)).toBeDefined()
  })

  test('have no line that goes on', () => {
    const store = createLineStore()
    store.setEnd(answer(10, 10, 1))
    store.addPage(answer(3, 1, 200, true))
    expect([1, 2, 3].map((number) => store.line(number) !== undefined)).toEqual([true, true, false])
  })

  test('are forgotten when there is less output than before', () => {
    const store = createLineStore()
    store.setEnd(answer(10_000, 9801, 200))
    store.addPage(answer(10_000, 1, 200))
    store.setEnd(answer(5000, 4801, 200))
    expect(store.line(1)).toBeUndefined()
    expect(store.total).toBe(5000)
  })

  test('that do not follow one another are not mixed up', () => {
    const store = createLineStore()
    store.setEnd(answer(10_000, 9801, 200))
    store.addPage(answer(10_000, 450, 10))
    expect(store.line(450)).toBeUndefined()
    expect(store.missing(450, 451)).toEqual({ from: 401, limit: 200 })
  })
})

test('hosts are noted wherever they turn up', () => {
  const store = createLineStore()
  store.append(record('a\n', { host: 'one' }))
  store.addPage({
    total: 1,
    is_last_line_open: false,
    lines: [{ number: 1, timestamp: 't', parts: [{ output_type: 'stdout', data: 'a', host: 'two' }] }],
  })
  expect([...store.hosts]).toEqual(['one', 'two'])
})
