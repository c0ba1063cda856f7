/** What jobs ask of modules above them; `app.ts` says who answers. */
import type { Unit } from '../../db/index.ts'
import type { Expectation, MissReason } from '../rules/types.ts'

/** A job that is missed. Times are wire timestamps. */
export interface MissedJob {
  rule: { id: string; ref: string }
  /** When its success was due. */
  due: string
  expect: Expectation
  reason: MissReason
  lastSuccess: string | null
  /** The run that failed or has not ended, and its trace. */
  executionId?: string
  traceId?: string
}

/** Port: tells people about jobs. */
export interface JobNotifications {
  /** Plans what is sent about a job that is missed, in the unit that marks it. Undefined: nothing. */
  planMissed(missed: MissedJob): Unit | undefined
}

export interface JobsPorts {
  readonly notifications: JobNotifications
}
