/** Following the output of an execution (contract 09, 9.5). */
import { setTimeout as delay } from 'node:timers/promises'
import { segment } from './client.ts'
import { readEvents, readText } from './events.ts'
import {
  executionName,
  FIRST_POLL_MS,
  getExecution,
  isFinal,
  isForbidden,
  isMissing,
  mayPass,
  PATIENCE_MS,
  pause,
  POLL_GROWTH,
  SLOWEST_POLL_MS,
  statusOf,
  textOf,
  toList,
  toObject,
  waitForEnd,
  waitingStatuses,
} from './execution-calls.ts'
import { CliFailure, Interrupted, NotFound } from './failures.ts'
import type { Json } from './print.ts'
import type { Session } from './session.ts'

const FIRST_RETRY_MS = 100
const SLOWEST_RETRY_MS = 3000

export interface TailOptions {
  type?: 'stdout' | 'stderr' | 'other' | undefined
  /** `[<timestamp>][<type>] ` before each piece. */
  includeMetadata: boolean
}

/** Prints the output of an execution while it comes, then how it ended. @returns the status */
export async function tailExecution(session: Session, record: Json, options: TailOptions): Promise<string> {
  const id = textOf(record['id'])
  const tail = new Tail(session, id, options)
  if (!isFinal(statusOf(record))) return tail.live()
  return tail.stored()
}

class Tail {
  readonly #session: Session
  readonly #id: string
  readonly #options: TailOptions
  #lastEventId = ''
  #saidStarted = false
  #endsInNewline = true

  constructor(session: Session, id: string, options: TailOptions) {
    this.#session = session
    this.#id = id
    this.#options = options
  }

  async stored(): Promise<string> {
    await this.#follow()
    return this.#sayCompleted()
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
    return this.#sayCompleted(true)
  }

  /** Output says that it runs, too; but a command may be silent for a long time. */
  async #watchStart(ended: AbortSignal): Promise<void> {
    for (let interval = FIRST_POLL_MS; !ended.aborted && !this.#saidStarted; interval *= POLL_GROWTH) {
      const record = await getExecution(this.#session, this.#id, { include_attributes: 'status' }).catch(
        (error: unknown) => {
          if (mayPass(error)) return undefined
          throw error
        },
      )
      if (ended.aborted) return
      const status = statusOf(record)
      if (status !== '' && !waitingStatuses.has(status)) {
        if (!isFinal(status)) await this.#sayStarted()
        return
      }
      await delay(Math.min(SLOWEST_POLL_MS, interval), undefined, {
        signal: AbortSignal.any([ended, this.#session.interrupted]),
      }).catch(() => undefined)
      if (this.#session.interrupted.aborted) throw new Interrupted()
    }
  }

  async #sayStarted(): Promise<void> {
    if (this.#saidStarted) return
    this.#saidStarted = true
    await this.#session.print(`Execution ${this.#id} has started.\n\n`)
  }

  /** @param wasLive the start is part of the story, however short that was */
  async #sayCompleted(wasLive = false): Promise<string> {
    for (;;) {
      const record = await getExecution(this.#session, this.#id, { include_attributes: 'status,log' })
      const status = statusOf(record)
      if (isFinal(status)) {
        if (wasLive && toList(record['log']).some((entry) => entry['status'] === 'running')) await this.#sayStarted()
        const end = this.#endsInNewline ? '\n' : '\n\n'
        await this.#session.print(`${end}Execution ${this.#id} has completed (status=${status}).\n`)
        return status
      }
      // The stream also ends while an execution is being paused or resumed.
      await pause(this.#session, SLOWEST_POLL_MS)
      await this.#follow()
    }
  }

  /** Prints what comes until the server says that this was all; comes back exactly where a connection broke. */
  async #follow(beforeFirst?: () => Promise<void>): Promise<void> {
    let retry = FIRST_RETRY_MS
    let lastAnswer: number | undefined
    for (;;) {
      try {
        const headers: Record<string, string> = this.#lastEventId === '' ? {} : { 'Last-Event-ID': this.#lastEventId }
        const path = `/executions/${segment(this.#id)}/output`
        const stream = await this.#session.client.openStream(path, { output_type: this.#options.type }, headers)
        lastAnswer = performance.now()
        retry = FIRST_RETRY_MS
        for await (const { name, data, id } of readEvents(stream)) {
          lastAnswer = performance.now()
          if (name === 'EOF') return
          if (name === 'svc.execution.output__create') {
            await beforeFirst?.()
            await this.#printPiece(data)
          }
          if (id !== '') this.#lastEventId = id
        }
      } catch (error) {
        if (this.#session.interrupted.aborted) throw new Interrupted()
        if (isMissing(error)) throw new NotFound(executionName, this.#id)
        if (isForbidden(error) && this.#lastEventId === '' && !this.#options.includeMetadata) {
          return this.#printAtEnd(beforeFirst)
        }
        // Without any connection before, waiting would only hide a wrong address.
        if (!mayPass(error) || lastAnswer === undefined || performance.now() - lastAnswer > PATIENCE_MS) throw error
        if (retry === FIRST_RETRY_MS * 2) this.#session.note('WARNING: The connection was lost; trying again.\n')
      }
      await pause(this.#session, retry)
      retry = Math.min(SLOWEST_RETRY_MS, retry * 2)
    }
  }

  /** For who may see the execution, but not follow streams. */
  async #printAtEnd(beforeFirst?: () => Promise<void>): Promise<void> {
    const session = this.#session
    if (beforeFirst !== undefined) {
      session.note('Note: You may not follow streams; the output is printed at the end.\n')
    }
    while (!isFinal(await waitForEnd(session, this.#id))) await pause(session, SLOWEST_POLL_MS)
    const path = `/executions/${segment(this.#id)}/output`
    for await (const text of readText(await session.client.openText(path, { output_type: this.#options.type }))) {
      await beforeFirst?.()
      this.#endsInNewline = text.endsWith('\n')
      await session.print(text)
    }
  }

  async #printPiece(data: string): Promise<void> {
    let piece: Json
    try {
      piece = toObject(JSON.parse(data))
    } catch {
      throw new CliFailure('The stream sent an event that is not JSON; is this the stream of an svc server?')
    }
    const text = textOf(piece['data'])
    if (text === '') return
    const { includeMetadata } = this.#options
    const metadata = includeMetadata ? `[${textOf(piece['timestamp'])}][${textOf(piece['output_type'])}] ` : ''
    this.#endsInNewline = text.endsWith('\n')
    await this.#session.print(`${metadata}${text}`)
  }
}
