/** The status of an execution from the general event stream (contract 04, 4.2). */
import type { IncomingMessage } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { readEvents } from '../connection/server-events.ts'
import { mayPass, recordStatusOf } from './calls.ts'
import { Interrupted } from '../failures.ts'
import { attributeOf } from '../output/print.ts'
import type { Session } from '../session.ts'
import { readJson } from '../../lib/json/index.ts'

const EVENT = 'svc.execution__update'
const FIRST_RETRY_MS = 1000
const MAX_RETRY_MS = 30_000

export interface StatusStream {
  /**
   * A number that differs each time the stream is opened; undefined while it is not open. An open stream tells every
   * change.
   */
  readonly opening: number | undefined
  /** The last status; empty before the first one. */
  readonly status: string
  /**
   * Waits until it is opened, lost, or tells a status.
   *
   * @param deadline as of `performance.now()`
   * @returns whether there was something, rather than that the time is over
   * @throws Interrupted
   */
  news(deadline: number): Promise<boolean>
  close(): void
}

/**
 * Opens the stream, and opens it again when it was lost. A stream that could never be opened is not tried again:
 * streams may be forbidden, or at another address.
 */
export function watchStatus(session: Session, id: string): StatusStream {
  const closing = new AbortController()
  const ended = AbortSignal.any([closing.signal, session.interrupted])
  let response: IncomingMessage | undefined
  let openings = 0
  let opening: number | undefined
  let status = ''
  let tell = (): void => undefined

  async function read(): Promise<void> {
    const query = { events: EVENT, execution_ids: id, end_event: EVENT, end_execution_id: id }
    response = await session.client.openStream('/stream', query, {})
    if (ended.aborted) return
    openings += 1
    opening = openings
    tell()
    for await (const { name, data } of readEvents(response)) {
      const record: unknown = readJson(data)
      if (name !== EVENT || attributeOf(record, 'id') !== id) continue
      status = recordStatusOf(record)
      tell()
    }
  }

  async function follow(): Promise<void> {
    for (let retry = FIRST_RETRY_MS; !ended.aborted; retry = Math.min(MAX_RETRY_MS, retry * 2)) {
      const isLost = await read().then(
        () => true,
        (error: unknown) => mayPass(error) && openings > 0,
      )
      response?.destroy()
      opening = undefined
      tell()
      if (!isLost) return
      await delay(retry, undefined, { signal: ended }).catch(() => undefined)
    }
  }

  void follow().finally(() => response?.destroy())
  return {
    get opening() {
      return opening
    },
    get status() {
      return status
    },
    async news(deadline) {
      let timer: NodeJS.Timeout | undefined
      let stop = (): void => undefined
      const hasNews = await new Promise<boolean>((resolve) => {
        tell = () => resolve(true)
        stop = () => resolve(false)
        timer = setTimeout(stop, Math.max(0, deadline - performance.now()))
        session.interrupted.addEventListener('abort', stop)
      })
      clearTimeout(timer)
      session.interrupted.removeEventListener('abort', stop)
      if (session.interrupted.aborted) throw new Interrupted()
      return hasNews
    },
    close() {
      closing.abort()
      response?.destroy()
    },
  }
}
