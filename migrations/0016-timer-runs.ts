import { sql, type Kysely } from 'kysely'

/** Without jitter, a timer fires at the time of its schedule. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(`alter table timers add column due_timestamp text`).execute(db)
  await sql.raw(`alter table timers add column run_timestamp text`).execute(db)
  await sql.raw(`update timers set due_timestamp = next_timestamp, run_timestamp = fired_timestamp`).execute(db)
}
