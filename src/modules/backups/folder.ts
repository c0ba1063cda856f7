/** The backup directory, as the server uses it. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { listBackups } from '../../core/backup-files.ts'
import type { BackupFile } from '../../core/backup-record.ts'
import { nameBackup, type BackupKind } from '../../core/backup-name.ts'
import { removePartialBackups } from '../../db/index.ts'
import { makeFolder } from '../../lib/files/index.ts'

export interface BackupFolder {
  /** Newest first; none where there is no directory. @throws what the file system says */
  list(): Promise<BackupFile[]>
  /** Makes the directory, and removes what killed servers have left. @returns where the next one goes */
  prepare(kind: BackupKind): Promise<string>
  /** Keeps the newest scheduled backups. @returns the names of the deleted ones */
  rotate(keep: number): Promise<string[]>
}

export function createBackupFolder(directory: string): BackupFolder {
  const list = (): Promise<BackupFile[]> => listBackups(directory)

  return {
    list,
    async prepare(kind) {
      await makeFolder(directory)
      await removePartialBackups(directory)
      return join(directory, nameBackup(new Date(), kind === 'requested' ? undefined : kind))
    },
    async rotate(keep) {
      const old = (await list()).filter(({ kind }) => kind === 'scheduled').slice(keep)
      for (const { path } of old) await rm(path, { force: true })
      return old.map(({ name }) => name)
    },
  }
}
