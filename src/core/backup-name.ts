/** Names of files in the backup directory. By them a server recognises the backups that it has made. */

/** Why the backup was made. The server deletes only `scheduled` ones. */
export const backupKinds = ['requested', 'scheduled', 'before-migration'] as const
export type BackupKind = (typeof backupKinds)[number]

export interface BackupName {
  kind: BackupKind
  /** Wire timestamp: `2030-01-02T03:04:05.678000Z`. */
  madeAt: string
}

const pattern = /^svc-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d\.\d{3})Z(?:-(scheduled|before-[\w-]+))?\.db$/
/** The name of an incomplete backup, as SQLite and `db/sqlite/copy.ts` write it. */
const partialPattern = /\.partial(?:-journal|-wal|-shm)?$/

/**
 * `svc-20300102T030405.678Z-scheduled.db`.
 *
 * @param mark `scheduled`, or `before-` and the first migration that follows; undefined: on request
 */
export function nameBackup(time: Date, mark?: string): string {
  const stamp = time.toISOString().replace(/[-:]/g, '')
  return mark === undefined ? `svc-${stamp}.db` : `svc-${stamp}-${mark}.db`
}

/** Undefined: not made by a server. */
export function readBackupName(name: string): BackupName | undefined {
  const match = pattern.exec(name)
  if (match === null) return undefined
  const [, year, month, day, hour, minute, second, mark] = match
  const kind = mark === undefined ? 'requested' : mark === 'scheduled' ? mark : 'before-migration'
  return { kind, madeAt: `${year}-${month}-${day}T${hour}:${minute}:${second}000Z` }
}

/** Whether the file belongs to a backup that was not completed. */
export function isPartialBackup(name: string): boolean {
  return partialPattern.test(name) && readBackupName(name.replace(partialPattern, '')) !== undefined
}
