/** Opening a SQLite file the way every connection of the server needs it. */
import Sqlite from 'better-sqlite3'

export interface ConnectionOptions {
  path: string
  readonly: boolean
  /** `normal` survives the death of the process, `full` a power cut as well. */
  synchronous: 'normal' | 'full'
}

export function openConnection(options: ConnectionOptions): Sqlite.Database {
  const connection = new Sqlite(options.path, { readonly: options.readonly, timeout: 5000 })
  if (!options.readonly) {
    // Takes effect on a new file only, and only before the first table: pages can then be given back to the disk.
    connection.pragma('auto_vacuum = incremental')
    connection.pragma('journal_mode = wal')
    connection.pragma(`synchronous = ${options.synchronous}`)
    // Checkpoints are made by the writer when it is idle; this is the bound for a writer that never is.
    connection.pragma('wal_autocheckpoint = 4000')
    connection.pragma('journal_size_limit = 67108864')
  }
  connection.pragma('cache_size = -16000')
  connection.pragma('temp_store = memory')
  return connection
}
