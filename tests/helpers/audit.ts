/** Looks at what a server did from outside: its database file, and the processes of the machine. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { readProcess } from '../../src/runners/process/process-table.ts'

export interface Row {
  id: string
  status: string
  delay: number | null
  start_timestamp: string
  end_timestamp: string | null
  log: { status: string; timestamp: string }[]
  /** Process of the server that runs it; undefined when none has begun. */
  serverPid: number | undefined
  /** `context.job` */
  job: number | undefined
}

export interface OutputRow {
  seq: number
  output_type: string
  data: string
}

export const finalStatuses: ReadonlySet<string> = new Set(['succeeded', 'failed', 'timeout', 'canceled', 'abandoned'])

/** Opens the database of a base path for reading, beside its server or without one. */
export function withDatabase<T>(basePath: string, look: (database: Sqlite.Database) => T): T {
  const database = new Sqlite(join(basePath, 'svc.db'), { readonly: true, timeout: 5000 })
  try {
    return look(database)
  } finally {
    database.close()
  }
}

/** @param condition SQL about the table `executions` */
export function readRows(basePath: string, condition = 'true'): Map<string, Row> {
  return withDatabase(basePath, (database) => {
    const rows = database
      .prepare<[], Record<'id' | 'status' | 'start_timestamp' | 'log' | 'liveaction' | 'context', string> & Row>(
        `select id, status, delay, start_timestamp, end_timestamp, log, liveaction, context
           from executions where ${condition} order by id`,
      )
      .all()
    return new Map(
      rows.map((row) => {
        // Columns that the server writes as JSON of these shapes.
        const liveaction = JSON.parse(row.liveaction) as { runner_info?: { pid?: number } }
        const context = JSON.parse(row.context) as { job?: number }
        const log = JSON.parse(row.log as unknown as string) as Row['log']
        return [row.id, { ...row, log, serverPid: liveaction.runner_info?.pid, job: context.job }]
      }),
    )
  })
}

export const notFinal = `status not in (${[...finalStatuses].map((status) => `'${status}'`).join(', ')})`

export function readOutput(basePath: string, executionId: string): OutputRow[] {
  return withDatabase(basePath, (database) =>
    database
      .prepare<[string], OutputRow>(
        'select seq, output_type, data from output_records where execution_id = ? order by seq',
      )
      .all(executionId),
  )
}

/** By execution id. */
export type RecordedProcesses = Map<string, { pid: number; start_time: string }>

export function readRecordedProcesses(basePath: string): RecordedProcesses {
  return withDatabase(basePath, (database) => {
    const rows = database
      .prepare<[], { execution_id: string; pid: number; start_time: string }>(
        'select execution_id, pid, start_time from processes order by execution_id',
      )
      .all()
    return new Map(rows.map(({ execution_id, ...identity }) => [execution_id, identity]))
  })
}

/** Executions whose processes are recorded. */
export function readRecordedIds(basePath: string): string[] {
  return [...readRecordedProcesses(basePath).keys()]
}

/** What is wrong with a database as such; empty when nothing is. */
export function findDamage(basePath: string): string[] {
  return withDatabase(basePath, (database) => {
    const check = database.pragma('integrity_check') as { integrity_check: string }[] // the shape of this pragma
    const problems = check.map(({ integrity_check }) => integrity_check).filter((text) => text !== 'ok')
    const key = 'action_ref, status, user, runner, child, rule, trigger, trigger_type'
    const recounts: Record<string, string> = {
      execution_counts: `select action_ref, status, user, runner, parent is not null as child, ifnull(rule, '') as rule,
        ifnull(trigger, '') as trigger, ifnull(trigger_type, '') as trigger_type, count(*) as count
        from executions group by ${key.replace('child', 'parent is not null')}`,
      trigger_instance_counts: `select trigger, trigger_type, status, count(*) from trigger_instances group by 1, 2, 3`,
      rule_enforcement_counts: `select rule_ref, rule_id, status, count(*) from rule_enforcements group by 1, 2, 3`,
      totals: `select 'traces', count(*) from traces`,
    }
    for (const [table, recount] of Object.entries(recounts)) {
      const differences = database
        .prepare(`select * from ${table} except select * from (${recount})`)
        .all()
        .concat(database.prepare(`select * from (${recount}) except select * from ${table}`).all())
      if (differences.length > 0) problems.push(`${table} differs: ${JSON.stringify(differences)}`)
    }
    const strays = database
      .prepare<[], { n: number }>(
        `select count(*) as n from output_records where execution_id not in (select id from executions)
         union all
         select count(*) from execution_results where execution_id not in (select id from executions)
         union all
         select count(*) from trace_components where kind = 'execution' and object_id not in (select id from executions)
         union all
         select count(*) from trace_components
           where kind = 'trigger_instance' and object_id not in (select id from trigger_instances)
         union all
         select count(*) from rule_enforcements
           where trigger_instance_id not in (select id from trigger_instances) or execution_id not in (select id from executions)
         union all
         select count(*) from trace_components where trace_id not in (select id from traces)`,
      )
      .all()
    if (strays.some(({ n }) => n > 0)) problems.push(`rows of no execution: ${JSON.stringify(strays)}`)
    return problems
  })
}

export interface ProcessSeen {
  pid: number
  /** Clock ticks since boot. */
  startTime: number
  session: number
  commandLine: string
}

/** Living processes whose command line or environment holds `text`. */
export function findProcesses(text: string): ProcessSeen[] {
  const found: ProcessSeen[] = []
  for (const name of readdirSync('/proc')) {
    const pid = Number(name)
    if (!(pid > 1) || pid === process.pid) continue
    try {
      const commandLine = readFileSync(`/proc/${name}/cmdline`, 'latin1')
      if (!commandLine.includes(text) && !readFileSync(`/proc/${name}/environ`, 'latin1').includes(text)) continue
      const row = readProcess(pid)
      if (row?.alive !== true) continue
      found.push({ pid, startTime: row.startTime, session: row.sid, commandLine: commandLine.replaceAll('\0', ' ') })
    } catch {
      // It ended between two looks.
    }
  }
  return found
}

/** Clock ticks since boot; undefined when it has ended, be it as a zombie. */
export function readStartTime(pid: number): number | undefined {
  const row = readProcess(pid)
  return row?.alive === true ? row.startTime : undefined
}
