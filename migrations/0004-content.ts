import { sql, type Kysely } from 'kysely'

const statements = [
  `create table packs (
    id text primary key not null, ref text not null unique, name text not null, folder text not null,
    fingerprint text not null, record text not null)`,
  `create table config_schemas (id text primary key not null, pack text not null unique, attributes text not null)`,
  `create table configs (id text primary key not null, pack text not null unique, "values" text not null)`,
  `create table action_aliases (
    id text primary key not null, ref text not null unique, pack text not null, name text not null, record text not null)`,
  `create table policies (
    id text primary key not null, revision integer not null, ref text not null unique, pack text not null, name text not null,
    resource_ref text not null, policy_type text not null, enabled integer not null, record text not null)`,
  `create index policies_resource on policies (resource_ref)`,

  // The host that wrote the record, where an execution runs on several.
  `alter table output_records add column host text`,
  // All parameters, encrypted, when some are secret; "parameters" then has masks.
  `alter table executions add column sealed_parameters text`,
  // The whole result, encrypted, when some of it is secret; "result" then has masks.
  `alter table execution_results add column sealed text`,
  `create index executions_expiring on executions (due_timestamp) where status = 'pending'`,
  // Executions that wait for others of the same action, and not for a time.
  `create index executions_waiting on executions (action_ref, id) where status = 'delayed' and due_timestamp is null`,
]

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}
