/**
 * Renders in a thread the templates that would hold up the event loop, one job at a time. Callers take turns. A job
 * limits its own processor time; a thread that does not answer is replaced. What belongs to the server, such as the
 * datastore with the rights of the reader, stays here: the thread asks for each value that a template reads.
 */
import { setImmediate } from 'node:timers/promises'
import type { Worker } from 'node:worker_threads'
import { limitError, type HostFunction, type Namespace } from '../../lib/template/index.ts'
import { locateCode, startWorker } from '../bundle.ts'
import { queueFull, shuttingDown } from '../errors.ts'
import {
  errorOf,
  failureOf,
  type FromThread,
  type Job,
  type Question,
  type Rendered,
  type ToThread,
} from './messages.ts'
import { PieceReader, piecesOf, type Owned, type Piece } from './pieces.ts'

const IDLE_MS = 30_000
/** From the start of a job to its result; its own limit is 2 seconds of processor time. */
const MAX_MS = 10_000
/** Requests of one caller, and of all callers. */
const MAX_WAITING_OF_CALLER = 16
const MAX_WAITING = 128
/** Heap of the thread. A job that needs more fails, and the thread is replaced. */
const MAX_HEAP_MIB = 512

/** On whose behalf something is rendered. */
export interface Turn {
  /** Callers take turns, however much each of them asks for. */
  caller: string
  /** Whether the caller is refused when too many jobs wait; others wait, and something else bounds them. */
  isRequest: boolean
}

export interface TemplateThread {
  /**
   * @param pay called with the characters that are sent, piece by piece; throws if they are too many
   * @throws QUEUE_FULL, SHUTTING_DOWN, TemplateError, what a namespace of the job throws
   */
  render(turn: Turn, job: Job, pay: (size: number) => void): Promise<Rendered>
  /** Rejects all waiting jobs; idempotent. */
  stop(): Promise<void>
}

interface Waiting {
  job: Job
  pay: (size: number) => void
  resolve(rendered: Rendered): void
  reject(error: unknown): void
}

interface Thread {
  worker: Worker
  /** Counts the answers to its questions. */
  answered: Int32Array<SharedArrayBuffer>
  /** Resolves when it takes messages or has ended: to terminate one that still loads can abort the process. */
  loaded: Promise<unknown>
  ended: Promise<Error>
}

/** The thread has ended before it answered: not because of its job, as far as is known. */
class ThreadEnded extends Error {}

/** @param options for tests: `file` follows the messages of `messages.ts` */
export function createTemplateThread(options: { file?: URL; maxMilliseconds?: number } = {}): TemplateThread {
  const { file = locateCode('./template-thread', import.meta.url), maxMilliseconds = MAX_MS } = options
  /** By caller, in the order of their turns. */
  const queues = new Map<string, Waiting[]>()
  let waitingCount = 0
  let current: Thread | undefined
  let idle: NodeJS.Timeout | undefined
  let isWorking = false
  let isStopped = false
  let abort: ((error: Error) => void) | undefined

  function takeNext(): Waiting | undefined {
    const [first] = queues
    if (first === undefined) return undefined
    const [caller, jobs] = first
    const taken = jobs.shift()
    queues.delete(caller)
    if (jobs.length > 0) queues.set(caller, jobs)
    waitingCount -= 1
    return taken
  }

  async function work(): Promise<void> {
    isWorking = true
    clearTimeout(idle)
    for (let taken = takeNext(); taken !== undefined; taken = takeNext()) {
      try {
        taken.resolve(await performTwice(taken))
      } catch (error) {
        taken.reject(error)
      }
    }
    isWorking = false
    if (current === undefined || isStopped) return
    current.worker.unref()
    idle = setTimeout(() => void drop(), IDLE_MS)
    idle.unref()
  }

  /** A thread that ends loses nothing: its job is done again, unless it may have been the cause. */
  async function performTwice(taken: Waiting): Promise<Rendered> {
    try {
      return await perform(taken)
    } catch (error) {
      if (!(error instanceof ThreadEnded)) throw error
    }
    try {
      return await perform(taken)
    } catch (error) {
      throw error instanceof ThreadEnded ? limitError(`rendering it failed twice: ${error.message}`) : error
    }
  }

  function start(): Thread {
    const answered = new Int32Array(new SharedArrayBuffer(4))
    const resourceLimits = { maxOldGenerationSizeMb: MAX_HEAP_MIB }
    const worker = startWorker(file, { workerData: answered, resourceLimits })
    const ended = new Promise<Error>((resolve) => {
      worker.once('error', resolve)
      worker.once('exit', () => resolve(new Error('the thread for templates ended')))
    })
    const loaded = Promise.race([ended, new Promise((resolve) => worker.once('message', resolve))])
    const thread = { worker, answered, loaded, ended }
    void ended.then(() => {
      if (current === thread) current = undefined
    })
    return thread
  }

  async function drop(): Promise<void> {
    const ending = current
    current = undefined
    await ending?.loaded
    await ending?.worker.terminate()
  }

  async function perform({ job, pay }: Waiting): Promise<Rendered> {
    if (isStopped) throw shuttingDown()
    const thread = (current ??= start())
    const { worker } = thread
    worker.ref()
    const owned: Owned[] = []
    const result = new PieceReader(() => undefined)
    /** What the answer to a question has thrown. */
    let thrown: unknown
    /** Whether the thread has a job, or a part of one. */
    let isBusy = false
    const { promise: rendered, resolve, reject } = Promise.withResolvers<Rendered>()
    rendered.catch(() => undefined)
    abort = reject
    void thread.ended.then((error) => reject(reasonOfEnd(error)))
    let late: NodeJS.Timeout | undefined
    const post = (message: ToThread): void => worker.postMessage(message)

    const listen = (message: FromThread): void => {
      if (message.kind === 'question') {
        try {
          post({ kind: 'answer', pieces: answerTo(message, owned) })
        } catch (error) {
          thrown = error
          post({ kind: 'refusal', failure: failureOf(error) })
        }
        Atomics.add(thread.answered, 0, 1)
        Atomics.notify(thread.answered, 0)
      } else if (message.kind === 'failed') {
        isBusy = false
        reject(message.isOfServer ? thrown : errorOf(message.failure))
      } else if (message.kind === 'result') {
        result.add(message.piece)
        if (result.isComplete) {
          isBusy = false
          resolve(result.value as Rendered) // of `template-thread.ts`
        } else post({ kind: 'more' })
      }
    }

    worker.on('message', listen)
    try {
      await thread.loaded
      late = setTimeout(() => reject(limitError('it takes too long')), maxMilliseconds)
      for (const piece of piecesOf(job, owned, pay)) {
        if (isBusy) await setImmediate()
        isBusy = true
        post({ kind: 'job', piece })
      }
      return await rendered
    } finally {
      clearTimeout(late)
      abort = undefined
      worker.off('message', listen)
      if (isBusy && current === thread) await drop()
    }
  }

  return {
    render({ caller, isRequest }, job, pay) {
      if (isStopped) return Promise.reject(shuttingDown())
      const jobs = queues.get(caller) ?? []
      if (isRequest && jobs.length >= MAX_WAITING_OF_CALLER) {
        return Promise.reject(queueFull(`templates of ${caller}`, MAX_WAITING_OF_CALLER))
      }
      if (isRequest && waitingCount >= MAX_WAITING) return Promise.reject(queueFull('templates', MAX_WAITING))
      return new Promise((resolve, reject) => {
        jobs.push({ job, pay, resolve, reject })
        queues.set(caller, jobs)
        waitingCount += 1
        if (!isWorking) void work()
      })
    },
    async stop() {
      isStopped = true
      clearTimeout(idle)
      abort?.(shuttingDown())
      await drop()
    },
  }
}

/** @returns in pieces */
function answerTo({ id, what, about }: Question, owned: Owned[]): Piece[] {
  const reader = new PieceReader(() => undefined)
  about.forEach((piece) => reader.add(piece))
  return [...piecesOf(read(owned[id], what, reader.value), owned)]
}

function read(object: Owned | undefined, what: Question['what'], about: unknown): unknown {
  if (what === 'call') {
    const [positional, named] = about as [unknown[], Record<string, unknown>]
    return (object as HostFunction)(positional, named)
  }
  const namespace = object as Namespace
  const name = String(about)
  if (what === 'get') return namespace.get(name)
  if (what === 'has') return namespace.has?.(name) ?? namespace.get(name) !== undefined
  return namespace.value?.()
}

function reasonOfEnd(error: Error): Error {
  const isOutOfMemory = 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY'
  return isOutOfMemory ? limitError('it needs too much memory') : new ThreadEnded(error.message)
}
