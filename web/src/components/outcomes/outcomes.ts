/** Outcomes of trigger instances: the executions that rules started, and the enforcements that failed. */
import type { ExecutionState } from '../../api/execution-states.ts'
import { laterOf } from '../../api/execution-summary.ts'
import type { RuleEnforcement } from '../../api/records.ts'

export interface Outcome {
  /** In the order in which they were started. */
  executions: readonly ExecutionState[]
  /** The executions of the enforcements that were listed, whether they can be seen or not. */
  started: ReadonlySet<string>
  /** How many enforcements were not listed, being too many. */
  unlisted: number
  failures: readonly RuleEnforcement[]
  /** Rules that start nothing while an earlier execution of them has not ended. */
  skips: readonly RuleEnforcement[]
}

export const noOutcome: Outcome = { executions: [], started: new Set(), unlisted: 0, failures: [], skips: [] }

/** Executions of an instance beside the known ones. */
export interface Rest {
  /** Executions that were deleted since, or are not to be seen by everybody. */
  hidden: number
  /** Enforcements of which nothing is known. */
  unlisted: number
}

/** Events also report executions whose enforcements were not listed: each is counted once. */
export function restOf({ executions, started, unlisted }: Outcome): Rest {
  const listed = executions.filter(({ id }) => started.has(id)).length
  return { hidden: started.size - listed, unlisted: Math.max(0, unlisted - (executions.length - listed)) }
}

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
          started: new Set(started),
          unlisted: unlisted.get(id) ?? 0,
          failures: own.filter(({ status }) => status === 'failed'),
          skips: own.filter(({ status }) => status === 'skipped'),
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
  return earlier === undefined ? loaded : earlier.executions.reduce(withExecution, loaded)
}
