import { sql, type Kysely } from 'kysely'

/** Keeps a table of counts equal to the rows of another, so that totals cost the same with a million rows. */
function counted(table: string, counts: string, key: string): string[] {
  const columns = key.split(', ')
  const values = (row: 'new' | 'old'): string => columns.map((column) => `${row}.${column}`).join(', ')
  const up = `insert into ${counts} (${key}, count) values (${values('new')}, 1)
    on conflict (${key}) do update set count = count + 1;`
  const down = `update ${counts} set count = count - 1 where (${key}) = (${values('old')});
    delete from ${counts} where (${key}) = (${values('old')}) and count = 0;`
  return [
    `create trigger ${table}_counted after insert on ${table} begin ${up} end`,
    `create trigger ${table}_recounted after update of ${key} on ${table} when (${values('new')}) is not (${values('old')})
      begin ${down} ${up} end`,
    `create trigger ${table}_uncounted after delete on ${table} begin ${down} end`,
  ]
}

const statements = [
  // Snapshot of the rule, trigger and trigger type that started an execution.
  `alter table executions add column origin_hash text`,

  `create table trigger_types (id text primary key not null, ref text not null unique, record text not null)`,

  `create table triggers (
    id text primary key not null, ref text not null unique, type text not null, identity text not null, uses integer not null,
    is_managed integer not null, record text not null, unique (type, identity))`,

  `create table trigger_instances (
    id text primary key not null, trigger text not null, trigger_id text not null, trigger_type text not null,
    occurrence_time text not null, status text not null, trace_id text not null, payload text not null)`,
  `create index trigger_instances_trigger on trigger_instances (trigger, id)`,
  `create index trigger_instances_type on trigger_instances (trigger_type, id)`,
  `create index trigger_instances_status on trigger_instances (status, id)`,
  `create table trigger_instance_counts (
    trigger text not null, trigger_type text not null, status text not null, count integer not null,
    primary key (trigger, trigger_type, status)) without rowid`,
  ...counted('trigger_instances', 'trigger_instance_counts', 'trigger, trigger_type, status'),

  `create table rules (
    id text primary key not null, revision integer not null, ref text not null unique, pack text not null, name text not null,
    enabled integer not null, action_ref text not null, trigger_id text not null, trigger text not null,
    user text not null, record text not null)`,
  `create index rules_pack_name on rules (pack, name)`,
  `create index rules_trigger on rules (trigger_id)`,

  `create table rule_enforcements (
    id text primary key not null, rule_id text not null, rule_ref text not null, rule_uid text not null,
    trigger_instance_id text not null, execution_id text, failure_reason text, enforced_at text not null,
    status text not null)`,
  `create index rule_enforcements_rule on rule_enforcements (rule_ref, id)`,
  `create index rule_enforcements_rule_id on rule_enforcements (rule_id, id)`,
  `create index rule_enforcements_instance on rule_enforcements (trigger_instance_id, id)`,
  `create index rule_enforcements_execution on rule_enforcements (execution_id) where execution_id is not null`,
  `create table rule_enforcement_counts (
    rule_ref text not null, rule_id text not null, status text not null, count integer not null,
    primary key (rule_ref, rule_id, status)) without rowid`,
  ...counted('rule_enforcements', 'rule_enforcement_counts', 'rule_ref, rule_id, status'),

  // Earlier deliveries of a sender: a repeated one has no effect.
  `create table webhook_deliveries (
    hook text not null, caller text not null, key_hash text not null, body_hash text not null, trace_id text not null,
    trigger_instances text not null, created_at text not null, primary key (hook, caller, key_hash))`,
  `create index webhook_deliveries_created_at on webhook_deliveries (created_at)`,

  `create table timers (
    trigger_id text primary key not null, trigger_uid text not null, anchor text not null, next_timestamp text,
    fired_timestamp text)`,
  `create index timers_next on timers (next_timestamp) where next_timestamp is not null`,

  `create table key_value_pairs (
    id text primary key not null, scope text not null, user text not null, name text not null, description text,
    secret integer not null, encrypted integer not null, expire_timestamp text, value text not null,
    unique (scope, user, name))`,
  `create index key_value_pairs_expiry on key_value_pairs (expire_timestamp) where expire_timestamp is not null`,
  // Finds the item by its cipher text, which begins with random bytes.
  `create index key_value_pairs_sealed on key_value_pairs (substr(value, 1, 34)) where encrypted = 1`,

  // Both keep the order in which components were added.
  `drop index trace_components_trace`,
  `create index trace_components_trace on trace_components (trace_id, kind)`,
  `drop index trace_components_object`,
  `create index trace_components_object on trace_components (object_id) where kind <> 'rule'`,
  // A rule can be in a million traces, and a hundred thousand times in one of them.
  `create table trace_rules (
    rule_id text not null, trace_id text not null, primary key (rule_id, trace_id)) without rowid`,
  `create table trace_rule_counts (rule_id text primary key not null, count integer not null) without rowid`,
  ...counted('trace_rules', 'trace_rule_counts', 'rule_id'),
  `insert into trace_rules (rule_id, trace_id)
    select distinct object_id, trace_id from trace_components where kind = 'rule'`,
  `create trigger trace_components_rules after insert on trace_components when new.kind = 'rule' begin
    insert into trace_rules (rule_id, trace_id) values (new.object_id, new.trace_id)
    on conflict (rule_id, trace_id) do nothing; end`,
  // Most tags have one trace, which needs no count.
  `create table trace_tag_counts (trace_tag text primary key not null, count integer not null) without rowid`,
  `insert into trace_tag_counts (trace_tag, count)
    select trace_tag, count(*) from traces group by trace_tag having count(*) > 1`,
  `create trigger traces_counted_by_tag after insert on traces
    when exists (select 1 from traces where trace_tag = new.trace_tag and id <> new.id) begin
    insert into trace_tag_counts (trace_tag, count) values (new.trace_tag, 2)
    on conflict (trace_tag) do update set count = count + 1; end`,
  `create trigger traces_uncounted_by_tag after delete on traces begin
    update trace_tag_counts set count = count - 1 where trace_tag = old.trace_tag;
    delete from trace_tag_counts where trace_tag = old.trace_tag and count < 2; end`,

  `create table totals (name text primary key not null, count integer not null) without rowid`,
  `insert into totals (name, count) select 'traces', count(*) from traces`,
  `create trigger traces_counted after insert on traces begin
    update totals set count = count + 1 where name = 'traces'; end`,
  `create trigger traces_uncounted after delete on traces begin
    update totals set count = count - 1 where name = 'traces'; end`,
]

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}
