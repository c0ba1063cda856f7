/** What the newest record of a database file tells of the time, beside its server or without one. */
import { appliedMigrations } from '../applied-migrations.ts'
import { openConnection } from './connection.ts'
import { isDamage } from './damage.ts'

/** Wire timestamp of when the newest execution began; undefined when there is none. @throws what SQLite says of the file */
export function newestExecution(path: string): string | undefined {
  const connection = openConnection({ path, readonly: true, synchronous: 'normal' })
  try {
    if (appliedMigrations(connection) === undefined) return undefined
    const newest = connection.prepare('select start_timestamp from executions order by id desc limit 1').pluck().get()
    return typeof newest === 'string' ? newest : undefined
  } catch (error) {
    // The check of the file says so.
    if (isDamage(error)) return undefined
    throw error
  } finally {
    connection.close()
  }
}
