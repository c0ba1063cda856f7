/** Jobs: rules that start executions, and how they do. */
import type { Bus } from '../../bus/index.ts'
import type { Clock } from '../../core/clock.ts'
import type { Module } from '../../core/module.ts'
import { formatMicros } from '../../core/time.ts'
import type { Database } from '../../db/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { Executions } from '../executions/index.ts'
import type { ExecutionJobs } from '../executions/ports.ts'
import type { Rules } from '../rules/index.ts'
import type { RuleJobs } from '../rules/ports.ts'
import type { Timers } from '../timers/index.ts'
import type { Triggers } from '../triggers/index.ts'
import { createJobEnds } from './end.ts'
import { createJobEngine } from './engine.ts'
import { createFiringOf } from './firing.ts'
import { createPlanMiss } from './miss.ts'
import type { JobsPorts } from './ports.ts'
import { createJobRecords } from './records.ts'
import { createJobRoutes } from './routes.ts'
import { beginAt, createJobStore } from './store.ts'

export interface Jobs extends Module, ExecutionJobs, RuleJobs {
  /** When the success was due that a rule has missed, until it succeeds again; undefined: it is not late. Wire timestamp. */
  lateSince(ruleId: string): string | undefined
}

export interface JobsDeps extends JobsPorts {
  database: Database
  bus: Bus
  log: Log
  clock: Clock
  rules: Rules
  executions: Executions
  triggers: Triggers
  timers: Timers
  /** `api.max_page_size` */
  settings: { maxPageSize: number }
}

/** Series of a metric with one for each rule. */
const MAX_SERIES = 500
/** Late rules that the status names. */
const MAX_NAMED = 3

export function createJobs(deps: JobsDeps): Jobs {
  const { database, log, clock, rules, executions, triggers, timers, settings } = deps
  const store = createJobStore(database)
  const records = createJobRecords({ store, timers })
  const firingOf = createFiringOf(triggers)
  const ends = createJobEnds({ store, rules, executions, firingOf, clock, log })
  const planMiss = createPlanMiss({ rules, executions, triggers, notifications: deps.notifications, firingOf })
  const engine = createJobEngine({ database, store, rules, triggers, timers, planMiss, bus: deps.bus, log, clock })
  return {
    name: 'jobs',
    gauges: [
      {
        key: 'rules.late',
        about: 'Rules that have not succeeded as they are expected to.',
        read: () => store.countLate(),
      },
    ],
    series: [
      {
        name: 'svc_rule_last_success_timestamp_seconds',
        about: `When an execution of the rule last succeeded, in seconds since 1970; of the first ${MAX_SERIES} rules.`,
        label: 'rule',
        read: () =>
          store
            .successes(MAX_SERIES)
            .map(({ rule_ref: of, last_success_timestamp: at }) => ({ of, value: Date.parse(at) / 1000 })),
      },
    ],
    routes: createJobRoutes({
      rules,
      records,
      lateRules: () => store.late().map(({ rule_id: id }) => id),
      maxPageSize: settings.maxPageSize,
    }),
    planEnd: (ended, attempt) => ends.planEnd(ended, attempt),
    planWritten: (rule) => ({
      steps: [
        rule.enabled && rule.expect !== undefined
          ? store.expect(rule, beginAt(formatMicros(clock.now())))
          : store.expectNothing(rule),
      ],
      facts: [],
    }),
    planDeleted: (ruleId) => ({ steps: [store.delete(ruleId)], facts: [] }),
    statesOf: (some) => records.statesOf(some),
    lateSince: (ruleId) => store.find(ruleId)?.missed_timestamp ?? undefined,
    attention: () => attentionTo(store.late(MAX_NAMED), store.countLate()),
    start: () => engine.start(),
    stop: () => engine.stop(),
  }
}

function attentionTo(named: readonly { rule_ref: string }[], count: number): string[] {
  if (count === 0) return []
  const names = named.map(({ rule_ref: ref }) => ref).join(', ')
  const more = count > named.length ? ` and ${count - named.length} more` : ''
  return [`${count === 1 ? '1 job is' : `${count} jobs are`} late: ${names}${more}. See \`svc job list --late\`.`]
}

export type { MissedJob } from './ports.ts'
