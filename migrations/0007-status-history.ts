import { sql, type Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(`create table status_samples (minute integer primary key not null, sample text not null)`).execute(db)
}
