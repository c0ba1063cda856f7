/**
 * A file that takes up space on the disk of the database. When the disk is full, deleting it gives the records of canceled
 * and ended executions room, while all other changes are refused. It is made again when there is space.
 */
import { rmSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'

export const BALLAST_BYTES = 2 * 1024 * 1024
/** Multiple of its size that must be free before it is made again, so that it is not the reason for the next shortage. */
const ENOUGH = 3

export interface Ballast {
  /** It was deleted, and there has been no space to make it again: what is not vital is refused. */
  readonly isSpent: boolean
  /** Deletes the file. @returns false: there is none */
  release(): boolean
  /** Makes the file if it is missing and enough is free; waits for one that is being made. Never rejects. */
  restore(freeBytes: number): Promise<void>
}

/** @param path of the file; its folder exists */
export function createBallast(path: string): Ballast {
  let isHeld = (statSync(path, { throwIfNoEntry: false })?.size ?? 0) >= BALLAST_BYTES
  let isSpent = false
  let making: Promise<void> | undefined

  async function make(): Promise<void> {
    try {
      const file = await open(path, 'w', 0o600)
      try {
        // Zeros that are written: a hole would take no space.
        await file.writeFile(Buffer.alloc(BALLAST_BYTES))
        await file.datasync()
      } finally {
        await file.close()
      }
      isHeld = true
      isSpent = false
    } catch {
      rmSync(path, { force: true })
    }
  }

  return {
    get isSpent() {
      return isSpent
    },
    release() {
      if (!isHeld) return false
      try {
        rmSync(path)
      } catch {
        isHeld = false
        return false
      }
      isHeld = false
      isSpent = true
      return true
    },
    async restore(freeBytes) {
      if (making === undefined && (isHeld || freeBytes < ENOUGH * BALLAST_BYTES)) return
      making ??= make().finally(() => {
        making = undefined
      })
      await making
    },
  }
}
