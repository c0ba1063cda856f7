/** Opens a SQLite file with the settings that every connection of the server needs. */
import Sqlite from 'better-sqlite3'

export interface ConnectionOptions {
  path: string
  readonly: boolean
  /** `normal` survives the end of the process, `full` also a power cut. */
  synchronous: 'normal' | 'full'
  /** Page cache in KiB; the page cache of the operating system holds the rest. Default 2048. */
  cacheKib?: number
}

export function openDatabaseConnection(options: ConnectionOptions): Sqlite.Database {
  const connection = new Sqlite(options.path, { readonly: options.readonly, timeout: 5000 })
  try {
    configure(connection, options)
  } catch (error) {
    connection.close()
    throw error
  }
  return connection
}

function configure(connection: Sqlite.Database, options: ConnectionOptions): void {
  if (!options.readonly) {
    // Works on a new file only, before the first table: SQLite can then return pages to the file system. Existing files
    // are left alone: the pragma would write to them, even when they are damaged or of a newer release.
    if (connection.pragma('page_count', { simple: true }) === 0) connection.pragma('auto_vacuum = incremental')
    connection.pragma('journal_mode = wal')
    connection.pragma(`synchronous = ${options.synchronous}`)
    // The writer makes checkpoints while it is idle, and the background thread while it is busy. This is the upper
    // bound, 64 MB, for a slow disk.
    connection.pragma('wal_autocheckpoint = 16384')
    connection.pragma('journal_size_limit = 67108864')
  }
  connection.pragma(`cache_size = -${options.cacheKib ?? 2048}`)
  connection.pragma('temp_store = memory')
}
