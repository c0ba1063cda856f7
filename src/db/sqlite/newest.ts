/** Finds the newest execution of a database file, with or without a running server. */
import { appliedMigrations } from '../applied-migrations.ts'
import { openDatabaseConnection } from './connection.ts'
import { isDamage } from './damage.ts'

/** Wire timestamp of the start of the newest execution; undefined when there is none. @throws errors of SQLite */
export function newestExecution(path: string): string | undefined {
  const connection = openDatabaseConnection({ path, readonly: true, synchronous: 'normal' })
  try {
    if (appliedMigrations(connection) === undefined) return undefined
    const newest = connection.prepare('select start_timestamp from executions order by id desc limit 1').pluck().get()
    return typeof newest === 'string' ? newest : undefined
  } catch (error) {
    // The check of the file reports damage.
    if (isDamage(error)) return undefined
    throw error
  } finally {
    connection.close()
  }
}
