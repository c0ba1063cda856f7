import type { ExecutionRecord, ExecutionStatus } from '../executions/types.ts'
import type { TriggerInstance } from '../triggers/types.ts'
import type { Scope } from '../../core/permissions.ts'

export type RuleType = 'standard' | 'backstop'

export interface CriterionDefinition {
  type: string
  pattern: unknown
  /** Of `search`. */
  condition?: string
}

export interface RuleRecord {
  id: string
  /** `rule:<pack>:<name>` */
  uid: string
  ref: string
  name: string
  pack: string
  description: string
  enabled: boolean
  type: { ref: RuleType; parameters: Record<string, unknown> }
  trigger: {
    /** Reference of the trigger type. */
    type: string
    /** Reference of the trigger. */
    ref: string
    parameters: Record<string, unknown>
    description?: string
  }
  criteria: Record<string, CriterionDefinition>
  action: { ref: string; parameters: Record<string, unknown>; description?: string }
  context: RuleContext
  tags: { name: string; value: string }[]
  /** Of a rule that comes with a pack. */
  metadata_file?: string
}

export interface RuleContext {
  /** Who wrote it last. */
  user: string
  /** What the credential was limited to that it was written with. */
  scopes?: readonly Scope[]
}

/** A rule inside the server: its row with JSON parsed, unmasked; the parameters of its trigger are with the trigger. */
export interface Rule extends Omit<RuleRecord, 'trigger'> {
  revision: number
  trigger: { id: string; ref: string; type: string; description?: string }
  /** Whose secret action parameters it has; absent: only those of who wrote it last. */
  secret_owners?: string[]
}

/** What an author writes; what is left out, or null, has its default. */
export interface RuleDefinition {
  name: string
  pack?: string | null
  description?: string | null
  enabled?: boolean | null
  type?: { ref: RuleType; parameters?: Record<string, unknown> | null } | null
  trigger: { type: string; parameters?: Record<string, unknown> | null; description?: string | null }
  criteria?: Record<string, unknown> | null
  action: { ref: string; parameters?: Record<string, unknown> | null; description?: string | null }
  tags?: { name: string; value: string }[] | null
}

export interface RuleEnforcement {
  id: string
  trigger_instance_id: string
  /** Absent when no execution came of it. */
  execution_id?: string
  failure_reason?: string
  rule: { ref: string; uid: string; id: string }
  enforced_at: string
  /** `succeeded`: the execution was requested, whatever came of it. */
  status: 'succeeded' | 'failed'
}

/** With what it is about, as far as it was asked for and the caller may see it. */
export interface RuleEnforcementView extends RuleEnforcement {
  trigger_instance?: Pick<TriggerInstance, 'id' | 'trigger' | 'payload' | 'occurrence_time' | 'status'>
  /** With the reference and the parameters of its action. */
  execution?: Partial<Pick<ExecutionRecord, 'id' | 'runner' | 'parameters' | 'status'>> & {
    action: { ref?: unknown; parameters?: unknown }
  }
}

/** A rule with what its action and its trigger say about themselves. */
export interface RuleView extends RuleRecord {
  /** On request; null: there has been none yet. */
  last_enforcement?: LastEnforcement | null
}

export interface LastEnforcement extends Omit<RuleEnforcement, 'rule'> {
  /** Of the execution that came of it, for whoever may view it. */
  execution_status?: ExecutionStatus
}

/** What criteria can compare by. */
export interface OperatorRecord {
  /** The one to write. */
  name: string
  /** Further names that mean the same. */
  aliases: string[]
  /** What stands between value and pattern in a sentence: `is not`. */
  phrase: string
  /** What else is to be known; may be empty. */
  description: string
  /** `none`: there has to be one all the same. `criteria`: of `search`. */
  pattern: 'any' | 'text' | 'seconds' | 'none' | 'criteria'
  /** Of `search`. */
  conditions?: { name: string; phrase: string }[]
}

/** What came, or would come, of one rule for one trigger instance. */
export interface RuleVerdict {
  /** `id` is absent for a rule that is tried out and not stored. */
  rule: { id?: string; ref: string; uid: string; type: RuleType }
  /**
   * `disabled`; `matched`; `not_matched`: see `criterion`; `failed`: a criterion could not be compared, see `reason`;
   * `not_needed`: a backstop rule, and a standard rule matched.
   */
  verdict: 'disabled' | 'matched' | 'not_matched' | 'failed' | 'not_needed'
  /** The first that did not hold, with the value that it saw. */
  criterion?: SeenCriterion
  /** Of `failed`; of another verdict what else is to be known about it. */
  reason?: string
}

/** A criterion with what it saw; long values are cut. */
export interface SeenCriterion {
  key: string
  type: string
  pattern: unknown
  condition?: string
  value: unknown
}

/** Why something happened, or did not. */
export interface Explanation {
  trigger_instance: Pick<TriggerInstance, 'id' | 'trigger' | 'status' | 'occurrence_time' | 'trace_id'>
  rules: (RuleVerdict & { enforcement?: Pick<RuleEnforcement, 'id' | 'status' | 'execution_id' | 'failure_reason'> })[]
  /** How many more there are that the caller may not view. */
  hidden: number
  /** One sentence that answers why. */
  message: string
}

export interface TestRequest {
  rule?: RuleDefinition
  rule_ref?: string
  /** As a file holds it. */
  trigger_instance?: { trigger: string; payload?: unknown; id?: string; occurrence_time?: string }
  trigger_instance_id?: string
}

export interface TestResult {
  matches: boolean
  verdict: RuleVerdict
  /** Each that was looked at, in the order of the rule, also behind the first that does not hold. */
  criteria: (SeenCriterion & { holds: boolean; reason?: string })[]
  /** Of the action, as the rule would give them to it; secrets masked. */
  parameters?: Record<string, unknown>
  /** What would go wrong, or why they do not fit together. */
  problem?: string
}
