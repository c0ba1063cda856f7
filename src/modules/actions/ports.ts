/** What actions ask of modules above them; `app.ts` says who answers. */
import type { PlanEvent } from '../datastore/ports.ts'

export interface ActionsPorts {
  /** Stores that a file has been written, if a rule wants to know. */
  readonly planEvent: PlanEvent
}
