/** Public API of triggers for other modules. */
import type { Unit } from '../../db/index.ts'
import type { Cause } from '../traces/types.ts'
import type {
  KeptWithPayload,
  OpenedInstance,
  TriggerTypeRecord,
  TriggerRecord,
  TriggerAuthor,
  TriggerInstance,
  QueuedInstance,
  Repetitions,
} from './types.ts'

export interface TriggerService {
  /** By id when it looks like one, else by reference. The record is shared: it must not be changed. */
  findType(refOrId: string): TriggerTypeRecord | undefined
  /** By id when it looks like one, else by reference. The record is shared: it must not be changed. */
  find(refOrId: string): TriggerRecord | undefined
  /** Triggers of a type, oldest first. */
  ofType(typeRef: string): readonly TriggerRecord[]
  /** The trigger as clients see it: secrets in its parameters masked. */
  record(trigger: TriggerRecord): TriggerRecord

  /**
   * Finds or creates the trigger with these parameters for a rule. The commit of the unit counts the use. It fails with
   * `Conflict` after a concurrent change; plan again then. Do not merge it with a release of the same trigger: a rule
   * that keeps its trigger needs neither.
   *
   * @param stored current parameters of the rule: a mask in `parameters` keeps the value here
   * @param author of the rule: limits what secrets that are templates can read; default: the permissions of svc
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

  /** First problem in a payload for this type; undefined: none, or checks are off. */
  problemOfPayload(typeRef: string, payload: unknown): string | undefined
  /**
   * Stores an instance. Fails with `Conflict` when another request has started a trace with the same tag; plan again then.
   *
   * @param payload JSON data, valid
   * @param cause default: an external event with a new trace
   * @param kept beside the payload
   * @throws CRYPTO_KEY_MISSING, STORAGE_FAILED for credentials only
   */
  planDispatch(
    trigger: TriggerRecord,
    payload: unknown,
    cause?: Cause,
    kept?: KeptWithPayload,
  ): { instance: TriggerInstance; unit: Unit }
  /** Like `planDispatch`, with the payload as JSON text. */
  planStored(
    trigger: TriggerRecord,
    payloadText: string,
    cause?: Cause,
    kept?: KeptWithPayload,
  ): { instance: Omit<TriggerInstance, 'payload'>; unit: Unit }
  /** Plans and commits, again after each conflict. */
  dispatch(trigger: TriggerRecord, payload: unknown, cause?: Cause, kept?: KeptWithPayload): Promise<TriggerInstance>
  /** Dispatches a built-in trigger without parameters, such as `core.svc.generic.inquiry`. */
  planInternal(ref: string, payload: Record<string, unknown>, cause?: Cause): Unit

  /** Credential headers in the payload are masked. */
  findInstance(id: string): TriggerInstance | undefined
  /** The trigger type of an instance, without reading its payload. */
  typeOfInstance(id: string): string | undefined
  /** An instance with the credential headers, to evaluate rules. @throws CRYPTO_KEY_MISSING, CIPHER_TEXT_INVALID */
  openInstance(instance: TriggerInstance): OpenedInstance
  /** Pending instances, oldest first. */
  pending(afterId: string, limit: number): QueuedInstance[]
  pendingCount(): number
  /** Counts a repetition of the delivery of an instance that has no effect. */
  planRepetition(id: string): Unit
  /** Undefined: none. */
  repetitionsOf(id: string): Repetitions | undefined
  /** Sets the final status of an instance. Fails with `Conflict` if the instance has one. */
  planProcessed(id: string, status: 'processed' | 'processing_failed'): Unit
}

/** What triggers need from modules above them; `app.ts` connects them. */
export interface TriggersPorts {
  /** Whether an enabled rule is bound to the trigger: without one, an instance is stored as processed. */
  readonly hasRules: (triggerId: string) => boolean
}
