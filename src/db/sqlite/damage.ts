import Sqlite from 'better-sqlite3'

/** Whether an error of the driver means that the file is damaged. */
export function isDamage(error: unknown): error is Error {
  return error instanceof Sqlite.SqliteError && /^SQLITE_(CORRUPT|NOTADB)/.test(error.code)
}
