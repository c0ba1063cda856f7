import { expect, test } from 'vitest'
import { signalText } from './signal-text.ts'

test.each([
  [{ code: null, signal: 'SIGKILL' as const }, 'killed by signal 9 (SIGKILL; out of memory?)'],
  [{ code: null, signal: 'SIGUSR2' as const }, 'killed by signal 12 (SIGUSR2)'],
  [{ code: null, signal: 99 }, 'killed by signal 99'],
  [{ code: 168, signal: null }, 'exit code 168: its program was probably killed by signal 40 (real-time signal)'],
  [
    { code: 143, signal: null },
    'exit code 143: its program was probably killed by signal 15 (SIGTERM; asked to terminate)',
  ],
])('names the signal of %j', (exit, text) => {
  expect(signalText(exit)).toBe(text)
})

test.each([0, 1, 127, 128, 129, 130, 193, 255, null])('names no signal for the exit code %s', (code) => {
  expect(signalText({ code, signal: null })).toBeUndefined()
})
