/** What would stop the event loop, on a thread: queries whose cost grows with the table, and checkpoints. */
import { Worker } from 'node:worker_threads'
import { queueFull, shuttingDown } from '../../errors.ts'
import type { BackgroundAnswer, BackgroundTask } from './background-thread.ts'

const MAX_WAITING = 32
/** A thread costs about 10 MB; it goes when nobody asked for half a minute. */
const IDLE_MS = 30_000

interface Waiting {
  resolve(rows: unknown[]): void
  reject(error: unknown): void
}

type WithoutNumber<T> = T extends unknown ? Omit<T, 'n'> : never

export interface Background {
  /** @throws QUEUE_FULL with 32 waiting */
  scan(sql: string, parameters: readonly unknown[]): Promise<unknown[]>
  /** Copies what it can of the write-ahead log into the database; never rejects. */
  checkpoint(): Promise<void>
  stop(): Promise<void>
}

export function createBackground(path: string): Background {
  const waiting = new Map<number, Waiting>()
  let worker: Worker | undefined
  let idle: NodeJS.Timeout | undefined
  let n = 0
  let stopped = false

  function start(): Worker {
    const file = import.meta.url.endsWith('.ts') ? './background-thread.ts' : './background-thread.js'
    const started = new Worker(new URL(file, import.meta.url), { workerData: { path } })
    started.unref()
    started.on('message', (answer: BackgroundAnswer) => {
      const asked = waiting.get(answer.n)
      waiting.delete(answer.n)
      if ('error' in answer) asked?.reject(new Error(answer.error))
      else asked?.resolve(answer.rows)
      if (waiting.size === 0) rest()
    })
    const fail = (error: Error): void => {
      // One that was resting has nobody waiting; those who wait now asked its successor.
      if (worker !== started) return
      worker = undefined
      for (const asked of waiting.values()) asked.reject(error)
      waiting.clear()
    }
    started.on('error', fail)
    started.on('exit', () => fail(new Error('the background thread ended')))
    return started
  }

  function rest(): void {
    worker?.unref()
    idle = setTimeout(() => {
      const resting = worker
      worker = undefined
      void resting?.terminate()
    }, IDLE_MS)
    idle.unref()
  }

  function ask(task: WithoutNumber<BackgroundTask>): Promise<unknown[]> {
    clearTimeout(idle)
    worker ??= start()
    const asked = worker
    n += 1
    const numbered: BackgroundTask = { ...task, n }
    return new Promise((resolve, reject) => {
      asked.postMessage(numbered)
      asked.ref()
      waiting.set(numbered.n, { resolve, reject })
    })
  }

  return {
    scan(sql, parameters) {
      if (stopped) return Promise.reject(shuttingDown())
      if (waiting.size >= MAX_WAITING) return Promise.reject(queueFull('searches', MAX_WAITING))
      return ask({ kind: 'scan', sql, parameters })
    },
    async checkpoint() {
      if (stopped) return
      // A failed one is made up for by the next, or by the writing connection.
      await ask({ kind: 'checkpoint' }).catch(() => undefined)
    },
    async stop() {
      stopped = true
      clearTimeout(idle)
      const ending = worker
      worker = undefined
      for (const asked of waiting.values()) asked.reject(shuttingDown())
      waiting.clear()
      await ending?.terminate()
    },
  }
}
