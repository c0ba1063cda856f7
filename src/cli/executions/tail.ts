/** Following the output of one execution (contract 09, 9.5). */
import { addAbortListener } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import type { Readable } from 'node:stream'
import { segment } from '../connection/client.ts'
import { readEvents, readText } from '../connection/server-events.ts'
import { textOrEmpty, toList, toObject } from '../connection/responses.ts'
import {
  executionName,
  FIRST_POLL_MS,
  getExecution,
  getWithRetry,
  isFinalRecord,
  isForbidden,
  isMissing,
  mayPass,
  MAX_OUTAGE_MS,
  pause,
  POLL_GROWTH,
  MAX_POLL_MS,
  recordStatusOf,
  waitingStatuses,
} from './calls.ts'
import { isWorkflow } from './tasks.ts'
import { waitForEnd } from './wait.ts'
import { CliFailure, ConnectionFailure, Interrupted, NotFound } from '../failures.ts'
import { printable, type Json } from '../output/print.ts'
import type { Session } from '../session.ts'
import { createPieceOutput, type TailOutput } from './tail-output.ts'
import { readJson } from '../../lib/json/index.ts'

export const FIRST_RETRY_MS = 100
export const MAX_RETRY_MS = 3000
/**
 * After this much silence of a stream the status is asked for: the execution may have ended, and its last event be
 * lost.
 */
const SILENCE_MS = 5000
const SILENCE_OF_ENDED_MS = 1000
/** When the execution has ended and its streams have brought nothing for this long, nothing more is waited for. */
const EMPTINESS_MS = 5000
const MAX_EVENT_ID_LENGTH = 256

export interface TailOptions {
  type?: 'stdout' | 'stderr' | 'other' | undefined
  /** `[<timestamp>][<type>] ` before each piece. */
  includeMetadata: boolean
  /** Also everything that it starts, and what that starts. Default: what it starts, if it is a workflow. */
  isNested?: boolean
}

/** Prints the output of an execution live, then its final status. @returns the status */
export async function tailExecution(session: Session, record: Json, options: TailOptions): Promise<string> {
  const isTree = options.isNested === true
  if (isTree || isWorkflow(record)) {
    const { tailTree } = await import('./tail-nested.ts')
    return tailTree(session, record, options, isTree ? undefined : 1)
  }
  const id = textOrEmpty(record['id'])
  return followExecution(session, record, options, createPieceOutput(session, id, options), executionMessages(id))
}

export interface TailStreamOptions extends TailOptions {
  /** The server has answered before, so that it is waited for when it cannot be reached now. Default false. */
  isReachable?: boolean
}

/** What is said of an execution. */
export interface TailMessages {
  readonly sayStarted: (output: TailOutput) => Promise<void>
  readonly sayEnded: (output: TailOutput, status: string) => Promise<void>
}

export function executionMessages(id: string): TailMessages {
  const subject = `Execution ${printable(id)}`
  return {
    sayStarted: (output) => output.say(`${subject} has started.\n`),
    sayEnded: (output, status) => output.say(`${subject} has completed (status=${status}).`, true),
  }
}

/**
 * Prints all output of an execution, from its beginning to its end. Comes back exactly where a connection broke, also to
 * a server that was started again.
 *
 * @param record with `id` and `status`
 * @returns the status it has ended with
 */
export async function followExecution(
  session: Session,
  record: Json,
  options: TailStreamOptions,
  output: TailOutput,
  words: TailMessages,
): Promise<string> {
  const tail = new Tail(session, textOrEmpty(record['id']), options, output, words)
  return isFinalRecord(recordStatusOf(record)) ? tail.stored() : tail.live()
}

class SilentStream extends ConnectionFailure {}

class Tail {
  readonly #session: Session
  readonly #id: string
  readonly #options: TailStreamOptions
  readonly #output: TailOutput
  readonly #words: TailMessages
  #lastEventId = ''
  #saidStarted = false

  constructor(session: Session, id: string, options: TailStreamOptions, output: TailOutput, words: TailMessages) {
    this.#session = session
    this.#id = id
    this.#options = options
    this.#output = output
    this.#words = words
  }

  async stored(): Promise<string> {
    await this.#follow()
    return this.#sayEnded()
  }

  async live(): Promise<string> {
    const ended = new AbortController()
    const started = this.#watchStart(ended.signal)
    // Rejections are seen below; until then they must not count as unhandled.
    started.catch(() => undefined)
    try {
      await this.#follow(() => this.#sayStarted())
    } finally {
      ended.abort()
    }
    await started
    return this.#sayEnded(true)
  }

  /** Says that the execution has started. Its output would show that too, but may be long in coming. */
  async #watchStart(ended: AbortSignal): Promise<void> {
    for (let interval = FIRST_POLL_MS; !ended.aborted && !this.#saidStarted; interval *= POLL_GROWTH) {
      const status = await this.#askStatus()
      if (ended.aborted) return
      if (status !== '' && !waitingStatuses.has(status)) {
        if (!isFinalRecord(status)) await this.#sayStarted()
        return
      }
      await delay(Math.min(MAX_POLL_MS, interval), undefined, {
        signal: AbortSignal.any([ended, this.#session.interrupted]),
      }).catch(() => undefined)
      if (this.#session.interrupted.aborted) throw new Interrupted()
    }
  }

  /** @returns empty when the server does not answer now */
  async #askStatus(): Promise<string> {
    try {
      return recordStatusOf(await getExecution(this.#session, this.#id, { include_attributes: 'status' }))
    } catch (error) {
      if (mayPass(error)) return ''
      throw error
    }
  }

  async #sayStarted(): Promise<void> {
    if (this.#saidStarted) return
    this.#saidStarted = true
    await this.#words.sayStarted(this.#output)
  }

  /** @param wasLive also print that it has started, if that was not printed yet */
  async #sayEnded(wasLive = false): Promise<string> {
    for (;;) {
      const record = await getWithRetry(this.#session, this.#id, { include_attributes: 'status,log' })
      const status = recordStatusOf(record)
      if (isFinalRecord(status)) {
        if (wasLive && toList(record['log']).some((entry) => entry['status'] === 'running')) await this.#sayStarted()
        await this.#output.flush()
        await this.#words.sayEnded(this.#output, status)
        return status
      }
      // The stream also ends while an execution is being paused or resumed.
      await pause(this.#session, MAX_POLL_MS)
      await this.#follow()
    }
  }

  /** Prints the output until the server sends the end; after a lost connection it continues at the same position. */
  async #follow(beforeFirst?: () => Promise<void>): Promise<void> {
    const session = this.#session
    let retry = FIRST_RETRY_MS
    let lastAnswer = this.#options.isReachable === true ? performance.now() : undefined
    let lastNews: number | undefined
    let isOverdue = false
    for (;;) {
      let hasEnded = false
      try {
        const headers: Record<string, string> = this.#lastEventId === '' ? {} : { 'Last-Event-ID': this.#lastEventId }
        const path = `/executions/${segment(this.#id)}/output`
        const stream = await session.client.openStream(path, { output_type: this.#options.type }, headers)
        lastAnswer = performance.now()
        lastNews ??= lastAnswer
        for await (const { name, data, id } of this.#readWatched(stream, isOverdue)) {
          lastAnswer = lastNews = performance.now()
          retry = FIRST_RETRY_MS
          isOverdue = false
          if (name === 'EOF') return
          // With `[compat] stackstorm` the server calls it as StackStorm does.
          if (name.endsWith('.execution.output__create')) {
            await beforeFirst?.()
            await this.#printPiece(data)
          }
          if (id.length <= MAX_EVENT_ID_LENGTH && /^[\x20-\x7e]+$/.test(id)) this.#lastEventId = id
        }
        hasEnded = true
      } catch (error) {
        if (session.interrupted.aborted) throw new Interrupted()
        if (isMissing(error)) throw new NotFound(executionName, this.#id)
        if (isForbidden(error) && this.#lastEventId === '' && !this.#options.includeMetadata) {
          return this.#printAtEnd(beforeFirst)
        }
        // Without any connection before, waiting would only hide a wrong address.
        if (!mayPass(error) || lastAnswer === undefined || performance.now() - lastAnswer > MAX_OUTAGE_MS) throw error
        hasEnded = error instanceof SilentStream
        if (retry === FIRST_RETRY_MS * 2 && !hasEnded) {
          session.warn('Connection lost; reconnecting.')
        }
      }
      if (hasEnded && isFinalRecord(await this.#askStatus())) {
        if (isOverdue && lastNews !== undefined && performance.now() - lastNews > EMPTINESS_MS) {
          session.warn(`The stream of execution ${this.#id} did not end; its last output may be missing.`)
          return
        }
        isOverdue = true
      }
      await pause(session, retry)
      retry = Math.min(MAX_RETRY_MS, retry * 2)
    }
  }

  /** Reads a stream, and breaks it off when it stays open and silent although the execution has ended. */
  async *#readWatched(stream: Readable, isOverdue: boolean): ReturnType<typeof readEvents> {
    let isWaiting = true
    const look = async (): Promise<void> => {
      const isOver = isWaiting && isFinalRecord(await this.#askStatus().catch(() => ''))
      if (isOver && isWaiting) stream.destroy(new SilentStream('The stream did not end.'))
      else timer.refresh()
    }
    const timer = setTimeout(() => void look(), isOverdue ? SILENCE_OF_ENDED_MS : SILENCE_MS)
    const listener = addAbortListener(this.#session.interrupted, () => stream.destroy(new Interrupted()))
    try {
      for await (const event of readEvents(stream)) {
        isWaiting = false
        yield event
        isWaiting = true
        timer.refresh()
      }
    } finally {
      isWaiting = false
      clearTimeout(timer)
      listener[Symbol.dispose]()
    }
  }

  /** For a user with permission to view the execution but not to follow streams. */
  async #printAtEnd(beforeFirst?: () => Promise<void>): Promise<void> {
    const session = this.#session
    if (beforeFirst !== undefined) {
      session.note('Note: No permission to follow streams; svc prints the output at the end.\n')
    }
    while (!isFinalRecord(await waitForEnd(session, this.#id))) await pause(session, MAX_POLL_MS)
    const path = `/executions/${segment(this.#id)}/output`
    for await (const text of readText(await session.client.openText(path, { output_type: this.#options.type }))) {
      await beforeFirst?.()
      await this.#output.print({ text, type: this.#options.type ?? '', timestamp: '' })
    }
  }

  async #printPiece(data: string): Promise<void> {
    const piece = parseEvent(data)
    const text = textOrEmpty(piece['data'])
    if (text === '') return
    const [type, timestamp] = [textOrEmpty(piece['output_type']), textOrEmpty(piece['timestamp'])]
    await this.#output.print({ text, type, timestamp })
  }
}

/** @throws CliFailure when the stream is not that of an svc server */
export function parseEvent(data: string): Json {
  try {
    return toObject(readJson(data))
  } catch {
    throw new CliFailure('The stream sent an event that is not JSON. Check that this is the stream of an svc server.')
  }
}
