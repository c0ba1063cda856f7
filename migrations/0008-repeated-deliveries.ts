/** What a delivery met, and the repetitions of it that had no effect. */
import { sql, type Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  const statements = [
    `alter table webhook_deliveries add column rules text not null default ''`,
    `create table trigger_instance_repetitions (
      trigger_instance_id text primary key not null, count integer not null, first_timestamp text not null,
      last_timestamp text not null) without rowid`,
  ]
  for (const statement of statements) await sql.raw(statement).execute(db)
}
