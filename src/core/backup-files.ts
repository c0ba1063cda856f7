/** The files in the backup directory. Only files with a name that svc gives to backups count. */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { backupKinds, readBackupName, type BackupKind } from './backup-name.ts'
import { hasCode } from '../lib/process/index.ts'
import { record, Type, type Static } from '../lib/schema/index.ts'

export const backupFileProperties = {
  name: Type.String(),
  path: Type.String({ description: 'Absolute path on the host of the server.' }),
  kind: Type.Unsafe<BackupKind>({
    type: 'string',
    enum: backupKinds,
    description: 'svc deletes the oldest `scheduled` backups beyond `backup.keep`, and no others.',
  }),
  made_at: Type.String({ description: 'UTC time of the data in it, from the name.' }),
  bytes: Type.Integer(),
}

export const backupFileExample = {
  name: 'svc-20300131T120000.000Z.db',
  path: '/var/lib/svc/backups/svc-20300131T120000.000Z.db',
  kind: 'requested' as const,
  made_at: '2030-01-31T12:00:00.000000Z',
  bytes: 4_194_304,
}

/** A file in the backup directory. */
export const BackupFile = record('BackupFile', Type.Object(backupFileProperties), { example: backupFileExample })
export type BackupFile = Static<typeof BackupFile>

/** Newest first; empty if the directory does not exist. @throws errors of the file system */
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
