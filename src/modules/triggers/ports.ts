/** Public API of triggers for other modules. */
import type { Unit } from '../../db/index.ts'
import type { Cause } from '../traces/types.ts'
import type { TriggerTypeRecord, TriggerRecord, TriggerAuthor, TriggerInstance, QueuedInstance } from './types.ts'

export interface TriggerService {
  /** By id when it looks like one, else by reference. The record is shared: it must not be changed. */
  findType(refOrId: string): TriggerTypeRecord | undefined
  /** By id when it looks like one, else by reference. The record is shared: it must not be changed. */
  find(refOrId: string): TriggerRecord | undefined
  /** In the order in which they were made. */
  ofType(typeRef: string): readonly TriggerRecord[]
  /** The trigger as clients see it: secrets in its parameters masked. */
  record(trigger: TriggerRecord): TriggerRecord

  /**
   * The trigger that a rule needs: the one with these parameters, or a new one. Its use is counted once the unit is
   * committed, which fails with `Conflict` after a concurrent change; plan again then. Not to be merged with a
   * release of the same trigger: a rule that keeps its trigger needs neither.
   *
   * @param stored parameters that the rule has already: a mask in `parameters` stands for the value there
   * @param author of the rule: templates among the secrets read no more than this user may; default: what the server may
   * @throws TRIGGER_TYPE_UNKNOWN, PARAMETERS_INVALID
   */
  planUse(
    typeRef: string,
    parameters: Record<string, unknown>,
    stored?: Record<string, unknown>,
    author?: TriggerAuthor,
  ): { trigger: TriggerRecord; unit: Unit }
  /** Removes one use; the last one deletes a trigger that was created for rules. Fails with `Conflict` likewise. */
  planRelease(triggerId: string): Unit

  /** First problem of a payload for triggers of this type; undefined: none, or checks are off. */
  problemOfPayload(typeRef: string, payload: unknown): string | undefined
  /**
   * Stores an instance. Fails with `Conflict` when another request has started a trace with the same tag; plan again then.
   *
   * @param payload JSON data, valid
   * @param cause default: from outside, in a trace of its own
   */
  planDispatch(trigger: TriggerRecord, payload: unknown, cause?: Cause): { instance: TriggerInstance; unit: Unit }
  /** Plans and commits, again after each conflict. */
  dispatch(trigger: TriggerRecord, payload: unknown, cause?: Cause): Promise<TriggerInstance>
  /** Of a trigger without parameters that comes with the program, such as `core.svc.generic.inquiry`. */
  planInternal(ref: string, payload: Record<string, unknown>, cause?: Cause): Unit

  findInstance(id: string): TriggerInstance | undefined
  /** Pending instances, oldest first. */
  pending(afterId: string, limit: number): QueuedInstance[]
  pendingCount(): number
  /** Ends the processing of an instance. Fails with `Conflict` when that has happened already. */
  planProcessed(id: string, status: 'processed' | 'processing_failed'): Unit
}

/** What triggers need from modules above them; `app.ts` connects them. */
export interface TriggersPorts {
  /** Whether an enabled rule is bound to the trigger: without one, an instance is stored as processed. */
  readonly hasRules: (triggerId: string) => boolean
}
