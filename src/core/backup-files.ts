/** The files in the backup directory. Files with other names than the server's are ignored. */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { readBackupName } from './backup-name.ts'
import type { BackupFile } from './backup-record.ts'
import { hasCode } from '../lib/process/index.ts'

/** Newest first; empty if the directory is missing. @throws errors of the file system */
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
