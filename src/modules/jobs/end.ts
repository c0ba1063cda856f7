/** How the end of a run changes its job, in the same unit. */
import type { Clock } from '../../core/clock.ts'
import { formatMicros, microsOf } from '../../core/time.ts'
import type { Log } from '../../lib/log/index.ts'
import type { ExecutionJobs } from '../executions/ports.ts'
import type { Execution } from '../executions/types.ts'
import type { Rules } from '../rules/index.ts'
import type { Rule } from '../rules/types.ts'
import type { FiringOf } from './firing.ts'
import type { JobStore } from './store.ts'

/** Repetitions of a repetition that are followed back to the run of the rule. */
const MAX_RERUNS = 20

export function createJobEnds(deps: {
  store: Pick<JobStore, 'find' | 'end'>
  rules: Pick<Rules, 'find'>
  executions: { find(id: string): Execution | undefined }
  readonly firingOf: FiringOf
  clock: Pick<Clock, 'now'>
  log: Log
}): ExecutionJobs {
  const { store, rules, executions, firingOf, clock, log } = deps

  /** The rule whose job the execution did: that which started it, or the execution that it repeats. */
  function ruleIdOf(execution: Execution): string | undefined {
    let seen: Execution | undefined = execution
    for (let n = 0; n < MAX_RERUNS && seen !== undefined; n += 1) {
      if (seen.origin !== null) return seen.origin.rule.id
      const earlier = repeatedBy(seen)
      const original = earlier === undefined ? undefined : executions.find(earlier)
      // Callers can write the context of an execution: only a run of the same action does the job.
      seen = original?.action_ref === execution.action_ref ? original : undefined
    }
    return undefined
  }

  /** The firing that the run served, of a rule whose runs are held against the times of its timer. */
  function servedBy({ trigger_instance: instance }: Execution, { expect }: Rule): number | undefined {
    return expect?.within === undefined || instance === null ? undefined : firingOf(instance)
  }

  return {
    planEnd(ended, { willRetry }) {
      try {
        if (willRetry || ended.parent !== null) return undefined
        const ruleId = ruleIdOf(ended)
        const rule = ruleId === undefined ? undefined : rules.find(ruleId)
        if (rule === undefined) return undefined
        const { id, ref } = rule
        const now = clock.now()
        const { id: executionId, status } = ended
        const hasSucceeded = status === 'succeeded'
        const step = store.end({
          ruleId: id,
          ruleRef: ref,
          executionId,
          status,
          at: formatMicros(now),
          successFor: hasSucceeded ? formatMicros(servedBy(ended, rule) ?? now - ranFor(ended)) : undefined,
        })
        const isBack = hasSucceeded && rule.expect !== undefined && store.find(id)?.missed_timestamp != null
        return {
          steps: [step],
          facts: isBack ? [{ name: 'job.changed', payload: { id, ref, late: false } }] : [],
        }
      } catch (error) {
        // The change of the execution has priority.
        log.error('job.not_recorded', 'Could not record the end of a run for its job', {
          execution_id: ended.id,
          error,
        })
        return undefined
      }
    },
  }
}

/** Id of the execution that this one repeats. */
function repeatedBy({ context }: Execution): string | undefined {
  const rerun = context['re-run']
  const ref = typeof rerun === 'object' && rerun !== null && 'ref' in rerun ? rerun.ref : undefined
  return typeof ref === 'string' ? ref : undefined
}

/** Microseconds from its request to its end. */
function ranFor({ start_timestamp: start, end_timestamp: end }: Execution): number {
  return end === null ? 0 : microsOf(end) - microsOf(start)
}
