/**
 * Threads that answer questions one at a time, for work that would block the event loop. A thread starts with the first
 * question and ends after half a minute without one, because it costs about 10 MB.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { parentPort, type Worker } from 'node:worker_threads'
import { startWorker } from './bundle.ts'
import { machineClock, type Clock } from './clock.ts'
import { shuttingDown } from './errors.ts'
import { codeOf } from '../lib/process/index.ts'

const IDLE_MS = 30_000
/**
 * Terminating a thread while it loads native code aborts the process. A thread that takes longer is blocked by
 * something else.
 */
const MAX_LOADING_MS = 2000

export interface Thread<Question, Answer> {
  /**
   * Rejects with the error of the thread, as a plain `Error` with its `code`, if any, or with `ThreadTooSlow`. The caller
   * limits how many questions wait.
   */
  ask(question: Question): Promise<Answer>
  readonly waitingCount: number
  /** Rejects all waiting questions; idempotent. */
  stop(): Promise<void>
}

interface Asked<Question> {
  n: number
  question: Question
}

type Answered<Answer> = { n: number; answer: Answer } | { n: number; error: string; code: string | undefined }

/** The first message of a thread. */
const readyMessage = 'ready'

interface Waiting<Question, Answer> {
  question: Question
  resolve(answer: Answer): void
  reject(error: unknown): void
}

export interface ThreadOptions {
  /** For messages: `the thread for password checks`. */
  name: string
  /** From `locateCode`; the file calls `answerQuestions`. */
  file: URL
  /** Passed to the file as `workerData`. */
  data?: unknown
  /** That the thread may work on one question. Default: no limit. */
  maxMilliseconds?: number
  /** Default: that of the machine. */
  clock?: Pick<Clock, 'wait'>
}

/** The thread took longer than `maxMilliseconds` for the question. */
export class ThreadTooSlow extends Error {}

export function createThread<Question, Answer>(options: ThreadOptions): Thread<Question, Answer> {
  const { maxMilliseconds, clock = machineClock } = options
  /** The first one is being answered. */
  const waiting = new Map<number, Waiting<Question, Answer>>()
  const ready = new WeakSet<Worker>()
  let unwatch = (): void => undefined
  let worker: Worker | undefined
  const loading = new WeakMap<Worker, Promise<void>>()
  let idle: NodeJS.Timeout | undefined
  let n = 0
  let isStopped = false

  function start(): Worker {
    const started = startWorker(options.file, { workerData: options.data })
    const { promise: loaded, resolve: endLoading } = Promise.withResolvers<void>()
    loading.set(started, loaded)
    started.on('message', (answered: Answered<Answer> | typeof readyMessage) => {
      endLoading()
      if (answered === readyMessage) {
        ready.add(started)
        watch()
        return
      }
      const asked = waiting.get(answered.n)
      waiting.delete(answered.n)
      if ('error' in answered) asked?.reject(errorOf(answered))
      else asked?.resolve(answered.answer)
      watch()
      if (waiting.size === 0) rest()
    })
    const fail = (error: Error): void => {
      endLoading()
      // A thread that was ending has no questions; the waiting ones belong to its successor.
      if (worker !== started) return
      worker = undefined
      rejectAll(error)
    }
    started.on('error', fail)
    started.on('exit', () => fail(new Error(`${options.name} ended`)))
    return started
  }

  /** From now on, the thread has its time for the question that it begins. */
  function watch(): void {
    unwatch()
    unwatch = () => undefined
    if (maxMilliseconds === undefined || waiting.size === 0 || worker === undefined || !ready.has(worker)) return
    unwatch = clock.wait(maxMilliseconds, replace)
  }

  /** The question that takes too long is refused; another thread answers the others. */
  function replace(): void {
    const late = worker
    worker = undefined
    if (late !== undefined) void end(late)
    const [first] = waiting
    if (first === undefined) return
    const [n, asked] = first
    waiting.delete(n)
    asked.reject(new ThreadTooSlow(`${options.name} took longer than ${(maxMilliseconds ?? 0) / 1000} seconds`))
    if (waiting.size === 0) return
    worker = start()
    for (const [other, { question }] of waiting) worker.postMessage({ n: other, question })
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
      // In here, so that a thread that cannot start or a question that cannot be sent rejects like other failures.
      return new Promise((resolve, reject) => {
        const current = (worker ??= start())
        current.postMessage(asked)
        current.ref()
        waiting.set(asked.n, { question, resolve, reject })
        if (waiting.size === 1) watch()
      })
    },
    async stop() {
      isStopped = true
      clearTimeout(idle)
      unwatch()
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

/** The thread's side: its file calls this. */
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
  parentPort?.postMessage(readyMessage)
  parentPort?.on('message', (asked: Asked<Question>) => void respond(asked))
}
