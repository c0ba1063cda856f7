/** Wire records of backups. */
import type { BackupFile } from '../../core/backup-files.ts'

/** A part of the server that is not in the database. */
export interface KeptElsewhere {
  /** In a few words. */
  what: string
  path: string
}

export interface Backup extends BackupFile {
  /** Lower case hexadecimal digits. */
  sha256: string
  started_at: string
  ended_at: string
  /** Names of those that had to go for it. */
  removed: string[]
  /** What has to be kept besides. */
  not_included: KeptElsewhere[]
}
