/** How SQLite goes about what a test reads. */
import Sqlite from 'better-sqlite3'
import type { Compilable, Database } from '../../src/db/database.ts'

export interface QueryPlans {
  /** The same database, with its reads remembered. */
  database: Database
  /** One text for each read since the last call, steps parted by `; `; those on the scan thread begin with `thread: `. */
  take(): string[]
}

/** @param path of the file of the database */
export function watchQueries(database: Database, path: string): QueryPlans {
  let reads: { query: Compilable; isOnThread: boolean }[] = []
  const remember = (query: Compilable, isOnThread: boolean): void => void reads.push({ query, isOnThread })
  return {
    database: {
      ...database,
      all(query) {
        remember(query, false)
        return database.all(query)
      },
      first(query) {
        remember(query, false)
        return database.first(query)
      },
      scan(query) {
        remember(query, true)
        return database.scan(query)
      },
    },
    take() {
      const connection = new Sqlite(path, { readonly: true })
      try {
        return reads.map(({ query, isOnThread }) => {
          const { sql, parameters } = query.compile()
          const steps = connection.prepare(`explain query plan ${sql}`).all(...parameters) as { detail: string }[] // SQLite's columns
          return `${isOnThread ? 'thread: ' : ''}${steps.map(({ detail }) => detail).join('; ')}`
        })
      } finally {
        connection.close()
        reads = []
      }
    },
  }
}
