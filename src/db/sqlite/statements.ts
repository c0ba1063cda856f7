/** Prepared statements of one connection, prepared once per SQL text. */
import type Sqlite from 'better-sqlite3'
import { Lru } from '../../lib/cache/index.ts'

const MAX_STATEMENTS = 500

export type PreparedStatement = Sqlite.Statement<unknown[], Record<string, unknown>>

export type StatementCache = (sql: string) => PreparedStatement

/** Keeps the 500 most recently used statements: filters combine freely, so the number of texts is unlimited. */
export function createStatementCache(connection: Pick<Sqlite.Database, 'prepare'>): StatementCache {
  const statements = new Lru<string, PreparedStatement>(MAX_STATEMENTS)
  return (sql) => {
    let statement = statements.get(sql)
    if (statement === undefined) {
      statement = connection.prepare<unknown[], Record<string, unknown>>(sql)
      statements.set(sql, statement)
    }
    return statement
  }
}
