/** Wire records of purging (contract 10, 10.5). */
import { record, Type, type Static } from '../../lib/schema/index.ts'

export const PurgeRequest = record(
  'PurgeRequest',
  Type.Object(
    {
      before: Type.String({ description: 'UTC time such as 2030-01-01T00:00:00Z. Older records are deleted.' }),
      after: Type.Optional(
        Type.String({ maxLength: 200, description: 'The `next` of the previous answer. Absent in the first request.' }),
      ),
      action_ref: Type.Optional(
        Type.String({ maxLength: 500, description: 'Executions only: only those of this action.' }),
      ),
      incomplete: Type.Optional(
        Type.Boolean({
          description: 'Executions only: also cancel those that are not complete. They are deleted once they ended.',
        }),
      ),
      dry_run: Type.Optional(Type.Boolean({ description: 'Counts without deleting or canceling.' })),
    },
    { additionalProperties: false },
  ),
  { example: { before: '2030-01-01T00:00:00Z', dry_run: true } },
)
export type PurgeRequest = Static<typeof PurgeRequest>

export const PurgeResult = record(
  'PurgeResult',
  Type.Object({
    kind: Type.String(),
    records: Type.Integer({ description: 'Records that svc deleted, or would delete.' }),
    canceled: Type.Integer({ description: 'Executions that svc canceled, or would cancel.' }),
    dry_run: Type.Boolean(),
    next: Type.Nullable(Type.String({ description: 'The `after` of the next request. Null: complete.' })),
  }),
  { example: { kind: 'executions', records: 1000, canceled: 0, dry_run: false, next: null } },
)
export type PurgeResult = Static<typeof PurgeResult>
