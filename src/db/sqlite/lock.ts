/** One server per database: two would run the same executions twice. */
import { closeSync, fchownSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import Sqlite from 'better-sqlite3'
import { hasCode } from '../../lib/process/index.ts'

/** Another server has the database open. */
export class DatabaseInUse extends Error {
  constructor(path: string, advice: string) {
    super(`database.path: ${path} is in use by another running server. ${advice}`)
    this.name = 'DatabaseInUse'
  }
}

/**
 * @param advice what the reader of the error can do, or what has not been done
 * @throws DatabaseInUse
 */
export function lockDatabase(path: string, advice: string): { release(): void } {
  const lock = holdLockFile(`${path}-lock`)
  if (lock === undefined) throw new DatabaseInUse(path, advice)
  return lock
}

/**
 * Holds a lock file, which is made if need be, until it is released. The operating system releases it when the process
 * ends, so a lock is never stale.
 *
 * @returns undefined: another process holds it
 */
export function holdLockFile(file: string): { release(): void } | undefined {
  makeLockFile(file)
  const lock = new Sqlite(file, { timeout: 0, fileMustExist: true })
  try {
    lock.pragma('locking_mode = exclusive')
    lock.exec('begin exclusive')
  } catch (error) {
    lock.close()
    if (error instanceof Sqlite.SqliteError && error.code.startsWith('SQLITE_BUSY')) return undefined
    throw error
  }
  return { release: () => lock.close() }
}

function makeLockFile(file: string): void {
  let made: number
  try {
    // An account that can read the file could lock it and block the server. `wx` does not follow a link.
    made = openSync(file, 'wx', 0o600)
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return
    throw error
  }
  try {
    const { uid, gid } = statSync(dirname(file))
    // A command run by root creates the file for the account of the server.
    if (process.getuid?.() === 0) fchownSync(made, uid, gid)
  } finally {
    closeSync(made)
  }
}
