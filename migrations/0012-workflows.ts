/**
 * Runs of workflows. The tables of a run have the rows of the conductor (src/modules/workflows/conductor/state.ts), in
 * the order in which a run is loaded.
 */
import { sql, type Kysely } from 'kysely'

const statements = [
  // One per distinct text.
  `create table workflow_definitions (hash text primary key not null, "text" text not null) without rowid`,

  `create table workflow_executions (
    id text primary key not null, execution text unique, earlier text, root text not null, runner text not null,
    definition text not null, start_timestamp text not null, revision integer not null,
    end_timestamp text, status text not null, request text, cascade text, cascade_after text not null,
    instances integer not null, contexts integer not null,
    routes integer not null, errors integer not null, starts integer not null, commands integer not null,
    active integer not null, held integer not null,
    succeeded integer not null, failed integer not null, canceled integer not null, ready integer not null,
    cleanups integer not null, idle integer not null, published integer not null, output text,
    line_records integer not null default 0, lines integer not null default 0, line_bytes integer not null default 0)`,
  `create index workflow_executions_definition on workflow_executions (definition)`,
  `create index workflow_executions_open on workflow_executions (id) where end_timestamp is null`,
  // Those that start tasks as soon as somebody lets them.
  `create index workflow_executions_ready on workflow_executions (id)
    where (status in ('running', 'resuming') and ready > 0) or (status = 'failed' and cleanups > 0)`,

  `create index workflow_executions_cascade on workflow_executions (id) where cascade is not null`,

  `create table workflow_tasks (
    workflow text not null, number integer not null, task integer not null, route integer not null, status text not null,
    start_order integer, pass integer not null, is_ready integer not null, is_cleanup integer not null, is_terminal integer not null,
    context integer, previous text not null, arrivals integer not null, taken text, retries integer not null,
    retry text, items text, start_timestamp text, end_timestamp text, primary key (workflow, number)) without rowid`,
  `create index workflow_tasks_started on workflow_tasks (workflow, start_order) where start_order is not null`,
  `create table workflow_arrivals (
    workflow text not null, instance integer not null, position integer not null, source integer not null,
    transition integer not null, context integer not null, primary key (workflow, instance, position)) without rowid`,
  `create table workflow_items (
    workflow text not null, instance integer not null, position integer not null, status text not null,
    source integer not null, primary key (workflow, instance, position)) without rowid`,
  `create table workflow_contexts (
    workflow text not null, number integer not null, parents text not null, "values" text not null,
    primary key (workflow, number)) without rowid`,
  `create table workflow_joins (
    workflow text not null, task integer not null, route integer not null, arrived integer not null, fired integer not null,
    primary key (workflow, task, route)) without rowid`,
  `create table workflow_join_sources (
    workflow text not null, task integer not null, route integer not null, source integer not null,
    fired_before integer not null, has_arrived integer not null, primary key (workflow, task, route, source)) without rowid`,
  `create table workflow_routes (
    workflow text not null, number integer not null, parent integer not null, origin text not null,
    primary key (workflow, number)) without rowid`,
  `create table workflow_errors (
    workflow text not null, number integer not null, instance integer, entry text not null,
    primary key (workflow, number)) without rowid`,

  `create table workflow_secrets (
    workflow text not null, number integer not null, secrets text not null, primary key (workflow, number)) without rowid`,

  `create table workflow_actions (
    execution text primary key not null, workflow text not null, instance integer not null, item integer,
    attempt integer not null, task_execution text not null) without rowid`,
  `create index workflow_actions_instance on workflow_actions (workflow, instance, item, execution)`,

  // Workflows with a time limit.
  `create index executions_limited on executions (due_timestamp)
    where status in ('running', 'pausing', 'paused', 'resuming') and due_timestamp is not null`,
]

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}
