/**
 * Keeps the write-ahead log short without blocking the event loop. A checkpoint waits for the disk, so a thread makes
 * it. The automatic checkpoint of the writing connection is the upper bound for a thread that falls behind.
 */
import { closeSync, openSync, readSync } from 'node:fs'
import { endianness } from 'node:os'

/** 4 KiB each. */
const FRAMES_PER_CHECKPOINT = 2000

/** A megabyte, about as much as a large commit. */
const LONG_FRAMES = 256

/** Offset of `mxFrame`, the number of valid frames, in the index file (sqlite.org/walformat.html, 2.1). */
const FRAMES_OFFSET = 16

export interface WriteAheadLog {
  /** Called after each commit; requests a checkpoint when enough frames have accumulated. */
  check(): void
  /** Whether a checkpoint now would take more than a few milliseconds. */
  isLong(): boolean
  close(): void
}

/** @param path of the database @param checkpoint copies what it can; never rejects */
export function watchWriteAheadLog(path: string, checkpoint: () => Promise<void>): WriteAheadLog {
  const index = openSync(`${path}-shm`, 'r')
  const bytes = Buffer.alloc(4)
  const readFrames = endianness() === 'LE' ? () => bytes.readUInt32LE() : () => bytes.readUInt32BE()
  let copiedFrames = 0
  let isCopying = false

  /** Frames in the log; undefined: it cannot be read now. */
  function look(): number | undefined {
    if (readSync(index, bytes, 0, 4, FRAMES_OFFSET) !== 4) return undefined
    const frames = readFrames()
    // After a complete checkpoint the log restarts at its beginning.
    if (frames < copiedFrames) copiedFrames = 0
    return frames
  }

  return {
    check() {
      if (isCopying) return
      const frames = look()
      if (frames === undefined || frames - copiedFrames < FRAMES_PER_CHECKPOINT) return
      isCopying = true
      void checkpoint().then(() => {
        isCopying = false
        copiedFrames = frames
      })
    },
    isLong() {
      const frames = look()
      return frames === undefined || frames - copiedFrames > LONG_FRAMES
    },
    close: () => closeSync(index),
  }
}
