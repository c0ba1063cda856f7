/** Jobs as clients see them. */
import type { JobTable } from '../../db/index.ts'
import type { ExecutionStatus } from '../../core/execution-status.ts'
import type { JobState } from '../rules/index.ts'
import type { MissReason, Rule } from '../rules/types.ts'
import type { Timers } from '../timers/index.ts'
import type { JobStore } from './store.ts'
import type { JobRecord } from './types.ts'

export interface JobRecords {
  /** How rules do, by id. */
  statesOf(rules: readonly Rule[]): Map<string, JobState>
  record(rule: Rule, state: JobState | undefined): JobRecord
}

export function createJobRecords(deps: {
  store: Pick<JobStore, 'findByIds'>
  timers: Pick<Timers, 'timesOf'>
}): JobRecords {
  const { store, timers } = deps

  function stateOf({ trigger: { id } }: Rule, row: JobTable | undefined): JobState {
    const { nextIfUsed, fired } = timers.timesOf(id, 0) ?? {}
    return present({
      next_timestamp: nextIfUsed,
      fired_timestamp: fired,
      last_execution_id: row?.last_execution_id,
      last_status: row?.last_status as ExecutionStatus | null | undefined, // written from executions
      last_end_timestamp: row?.last_end_timestamp,
      last_success_timestamp: row?.last_success_timestamp,
      expected_timestamp: row && expectedBy(row),
      late_since_timestamp: row?.missed_timestamp,
      late_reason: row?.missed_reason as MissReason | null | undefined, // written from misses
    })
  }

  return {
    statesOf(rules) {
      const rows = new Map(store.findByIds(rules.map(({ id }) => id)).map((row) => [row.rule_id, row]))
      return new Map(rules.map((rule) => [rule.id, stateOf(rule, rows.get(rule.id))]))
    },
    record: ({ id, ref, pack, name, description, enabled, trigger, action, expect }, state) => ({
      id,
      ref,
      pack,
      name,
      description,
      enabled,
      trigger: { type: trigger.type, ref: trigger.ref },
      action: { ref: action.ref },
      ...(expect === undefined ? {} : { expect }),
      ...state,
    }),
  }
}

/** Null: nothing is expected, it is late, or svc is about to find out by when. */
function expectedBy({
  trigger_uid: uid,
  check_timestamp: check,
  last_success_timestamp: success,
}: JobTable): string | null {
  return uid === null || check === success ? null : check
}

/** Without what is not known. */
function present<T extends object>(values: { [K in keyof T]: T[K] | null | undefined }): Partial<T> {
  return Object.fromEntries(
    Object.entries(values).filter(([, value]) => value !== null && value !== undefined),
  ) as Partial<T> // the rest is as it was
}
