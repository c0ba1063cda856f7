import Sqlite from 'better-sqlite3'

/** Of the driver: the file is not what it was written as. */
export function isDamage(error: unknown): error is Error {
  return error instanceof Sqlite.SqliteError && /^SQLITE_(CORRUPT|NOTADB)/.test(error.code)
}
