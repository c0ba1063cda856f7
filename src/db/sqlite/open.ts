/** The database port on one SQLite file. */
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DummyDriver, Kysely, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler, type CompiledQuery } from 'kysely'
import type { Fact } from '../../bus/facts.ts'
import { shuttingDown } from '../../errors.ts'
import type { Database } from '../database.ts'
import { migrate } from '../migrate.ts'
import type { Tables } from '../tables.ts'
import { openConnection } from './connection.ts'
import { lockDatabase } from './lock.ts'
import { createScanner } from './scanner.ts'
import { createStatementCache } from './statements.ts'
import { createWriter } from './writer.ts'

export interface SqliteOptions {
  path: string
  synchronous: 'normal' | 'full'
  /** Hears the facts of each commit. */
  announce: (facts: Fact[]) => void
}

/** Opens (and creates) the file, for this process alone, and migrates it. @throws DatabaseInUse, SchemaTooNew */
export async function openSqlite(options: SqliteOptions): Promise<Database> {
  mkdirSync(dirname(options.path), { recursive: true, mode: 0o700 })
  const lock = lockDatabase(options.path)
  const writing = openConnection({ ...options, readonly: false })
  try {
    await migrate(writing)
  } catch (error) {
    writing.close()
    lock.release()
    throw error
  }
  const reading = openConnection({ ...options, readonly: true })
  const statement = createStatementCache(reading)
  const writer = createWriter(writing, options.announce)
  const scanner = createScanner(options.path)
  let closed = false

  const build = new Kysely<Tables>({
    dialect: {
      createAdapter: () => new SqliteAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (db) => new SqliteIntrospector(db),
      createQueryCompiler: () => new SqliteQueryCompiler(),
    },
  })

  // The rows of a query are what its type says: the builder and the migrations describe the same tables.
  const rowsOf = <O>({ sql, parameters }: CompiledQuery<O>): O[] => statement(sql).all(...parameters) as O[]
  const rowOf = <O>({ sql, parameters }: CompiledQuery<O>): O | undefined =>
    statement(sql).get(...parameters) as O | undefined

  return {
    build,
    all: (query) => rowsOf(query.compile()),
    first: (query) => rowOf(query.compile()),
    async scan<O>(query: { compile(): CompiledQuery<O> }) {
      const { sql, parameters } = query.compile()
      return (await scanner.scan(sql, parameters)) as O[] // as above
    },
    write: (unit) => (closed ? Promise.reject(shuttingDown()) : writer.write(unit)),
    async close() {
      if (closed) return
      closed = true
      writer.drain()
      await scanner.stop()
      reading.close()
      writing.pragma('wal_checkpoint(truncate)')
      writing.close()
      lock.release()
    },
  }
}
