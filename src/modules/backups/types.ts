/** Wire records of backups. */
import { backupFileExample, backupFileProperties } from '../../core/backup-record.ts'
import { record, Type, type Static } from '../../lib/schema/index.ts'

/** A part of the server outside of the database. */
export const NotIncluded = record(
  'NotIncluded',
  Type.Object({ what: Type.String({ description: 'In a few words.' }), path: Type.String() }),
  { example: { what: 'the definitions of roles', path: '/var/lib/svc/rbac' } },
)
export type NotIncluded = Static<typeof NotIncluded>

/** A new backup. */
export const Backup = record(
  'Backup',
  Type.Object({
    ...backupFileProperties,
    sha256: Type.String({ description: 'Lower-case hexadecimal digits.' }),
    started_at: Type.String(),
    ended_at: Type.String(),
    removed: Type.Array(Type.String(), { description: 'Names of scheduled backups that svc deleted for this one.' }),
    not_included: Type.Array(NotIncluded, {
      description: 'Parts of the server outside of the database. Copy them as well.',
    }),
  }),
  {
    example: {
      ...backupFileExample,
      sha256: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
      started_at: '2030-01-31T12:00:00.000000Z',
      ended_at: '2030-01-31T12:00:01.000000Z',
      removed: [],
      not_included: [{ what: 'the definitions of roles', path: '/var/lib/svc/rbac' }],
    },
  },
)
export type Backup = Static<typeof Backup>
