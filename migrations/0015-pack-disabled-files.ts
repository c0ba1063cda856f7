import { sql, type Kysely } from 'kysely'

/** Unknown of packs that were registered before: what is registered of them stays enabled or disabled. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(`alter table packs add column disabled_files text`).execute(db)
}
