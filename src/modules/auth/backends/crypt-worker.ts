/** Password checks that would hold up the event loop, on a thread of their own. */
import { Worker } from 'node:worker_threads'
import { shuttingDown } from '../../../errors.ts'
import type { CryptAnswer, CryptRequest } from './crypt-thread.ts'

/** A thread costs about 10 MB; it goes when nobody logged in for half a minute. */
const IDLE_MS = 30_000

interface Waiting {
  resolve(matches: boolean): void
  reject(error: unknown): void
}

export interface CryptWorker {
  /** One check after another; whoever calls bounds how many wait. */
  verify(hash: string, password: string): Promise<boolean>
  stop(): Promise<void>
}

export function createCryptWorker(): CryptWorker {
  const waiting = new Map<number, Waiting>()
  let worker: Worker | undefined
  let idle: NodeJS.Timeout | undefined
  let n = 0
  let isStopped = false

  function start(): Worker {
    const file = import.meta.url.endsWith('.ts') ? './crypt-thread.ts' : './crypt-thread.js'
    const started = new Worker(new URL(file, import.meta.url))
    started.on('message', (answer: CryptAnswer) => {
      const asked = waiting.get(answer.n)
      waiting.delete(answer.n)
      if ('error' in answer) asked?.reject(new Error(answer.error))
      else asked?.resolve(answer.matches)
      if (waiting.size === 0) rest()
    })
    const fail = (error: Error): void => {
      if (worker !== started) return
      worker = undefined
      for (const asked of waiting.values()) asked.reject(error)
      waiting.clear()
    }
    started.on('error', fail)
    started.on('exit', () => fail(new Error('the thread for password checks ended')))
    return started
  }

  function rest(): void {
    worker?.unref()
    clearTimeout(idle)
    idle = setTimeout(() => {
      const resting = worker
      worker = undefined
      void resting?.terminate()
    }, IDLE_MS)
    idle.unref()
  }

  return {
    verify(hash, password) {
      if (isStopped) return Promise.reject(shuttingDown())
      clearTimeout(idle)
      const current = (worker ??= start())
      current.ref()
      n += 1
      const request: CryptRequest = { n, hash, password }
      return new Promise((resolve, reject) => {
        waiting.set(request.n, { resolve, reject })
        current.postMessage(request)
      })
    },
    async stop() {
      isStopped = true
      clearTimeout(idle)
      const ending = worker
      worker = undefined
      for (const asked of waiting.values()) asked.reject(shuttingDown())
      waiting.clear()
      await ending?.terminate()
    },
  }
}
