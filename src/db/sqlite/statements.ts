/** Prepared statements of one connection, prepared once per SQL text. */
import type Sqlite from 'better-sqlite3'

const MAX_STATEMENTS = 500

export type StatementCache = (sql: string) => Sqlite.Statement<unknown[], Record<string, unknown>>

/** Keeps the 500 statements used last; the number of texts is unbounded because filters combine freely. */
export function createStatementCache(connection: Sqlite.Database): StatementCache {
  const statements = new Map<string, Sqlite.Statement<unknown[], Record<string, unknown>>>()
  return (sql) => {
    let statement = statements.get(sql)
    if (statement === undefined) {
      statement = connection.prepare<unknown[], Record<string, unknown>>(sql)
      statements.set(sql, statement)
      if (statements.size > MAX_STATEMENTS) {
        const oldest = statements.keys().next()
        if (oldest.done !== true) statements.delete(oldest.value)
      }
    }
    return statement
  }
}
