import { BackupFile } from '../../core/backup-record.ts'
import { route, type Caller, type Route } from '../../http/index.ts'
import { Type } from '../../lib/schema/index.ts'
import { Backup } from './types.ts'

export function createBackupRoutes(deps: {
  make(caller: Caller): Promise<Backup>
  list(): Promise<BackupFile[]>
}): Route[] {
  return [
    route({
      surface: 'api',
      method: 'post',
      path: '/backups',
      permission: 'administrator',
      summary: 'Writes a backup of the database into the backup directory; answers once it is complete and checked.',
      status: 201,
      response: Backup,
      failures: [409, 503, 507],
      handler: (request) => deps.make(request),
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/backups',
      permission: 'administrator',
      summary: 'Lists the backups in the backup directory, newest first.',
      response: Type.Array(BackupFile),
      failures: [503],
      handler: () => deps.list(),
    }),
  ]
}
