/**
 * Every fact: its payload, its source, its listeners, and its public name on the event stream.
 *
 * A fact is announced only after the unit that made it true is durable. Payloads are plain data. Listeners tolerate
 * loss and repetition, because the rows are the truth. To add one: an entry here.
 */
import type { AliasRecord } from '../modules/aliases/types.ts'
import type { Execution, ExecutionStatus, OutputRecord } from '../modules/executions/types.ts'
import type { RuleEnforcement } from '../modules/rules/types.ts'
import type { QueuedInstance } from '../modules/triggers/types.ts'

export interface FactPayloads {
  /**
   * From executions (request). `about` gives the caller and address to the audit log. Wakes the `request` queue;
   * stream: `svc.execution__create`, `svc.liveaction__create`.
   */
  'execution.created': { execution: Execution; about?: Readonly<Record<string, unknown>> }
  /**
   * From executions (every transition). `from` is the previous status. Wakes the `request` and `cancel` queues; stream:
   * `svc.execution__update`, `svc.liveaction__update`.
   */
  'execution.updated': { execution: Execution; from: ExecutionStatus }
  /** From executions (output). Wakes cursors; stream: `svc.execution.output__create`, one event per record. */
  'execution.output': {
    execution_id: string
    action_ref: string
    /** The user of the execution. */
    user: string
    runner_ref: string
    last_seq: number
    records: OutputRecord[]
  }
  /** From traces, with each new member. Monitoring notices traces that grow fast. */
  'trace.grown': { id: string }
  /** From rules: a chain of rules that start each other has become too long. */
  'trace.cut': { id: string; rule: string; depth: number }
  /** From executions, for a runner; not stored. Stream: `svc.announcement__<route>`. */
  'announcement.created': { execution: Execution; route: string; message: unknown }
  /**
   * From auth (revocation, the end of an action's run). Drops the verified token from the cache and ends its streams.
   */
  'token.revoked': { id: string }
  /** From auth: a token of a sensor counts longer. Drops the verified token from the cache. */
  'token.prolonged': { id: string }
  /** From auth (update, deletion). Clears the cache of verified API keys and ends the streams of this key. */
  'api_key.changed': { id: string }
  /**
   * From auth (changed, disabled, deleted, all tokens revoked). Clears the caches of verified tokens and API keys and
   * ends the user's streams.
   */
  'user.changed': { name: string }
  /**
   * From rbac (definitions applied, groups of a user synchronised). Rebuilds the permissions in memory and ends streams
   * that lost theirs.
   */
  'rbac.changed': { reason: string }
  /**
   * From triggers. `type` is the reference of its trigger type. The trigger catalogue reads it again; webhooks and
   * timers register it.
   */
  'trigger.created': { id: string; type: string }
  /** From triggers (parameters, name, description, or the schema of its type). Same listeners. */
  'trigger.updated': { id: string; type: string }
  /**
   * From triggers (by request, with its type, or with the last rule that used it). Same listeners; rules also drop
   * their bindings to it.
   */
  'trigger.deleted': { id: string; type: string }
  /**
   * From triggers (dispatch), unless no enabled rule is bound to the trigger. Wakes the `trigger` queue; counted for
   * the limit of waiting instances.
   */
  'trigger_instance.created': QueuedInstance
  /** From rules, whatever the outcome. Counted for the same limit; webhook requests that wait for executions listen. */
  'trigger_instance.processed': { id: string; execution_ids: readonly string[] }
  /** From rules. The rules of these triggers are compiled again. */
  'rule.changed': { id: string; ref: string; change: 'created' | 'updated' | 'deleted'; trigger_ids: readonly string[] }
  /** From jobs: a rule has become late, or has succeeded again. Wakes the look at what is expected of it next. */
  'job.changed': { id: string; ref: string; late: boolean }
  /** From notifications: one is to be sent. Wakes the sender of the destination. */
  'notification.planned': { destination: string }
  /**
   * From actions and triggers, by request or with their pack. Stream: `svc.content__change`, which also tells of policies,
   * rules and triggers.
   */
  'content.changed': { kind: 'action' | 'trigger_type' }
  /**
   * From aliases, by request or with their pack. The formats of aliases are read again; stream: `svc.actionalias__create`,
   * `svc.actionalias__update`, `svc.actionalias__delete`.
   */
  'alias.changed': { change: 'create' | 'update' | 'delete'; alias: AliasRecord }
  /**
   * From policies. The policies of these actions are read again, and executions delayed by them are scheduled again.
   */
  'policy.changed': {
    id: string
    ref: string
    change: 'created' | 'updated' | 'deleted'
    action_refs: readonly string[]
  }
  /**
   * From sensors. The sensor is started, restarted or stopped; one that its pack has created or updated only once all
   * of the pack is registered, its configuration included.
   */
  'sensor.changed': { id: string; ref: string; change: 'created' | 'updated' | 'deleted'; by: 'client' | 'pack' }
  /** From rules, for each rule that matched or could not be evaluated. For the audit log. */
  'rule.enforced': RuleEnforcement
}

export type FactName = keyof FactPayloads

export type Fact = { [N in FactName]: { name: N; payload: FactPayloads[N] } }[FactName]

export type FactOf<N extends FactName> = Extract<Fact, { name: N }>
