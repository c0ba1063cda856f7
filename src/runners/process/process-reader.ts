/**
 * Reads and signals many processes on a thread. In a storm of processes the kernel takes up to some 100 ms to read one,
 * and thousands of them take long in any case: both stopped the event loop (measured: 0.7 s with five storms).
 */
import { setImmediate } from 'node:timers/promises'
import { locateCode } from '../../core/bundle.ts'
import { createThread } from '../../core/thread.ts'
import {
  answerAbout,
  type KillSignal,
  type ProcessAnswer,
  type ProcessKeys,
  type ProcessQuestion,
  type Signalled,
} from './process-questions.ts'
import type { ProcessRow } from './process-table.ts'

/** Every list of answers matches the list of items in length and order. */
export interface ProcessReader {
  rows(pids: number[]): Promise<(ProcessRow | undefined)[]>
  /** See `readMarker`. */
  markers(pids: number[], name: string): Promise<(string | undefined | null)[]>
  /** See `readMark`. */
  marks(pids: number[]): Promise<(bigint | undefined)[]>
  /** See `countChildren`. */
  childCounts(pids: number[]): Promise<number[]>
  /** For each list, whether any of its processes runs. */
  areRunning(lists: ProcessKeys[]): Promise<boolean[]>
  /** Signals each process that is still the same; undefined for those that are gone. */
  signal(processes: ProcessRow[], signal: KillSignal): Promise<(Signalled | undefined)[]>
  /** Ignores groups that are gone or out of reach. */
  signalGroups(groups: number[], signal: KillSignal): Promise<void>
  /** Stops the thread; idempotent. Later questions are still answered. */
  stop(): Promise<void>
}

/** Items per message. */
const MAX_ITEMS = 256

export function createProcessReader(): ProcessReader {
  const thread = createThread<ProcessQuestion, ProcessAnswer[]>({
    name: 'the thread that reads about processes',
    file: locateCode('./process-reader-thread', import.meta.url),
  })

  /** On a machine that cannot start threads, processes must still be stopped, even if the event loop waits. */
  async function answerHere(question: ProcessQuestion): Promise<ProcessAnswer[]> {
    await setImmediate()
    return answerAbout(question)
  }

  async function ask<Answer extends ProcessAnswer>(question: ProcessQuestion): Promise<Answer[]> {
    const answers: ProcessAnswer[] = []
    while (answers.length < question.items.length) {
      // Items are of the kind they were.
      const part = {
        ...question,
        items: question.items.slice(answers.length, answers.length + MAX_ITEMS),
      } as ProcessQuestion
      answers.push(...(await thread.ask(part).catch(() => answerHere(part))))
    }
    // Each kind of question has its kind of answer, which the callers below name.
    return answers as Answer[]
  }

  return {
    rows: (items) => ask({ kind: 'rows', items }),
    markers: (items, name) => ask({ kind: 'markers', items, name }),
    marks: (items) => ask({ kind: 'marks', items }),
    childCounts: (items) => ask({ kind: 'children', items }),
    areRunning: (items) => ask({ kind: 'running', items }),
    signal: (rows, signal) => ask({ kind: 'signals', items: rows.map((row) => [row.pid, row.startTime]), signal }),
    async signalGroups(items, signal) {
      await ask({ kind: 'groups', items, signal })
    },
    stop: () => thread.stop(),
  }
}
