/**
 * Every fact: its payload, who makes it, who listens, and the public name of it on the event stream.
 *
 * A fact is announced only after the unit that made it true is durable. Payloads are plain data; listeners tolerate
 * loss and repetition, because rows are the truth. To add one: an entry here.
 */
import type { Execution, ExecutionStatus, OutputRecord } from '../modules/executions/types.ts'
import type { RuleEnforcement } from '../modules/rules/types.ts'
import type { QueuedInstance } from '../modules/triggers/types.ts'

export interface FactPayloads {
  /**
   * Made by executions (request). `about` tells the audit log who asks, from where. Wakes the `request` queue; stream:
   * `svc.execution__create`, `svc.liveaction__create`.
   */
  'execution.created': { execution: Execution; about?: Readonly<Record<string, unknown>> }
  /**
   * Made by executions (every transition). `from` is the status before. Wakes the `request` and `cancel` queues; stream:
   * `svc.execution__update`, `svc.liveaction__update`.
   */
  'execution.updated': { execution: Execution; from: ExecutionStatus }
  /** Made by executions (output). Wakes cursors; stream: `svc.execution.output__create`, one event a record. */
  'execution.output': {
    execution_id: string
    action_ref: string
    /** Acting user of the execution. */
    user: string
    runner_ref: string
    last_seq: number
    records: OutputRecord[]
  }
  /** Made by executions, for a runner; nothing of it is stored. Stream: `svc.announcement__<route>`. */
  'announcement.created': { execution: Execution; route: string; message: unknown }
  /** Made by auth (revocation, the end of an action's run). Forgets the verified token, ends streams that came with it. */
  'token.revoked': { id: string }
  /** Made by auth (update, deletion). Clears the cache of verified API keys, ends streams that came with this one. */
  'api_key.changed': { id: string }
  /**
   * Made by auth (changed, disabled, deleted, all tokens revoked). Clears the caches of verified tokens and API keys, ends
   * streams of the user.
   */
  'user.changed': { name: string }
  /**
   * Made by rbac (definitions applied, groups of a user synchronised). Rebuilds the rights in memory, ends streams that are
   * not allowed any more.
   */
  'rbac.changed': { reason: string }
  /**
   * Made by triggers. `type` is the reference of its trigger type. The catalogue of triggers reads it again; webhooks and
   * timers with this trigger come to be.
   */
  'trigger.created': { id: string; type: string }
  /** Made by triggers (parameters, name, description, or the schema of its type). The same listen. */
  'trigger.updated': { id: string; type: string }
  /**
   * Made by triggers (by request, with its type, or with the last rule that used it). The same listen, and rules forget
   * what was bound to it.
   */
  'trigger.deleted': { id: string; type: string }
  /**
   * Made by triggers (dispatch), unless no enabled rule is bound to the trigger. Wakes the `trigger` queue; counted, to refuse
   * more than may wait.
   */
  'trigger_instance.created': QueuedInstance
  /** Made by rules, whatever came of it. Counted likewise; senders to webhooks who wait for its executions listen. */
  'trigger_instance.processed': { id: string; execution_ids: readonly string[] }
  /** Made by rules. Rules of these triggers are compiled anew. */
  'rule.changed': { id: string; ref: string; change: 'created' | 'updated' | 'deleted'; trigger_ids: readonly string[] }
  /**
   * Made by policies. Those of these actions are read anew, and executions that wait because of them are looked at again.
   */
  'policy.changed': {
    id: string
    ref: string
    change: 'created' | 'updated' | 'deleted'
    action_refs: readonly string[]
  }
  /** Made by rules, for each rule that matched or could not be compared. For the audit log. */
  'rule.enforced': RuleEnforcement
}

export type FactName = keyof FactPayloads

export type Fact = { [N in FactName]: { name: N; payload: FactPayloads[N] } }[FactName]

export type FactOf<N extends FactName> = Extract<Fact, { name: N }>
