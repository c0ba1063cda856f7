/** Batch questions about processes and their answers; asked in `process-reader.ts`, answered on its thread. */
import { hasCode } from '../../lib/process/index.ts'
import { countChildren, isRunning, type ProcessRow, readMark, readMarker, readProcess } from './process-table.ts'

export type KillSignal = 'SIGTERM' | 'SIGKILL'

/** Outcome of a signal to a process that existed. */
export interface Signalled {
  outcome: 'sent' | 'denied' | 'failed'
  /** Its children just before. */
  childCount: number
}

/** Flat, because thousands of small objects are slow to send: pid, start time, pid, start time and so on. */
export type ProcessKeys = number[]

/** One answer for each item. */
export type ProcessQuestion =
  | { kind: 'rows'; items: number[] }
  | { kind: 'children'; items: number[] }
  | { kind: 'markers'; items: number[]; name: string }
  | { kind: 'marks'; items: number[] }
  | { kind: 'running'; items: ProcessKeys[] }
  | { kind: 'signals'; items: ProcessKeys[]; signal: KillSignal }
  | { kind: 'groups'; items: number[]; signal: KillSignal }

export type ProcessAnswer = ProcessRow | number | bigint | string | boolean | Signalled | undefined | null

/** Longest time until another question gets its turn; the kernel can make a single read take longer. */
const SLICE_MS = 10

/** Answers at least the first item; the caller asks again for the rest. */
export function answerAbout(question: ProcessQuestion): ProcessAnswer[] {
  switch (question.kind) {
    case 'rows':
      return slice(question.items, readProcess)
    case 'children':
      return slice(question.items, countChildren)
    case 'markers':
      return slice(question.items, (pid) => readMarker(pid, question.name))
    case 'marks':
      return slice(question.items, readMark)
    case 'running':
      return slice(question.items, isAnyRunning)
    case 'signals':
      return slice(question.items, (key) => sendSignal(key, question.signal))
    case 'groups':
      return slice(question.items, (group) => kill(-group, question.signal) === 'sent')
  }
}

function slice<T>(items: readonly T[], answer: (item: T) => ProcessAnswer): ProcessAnswer[] {
  const end = performance.now() + SLICE_MS
  const answers: ProcessAnswer[] = []
  for (const item of items) {
    answers.push(answer(item))
    if (performance.now() > end) break
  }
  return answers
}

function isAnyRunning(keys: ProcessKeys): boolean {
  for (let index = 0; index < keys.length; index += 2) {
    if (isRunning(keys[index] ?? 0, keys[index + 1] ?? 0)) return true
  }
  return false
}

/** Undefined when the process is gone. Checks again just before the signal: the pid may be reused by now. */
function sendSignal([pid = 0, startTime = 0]: ProcessKeys, signal: KillSignal): Signalled | undefined {
  if (!isRunning(pid, startTime)) return undefined
  const childCount = signal === 'SIGTERM' ? countChildren(pid) : 0
  return { outcome: kill(pid, signal), childCount }
}

function kill(pid: number, signal: KillSignal): Signalled['outcome'] {
  try {
    process.kill(pid, signal)
    return 'sent'
  } catch (error) {
    return hasCode(error, 'EPERM') ? 'denied' : 'failed'
  }
}
