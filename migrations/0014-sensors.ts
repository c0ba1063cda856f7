import { sql, type Kysely } from 'kysely'

const statements = [
  `create table sensor_types (
    id text primary key not null, revision integer not null, ref text not null unique, pack text not null,
    class_name text not null, enabled integer not null, record text not null)`,
  `create index sensor_types_pack on sensor_types (pack)`,
]

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}
