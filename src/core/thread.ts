/**
 * Threads that answer one question after another, for work that would hold up the event loop. A thread is started for the
 * first question and ended when nobody asked for half a minute, because it costs about 10 MB.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { parentPort, type Worker } from 'node:worker_threads'
import { startWorker } from './bundle.ts'
import { shuttingDown } from './errors.ts'
import { codeOf } from '../lib/process/index.ts'

const IDLE_MS = 30_000
/** Ending a thread while it loads native code aborts the process; one that takes longer waits for something else. */
const MAX_LOADING_MS = 2000

export interface Thread<Question, Answer> {
  /** Rejects with what the thread threw, as a plain `Error` with its `code`, if it had one. Whoever calls bounds how many wait. */
  ask(question: Question): Promise<Answer>
  readonly waitingCount: number
  /** Rejects whoever waits; idempotent. */
  stop(): Promise<void>
}

interface Asked<Question> {
  n: number
  question: Question
}

type Answered<Answer> = { n: number; answer: Answer } | { n: number; error: string; code: string | undefined }

/** What a thread says first. */
const ready = 'ready'

interface Waiting<Answer> {
  resolve(answer: Answer): void
  reject(error: unknown): void
}

export interface ThreadOptions {
  /** For messages: `the thread for password checks`. */
  name: string
  /** From `locateCode`; the file calls `answerQuestions`. */
  file: URL
  /** What the file finds as `workerData`. */
  data?: unknown
}

export function createThread<Question, Answer>(options: ThreadOptions): Thread<Question, Answer> {
  const waiting = new Map<number, Waiting<Answer>>()
  let worker: Worker | undefined
  const loading = new WeakMap<Worker, Promise<void>>()
  let idle: NodeJS.Timeout | undefined
  let n = 0
  let isStopped = false

  function start(): Worker {
    const started = startWorker(options.file, { workerData: options.data })
    const { promise: loaded, resolve: endLoading } = Promise.withResolvers<void>()
    loading.set(started, loaded)
    started.on('message', (answered: Answered<Answer> | typeof ready) => {
      endLoading()
      if (answered === ready) return
      const asked = waiting.get(answered.n)
      waiting.delete(answered.n)
      if ('error' in answered) asked?.reject(errorOf(answered))
      else asked?.resolve(answered.answer)
      if (waiting.size === 0) rest()
    })
    const fail = (error: Error): void => {
      endLoading()
      // One that was resting has nobody waiting; those who wait now asked its successor.
      if (worker !== started) return
      worker = undefined
      rejectAll(error)
    }
    started.on('error', fail)
    started.on('exit', () => fail(new Error(`${options.name} ended`)))
    return started
  }

  async function end(ending: Worker): Promise<void> {
    const late = new AbortController()
    await Promise.race([loading.get(ending), delay(MAX_LOADING_MS, undefined, late).catch(() => undefined)])
    late.abort()
    await ending.terminate()
  }

  function rest(): void {
    worker?.unref()
    clearTimeout(idle)
    idle = setTimeout(() => {
      const resting = worker
      worker = undefined
      if (resting !== undefined) void end(resting)
    }, IDLE_MS)
    idle.unref()
  }

  function rejectAll(error: unknown): void {
    for (const asked of waiting.values()) asked.reject(error)
    waiting.clear()
  }

  return {
    get waitingCount() {
      return waiting.size
    },
    ask(question) {
      if (isStopped) return Promise.reject(shuttingDown())
      clearTimeout(idle)
      n += 1
      const asked: Asked<Question> = { n, question }
      // In here, so that a thread that cannot be started or a question that cannot be sent rejects, as other failures do.
      return new Promise((resolve, reject) => {
        const current = (worker ??= start())
        current.postMessage(asked)
        current.ref()
        waiting.set(asked.n, { resolve, reject })
      })
    },
    async stop() {
      isStopped = true
      clearTimeout(idle)
      const ending = worker
      worker = undefined
      rejectAll(shuttingDown())
      if (ending !== undefined) await end(ending)
    },
  }
}

function errorOf({ error, code }: { error: string; code: string | undefined }): Error {
  return code === undefined ? new Error(error) : Object.assign(new Error(error), { code })
}

/** The other side: what a thread's file calls. */
export function answerQuestions<Question, Answer>(answer: (question: Question) => Answer | Promise<Answer>): void {
  const respond = async ({ n, question }: Asked<Question>): Promise<void> => {
    let answered: Answered<Answer>
    try {
      answered = { n, answer: await answer(question) }
    } catch (error) {
      answered = { n, error: error instanceof Error ? error.message : String(error), code: codeOf(error) }
    }
    parentPort?.postMessage(answered)
  }
  parentPort?.postMessage(ready)
  parentPort?.on('message', (asked: Asked<Question>) => void respond(asked))
}
