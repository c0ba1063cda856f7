/**
 * Writes answers as fast as their clients read them. The bytes that wait for clients share a limit, one for all callers
 * together and one for each; a client that reads nothing for a while is cut.
 */
import type { ServerResponse } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { queueFull } from '../core/errors.ts'

export interface AnswerLimits {
  totalBytes: number
  bytesPerKey: number
  /** A client that has taken nothing for this time is cut. */
  idleMs: number
}

const MIB = 1024 * 1024

export const defaultAnswerLimits: AnswerLimits = { totalBytes: 128 * MIB, bytesPerKey: 64 * MIB, idleMs: 30_000 }

/** What the source of a long answer keeps in memory between two of its pieces, such as rows of a list. */
export const MAX_SOURCE_BYTES = 128 * 1024

/** Written at a time: a client that takes less than this in `idleMs` is idle. */
const SLICE_BYTES = 16 * 1024

/** Memory for answers that clients have not read yet. */
export interface AnswerRoom {
  /** @param key the caller: an address @throws QUEUE_FULL */
  check(key: string): void
  hasRoom(key: string): boolean
  begin(key: string): Holding
}

/** What one answer holds. */
export interface Holding {
  /** Replaces what it held; may exceed the limits, because these bytes exist already. */
  set(bytes: number): void
  /** Resolves once there is room to make another piece; in the order of the calls. Who waits holds nothing. */
  room(): Promise<void>
  end(): void
}

export function createAnswerRoom({ totalBytes, bytesPerKey }: AnswerLimits = defaultAnswerLimits): AnswerRoom {
  const held = new Map<string, number>()
  const waiting = new Set<{ key: string; resolve: () => void }>()
  let total = 0

  const hasRoom = (key: string): boolean => total < totalBytes && (held.get(key) ?? 0) < bytesPerKey

  /** One at a time: each makes a piece, and frees or fills the room with it. */
  function wake(): void {
    for (const waiter of waiting) {
      if (!hasRoom(waiter.key)) continue
      waiting.delete(waiter)
      waiter.resolve()
      return
    }
  }

  return {
    hasRoom,
    check(key) {
      if (!hasRoom(key)) throw queueFull('bytes of answers that clients have not read', bytesPerKey)
    },
    begin(key) {
      let own = 0
      const set = (bytes: number): void => {
        const ofKey = (held.get(key) ?? 0) + bytes - own
        total += bytes - own
        own = bytes
        if (ofKey === 0) held.delete(key)
        else held.set(key, ofKey)
        wake()
      }
      return {
        set,
        room() {
          set(0)
          return new Promise((resolve) => {
            waiting.add({ key, resolve })
            wake()
          })
        },
        end: () => set(0),
      }
    },
  }
}

/** Sends a whole answer. Resolves when the client has taken it but for a rest that Node keeps, or has gone. */
export async function sendBytes(
  response: ServerResponse,
  bytes: Buffer | undefined,
  { holding, idleMs }: { holding: Holding; idleMs: number },
): Promise<void> {
  response.once('close', () => holding.end())
  if (bytes !== undefined && bytes.length > SLICE_BYTES) {
    holding.set(bytes.length)
    await writeSlices(response, bytes, idleMs)
    bytes = undefined
  }
  if (response.destroyed) return
  response.end(bytes)
  holding.set(response.writableLength)
  cutIfIdle(response, idleMs)
}

/** An answer that is made while it is sent. */
export interface Pieces extends AsyncIterable<string | Uint8Array> {
  /** Bytes that the source keeps until they are sent, besides `MAX_SOURCE_BYTES`; default 0. */
  readonly kept?: number
}

/** Sends an answer that is made in pieces, each once the client has taken the one before. The caller has checked the room. */
export async function sendPieces(
  response: ServerResponse,
  pieces: Pieces,
  { holding, idleMs }: { holding: Holding; idleMs: number },
): Promise<void> {
  response.once('close', () => holding.end())
  const source = pieces[Symbol.asyncIterator]()
  try {
    for (let isFirst = true; ; isFirst = false) {
      // What is kept needs no more room, and sending it frees some.
      if (!isFirst && (pieces.kept ?? 0) === 0) await holding.room()
      if ((await sendNext()) || response.destroyed) break
    }
  } catch (error) {
    // What was written goes out before the answer is broken off.
    await nextTurn()
    throw error
  } finally {
    await source.return?.()
  }
  if (response.destroyed) return
  response.end()
  holding.set(response.writableLength)
  cutIfIdle(response, idleMs)

  /** Keeps a piece no longer than it is being written. */
  async function sendNext(): Promise<boolean> {
    const bytes = await nextBytes(source)
    if (bytes === undefined || response.destroyed) return true
    holding.set(MAX_SOURCE_BYTES + bytes.length + (pieces.kept ?? 0))
    await writeSlices(response, bytes, idleMs)
    return false
  }
}

async function nextBytes(source: AsyncIterator<string | Uint8Array>): Promise<Buffer | undefined> {
  const { done, value } = await source.next()
  if (done === true) return undefined
  return typeof value === 'string' ? Buffer.from(value) : Buffer.from(value.buffer, value.byteOffset, value.byteLength)
}

/** Resolves early when the client has gone. */
async function writeSlices(response: ServerResponse, bytes: Buffer, idleMs: number): Promise<void> {
  for (let start = 0; start < bytes.length && !response.destroyed; start += SLICE_BYTES) {
    if (!response.write(bytes.subarray(start, start + SLICE_BYTES))) await drained(response, idleMs)
  }
}

/** Waits until the client has taken what was written, and cuts it if it takes nothing. */
function drained(response: ServerResponse, idleMs: number): Promise<void> {
  return new Promise((resolve) => {
    const cut = setTimeout(() => response.destroy(), idleMs)
    cut.unref()
    const done = (): void => {
      clearTimeout(cut)
      response.off('drain', done)
      response.off('close', done)
      resolve()
    }
    response.on('drain', done)
    response.on('close', done)
    if (response.destroyed) done()
  })
}

/** Cuts a client that does not take the end of its answer. */
function cutIfIdle(response: ServerResponse, idleMs: number): void {
  if (response.writableFinished || response.closed) return
  const cut = setTimeout(() => response.destroy(), idleMs)
  cut.unref()
  response.once('close', () => clearTimeout(cut))
}
