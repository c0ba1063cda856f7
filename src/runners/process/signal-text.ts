/** Says in words how a process ended that svc did not stop. */
import { constants } from 'node:os'
import type { Exit } from './launcher.ts'

const REAL_TIME_SIGNALS = { first: 32, last: 64 } as const

/** What most often sends a signal. */
const hints: Readonly<Record<string, string>> = {
  SIGHUP: 'its terminal or session closed?',
  SIGINT: 'interrupted',
  SIGQUIT: 'asked to quit',
  SIGILL: 'illegal instruction',
  SIGTRAP: 'trace trap',
  SIGABRT: 'it aborted itself',
  SIGBUS: 'invalid memory access; a mapped file was truncated?',
  SIGFPE: 'arithmetic error',
  SIGKILL: 'out of memory?',
  SIGSEGV: 'invalid memory access',
  SIGPIPE: 'it wrote to a closed pipe',
  SIGALRM: 'its own timer expired',
  SIGTERM: 'asked to terminate',
  SIGXCPU: 'it used up its limit of processor time',
  SIGXFSZ: 'a file reached its size limit',
  SIGSYS: 'forbidden system call',
}

/** Programs exit by themselves with 128 and one of these numbers, git with 129. */
const harmless: ReadonlySet<number> = new Set([
  1, 2, 3, 5, 10, 12, 13, 14, 16, 17, 18, 19, 20, 21, 22, 23, 26, 27, 28, 29, 30,
])

/** Such as `signal 9 (SIGKILL; out of memory?)`. */
function nameSignal(number: number): string | undefined {
  const name = Object.entries(constants.signals).find(([, known]) => known === number)?.[0]
  if (name === undefined) {
    const isRealTime = number >= REAL_TIME_SIGNALS.first && number <= REAL_TIME_SIGNALS.last
    return isRealTime ? `signal ${number} (real-time signal)` : undefined
  }
  const hint = hints[name]
  return `signal ${number} (${hint === undefined ? name : `${name}; ${hint}`})`
}

/**
 * Such as `killed by signal 9 (SIGKILL; out of memory?)`. Undefined for a process that exited by itself, except with a
 * code by which shells report that a signal killed their program.
 */
export function signalText({
  code,
  signal,
}: Exit | { code: number | null; signal: number | null }): string | undefined {
  if (signal !== null) {
    const number = typeof signal === 'number' ? signal : constants.signals[signal]
    return `killed by ${nameSignal(number) ?? `signal ${number}`}`
  }
  if (code === null || code <= 128 || harmless.has(code - 128)) return undefined
  const name = nameSignal(code - 128)
  return name === undefined ? undefined : `exit code ${code}: its program was probably killed by ${name}`
}
