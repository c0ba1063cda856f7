/** Follows the output of an execution and all its descendants (contract 09, 9.5). */
import { addAbortListener, once } from 'node:events'
import type { Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { segment } from '../connection/client.ts'
import { readEvents } from '../connection/server-events.ts'
import { listIn, textOrEmpty } from '../connection/responses.ts'
import { isWorkflow, taskLabel } from './tasks.ts'
import { isForbidden, isMissing, isFinalRecord, mayPass, MAX_OUTAGE_MS, pause, recordStatusOf } from './calls.ts'
import { CliFailure, ConnectionFailure, HttpFailure, Interrupted, NotFound } from '../failures.ts'
import { attributeOf, printable, type Json } from '../output/print.ts'
import type { Session } from '../session.ts'
import { LinePrinter, type TailOutput } from './tail-output.ts'
import {
  executionMessages,
  FIRST_RETRY_MS,
  followExecution,
  parseEvent,
  MAX_RETRY_MS,
  type TailOptions,
  type TailMessages,
} from './tail.ts'

/** Maximum number of child executions followed at the same time; the server stores the output of the others. */
const MAX_STREAMS = 16
/** As many as the server lists. */
const MAX_CHILDREN = 10_000
/** How often the server is asked for children where it does not let this user follow events. */
const LOOK_MS = 2000
const created = 'svc.execution__create'
const childAttributes = 'id,status,action.ref,action.runner_type,liveaction.action_is_workflow,context'
/** Lines of a workflow that say no more than the messages about its child executions. */
const startOrEnd = /^Task .+: (?:starts \S+|[a-z]+ after \d+\.\d s) \([0-9a-f]{24}\)\n/gm

/**
 * Prints the output of the whole family in whole lines, until all have ended.
 *
 * @param levels below the execution; default: all
 * @returns the status of the execution itself
 */
export function tailTree(session: Session, record: Json, options: TailOptions, levels?: 1): Promise<string> {
  return new ExecutionTree(session, record, options, levels).follow()
}

class ExecutionTree {
  readonly #session: Session
  /** For all work but following the execution itself, whose notes are enough. */
  readonly #quiet: Session
  readonly #root: Json
  readonly #rootId: string
  readonly #options: TailOptions
  readonly #levels: 1 | undefined
  readonly #printer: LinePrinter
  readonly #over = new AbortController()
  readonly #failed = Promise.withResolvers<never>()
  readonly #known = new Set<string>()
  readonly #running = new LimitedQueue<Json>(MAX_STREAMS, (child) => this.#followChild(child))
  /** Children that had ended when they were found: one after the other, so that the output is in order. */
  readonly #ended = new LimitedQueue<Json>(1, (child) => this.#followChild(child))
  #watching = Promise.resolve()
  #saidTooMany = false

  constructor(session: Session, record: Json, options: TailOptions, levels?: 1) {
    this.#levels = levels
    const interrupted = AbortSignal.any([session.interrupted, this.#over.signal])
    this.#session = { ...session, interrupted }
    const nothing = (): void => undefined
    this.#quiet = {
      ...this.#session,
      note: nothing,
      warn: nothing,
      progress: () => ({ update: nothing, stop: nothing }),
    }
    this.#root = record
    this.#rootId = textOrEmpty(record['id'])
    this.#options = options
    this.#printer = new LinePrinter(session, options)
  }

  async follow(): Promise<string> {
    const work = this.#followAll()
    try {
      return await Promise.race([work, this.#failed.promise])
    } finally {
      this.#over.abort()
      await Promise.allSettled([work, this.#watching, this.#running.idle(), this.#ended.idle()])
    }
  }

  #beginWatch(): void {
    this.#watching = this.#watch()
    this.#watching.catch((error: unknown) => this.#failed.reject(error))
  }

  async #followAll(): Promise<string> {
    const isEnded = isFinalRecord(recordStatusOf(this.#root))
    if (!isEnded) this.#beginWatch()
    const output = this.#outputOf(this.#root, '')
    const { sayStarted, sayEnded } = executionMessages(this.#rootId)
    // The end is printed below, when all have ended.
    const words = { sayStarted, sayEnded: () => Promise.resolve() }
    const status = await followExecution(this.#session, this.#root, this.#options, output, words)
    if (isEnded) {
      await this.#findChildrenWithRetry()
      if (this.#running.isBusy) this.#beginWatch()
    }
    do {
      while (this.#ended.isBusy || this.#running.isBusy) await Promise.all([this.#ended.idle(), this.#running.idle()])
    } while (await this.#findChildrenWithRetry())
    await sayEnded(output, status)
    return status
  }

  async #followChild(child: Json): Promise<void> {
    const id = textOrEmpty(child['id'])
    if (this.#session.interrupted.aborted) throw new Interrupted()
    try {
      const output = this.#outputOf(child, id)
      const words = childMessages(child)
      // It may have ended already without a message about its start.
      if (isFinalRecord(recordStatusOf(child))) await words.sayStarted(output)
      await followExecution(this.#quiet, child, { ...this.#options, isReachable: true }, output, words)
    } catch (error) {
      // Deleted since, or not visible to this user.
      if (error instanceof NotFound || isMissing(error)) return
      if (!isForbidden(error)) throw error
      this.#session.note(`Note: No permission to view the output of child execution ${printable(id)}.\n`)
    }
  }

  /** @param label as of `LinePrinter.outputOf` */
  #outputOf(record: Json, label: string): TailOutput {
    const id = textOrEmpty(record['id'])
    const output = this.#printer.outputOf(id, label)
    const areChildrenFollowed = this.#levels === undefined || id === this.#rootId
    if (this.#session.form !== 'human' || !areChildrenFollowed || !isWorkflow(record)) return output
    return {
      ...output,
      print: async (piece) => {
        const text = this.#saidTooMany ? piece.text : piece.text.replaceAll(startOrEnd, '')
        if (text !== '') await output.print({ ...piece, text })
      },
    }
  }

  /** @returns whether it was news */
  #add(child: Json): boolean {
    const id = textOrEmpty(child['id'])
    if (id === '' || id === this.#rootId || this.#known.has(id)) return false
    if (this.#known.size >= MAX_CHILDREN) {
      if (!this.#saidTooMany) {
        this.#session.warn(
          `The execution has more than ${MAX_CHILDREN} child executions; the output of the others is not shown.`,
        )
      }
      this.#saidTooMany = true
      return false
    }
    this.#known.add(id)
    const queue = isFinalRecord(recordStatusOf(child)) ? this.#ended : this.#running
    queue.add(child).catch((error: unknown) => this.#failed.reject(error))
    return true
  }

  /** Asks for all children there are. @returns whether some of them were news */
  async #findChildren(): Promise<boolean> {
    const query = { depth: this.#levels, include_attributes: childAttributes }
    const answer = await this.#session.client.call('GET', `/executions/${segment(this.#rootId)}/children`, { query })
    return listIn(answer)
      .map((child) => this.#add(child))
      .includes(true)
  }

  async #findChildrenWithRetry(): Promise<boolean> {
    const beginning = performance.now()
    for (let retry = FIRST_RETRY_MS; ; retry = Math.min(MAX_RETRY_MS, retry * 2)) {
      try {
        return await this.#findChildren()
      } catch (error) {
        if (this.#session.interrupted.aborted) throw new Interrupted()
        if (!mayPass(error) || performance.now() - beginning > MAX_OUTAGE_MS) throw error
      }
      await pause(this.#session, retry)
    }
  }

  /** Finds children when they are created. Following the execution itself reports when the server is gone. */
  async #watch(): Promise<void> {
    const { interrupted } = this.#session
    for (let retry = FIRST_RETRY_MS; ; retry = Math.min(MAX_RETRY_MS, retry * 2)) {
      try {
        for await (const child of this.#readCreated()) {
          retry = FIRST_RETRY_MS
          if (this.#isInTree(textOrEmpty(child['parent']))) this.#add(child)
        }
      } catch (error) {
        if (this.#over.signal.aborted) return
        if (interrupted.aborted) throw new Interrupted()
        if (isRefusal(error)) return this.#pollChildren()
        if (!mayPass(error)) throw error
      }
      await this.#pauseUntilOver(retry)
      if (this.#over.signal.aborted) return
    }
  }

  async *#readCreated(): AsyncGenerator<Json> {
    const stream = await this.#session.client.openStream('/stream', { events: created }, {})
    const listener = addAbortListener(this.#session.interrupted, () => stream.destroy(new Interrupted()))
    try {
      // From its first byte on no event is missed; events wait in the stream until they are read.
      await firstByte(stream)
      await this.#findChildren()
      for await (const { name, data } of readEvents(stream)) if (name === created) yield parseEvent(data)
    } finally {
      listener[Symbol.dispose]()
      stream.destroy()
    }
  }

  async #pollChildren(): Promise<void> {
    while (!this.#over.signal.aborted) {
      await this.#findChildrenWithRetry()
      await this.#pauseUntilOver(LOOK_MS)
    }
  }

  async #pauseUntilOver(ms: number): Promise<void> {
    await pause(this.#session, ms).catch((error: unknown) => {
      if (!this.#over.signal.aborted) throw error
    })
  }

  #isInTree(id: string): boolean {
    return id === this.#rootId || (this.#levels === undefined && this.#known.has(id))
  }
}

/** Waits until there is something to read, or the stream has ended without. @throws ConnectionFailure */
async function firstByte(stream: Readable): Promise<void> {
  const decided = new AbortController()
  const { signal } = decided
  try {
    await Promise.race([once(stream, 'readable', { signal }), finished(stream, { signal, cleanup: true })])
  } catch (error) {
    throw new ConnectionFailure(`The stream was interrupted: ${error instanceof Error ? error.message : String(error)}`)
  } finally {
    decided.abort()
  }
}

/** Whether the server answers, but has no stream for this user. */
function isRefusal(error: unknown): boolean {
  if (error instanceof HttpFailure) return error.status !== 401 && !mayPass(error)
  return error instanceof CliFailure && !(error instanceof ConnectionFailure)
}

function childMessages(child: Json): TailMessages {
  const name = taskLabel(child)
  const what = name === '' ? `action=${textOrEmpty(attributeOf(child, 'action.ref'))}` : `task=${name}`
  const subject = printable(`Child execution (${what}) ${textOrEmpty(child['id'])}`).replaceAll('\n', ' ')
  return {
    sayStarted: (output: TailOutput) => output.say(`${subject} has started.`),
    sayEnded: (output: TailOutput, status: string) => output.say(`${subject} has finished (status=${status}).`),
  }
}

/** Runs work for items in order, with a limited number at a time. */
class LimitedQueue<T> {
  readonly #limit: number
  readonly #work: (item: T) => Promise<void>
  readonly #waiting: (() => void)[] = []
  readonly #open = new Set<Promise<void>>()
  #active = 0

  constructor(limit: number, work: (item: T) => Promise<void>) {
    this.#limit = limit
    this.#work = work
  }

  add(item: T): Promise<void> {
    const done = this.#do(item).finally(() => this.#open.delete(done))
    this.#open.add(done)
    return done
  }

  get isBusy(): boolean {
    return this.#open.size > 0
  }

  /** Resolves when there is nothing left to do. */
  async idle(): Promise<void> {
    while (this.#open.size > 0) await Promise.all(this.#open)
  }

  async #do(item: T): Promise<void> {
    if (this.#active < this.#limit) this.#active += 1
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      await this.#work(item)
    } finally {
      const next = this.#waiting.shift()
      // The next one that waits takes this place.
      if (next === undefined) this.#active -= 1
      else next()
    }
  }
}
