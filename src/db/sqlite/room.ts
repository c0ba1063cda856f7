/** Looks now and then how much room the file system of the database has left, so that new work stops before it is full. */
import { statfs, statfsSync } from 'node:fs'

const LOOK_EVERY_MS = 2000
/** While the database is written, which may take a reserve of megabytes in less than that. */
const LOOK_WHILE_WRITING_EVERY_MS = 100

/** Of the reserve, so that it does not become short again at once. */
const ENOUGH = 1.1

export interface Room {
  /** Less than the reserve is left. */
  isShort(): boolean
  /** Nothing is left at all; looks now. */
  isGone(): boolean
  /** Called after each commit. */
  check(): void
  /** For this account, in bytes, as last seen. */
  readonly freeBytes: number
  stop(): void
}

export interface RoomOptions {
  /** Of the database. */
  path: string
  /** 0: none. */
  reserveBytes: number
  /** Hears when it becomes short, and when it is not any more. */
  changed: (isShort: boolean, freeBytes: number) => void
}

export function watchRoom({ path, reserveBytes, changed }: RoomOptions): Room {
  let freeBytes = Number.POSITIVE_INFINITY
  let isShort = false
  let isLooking = false
  let lookedAt = 0

  function see({ bavail, bsize }: { bavail: number; bsize: number }): void {
    freeBytes = bavail * bsize
    const wasShort = isShort
    isShort = freeBytes < (wasShort ? reserveBytes * ENOUGH : reserveBytes)
    if (isShort !== wasShort) changed(isShort, freeBytes)
  }

  function look(): void {
    lookedAt = performance.now()
    try {
      see(statfsSync(path))
    } catch {
      // Whatever keeps it from being asked keeps the database from writing, which says it better.
    }
  }

  look()
  const timer = setInterval(() => {
    // A file system that does not answer is asked once.
    if (isLooking) return
    isLooking = true
    statfs(path, (error, found) => {
      isLooking = false
      if (error === null && !isStopped) see(found)
    })
  }, LOOK_EVERY_MS)
  timer.unref()
  let isStopped = false

  return {
    isShort: () => isShort,
    check() {
      if (performance.now() - lookedAt >= LOOK_WHILE_WRITING_EVERY_MS) look()
    },
    isGone() {
      look()
      return freeBytes === 0
    },
    get freeBytes() {
      return freeBytes
    },
    stop() {
      isStopped = true
      clearInterval(timer)
    },
  }
}
