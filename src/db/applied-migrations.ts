import type Sqlite from 'better-sqlite3'

/** Names of the migrations that a file has seen; undefined: it is no database of this product, or a new one. */
export function appliedMigrations(connection: Sqlite.Database): string[] | undefined {
  const table = connection
    .prepare(`select 1 from sqlite_master where type = 'table' and name = 'kysely_migration'`)
    .get()
  if (table === undefined) return undefined
  return connection.prepare('select name from kysely_migration order by name').pluck().all() as string[] // a text column
}
