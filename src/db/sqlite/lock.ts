/** One server per database: two would run the same executions twice. */
import { closeSync, existsSync, openSync } from 'node:fs'
import Sqlite from 'better-sqlite3'

/** Another server has the database open. */
export class DatabaseInUse extends Error {
  constructor(path: string) {
    super(`database.path: ${path} is in use by another running server.`)
    this.name = 'DatabaseInUse'
  }
}

/**
 * Holds the lock file beside a database until released. The operating system drops it with the process, however that
 * ends, so there is never a stale one.
 *
 * @throws DatabaseInUse
 */
export function lockDatabase(path: string): { release(): void } {
  const file = `${path}-lock`
  // Whoever could read it could lock it, and keep the server from starting.
  if (!existsSync(file)) closeSync(openSync(file, 'a', 0o600))
  const lock = new Sqlite(file, { timeout: 0 })
  try {
    lock.pragma('locking_mode = exclusive')
    lock.exec('begin exclusive')
  } catch (error) {
    lock.close()
    if (error instanceof Sqlite.SqliteError && error.code.startsWith('SQLITE_BUSY')) throw new DatabaseInUse(path)
    throw error
  }
  return { release: () => lock.close() }
}
