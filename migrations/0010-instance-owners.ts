/** The user who owns the record that a trigger instance is about: decides who may see its payload. */
import { sql, type Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(`alter table trigger_instances add column owner text`).execute(db)
}
