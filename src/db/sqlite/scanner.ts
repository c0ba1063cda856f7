/** Queries whose cost grows with the table, on a thread of their own so that nobody waits for them. */
import { Worker } from 'node:worker_threads'
import { queueFull, shuttingDown } from '../../errors.ts'
import type { ScanAnswer, ScanRequest } from './scan-thread.ts'

const MAX_WAITING = 32
/** A thread costs about 10 MB; it goes when nobody asked for half a minute. */
const IDLE_MS = 30_000

interface Waiting {
  resolve(rows: unknown[]): void
  reject(error: unknown): void
}

export interface Scanner {
  scan(sql: string, parameters: readonly unknown[]): Promise<unknown[]>
  stop(): Promise<void>
}

export function createScanner(path: string): Scanner {
  const waiting = new Map<number, Waiting>()
  let worker: Worker | undefined
  let idle: NodeJS.Timeout | undefined
  let n = 0
  let stopped = false

  function start(): Worker {
    const file = import.meta.url.endsWith('.ts') ? './scan-thread.ts' : './scan-thread.js'
    const started = new Worker(new URL(file, import.meta.url), { workerData: { path } })
    started.unref()
    started.on('message', (answer: ScanAnswer) => {
      const asked = waiting.get(answer.n)
      waiting.delete(answer.n)
      if ('error' in answer) asked?.reject(new Error(answer.error))
      else asked?.resolve(answer.rows)
      if (waiting.size === 0) rest()
    })
    const fail = (error: Error): void => {
      if (worker === started) worker = undefined
      for (const asked of waiting.values()) asked.reject(error)
      waiting.clear()
    }
    started.on('error', fail)
    started.on('exit', () => {
      if (worker === started) fail(new Error('the scan thread ended'))
    })
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

  return {
    scan(sql, parameters) {
      if (stopped) return Promise.reject(shuttingDown())
      if (waiting.size >= MAX_WAITING) return Promise.reject(queueFull('searches', MAX_WAITING))
      clearTimeout(idle)
      worker ??= start()
      worker.ref()
      n += 1
      const request: ScanRequest = { n, sql, parameters }
      return new Promise((resolve, reject) => {
        waiting.set(request.n, { resolve, reject })
        worker?.postMessage(request)
      })
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
