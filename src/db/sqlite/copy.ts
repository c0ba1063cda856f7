/** Copies a database while its server writes it, even to a file system that does not respond. */
import { lstat, readdir, rename, rm, stat, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isPartialBackup } from '../../core/backup-name.ts'
import { backupFailed, backupHasNoRoom, isAppError } from '../../core/errors.ts'
import { reasonOfFileError, syncFolder } from '../../lib/files/index.ts'
import { codeOf, hasCode } from '../../lib/process/index.ts'
import type { DatabaseCopy } from '../database.ts'
import { readWhole } from './check.ts'

/** Suffix of an incomplete copy. */
const partialSuffix = '.partial'
/** Files that SQLite keeps beside a database. */
const beside = ['', '-journal', '-wal', '-shm']

export interface CopyOptions {
  from: string
  /** The path must not exist. */
  to: string
  /** Bytes that must stay free for the database, if the copy is on its file system. */
  keepFreeBytes: number
  /** Cancels the copy. */
  signal: AbortSignal | undefined
  /** Called when the copy, and therefore the database, is damaged. */
  damaged?: (error: Error) => void
}

/**
 * Copies the current state on a thread. Writes continue, and the write-ahead log grows until the copy is complete. The
 * function checks the whole copy, syncs it and then renames it to its final name.
 *
 * @throws BACKUP_HAS_NO_ROOM, BACKUP_FAILED, the reason of the signal; it then deletes the incomplete copy
 */
export async function copyDatabase({ from, to, keepFreeBytes, signal, damaged }: CopyOptions): Promise<DatabaseCopy> {
  const partial = `${to}${partialSuffix}`
  try {
    if (await isThere(to)) throw backupFailed('a file of its name is there already.')
    await makeSureOfRoom(from, dirname(to), keepFreeBytes)
    const { damage, written } = await readWhole({ kind: 'copy', from, to: partial }, signal)
    if (damage.length > 0 || written === undefined) {
      damaged?.(new Error(damage.join('; ')))
      throw backupFailed(
        `the database is damaged (${damage[0] ?? ''}). Restore the last good backup; see docs/backup.md.`,
      )
    }
    await rename(partial, to)
    await syncFolder(dirname(to))
    return { path: to, ...written }
  } catch (error) {
    await removePartial(partial)
    signal?.throwIfAborted()
    throw translate(error)
  }
}

async function isThere(path: string): Promise<boolean> {
  try {
    await lstat(path)
    return true
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false
    throw error
  }
}

async function removePartial(partial: string): Promise<void> {
  for (const suffix of beside) await rm(`${partial}${suffix}`, { force: true })
}

/** Deletes incomplete copies of killed servers, if the backup directory exists. @throws errors of the file system */
export async function removePartialBackups(directory: string): Promise<void> {
  let names: string[]
  try {
    names = await readdir(directory)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return
    throw error
  }
  for (const name of names) if (isPartialBackup(name)) await rm(join(directory, name), { force: true })
}

/** @throws BACKUP_HAS_NO_ROOM */
async function makeSureOfRoom(from: string, folder: string, keepFreeBytes: number): Promise<void> {
  const [{ bavail, bsize }, there, database] = await Promise.all([statfs(folder), stat(folder), stat(from)])
  const kept = there.dev === database.dev ? keepFreeBytes : 0
  if (bavail * bsize < database.size + kept) throw backupHasNoRoom()
}

function translate(error: unknown): unknown {
  if (isAppError(error)) return error
  if (hasCode(error, 'ENOSPC', 'EDQUOT', 'SQLITE_FULL')) return backupHasNoRoom(error)
  const code = codeOf(error)
  // Messages of the file system contain paths.
  const why =
    code !== undefined && !code.startsWith('SQLITE_')
      ? `the backup directory cannot be used: ${reasonOfFileError(error)}.`
      : error
  return backupFailed(why instanceof Error ? `${why.message}.` : String(why), error)
}
