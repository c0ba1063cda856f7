/** Requests that were sent with an Idempotency-Key, and their answers. */
import { sql, type Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  const statements = [
    `create table idempotent_requests (
      number integer primary key, key_hash text not null unique, user text not null, ordinal integer not null,
      parts text not null, subject text not null, created_at text not null, status integer, answer text,
      position integer)`,
    'create index idempotent_requests_user on idempotent_requests (user, ordinal)',
    'create index idempotent_requests_answer on idempotent_requests (position) where answer is not null',
  ]
  for (const statement of statements) await sql.raw(statement).execute(db)
}
