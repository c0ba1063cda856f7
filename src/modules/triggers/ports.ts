/** What other modules may ask of triggers. */
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
   * committed, which fails with `Conflict` when somebody else was faster; plan again then. Not to be merged with a
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
  /** Counts one use less; a trigger made for rules goes with the last. Fails with `Conflict` likewise. */
  planRelease(triggerId: string): Unit

  /** What is wrong with a payload for triggers of this type; undefined: nothing, or nobody wants to know. */
  problemOfPayload(typeRef: string, payload: unknown): string | undefined
  /**
   * Stores an instance. Fails with `Conflict` when another request has started a trace with the same tag meanwhile; plan
   * again then.
   *
   * @param payload JSON data, valid
   * @param cause default: from outside, in a trace of its own
   */
  planDispatch(trigger: TriggerRecord, payload: unknown, cause?: Cause): { instance: TriggerInstance; unit: Unit }
  /** Plans and commits, as often as it takes. */
  dispatch(trigger: TriggerRecord, payload: unknown, cause?: Cause): Promise<TriggerInstance>
  /** Of a trigger without parameters that comes with the program, such as `core.svc.generic.inquiry`. */
  planInternal(ref: string, payload: Record<string, unknown>, cause?: Cause): Unit

  findInstance(id: string): TriggerInstance | undefined
  /** Instances that rules have to be looked at for, oldest first. */
  pending(afterId: string, limit: number): QueuedInstance[]
  pendingCount(): number
  /** Ends the processing of an instance. Fails with `Conflict` when that has happened already. */
  planProcessed(id: string, status: 'processed' | 'processing_failed'): Unit
}

/** What triggers ask of modules above them; `app.ts` says who answers. */
export interface TriggersPorts {
  /** Whether an enabled rule is bound to the trigger: without one, an instance is stored as processed. */
  readonly hasRules: (triggerId: string) => boolean
}
