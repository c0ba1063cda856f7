/** Watches the free space on the file system of the database, so that new work stops before the disk is full. */
import { statfs, statfsSync } from 'node:fs'

const LOOK_EVERY_MS = 2000
/** Interval while the database is being written: it may use megabytes of the reserve in less time. */
const LOOK_WHILE_WRITING_EVERY_MS = 100

/** Multiple of the reserve that ends the shortage, so that it does not return at once. */
const ENOUGH = 1.1

export interface DiskReserve {
  /** Less than the reserve is free. */
  isShort(): boolean
  /** No space is free; checks now. */
  isGone(): boolean
  /** Called after each commit. */
  check(): void
  /** Bytes available to this account at the last check. */
  readonly freeBytes: number
  stop(): void
}

export interface RoomOptions {
  /** Of the database. */
  path: string
  /** 0 disables the reserve. */
  reserveBytes: number
  /** Called when a shortage begins and when it ends. */
  changed: (isShort: boolean, freeBytes: number) => void
  /** Called now and then with the free bytes. */
  seen?: (freeBytes: number) => void
}

export function watchRoom({ path, reserveBytes, changed, seen }: RoomOptions): DiskReserve {
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
      // The same failure also prevents writes, which report it better.
    }
  }

  look()
  const timer = setInterval(() => {
    // A file system that does not respond gets one request at a time.
    if (isLooking) return
    isLooking = true
    statfs(path, (error, found) => {
      isLooking = false
      if (error !== null || isStopped) return
      see(found)
      seen?.(freeBytes)
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
