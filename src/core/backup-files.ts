/** The files in the backup directory. Only what a server has called there is looked at. */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { readBackupName, type BackupKind } from './backup-name.ts'
import { hasCode } from '../lib/process/index.ts'

export interface BackupFile {
  name: string
  path: string
  kind: BackupKind
  /** UTC timestamp, from its name. */
  made_at: string
  bytes: number
}

/** Newest first; none where there is no directory. @throws what the file system says */
export async function listBackups(directory: string): Promise<BackupFile[]> {
  const found = await Promise.all(
    (await namesIn(directory)).map(async (name): Promise<BackupFile[]> => {
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

async function namesIn(directory: string): Promise<string[]> {
  try {
    return await readdir(directory)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return []
    throw error
  }
}
