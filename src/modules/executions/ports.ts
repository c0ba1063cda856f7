/** What executions ask of modules above them; `app.ts` says who answers. */
import type { Unit } from '../../db/index.ts'
import type { PackConfig } from '../../core/pack-content.ts'
import type { TemplateReader } from '../../core/template-reader.ts'
import type { Execution } from './types.ts'

/**
 * Port: what a change of status brings about elsewhere, in the same unit. Whoever knows triggers provides it.
 *
 * @param parameters of the execution, secrets masked
 */
export type PlanReaction = (execution: Execution, parameters: Record<string, unknown>) => Unit | undefined

/** Of those that are counted under the same key, at most `threshold` have a slot at once. */
export interface Limit {
  key: string
  threshold: number
  /** What happens to one that comes beyond it: it waits until one of them has ended, or is cancelled. */
  beyond: 'delay' | 'cancel'
  /** Reference of the policy that says so. */
  policy: string
}

/** Port: what policies say about executions (contract 02, 2.11); whoever knows policies provides it. */
export interface ExecutionPolicies {
  /**
   * What an execution is counted under when it has a slot; the first limit that is reached decides. The answer changes only
   * when the policies of its action do. Never throws: a policy that cannot be applied does not count.
   *
   * @param open its parameters with their secrets, which go nowhere
   */
  limitsOf(execution: Execution, open: () => Record<string, unknown>): readonly Limit[]
  /** What the end of an execution brings about, in the same unit. Never throws. */
  planRetry(execution: Execution): Unit | undefined
}

/** Port: the configuration of packs (contract 02, 2.9); whoever knows packs provides it. */
export interface PackConfigs {
  /** Resolved in the name of the reader; a pack without configuration has an empty one. @throws TEMPLATE_FAILED */
  resolve(pack: string, reader: TemplateReader): PackConfig
}

/** Port: credentials for the API that actions have while they run; whoever knows tokens provides it. */
export interface ServiceTokens {
  /** Whether authentication is on. */
  readonly enabled: boolean
  /**
   * A token for the run of an execution; it counts once the unit is committed. Undefined when the run gets none.
   *
   * The value is handed to the process and goes nowhere else.
   */
  plan(execution: Execution): { token: string; unit: Unit } | undefined
  /** Makes the token of an execution worthless, if there is one. */
  planEnd(execution: Execution): Unit
}

/** What executions ask of modules above them. */
export interface ExecutionsPorts {
  readonly planReaction: PlanReaction
  readonly packConfigs: PackConfigs
  readonly policies: ExecutionPolicies
}
