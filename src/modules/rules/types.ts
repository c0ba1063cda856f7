/** Wire records of contract 05, 5.5 and 5.7. */

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
  /** `user`: who wrote it last. */
  context: { user: string }
  tags: { name: string; value: string }[]
  metadata_file?: string
}

/** What an author writes; what is left out has its default. */
export interface RuleDefinition {
  name: string
  pack?: string
  description?: string
  enabled?: boolean
  type?: { ref: RuleType; parameters?: Record<string, unknown> }
  trigger: { type: string; parameters?: Record<string, unknown>; description?: string; ref?: string }
  criteria?: Record<string, CriterionDefinition>
  action: { ref: string; parameters?: Record<string, unknown>; description?: string }
  tags?: { name: string; value: string }[]
  metadata_file?: string
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

/** What came, or would come, of one rule for one trigger instance. */
export interface RuleVerdict {
  rule: { id: string; ref: string; uid: string; type: RuleType }
  /**
   * `disabled`; `matched`; `not_matched`: see `criterion`; `failed`: a criterion could not be compared, see `reason`;
   * `not_needed`: a backstop rule, and a standard rule matched.
   */
  verdict: 'disabled' | 'matched' | 'not_matched' | 'failed' | 'not_needed'
  /** The first that did not hold, with the value that it saw. */
  criterion?: { key: string; type: string; pattern: unknown; condition?: string; value: unknown }
  reason?: string
}
