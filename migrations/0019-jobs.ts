/** The state of jobs: how the last run of each rule ended, and what is expected of the next one. */
import { sql, type Kysely } from 'kysely'

/** Executions with the name of a rule that are read for its state: the name can be that of rules of other packs too. */
const MAX_LOOKED_AT = 1000

const newest = `select id, status, end_timestamp, context from executions
  where rule = (select name from rules where rules.id = jobs.rule_id) order by executions.id desc limit ${MAX_LOOKED_AT}`
const ofRule = `end_timestamp is not null and json_extract(context, '$.rule.id') = jobs.rule_id`

const statements = [
  `create table jobs (
    rule_id text primary key not null, rule_ref text not null, revision integer not null,
    last_execution_id text, last_status text, last_end_timestamp text, last_success_timestamp text, last_success_for text,
    trigger_uid text, since_timestamp text, due_timestamp text, due_by_timestamp text, success_by_timestamp text,
    check_timestamp text, missed_timestamp text, missed_reason text) without rowid`,
  `create index jobs_check on jobs (check_timestamp) where check_timestamp is not null`,
  `create index jobs_missed on jobs (rule_ref) where missed_timestamp is not null`,
  `insert into jobs (rule_id, rule_ref, revision)
    select id, ref, 1 from rules where exists (select 1 from executions where rule = rules.name)`,
  `update jobs set (last_execution_id, last_status, last_end_timestamp) =
    (select id, status, end_timestamp from (${newest}) where ${ofRule} limit 1)`,
  `update jobs set last_success_timestamp =
    (select max(end_timestamp) from (${newest}) where status = 'succeeded' and ${ofRule})`,
  `delete from jobs where last_execution_id is null`,
]

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db)
}
