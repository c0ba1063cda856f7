import { sql, type Kysely } from 'kysely'

/** Packs that were registered before are read once more. */
const statements = [
  `alter table packs add column remarks text not null default '[]'`,
  `update packs set fingerprint = ''`,
]

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}
