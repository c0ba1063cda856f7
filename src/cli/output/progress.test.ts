import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { progressText, createProgressLine, formatElapsed, type ProgressStream } from './progress.ts'

const utf8 = { LANG: 'C.UTF-8', TERM: 'xterm' }

class Screen implements ProgressStream {
  readonly isTTY: boolean
  readonly columns: number
  written = ''
  constructor(columns = 40, isTTY = true) {
    this.columns = columns
    this.isTTY = isTTY
  }
  write = (text: string | Uint8Array): boolean => {
    this.written += String(text)
    return true
  }
  /** What the last line looks like: what stood in it before is gone. */
  get line(): string {
    return this.written.split('\n').at(-1)?.split('\r\u001b[K').at(-1) ?? ''
  }
}

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

describe('what is being waited for', () => {
  test('is told with the time, once it takes a while, and is gone in the end', () => {
    const screen = new Screen()
    const progress = createProgressLine(screen, utf8).start('Packing')
    vi.advanceTimersByTime(100)
    expect(screen.written).toBe('')
    vi.advanceTimersByTime(200)
    expect(screen.line).toBe('⠙ Packing (0s)')
    vi.advanceTimersByTime(65_000)
    progress.update('Sending')
    vi.advanceTimersByTime(100)
    expect(screen.line).toMatch(/^\S Sending \(1m 05s\)$/)
    progress.stop()
    expect(screen.line).toBe('')
    const { written } = screen
    vi.advanceTimersByTime(1000)
    expect(screen.written).toBe(written)
  })

  test('is what was started last', () => {
    const screen = new Screen()
    const line = createProgressLine(screen, utf8)
    const outer = line.start('outer')
    const inner = line.start('inner')
    vi.advanceTimersByTime(300)
    expect(screen.line).toContain('inner')
    inner.stop()
    inner.stop()
    vi.advanceTimersByTime(100)
    expect(screen.line).toContain('outer')
    outer.stop()
    expect(screen.line).toBe('')
    line.start('again')
    vi.advanceTimersByTime(300)
    expect(screen.line).toContain('again')
    line.close()
    expect(screen.line).toBe('')
  })

  test('makes way for whatever else is written, and does not draw over an unfinished line', () => {
    const screen = new Screen()
    const line = createProgressLine(screen, utf8)
    line.start('waiting')
    vi.advanceTimersByTime(300)
    line.makeWay('Name: ')
    screen.write('Name: ')
    expect(screen.line).toBe('Name: ')
    vi.advanceTimersByTime(1000)
    expect(screen.line).toBe('Name: ')
    line.makeWay('\n')
    screen.write('\n')
    vi.advanceTimersByTime(200)
    expect(screen.line).toContain('waiting')
    line.close()
  })

  test('takes one line of the terminal at most, and cannot steer it', () => {
    const screen = new Screen(20)
    const line = createProgressLine(screen, utf8)
    line.start('a\u001b[2J\u009b漢漢漢漢漢漢漢漢\nlast')
    vi.advanceTimersByTime(300)
    expect(screen.line).toBe('⠙ a\\u001b[2J\\u (0s)')
    line.close()
    const wide = createProgressLine(screen, utf8)
    wide.start('漢'.repeat(50))
    vi.advanceTimersByTime(300)
    expect(screen.line).toBe(`⠙ ${'漢'.repeat(6)} (0s)`)
    wide.close()
    const tiny = new Screen(3)
    const cramped = createProgressLine(tiny, utf8)
    cramped.start('text')
    vi.advanceTimersByTime(300)
    expect(tiny.line.length).toBeLessThan(3)
    cramped.close()
  })

  test('is not told where there is no terminal, or one that cannot go back', () => {
    for (const [screen, env] of [
      [new Screen(40, false), utf8],
      [new Screen(), { ...utf8, TERM: 'dumb' }],
    ] as const) {
      const line = createProgressLine(screen, env)
      const progress = line.start('x')
      vi.advanceTimersByTime(1000)
      progress.update('y')
      line.makeWay('z')
      progress.stop()
      line.close()
      expect(screen.written).toBe('')
    }
  })

  test('is drawn in ASCII where nothing else is sure to be shown', () => {
    for (const env of [{ TERM: 'linux', LANG: 'C.UTF-8' }, { TERM: 'xterm', LANG: 'C' }, { TERM: 'xterm' }]) {
      const screen = new Screen()
      const line = createProgressLine(screen, env)
      line.start('x')
      vi.advanceTimersByTime(300)
      expect(screen.line).toBe('/ x (0s)')
      line.close()
    }
  })
})

test('times', () => {
  expect([0, 999, 59_999, 60_000, 125_000, 3_600_000, 90_061_000].map(formatElapsed)).toEqual([
    '(0s)',
    '(0s)',
    '(59s)',
    '(1m 00s)',
    '(2m 05s)',
    '(1h 00m)',
    '(25h 01m)',
  ])
})

test('counts', () => {
  expect(progressText(0, 999)).toBe('0 of 999')
  expect(progressText(12_300, 1_000_000)).toBe('12,300 of 1,000,000')
})
