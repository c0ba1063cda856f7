/** What came of trigger instances: the executions that rules have started, and the enforcements that failed. */
import type { ExecutionState } from '../../api/execution-states.ts'
import { laterOf } from '../../api/execution-summary.ts'
import type { RuleEnforcement } from '../../api/records.ts'

export interface Outcome {
  /** In the order in which they were started. */
  executions: readonly ExecutionState[]
  /** How many more were started: deleted since, or not to be seen by everybody. */
  hidden: number
  /** How many there are that nobody has asked for: too many to be listed. */
  unlisted: number
  failures: readonly RuleEnforcement[]
}

export const noOutcome: Outcome = { executions: [], hidden: 0, unlisted: 0, failures: [] }

/**
 * @param executions those of the enforcements that may be seen
 * @param unlisted enforcements that are not among these, by the instance
 */
export function outcomesOf(
  ids: readonly string[],
  enforcements: readonly RuleEnforcement[],
  executions: readonly ExecutionState[],
  unlisted: ReadonlyMap<string, number> = new Map(),
): Map<string, Outcome> {
  const known = new Map(executions.map((execution) => [execution.id, execution]))
  const ofInstance = Map.groupBy(enforcements, ({ trigger_instance_id: id }) => id)
  return new Map(
    ids.map((id): [string, Outcome] => {
      const own = ofInstance.get(id) ?? []
      const started = own.flatMap(({ execution_id: execution }) => execution ?? [])
      const seen = started.flatMap((execution) => known.get(execution) ?? [])
      return [
        id,
        {
          executions: seen.sort((a, b) => (a.id < b.id ? -1 : 1)),
          hidden: started.length - seen.length,
          unlisted: unlisted.get(id) ?? 0,
          failures: own.filter(({ status }) => status === 'failed'),
        },
      ]
    }),
  )
}

/** With what an event says of an execution; one that is new is added. */
export function withExecution(outcome: Outcome, execution: ExecutionState): Outcome {
  const before = outcome.executions.find(({ id }) => id === execution.id)
  const others = outcome.executions.filter(({ id }) => id !== execution.id)
  const now = before === undefined ? execution : laterOf(before, execution)
  return { ...outcome, executions: [...others, now].sort((a, b) => (a.id < b.id ? -1 : 1)) }
}

/** Answers and events may have crossed. */
export function mergedOutcome(earlier: Outcome | undefined, loaded: Outcome): Outcome {
  if (earlier === undefined) return loaded
  const merged = earlier.executions.reduce(withExecution, loaded)
  const hidden = Math.max(0, loaded.hidden - (merged.executions.length - loaded.executions.length))
  return { ...merged, hidden }
}
