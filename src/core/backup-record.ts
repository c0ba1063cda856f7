/** A file in the backup directory, as the API and the command line show it. */
import { record, Type, type Static } from '../lib/schema/index.ts'
import { backupKinds, type BackupKind } from './backup-name.ts'

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
