/** Opening a SQLite file the way every connection of the server needs it. */
import Sqlite from 'better-sqlite3'

export interface ConnectionOptions {
  path: string
  readonly: boolean
  /** `normal` survives the death of the process, `full` a power cut as well. */
  synchronous: 'normal' | 'full'
  /** Pages kept in memory; what does not fit is in the page cache of the operating system. Default 2048. */
  cacheKib?: number
}

export function openConnection(options: ConnectionOptions): Sqlite.Database {
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
    // Takes effect on a new file only, and only before the first table: pages can then be given back to the disk. Others are
    // not asked to: that would write to them, be they damaged or of a newer release.
    if (connection.pragma('page_count', { simple: true }) === 0) connection.pragma('auto_vacuum = incremental')
    connection.pragma('journal_mode = wal')
    connection.pragma(`synchronous = ${options.synchronous}`)
    // Checkpoints are made while the writer is idle, and by the background thread while it is busy; this is the bound,
    // 64 MB, for a disk that cannot keep up.
    connection.pragma('wal_autocheckpoint = 16384')
    connection.pragma('journal_size_limit = 67108864')
  }
  connection.pragma(`cache_size = -${options.cacheKib ?? 2048}`)
  connection.pragma('temp_store = memory')
}
