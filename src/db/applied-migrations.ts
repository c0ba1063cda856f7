import type Sqlite from 'better-sqlite3'

/** Names of the migrations applied to a file; undefined: a new file, or not a database of this product. */
export function appliedMigrations(connection: Sqlite.Database): string[] | undefined {
  const table = connection
    .prepare(`select 1 from sqlite_master where type = 'table' and name = 'kysely_migration'`)
    .get()
  if (table === undefined) return undefined
  return connection.prepare('select name from kysely_migration order by name').pluck().all() as string[] // a text column
}
