import { sql, type Kysely } from 'kysely'

const statements = [
  // Messages about ends of executions and missed runs: what is owed, and what came of it.
  `create table notifications (
    id text primary key not null, destination text not null, occasion text not null, status text not null,
    job text not null, rule text, execution text, action text, user text, attempts integer not null,
    due_at text not null, queued_at text not null, sent_at text, error text, digest text, content text not null)`,
  `create index notifications_of_destination on notifications (destination, status, id)`,
  `create index notifications_of_job on notifications (destination, job, sent_at)`,
  `create index notifications_of_execution on notifications (execution) where execution is not null`,
  `create index notifications_of_rule on notifications (rule, id) where rule is not null`,
  `create index notifications_by_status on notifications (status, id)`,
  // Jobs whose last run failed or was missed, so that the next success is told once.
  `create table notification_failures (job text primary key not null, since text not null) without rowid`,
]

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}
