import { sql, type Kysely } from 'kysely'

const statements = [
  // Origin of a nickname → the nickname, for tokens that a chat service requests for its users.
  `alter table users add column nicknames text not null default '{}'`,
  `alter table users add column is_disabled integer not null default 0`,

  `create table api_keys (
    id text primary key not null, user text not null, key_hash text not null unique, metadata text not null,
    created_at text not null, enabled integer not null, expires_at text, scopes text, last_used_at text)`,
  `create index api_keys_user on api_keys (user, created_at, id)`,
  `create index api_keys_created_at on api_keys (created_at, id)`,

  `create table roles (
    id text primary key not null, name text not null unique, description text not null, is_system integer not null,
    grants text not null)`,
  `create table role_assignments (
    id text primary key not null, user text not null, role text not null, description text not null,
    is_remote integer not null, source text not null, unique (user, role, source))`,
  `create index role_assignments_role on role_assignments (role)`,
  `create table group_mappings (
    group_name text primary key not null, roles text not null, description text not null, enabled integer not null,
    source text not null)`,
]

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}
