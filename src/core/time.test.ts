import { afterEach, describe, expect, test, vi } from 'vitest'
import { formatMicros, microsOf, now, nowMicros, parseTimestamp, secondsBetween } from './time.ts'

describe('the clock', () => {
  let clocks = 0

  afterEach(() => {
    vi.restoreAllMocks()
  })

  test('ascends strictly and agrees with the system', () => {
    const times = Array.from({ length: 50_000 }, () => nowMicros())
    expect(times.filter((micros, i) => i > 0 && micros <= (times[i - 1] ?? 0))).toEqual([])
    expect(Math.abs(nowMicros() / 1000 - Date.now())).toBeLessThan(1000)
    expect(now()).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
  })

  /** A clock of its own, because the real one is shared with every other test. */
  async function clockAt(startMs: number) {
    const at = { wall: startMs, monotonic: 1000 }
    vi.spyOn(Date, 'now').mockImplementation(() => Math.floor(at.wall))
    vi.spyOn(performance, 'now').mockImplementation(() => at.monotonic)
    clocks += 1
    const copy = `./time.ts?clock=${clocks}`
    const clock = (await import(/* @vite-ignore */ copy)) as typeof import('./time.ts') // a second copy of that module
    const pass = (ms: number): void => {
      at.wall += ms
      at.monotonic += ms
    }
    return { ...clock, at, pass }
  }

  test('has microseconds', async () => {
    const { nowMicros: read, pass } = await clockAt(1_700_000_000_000)
    expect(read()).toBe(1_700_000_000_000_000)
    pass(0.25)
    expect(read()).toBe(1_700_000_000_000_250)
    expect(read()).toBe(1_700_000_000_000_251)
  })

  test('follows a system clock that was set forward', async () => {
    const { nowMicros: read, at, pass } = await clockAt(1_700_000_000_000)
    read()
    at.wall += 3_600_000
    pass(1)
    expect(read()).toBe((1_700_000_000_000 + 3_600_000 + 1) * 1000)
  })

  test('follows one that was set back far, and counts', async () => {
    const { nowMicros: read, setBacksSoFar, at, pass } = await clockAt(1_700_000_000_000)
    const before = read()
    expect(setBacksSoFar()).toBe(0)
    at.wall -= 86_400_000
    pass(1000)
    expect(read()).toBe(before + 1_000_000 - 86_400_000_000)
    expect(setBacksSoFar()).toBe(1)
    at.wall -= 3_600_000
    pass(1)
    expect(read()).toBeLessThan(before - 86_400_000_000 - 3_590_000_000)
    expect(setBacksSoFar()).toBe(2)
  })

  test('goes on, at half speed, after one that was set back, until the two meet', async () => {
    const { nowMicros: read, at, pass } = await clockAt(1_700_000_000_000)
    const start = read()
    at.wall -= 60_000
    pass(10_001)
    const then = read()
    expect(then).toBeGreaterThan(start)
    pass(1000)
    expect(read()).toBe(then + 500_000)
    for (let second = 0; second < 180; second++) {
      pass(1000)
      read()
    }
    expect(read() / 1000 - at.wall).toBeLessThan(1)
  })
})

describe('wire text', () => {
  test.each([
    [0, '1970-01-01T00:00:00.000000Z'],
    [1, '1970-01-01T00:00:00.000001Z'],
    [1_700_000_000_123_456, '2023-11-14T22:13:20.123456Z'],
    [1_700_000_000_999_999, '2023-11-14T22:13:20.999999Z'],
    [1_700_000_001_000_000, '2023-11-14T22:13:21.000000Z'],
  ])('%d is %s, and back', (micros, text) => {
    expect(formatMicros(micros)).toBe(text)
    expect(microsOf(text)).toBe(micros)
  })

  test('of any microsecond reads back as the same one', () => {
    const any = Array.from({ length: 10_000 }, () => Math.floor(Math.random() * 4_000_000_000_000_000))
    expect(any.filter((micros) => microsOf(formatMicros(micros)) !== micros)).toEqual([])
  })

  test('durations have microsecond precision', () => {
    expect(secondsBetween('2030-01-01T00:00:00.000001Z', '2030-01-01T00:01:00.000003Z')).toBe(60.000002)
    expect(secondsBetween('2030-01-01T00:00:00.000000Z', '2030-01-01T00:00:00.000000Z')).toBe(0)
  })
})

describe('a client’s timestamp', () => {
  test.each([
    ['2030-01-02T03:04:05Z', '2030-01-02T03:04:05.000000Z'],
    ['2030-01-02 03:04:05Z', '2030-01-02T03:04:05.000000Z'],
    ['2030-01-02T03:04:05.123Z', '2030-01-02T03:04:05.123000Z'],
    ['2030-01-02T03:04:05.1234Z', '2030-01-02T03:04:05.123400Z'],
    ['2030-01-02T03:04:05.123456Z', '2030-01-02T03:04:05.123456Z'],
    ['2030-01-02T03:04:05+00', '2030-01-02T03:04:05.000000Z'],
    ['2030-01-02T03:04:05+0000', '2030-01-02T03:04:05.000000Z'],
    ['2030-01-02T03:04:05.123456+00:00', '2030-01-02T03:04:05.123456Z'],
    ['2028-02-29T00:00:00Z', '2028-02-29T00:00:00.000000Z'],
  ])('%s', (text, wire) => {
    expect(parseTimestamp(text)).toBe(wire)
  })

  test.each([
    '',
    'now',
    '2030-01-02',
    '2030-01-02T03:04:05',
    '2030-01-02T03:04Z',
    '2030-01-02T03:04:05.1Z',
    '2030-01-02T03:04:05.12Z',
    '2030-01-02T03:04:05.1234567Z',
    '2030-01-02T03:04:05.Z',
    '2030-01-02T03:04:05+01:00',
    '2030-01-02T03:04:05-00:00',
    '2030-01-02t03:04:05z',
    '2030-13-01T00:00:00Z',
    '2030-00-01T00:00:00Z',
    '2030-02-30T00:00:00Z',
    '2029-02-29T00:00:00Z',
    '2030-01-02T24:00:00Z',
    '2030-01-02T03:60:00Z',
    '2030-01-02T03:04:60Z',
    ' 2030-01-02T03:04:05Z',
    '2030-01-02T03:04:05Z\n',
    '٢٠٣٠-01-02T03:04:05Z',
  ])('%j is refused', (text) => {
    expect(parseTimestamp(text)).toBeUndefined()
  })
})
