/**
 * Server-sent events over `fetch`, which can send headers that `EventSource` cannot: the token, and the place to go on from.
 *
 * A connection that was cut is made again, sooner at first. A tab that nobody looks at gives its connections back after a
 * while: a browser has six of them for one server, whatever the number of tabs.
 */
import { createParser } from 'eventsource-parser'
import { ApiError, isAbort, send, type QueryValues } from './client.ts'

export interface ServerEvent {
  name: string
  data: string
  /** Place of the event, where the stream has such. */
  id: string | undefined
}

export type EventConnection = 'connecting' | 'open' | 'lost' | 'ended'

export interface EventFollowOptions {
  query?: QueryValues
  /** To go on after; the stream of an execution's output. */
  lastEventId?: string | undefined
  onEvent(event: ServerEvent): void
  /** Told of each change. `lost` is followed by `connecting`; after `ended` comes nothing. */
  onConnection?(connection: EventConnection, reason?: string): void
  /** Name of the event after which the stream is not taken up again. */
  endEvent?: string
}

const FIRST_DELAY_MS = 500
const MAX_DELAY_MS = 15_000
/** A server says something at least every 25 seconds unless it was configured otherwise; longer silence is a dead peer. */
const SILENCE_MS = 90_000
/** Of a tab that nobody looks at. */
const HIDDEN_MS = 10_000

/** @param path such as `stream/v1/stream`. @returns ends it */
export function followEvents(path: string, options: EventFollowOptions): () => void {
  const ended = new AbortController()
  void keepFollowing(path, options, ended.signal)
  return () => ended.abort()
}

async function keepFollowing(path: string, options: EventFollowOptions, ended: AbortSignal): Promise<void> {
  const tell = (connection: EventConnection, reason?: string): void => {
    if (!ended.aborted) options.onConnection?.(connection, reason)
  }
  let { lastEventId } = options
  let delayMs = FIRST_DELAY_MS
  while (!ended.aborted) {
    await untilVisible(ended)
    if (ended.aborted) return
    tell('connecting')
    const cut = new AbortController()
    const stopWatching = whenHidden(() => cut.abort())
    const stop = (): void => cut.abort()
    ended.addEventListener('abort', stop)
    let silence: ReturnType<typeof setTimeout> | undefined
    const heard = (): void => {
      clearTimeout(silence)
      silence = setTimeout(stop, SILENCE_MS)
    }
    let reason = 'The connection closed.'
    let isOver = false
    try {
      const response = await send('GET', path, {
        ...(options.query && { query: options.query }),
        headers: {
          Accept: 'text/event-stream',
          ...(lastEventId === undefined ? {} : { 'Last-Event-ID': lastEventId }),
        },
        signal: cut.signal,
      })
      tell('open')
      heard()
      const parser = createParser({
        onEvent({ event = 'message', data, id }) {
          if (isOver || ended.aborted) return
          if (id !== undefined) lastEventId = id
          if (event === options.endEvent) isOver = true
          else options.onEvent({ name: event, data, id })
        },
      })
      // Browsers that iterate over a stream are newer than others that people have.
      const text = response.body?.pipeThrough(new TextDecoderStream()).getReader()
      while (text !== undefined && !isOver) {
        const { done, value } = await text.read()
        if (done) break
        delayMs = FIRST_DELAY_MS
        heard()
        parser.feed(value)
      }
    } catch (error) {
      if (error instanceof ApiError && isFinal(error)) {
        tell('ended', error.message)
        return
      }
      if (!isAbort(error)) reason = error instanceof Error ? error.message : String(error)
    } finally {
      clearTimeout(silence)
      stopWatching()
      ended.removeEventListener('abort', stop)
      cut.abort()
    }
    if (isOver) {
      tell('ended')
      return
    }
    tell('lost', reason)
    // Not all clients of a server that starts again come back in the same moment.
    await pause(delayMs * (0.5 + Math.random()), ended)
    delayMs = Math.min(delayMs * 2, MAX_DELAY_MS)
  }
}

/** What asking again would not change. */
function isFinal({ status }: ApiError): boolean {
  return status >= 400 && status < 500 && status !== 408 && status !== 429
}

function whenHidden(then: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  const look = (): void => {
    clearTimeout(timer)
    if (document.hidden) timer = setTimeout(then, HIDDEN_MS)
  }
  look()
  document.addEventListener('visibilitychange', look)
  return () => {
    clearTimeout(timer)
    document.removeEventListener('visibilitychange', look)
  }
}

function untilVisible(ended: AbortSignal): Promise<void> {
  if (!document.hidden) return Promise.resolve()
  return new Promise((resolve) => {
    const look = (): void => {
      if (document.hidden && !ended.aborted) return
      document.removeEventListener('visibilitychange', look)
      ended.removeEventListener('abort', look)
      resolve()
    }
    document.addEventListener('visibilitychange', look)
    ended.addEventListener('abort', look)
  })
}

function pause(ms: number, ended: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const stop = (): void => {
      clearTimeout(timer)
      ended.removeEventListener('abort', stop)
      resolve()
    }
    const timer = setTimeout(stop, ms)
    ended.addEventListener('abort', stop)
  })
}
