/** Jobs: rules that start executions, and how they do. */
import type { Clock } from '../../core/clock.ts'
import type { Module } from '../../core/module.ts'
import type { Database } from '../../db/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { Executions } from '../executions/index.ts'
import type { ExecutionJobs } from '../executions/ports.ts'
import type { Rules } from '../rules/index.ts'
import type { RuleJobs } from '../rules/ports.ts'
import type { Timers } from '../timers/index.ts'
import type { Triggers } from '../triggers/index.ts'
import { createJobEnds } from './end.ts'
import { createJobRecords } from './records.ts'
import { createJobRoutes } from './routes.ts'
import { createJobStore } from './store.ts'

export interface Jobs extends Module, ExecutionJobs, RuleJobs {}

export interface JobsDeps {
  database: Database
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

export function createJobs(deps: JobsDeps): Jobs {
  const { database, log, clock, rules, executions, timers, settings } = deps
  const store = createJobStore(database)
  const records = createJobRecords({ store, timers })
  const ends = createJobEnds({ store, rules, executions, clock, log })
  return {
    name: 'jobs',
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
    routes: createJobRoutes({ rules, records, maxPageSize: settings.maxPageSize }),
    planEnd: (ended, attempt) => ends.planEnd(ended, attempt),
    planWritten: (rule) => ({ steps: [store.expectNothing(rule)], facts: [] }),
    planDeleted: (ruleId) => ({ steps: [store.delete(ruleId)], facts: [] }),
    statesOf: (some) => records.statesOf(some),
  }
}
