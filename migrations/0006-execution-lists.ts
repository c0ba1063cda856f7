import { sql, type Kysely } from 'kysely'

const statements = (
  [
    ['status', 'status', ''],
    ['action', 'action_ref', ''],
    ['user', 'user', ''],
    ['runner', 'runner', ''],
    ['rule', 'rule', 'where rule is not null'],
    ['trigger', 'trigger', 'where trigger is not null'],
    ['trigger_type', 'trigger_type', 'where trigger_type is not null'],
  ] as const
).flatMap(([name, column, where]) => [
  `drop index executions_${name}`,
  // Most lists show top-level executions only. With the parent in the index, SQLite need not read the table; for a page
  // at offset 100,000 that would be 100,000 lookups.
  `create index executions_${name} on executions (${column}, id, parent) ${where}`,
])

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}
