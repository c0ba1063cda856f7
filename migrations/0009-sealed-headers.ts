/** Credential headers of a webhook request, encrypted beside the masked payload of its trigger instance. */
import { sql, type Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(`alter table trigger_instances add column sealed_headers text`).execute(db)
}
