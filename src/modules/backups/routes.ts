import { backupKinds } from '../../core/backup-name.ts'
import type { ApiRequest, Route } from '../../http/index.ts'
import type { JsonSchema } from '../../lib/schema/index.ts'
import type { BackupFile } from '../../core/backup-files.ts'
import type { Backup } from './types.ts'

const text: JsonSchema = { type: 'string' }

const file = {
  name: text,
  path: { type: 'string', description: 'On the machine of the server.' },
  kind: { type: 'string', enum: backupKinds, description: 'Scheduled ones go when there are more than `backup.keep`.' },
  made_at: { type: 'string', description: 'UTC time of what is in it.' },
  bytes: { type: 'integer' },
} as const

const fileSchema: JsonSchema = { title: 'BackupFile', type: 'object', required: Object.keys(file), properties: file }

const made = {
  ...file,
  sha256: { type: 'string', description: 'Hexadecimal digits.' },
  started_at: text,
  ended_at: text,
  removed: { type: 'array', items: text, description: 'Names of scheduled backups that had to go for it.' },
  not_included: {
    type: 'array',
    description: 'What the server consists of besides its database; keep copies of it, too.',
    items: { type: 'object', required: ['what', 'path'], properties: { what: text, path: text } },
  },
} as const

const madeSchema: JsonSchema = { title: 'Backup', type: 'object', required: Object.keys(made), properties: made }

export function createRoutes(deps: {
  make(caller: ApiRequest): Promise<Backup>
  list(): Promise<BackupFile[]>
}): Route[] {
  return [
    {
      surface: 'api',
      method: 'post',
      path: '/backups',
      permission: 'administrator',
      summary:
        'Write a backup of the database into the backup directory, while everything goes on; answered when it is complete and checked.',
      status: 201,
      response: madeSchema,
      failures: [409, 503, 507],
      handler: (request) => deps.make(request),
    },
    {
      surface: 'api',
      method: 'get',
      path: '/backups',
      permission: 'administrator',
      summary: 'The backups in the backup directory, newest first.',
      response: { type: 'array', items: fileSchema },
      failures: [503],
      handler: () => deps.list(),
    },
  ]
}
