/** Wire records of contract 05, 5.5 and 5.7, and the rule as the module keeps it. */
import type { Scope } from '../../http/route.ts'

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
  criterion?: { key: string; type: string; pattern: unknown; condition?: string; value: unknown }
  /** Of `failed`; of another verdict what else is to be known about it. */
  reason?: string
}
