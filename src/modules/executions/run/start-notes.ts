/**
 * Notes which runs have begun, in a file that the next server reads: what a crash interrupted before that is queued again.
 *
 * A note is one write into a place of its own, without waiting for the disk. It survives the end of the process, but not
 * a power loss: notes of another boot say nothing.
 */
import { closeSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Log } from '../../../lib/log/index.ts'
import type { StartNote } from '../../../runners/index.ts'

const FILE = 'begun-runs'
const BOOT_ID_BYTES = 64
/** An id and a line feed. */
const NOTE_BYTES = 25

export interface StartNotes {
  /**
   * Whether a run of the earlier server had begun; true also when that is unknown.
   *
   * Call before `start`.
   */
  hadBegun(executionId: string): boolean
  /** Discards the notes of the earlier server. */
  start(): void
  /** A place for a run, until `release`. Undefined when notes cannot be made. */
  take(executionId: string): StartNote | undefined
  release(note: StartNote): void
  stop(): void
}

/** @param folder `system.base_path`; without it nothing is noted */
export function createStartNotes(folder: string | undefined, bootId: string, log: Log): StartNotes {
  const path = folder === undefined ? undefined : join(folder, FILE)
  const free: number[] = []
  let places = 0
  let fd: number | undefined
  let earlier: ReadonlySet<string> | undefined
  let isRead = false

  /** Undefined when there are no notes of this boot. */
  function read(file: string): ReadonlySet<string> | undefined {
    try {
      const text = readFileSync(file, 'latin1')
      if (text.slice(0, BOOT_ID_BYTES).trim() !== bootId) return undefined
      return new Set(text.slice(BOOT_ID_BYTES).match(/[0-9a-f]{24}/g) ?? [])
    } catch {
      return undefined
    }
  }

  return {
    hadBegun(executionId) {
      if (!isRead && path !== undefined) earlier = read(path)
      isRead = true
      return earlier?.has(executionId) ?? true
    },
    start() {
      if (path === undefined) return
      // Old notes must not stay: a run that is missing in them would run twice.
      rmSync(path, { force: true })
      try {
        writeFileSync(path, bootId.padEnd(BOOT_ID_BYTES), { mode: 0o600 })
        fd = openSync(path, 'r+')
      } catch (error) {
        rmSync(path, { force: true })
        log.warning(
          'executions.no_start_notes',
          'Could not write the file of begun runs: after a crash they are abandoned',
          {
            file: path,
            error,
          },
        )
      }
    },
    take(executionId) {
      if (fd === undefined) return undefined
      const place = free.pop() ?? places++
      return { fd, position: BOOT_ID_BYTES + place * NOTE_BYTES, text: `${executionId}\n` }
    },
    release({ position }) {
      free.push((position - BOOT_ID_BYTES) / NOTE_BYTES)
    },
    stop() {
      if (fd !== undefined) closeSync(fd)
      fd = undefined
    },
  }
}
