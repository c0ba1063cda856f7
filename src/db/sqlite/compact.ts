/** Makes the file of a database that no server uses as small as its content. */
import { chmodSync, chownSync, realpathSync, renameSync, rmSync, statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import Sqlite from 'better-sqlite3'
import { codeOf, hasCode } from '../../lib/process/index.ts'
import { syncFolder } from '../../lib/files/index.ts'
import { size } from '../../lib/text/index.ts'
import { appliedMigrations } from '../applied-migrations.ts'
import { readWhole } from './check.ts'
import { isDamage } from './damage.ts'
import { lockDatabase } from './lock.ts'

export { DatabaseInUse } from './lock.ts'

const LOOK_EVERY_MS = 200

/** The database cannot be compacted. It is unchanged. */
export class CompactRefused extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'CompactRefused'
  }
}

export interface CompactOptions {
  /** The database. */
  path: string
  /** Called several times per second with the bytes written so far, and about how many there will be. */
  progress?: (written: number, expected: number) => void
}

/** Sizes of the file. */
export interface Compacted {
  bytesBefore: number
  bytesAfter: number
}

/**
 * Writes what the database holds to a new file beside it, reads and syncs that file, and lets it replace the database.
 * At every point the complete database has its name; the new file gets its owner and mode.
 *
 * @throws DatabaseInUse, CompactRefused
 */
export async function compactDatabase({ path: given, progress }: CompactOptions): Promise<Compacted> {
  try {
    const path = realpathSync(given)
    if (!statSync(path).isFile()) throw new CompactRefused(`${path} is not a file.`)
    const lock = lockDatabase(path, 'Stop it first (svc stop).')
    try {
      return await exchange(path, progress)
    } finally {
      lock.release()
    }
  } catch (error) {
    if (!isDamage(error) && codeOf(error) === undefined) throw error
    throw new CompactRefused(describe(error, given), error)
  }
}

/** Deletes what a killed run has left beside the database. The caller holds its lock. */
export function removePartialCompaction(path: string): void {
  for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(`${nameOfNew(path)}${suffix}`, { force: true })
}

const nameOfNew = (path: string): string => `${path}.compacting`

async function exchange(path: string, progress: CompactOptions['progress']): Promise<Compacted> {
  removePartialCompaction(path)
  const usedBytes = prepare(path)
  const before = statSync(path)
  const { bavail, bsize } = statfsSync(dirname(path))
  if (bavail * bsize < usedBytes) {
    throw new CompactRefused(
      `Not enough disk space in ${dirname(path)}: the new file needs ${size(usedBytes)}, and ${size(bavail * bsize)} are free. Free some space and try again.`,
    )
  }
  const to = nameOfNew(path)
  const timer = setInterval(
    () => progress?.(statSync(to, { throwIfNoEntry: false })?.size ?? 0, usedBytes),
    LOOK_EVERY_MS,
  )
  try {
    const { damage, migrations, written } = await readWhole({ kind: 'compact', from: path, to }, undefined)
    const [first] = damage
    if (first !== undefined || migrations === undefined || written === undefined) throw damaged(path, first)
    const made = statSync(to)
    if (made.uid !== before.uid || made.gid !== before.gid) chownSync(to, before.uid, before.gid)
    chmodSync(to, before.mode & 0o7777)
    // Without the log: SQLite would apply it to the new file.
    await syncFolder(dirname(path))
    renameSync(to, path)
    await syncFolder(dirname(path))
    return { bytesBefore: before.size, bytesAfter: written.bytes }
  } finally {
    clearInterval(timer)
    removePartialCompaction(path)
  }
}

/** Merges the log into the file and deletes it. @returns bytes of the file that hold data */
function prepare(path: string): number {
  const connection = new Sqlite(path, { fileMustExist: true })
  try {
    if (appliedMigrations(connection) === undefined) throw new CompactRefused(`${path} is not a database of svc.`)
    connection.pragma('journal_mode = delete')
    const number = (pragma: string): number => Number(connection.pragma(pragma, { simple: true }))
    return (number('page_count') - number('freelist_count')) * number('page_size')
  } finally {
    connection.close()
  }
}

function damaged(path: string, reason = 'it cannot be read'): CompactRefused {
  return new CompactRefused(
    `${path} is damaged: ${reason}. svc did not change it. Keep a copy of the file and restore a backup with svc restore (docs/backup.md).`,
  )
}

function describe(error: unknown, path: string): string {
  if (isDamage(error)) return damaged(path, error.message).message
  const reason = error instanceof Error ? error.message : String(error)
  if (hasCode(error, 'ENOENT')) return `${path} does not exist.`
  if (hasCode(error, 'SQLITE_BUSY')) {
    return `Another program has ${path} open, such as sqlite3 or litestream. Close it and try again.`
  }
  if (hasCode(error, 'EACCES', 'EPERM', 'SQLITE_READONLY', 'SQLITE_CANTOPEN')) {
    return `Cannot compact ${path}: ${reason}. Run it as root or as the account of the server.`
  }
  return hasCode(error, 'ENOSPC', 'EDQUOT', 'SQLITE_FULL')
    ? `Not enough disk space in ${dirname(path)} for the new file. Free some space and try again.`
    : `Cannot compact ${path}: ${reason}`
}
