/** Executions as the client reads them, and waiting for them. */
import { setTimeout as delay } from 'node:timers/promises'
import { segment, type Answer, type Query } from './client.ts'
import { readEvents, readText } from './events.ts'
import { exitCodes } from './exit-codes.ts'
import { CliFailure, ConnectionFailure, HttpFailure, Interrupted, NotFound } from './failures.ts'
import { attributeOf, type Json } from './print.ts'
import type { Session } from './session.ts'

export const executionName = 'Action Execution'

const finalStatuses: ReadonlySet<string> = new Set(['succeeded', 'failed', 'timeout', 'canceled', 'abandoned'])
/** A person or a policy has to act before it goes on (contract 09, 9.4 "Flow"). */
const standingStatuses: ReadonlySet<string> = new Set(['pending', 'paused'])
/** Before the runner has it. */
const waitingStatuses: ReadonlySet<string> = new Set(['requested', 'scheduled', 'delayed'])

const FIRST_POLL_MS = 40
const SLOWEST_POLL_MS = 1000
const POLL_GROWTH = 1.25
const DOT_MS = 2000
/** A server that restarts is waited for this long. */
const PATIENCE_MS = 60_000
const FIRST_RETRY_MS = 100
const SLOWEST_RETRY_MS = 3000

export function statusOf(record: unknown): string {
  const status = attributeOf(record, 'status')
  return typeof status === 'string' ? status : ''
}

export function isFinal(status: string): boolean {
  return finalStatuses.has(status)
}

/** Contract 09, 9.1: what `run` ends with. */
export function exitCodeOf(status: string): number {
  return ['failed', 'timeout', 'abandoned'].includes(status) ? exitCodes.failed : exitCodes.ok
}

export function toObject(value: unknown): Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
}

export function toList(value: unknown): Json[] {
  return Array.isArray(value) ? value.map(toObject) : []
}

/** The record that the server answered with. @throws CliFailure when it is none of ours */
export function recordIn({ body }: Answer): Json {
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) return { ...body }
  throw foreignAnswer('record')
}

/** The list that the server answered with. @throws CliFailure when it is none of ours */
export function listIn({ body }: Answer): Json[] {
  if (Array.isArray(body)) return body.map(toObject)
  throw foreignAnswer('list')
}

function foreignAnswer(kind: string): CliFailure {
  return new CliFailure(`The server answered with no ${kind}; is --api-url the API of an svc server?`)
}

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** `id` may be `last`: of those that may be seen, the one that was created last. @throws NotFound */
export async function getExecution(session: Session, id: string, query: Query = {}): Promise<Json> {
  if (id === '') throw new NotFound(executionName, id)
  const { client } = session
  try {
    return recordIn(await client.call('GET', `/executions/${segment(id)}`, { query }))
  } catch (error) {
    if (isMissing(error)) throw new NotFound(executionName, id)
    if (id !== 'last' || !isForbidden(error)) throw error
    // To the server it is the last of all users.
    const newest = { include_attributes: 'id', sort_desc: true, limit: 1 }
    const [found] = listIn(await client.call('GET', '/executions', { query: newest }))
    if (found === undefined) throw new NotFound(executionName, id)
    return getExecution(session, textOf(found['id']), query)
  }
}

function isForbidden(error: unknown): boolean {
  return error instanceof HttpFailure && error.status === 403
}

/** The object asked for does not exist; for `last`, that there is none yet. */
export function isMissing(error: unknown): boolean {
  return error instanceof HttpFailure && (error.status === 404 || error.code === 'NO_EXECUTIONS')
}

function mayPass(error: unknown): boolean {
  return error instanceof ConnectionFailure || (error instanceof HttpFailure && error.status === 503)
}

/** @throws Interrupted */
export async function pause(session: Session, ms: number): Promise<void> {
  try {
    await delay(ms, undefined, { signal: session.interrupted })
  } catch {
    throw new Interrupted()
  }
}

/**
 * Waits until the execution has ended, or stands still until somebody acts. Survives a restart of the server.
 *
 * @returns the status
 */
export async function waitForEnd(session: Session, id: string): Promise<string> {
  const withDots = session.form === 'human'
  let interval = FIRST_POLL_MS
  let nextDot = performance.now() + DOT_MS
  let lastAnswer = performance.now()
  let dots = 0
  try {
    for (;;) {
      try {
        const status = statusOf(await getExecution(session, id, { include_attributes: 'status' }))
        lastAnswer = performance.now()
        if (isFinal(status) || standingStatuses.has(status)) return status
      } catch (error) {
        if (!mayPass(error) || performance.now() - lastAnswer > PATIENCE_MS) throw error
      }
      await pause(session, interval)
      interval = Math.min(SLOWEST_POLL_MS, interval * POLL_GROWTH)
      if (withDots && performance.now() >= nextDot) {
        session.note('.')
        dots += 1
        nextDot += DOT_MS
      }
    }
  } finally {
    if (dots > 0) session.note('\n')
  }
}

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
