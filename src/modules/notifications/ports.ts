/** What notifications implement for modules beside them; `app.ts` connects them. */
import type { MissReason } from '../rules/types.ts'

/** A run of a rule that did not succeed in time. */
export interface MissedRun {
  rule: { id: string; ref: string }
  /** Wire timestamp: when it was due. */
  due: string
  /** As the rule says it. */
  expect: unknown
  /** Wire timestamp of its last success; null: never. */
  lastSuccess: string | null
  reason?: MissReason
  /** The run that failed, or has not ended. */
  executionId?: string
  traceId?: string
}
