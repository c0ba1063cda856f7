/** Brings a database file to this release's schema; runs at every start. */
import { Kysely, SqliteDialect } from 'kysely'
import { Migrator } from 'kysely/migration'
import type Sqlite from 'better-sqlite3'
import { migrations } from '../../migrations/index.ts'

/** The file was written by a newer release. */
export class SchemaTooNew extends Error {
  constructor(unknown: string[]) {
    super(
      `The database was made by a newer release (it has the migrations ${unknown.join(', ')}). ` +
        'Start that release, or restore a backup made before the upgrade.',
    )
    this.name = 'SchemaTooNew'
  }
}

/** Runs the migrations that the file has not seen: all of them, or on any failure none. The connection stays open. */
export async function migrate(connection: Sqlite.Database): Promise<void> {
  const known = new Set(Object.keys(migrations))
  const applied = appliedMigrations(connection)
  const unknown = applied.filter((name) => !known.has(name))
  if (unknown.length > 0) throw new SchemaTooNew(unknown)
  if (applied.length === known.size) return

  // The dialect closes its connection with the builder; the server goes on using this one.
  const borrowed = { prepare: connection.prepare.bind(connection), close: () => undefined }
  const db = new Kysely<unknown>({ dialect: new SqliteDialect({ database: borrowed }) })
  const migrator = new Migrator({ db, provider: { getMigrations: () => Promise.resolve(migrations) } })
  // The migrator uses no transaction on SQLite: a server killed on the way would leave half a schema.
  connection.exec('begin immediate')
  try {
    const { error } = await migrator.migrateToLatest()
    if (error !== undefined) throw error
    connection.exec('commit')
  } catch (error) {
    if (connection.inTransaction) connection.exec('rollback')
    throw error
  } finally {
    await db.destroy()
  }
}

function appliedMigrations(connection: Sqlite.Database): string[] {
  const table = connection
    .prepare(`select 1 from sqlite_master where type = 'table' and name = 'kysely_migration'`)
    .get()
  if (table === undefined) return []
  return connection.prepare('select name from kysely_migration order by name').pluck().all() as string[] // a text column
}
