/** Server-sent events. Only this file and the JSON responder write to a response. */
import type { ServerResponse } from 'node:http'
import type { EventSink } from './route.ts'

/** One frame (contract 04, 4.1). `data` is one line of JSON, or empty. */
export function frame(event: string, data: string, id?: string): string {
  return id === undefined ? `event: ${event}\ndata: ${data}\n\n` : `id: ${id}\nevent: ${event}\ndata: ${data}\n\n`
}

export interface SinkOptions {
  /** Seconds of silence before the server sends a line feed, which keeps proxies connected and detects dead peers. */
  heartbeatSeconds: number
  /** Bytes that may wait for a client; the server disconnects a client above that. */
  maxQueuedBytes: number
  /** The memory that all clients share. Without room in it, the server disconnects clients that let it queue for them. */
  queue?: { hold(bytes: number): void; hasRoom(): boolean }
}

/** Bytes that may wait for a client in any case. */
const MIN_QUEUED_BYTES = 64 * 1024

const headers = {
  'Content-Type': 'text/event-stream; charset=UTF-8',
  'Cache-Control': 'no-cache',
  'X-Accel-Buffering': 'no',
}

/**
 * Starts the response and lets `run` write to it. Ends it when `run` resolves, and cuts it when the client is too slow.
 *
 * @param revoked also ends the response
 */
export async function respondWithEvents(
  response: ServerResponse,
  options: SinkOptions,
  run: (sink: EventSink) => Promise<void>,
  revoked?: AbortSignal,
): Promise<void> {
  const closed = new AbortController()
  response.once('close', () => closed.abort())
  if (revoked?.aborted === true) closed.abort()
  revoked?.addEventListener('abort', () => closed.abort())
  response.writeHead(200, headers)
  response.flushHeaders()
  response.socket?.setNoDelay(true)

  const heartbeat = setTimeout(() => {
    if (!closed.signal.aborted) response.write('\n')
    heartbeat.refresh()
  }, options.heartbeatSeconds * 1000)
  heartbeat.unref()

  /** Above the mark of Node, the event `drain` says that less waits. */
  const hold = (): void => {
    const queued = response.closed ? 0 : response.writableLength
    options.queue?.hold(queued > MIN_QUEUED_BYTES ? queued : 0)
  }
  response.on('drain', hold)
  response.once('close', hold)

  const sink: EventSink = {
    write(frames) {
      if (closed.signal.aborted) return false
      heartbeat.refresh()
      const accepted = response.write(frames)
      const queued = response.writableLength
      hold()
      const isSurplus = queued > MIN_QUEUED_BYTES + frames.length && options.queue?.hasRoom() === false
      if (isSurplus || queued > options.maxQueuedBytes + frames.length) {
        response.destroy()
        closed.abort()
      }
      return accepted
    },
    drained() {
      if (closed.signal.aborted || !response.writableNeedDrain) return Promise.resolve()
      return new Promise((resolve) => {
        const done = (): void => {
          response.off('drain', done)
          response.off('close', done)
          resolve()
        }
        response.on('drain', done)
        response.on('close', done)
      })
    },
    get queuedBytes() {
      return response.writableLength
    },
    closed: closed.signal,
  }

  try {
    await run(sink)
  } finally {
    clearTimeout(heartbeat)
    // A writer that keeps the sink must find it closed.
    closed.abort()
    response.end()
  }
}
