/** Requests about executions. */
import { setTimeout as delay } from 'node:timers/promises'
import { listIn, recordIn, textOrEmpty } from '../connection/responses.ts'
import { segment, type Query } from '../connection/client.ts'
import { escapeUnprintable } from '../../lib/log/index.ts'
import { quote } from '../../lib/process/index.ts'
import { exitCodes } from '../exit-codes.ts'
import { ConnectionFailure, HttpFailure, Interrupted, NotFound } from '../failures.ts'
import { attributeOf, type Json } from '../output/print.ts'
import type { Session } from '../session.ts'

export const executionName = 'Action Execution'

const finalStatuses: ReadonlySet<string> = new Set(['succeeded', 'failed', 'timeout', 'canceled', 'abandoned'])
/** Statuses of an execution that no runner has begun yet. */
export const waitingStatuses: ReadonlySet<string> = new Set(['requested', 'scheduled', 'delayed'])

export const FIRST_POLL_MS = 40
export const MAX_POLL_MS = 1000
export const POLL_GROWTH = 1.25
/** How long to wait for a server that restarts. */
export const MAX_OUTAGE_MS = 60_000

export function recordStatusOf(record: unknown): string {
  const status = attributeOf(record, 'status')
  return typeof status === 'string' ? status : ''
}

export function isFinalRecord(status: string): boolean {
  return finalStatuses.has(status)
}

/** Contract 09, 9.1: what `run` ends with. */
export function exitCodeOf(status: string): number {
  return ['failed', 'timeout', 'abandoned'].includes(status) ? exitCodes.failed : exitCodes.ok
}

/** An id quoted for a shell. */
export function shownId(id: string): string {
  return quote(escapeUnprintable(id))
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
    const newestId = textOrEmpty(found?.['id'])
    // Prevents endless recursion if a server answers with the same word.
    if (newestId === '' || newestId === id) throw new NotFound(executionName, id)
    return getExecution(session, newestId, query)
  }
}

export function isForbidden(error: unknown): boolean {
  return error instanceof HttpFailure && error.status === 403
}

/** Whether the object asked for does not exist; for `last`, whether there is no execution yet. */
export function isMissing(error: unknown): boolean {
  return error instanceof HttpFailure && (error.status === 404 || error.code === 'NO_EXECUTIONS')
}

/** 502 and 504 are what a proxy in front of the server says while that starts again. */
const passingStatuses: ReadonlySet<number> = new Set([502, 503, 504])

/** Whether asking again later may help. */
export function mayPass(error: unknown): boolean {
  return error instanceof ConnectionFailure || (error instanceof HttpFailure && passingStatuses.has(error.status))
}

/** `getExecution` of one that has been waited for: a server that starts again just now is waited for as well. */
export async function getWithRetry(session: Session, id: string, query: Query = {}): Promise<Json> {
  const beginning = performance.now()
  for (let interval = FIRST_POLL_MS; ; interval = Math.min(MAX_POLL_MS, interval * POLL_GROWTH)) {
    try {
      return await getExecution(session, id, query)
    } catch (error) {
      if (!mayPass(error) || performance.now() - beginning > MAX_OUTAGE_MS) throw error
    }
    await pause(session, interval)
  }
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
 * Cancels an execution.
 *
 * @returns why the server refuses, if it does; whether it only stopped background processes of an ended execution
 * @throws NotFound
 */
export async function cancelExecution(session: Session, id: string): Promise<{ refusal?: string; hadEnded: boolean }> {
  if (id === '') throw new NotFound(executionName, id)
  try {
    // The server refuses with a fault in an answer of 200.
    const record = recordIn(await session.client.call('DELETE', `/executions/${segment(id)}`))
    const { faultstring: refusal } = record
    if (typeof refusal === 'string') return { refusal, hadEnded: false }
    return { hadEnded: isFinalRecord(recordStatusOf(record)) && record['status'] !== 'canceled' }
  } catch (error) {
    if (isMissing(error)) throw new NotFound(executionName, id)
    throw error
  }
}
