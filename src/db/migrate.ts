/** Brings a database file to this release's schema; runs at every start. */
import { Kysely, SqliteDialect } from 'kysely'
import { Migrator } from 'kysely/migration'
import type Sqlite from 'better-sqlite3'
import { migrations } from '../../migrations/index.ts'
import { appliedMigrations } from './applied-migrations.ts'

/** The file was written by a newer release. */
export class SchemaTooNew extends Error {
  constructor(unknown: string[]) {
    super(
      `The database was made by a newer release (it has the migrations ${unknown.join(', ')}). ` +
        'Start that release, or restore the backup that was made before the upgrade: svc restore FILE.',
    )
    this.name = 'SchemaTooNew'
  }
}

/** Migrations of this release that the file lacks. @throws SchemaTooNew */
export function missingMigrations(applied: readonly string[]): string[] {
  const known = Object.keys(migrations)
  const unknown = applied.filter((name) => !known.includes(name))
  if (unknown.length > 0) throw new SchemaTooNew(unknown)
  return known.filter((name) => !applied.includes(name))
}

/** Applies the missing migrations: all of them, or none if one fails. The connection stays open. */
export async function migrate(connection: Sqlite.Database): Promise<void> {
  if (missingMigrations(appliedMigrations(connection) ?? []).length === 0) return

  // The dialect closes its connection together with the builder; the server still needs it.
  const borrowed = { prepare: connection.prepare.bind(connection), close: () => undefined }
  const db = new Kysely<unknown>({ dialect: new SqliteDialect({ database: borrowed }) })
  const migrator = new Migrator({ db, provider: { getMigrations: () => Promise.resolve(migrations) } })
  // The migrator uses no transaction on SQLite: a killed server would leave half a schema.
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
