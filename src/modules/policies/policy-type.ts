/** What a type of policies is: its record, and what its policies say about executions. */
import type { ParameterSchema, SchemaProblem } from '../../lib/schema/index.ts'
import type { Execution } from '../executions/types.ts'
import type { Policy, PolicyTypeRecord } from './types.ts'
import type { Limit } from '../executions/ports.ts'

export interface PolicyType {
  record: PolicyTypeRecord
  /** What is wrong with parameters that fit the record, for an action with these parameters. */
  problemOf?(
    parameters: Readonly<Record<string, unknown>>,
    ofAction: Readonly<Record<string, ParameterSchema>>,
  ): SchemaProblem | undefined
  /** @param policy with parameters that fit the record */
  apply(policy: Policy): AppliedPolicy
}

export interface AppliedPolicy {
  /**
   * Under which limit an execution is counted when it has a slot.
   *
   * @param open its parameters with their secrets
   */
  limitOf?(execution: Execution, open: () => Record<string, unknown>): Limit
  /** Whether an execution that has ended is to be run again. @param retryCount how often it has been already */
  retryOf?(ended: Execution, retryCount: number): { delaySeconds: number } | undefined
}
