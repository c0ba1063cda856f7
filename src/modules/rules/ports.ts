/** What rules need from modules above them; `app.ts` connects them. */
import type { Unit } from '../../db/index.ts'
import type { PackConfigs } from '../executions/ports.ts'
import type { JobState, Rule } from './types.ts'

/** Port: rules as jobs; the jobs module implements it. */
export interface RuleJobs {
  /** Plans what a new or changed rule means for its job, in the unit of its change. */
  planWritten(rule: Rule): Unit
  /** The same for a rule that is deleted. */
  planDeleted(ruleId: string): Unit
  /** How rules do, by id. */
  statesOf(rules: readonly Rule[]): ReadonlyMap<string, JobState>
}

/** When a timer fires; wire texts, null: never. */
export interface TimerTimes {
  next: string | null
  /** `next`, and the times of the schedule that follow. */
  runs: string[]
  /** When it last fired. */
  previous: string | null
}

export interface RulesPorts {
  readonly packConfigs: PackConfigs
  readonly jobs: RuleJobs
  /** When the timer of a trigger fires; undefined: the trigger is no timer, or timers are off. @param count of `runs` */
  readonly timesOf: (triggerId: string, count: number) => TimerTimes | undefined
}
