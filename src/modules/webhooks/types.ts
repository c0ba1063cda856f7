import type { ExecutionStatus } from '../executions/types.ts'
import type { TriggerInstanceStatus } from '../triggers/types.ts'

/** What came of a request whose sender has waited for it (`Prefer: wait`). */
export interface WebhookOutcome {
  /** Without a status: it has been purged meanwhile. */
  trigger_instances: { id: string; status?: TriggerInstanceStatus }[]
  executions: {
    id: string
    status: ExecutionStatus
    action: string
    rule: string | null
    /** Only for callers who may view the execution. */
    result?: unknown
    /** Bytes of a result too long to stand here. */
    result_size?: number | null
  }[]
}
