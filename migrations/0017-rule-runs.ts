import { sql, type Kysely } from 'kysely'

const statements = [
  // Executions of rules with "overlap" that have not ended, in the order in which they may run. An execution that is tried
  // again hands its row over to the retry.
  `create table rule_runs (
    n integer primary key autoincrement not null, rule_id text not null, execution_id text not null unique)`,
  `create index rule_runs_rule on rule_runs (rule_id, n)`,
  // Executions by rules before this one in the chain that led to the event.
  `alter table trigger_instances add column depth integer not null default 0`,
]

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}
