import { sql, type Kysely } from 'kysely'

/** Keeps `execution_counts` equal to the existing executions, for every insert, update and delete. */
const countKey = 'action_ref, status, user, runner, child, rule, trigger, trigger_type'

function countValues(row: 'new' | 'old'): string {
  return `${row}.action_ref, ${row}.status, ${row}.user, ${row}.runner, ${row}.parent is not null,
    ifnull(${row}.rule, ''), ifnull(${row}.trigger, ''), ifnull(${row}.trigger_type, '')`
}

const countUp = `insert into execution_counts (${countKey}, count) values (${countValues('new')}, 1)
  on conflict (${countKey}) do update set count = count + 1;`

const countDown = `update execution_counts set count = count - 1
  where (${countKey}) = (${countValues('old')});
  delete from execution_counts where (${countKey}) = (${countValues('old')}) and count = 0;`

const statements = [
  `create table actions (
    id text primary key not null, ref text not null unique, pack text not null, name text not null,
    enabled integer not null, runner_type text not null, record text not null)`,
  `create index actions_pack_name on actions (pack, name)`,
  `create table runner_types (
    id text primary key not null, name text not null unique, enabled integer not null, record text not null)`,

  `create table snapshots (hash text primary key not null, record text not null) without rowid`,

  `create table executions (
    id text primary key not null,
    revision integer not null,
    status text not null,
    liveaction_id text not null,
    action_ref text not null,
    runner text not null,
    user text not null,
    action_hash text not null,
    runner_hash text not null,
    trace_id text not null,
    parent text,
    rule text,
    trigger text,
    trigger_type text,
    trigger_instance text,
    start_timestamp text not null,
    end_timestamp text,
    elapsed_seconds real,
    delay integer,
    due_timestamp text,
    result_size integer,
    parameters text not null,
    context text not null,
    log text not null,
    liveaction text not null)`,
  // Ids sort by creation, so each of these indexes serves its filter in the default order.
  `create index executions_status on executions (status, id)`,
  `create index executions_action on executions (action_ref, id)`,
  `create index executions_user on executions (user, id)`,
  `create index executions_runner on executions (runner, id)`,
  `create index executions_parent on executions (parent, id)`,
  `create unique index executions_liveaction on executions (liveaction_id)`,
  `create index executions_rule on executions (rule, id) where rule is not null`,
  `create index executions_trigger on executions (trigger, id) where trigger is not null`,
  `create index executions_trigger_type on executions (trigger_type, id) where trigger_type is not null`,
  `create index executions_trigger_instance on executions (trigger_instance, id) where trigger_instance is not null`,
  `create index executions_due on executions (due_timestamp) where status = 'delayed'`,

  `create table execution_results (execution_id text primary key not null, result text not null)`,
  `create table output_records (
    execution_id text not null, seq integer not null, id text not null, output_type text not null,
    data text not null, timestamp text not null)`,
  `create unique index output_records_seq on output_records (execution_id, seq)`,
  `create table processes (
    execution_id text primary key not null, pid integer not null, start_time text not null,
    boot_id text not null) without rowid`,

  `create table execution_counts (
    action_ref text not null, status text not null, user text not null, runner text not null, child integer not null,
    rule text not null, trigger text not null, trigger_type text not null, count integer not null,
    primary key (${countKey})) without rowid`,
  `create trigger executions_counted after insert on executions begin ${countUp} end`,
  `create trigger executions_recounted
    after update of action_ref, status, user, runner, parent, rule, trigger, trigger_type on executions
    when (${countValues('new')}) is not (${countValues('old')})
    begin ${countDown} ${countUp} end`,
  `create trigger executions_uncounted after delete on executions begin ${countDown} end`,

  `create table traces (
    id text primary key not null, uid text not null, trace_tag text not null, start_timestamp text not null)`,
  `create index traces_tag on traces (trace_tag, id)`,
  `create table trace_components (
    n integer primary key, trace_id text not null, kind text not null, object_id text not null, ref text not null,
    updated_at text not null, caused_by_type text, caused_by_id text)`,
  `create index trace_components_trace on trace_components (trace_id)`,
  `create index trace_components_object on trace_components (object_id)`,

  `create table users (name text primary key not null, is_service integer not null, created_at text not null)`,
  `create table tokens (
    id text primary key not null, user text not null, expiry text not null, service integer not null,
    metadata text not null)`,
  `create index tokens_user on tokens (user)`,
  `create index tokens_expiry on tokens (expiry)`,
]

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}
