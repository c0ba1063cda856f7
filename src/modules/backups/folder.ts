/** The backup directory. Only what a server has called there is looked at. */
import { mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { nameBackup, readBackupName, type BackupKind } from '../../backup-name.ts'
import { removePartialBackups } from '../../db/sqlite/copy.ts'
import { hasCode } from '../../system-error.ts'

export interface BackupFile {
  name: string
  path: string
  kind: BackupKind
  /** UTC timestamp, from its name. */
  made_at: string
  bytes: number
}

export interface BackupFolder {
  /** Newest first; none where there is no directory. @throws what the file system says */
  list(): Promise<BackupFile[]>
  /** Makes the directory, and removes what killed servers have left. @returns where the next one goes */
  prepare(kind: BackupKind): Promise<string>
  /** Of the scheduled ones so many newest stay. @returns the names of those that have gone */
  rotate(keep: number): Promise<string[]>
}

export function createBackupFolder(directory: string): BackupFolder {
  async function names(): Promise<string[]> {
    try {
      return await readdir(directory)
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return []
      throw error
    }
  }

  async function list(): Promise<BackupFile[]> {
    const found = await Promise.all(
      (await names()).map(async (name): Promise<BackupFile[]> => {
        const read = readBackupName(name)
        if (read === undefined) return []
        const path = join(directory, name)
        const status = await stat(path).catch(() => undefined)
        if (status?.isFile() !== true) return []
        return [{ name, path, kind: read.kind, made_at: read.madeAt, bytes: status.size }]
      }),
    )
    return found.flat().toSorted((a, b) => (a.name < b.name ? 1 : -1))
  }

  return {
    list,
    async prepare(kind) {
      await mkdir(directory, { recursive: true, mode: 0o700 })
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
