/** What goes into the conductor and what comes out of it. All of it is plain data, but for the look-ups of `Outside`. */
import type { Readings, Scope, TaskRecord } from '../expressions/index.ts'
import type { Changes } from './draft.ts'
import type { InstanceRow } from './state.ts'
import type { EndStatus, WorkflowStatus } from './status.ts'

/** Something that has happened. `instance` and `item` are the numbers of the command `start`. */
export type Event =
  /** `input`: parameters of the execution by name. They are data: expressions in them are not evaluated. */
  | { readonly kind: 'started'; readonly input: Readonly<Record<string, unknown>> }
  | (ActionEvent & { readonly kind: 'ended'; readonly status: EndStatus; readonly result: unknown })
  /** The action could not be started: `message` says why, `<class>: <text>`. */
  | (ActionEvent & { readonly kind: 'refused'; readonly message: string })
  /** The action waits for a person. */
  | (ActionEvent & { readonly kind: 'pending' })
  /** A child workflow has paused, or goes on, by itself. */
  | (ActionEvent & { readonly kind: 'child paused' })
  | (ActionEvent & { readonly kind: 'child resumed' })
  /** The inquiry has its answer: its action ends next. */
  | (ActionEvent & { readonly kind: 'answered' })
  | { readonly kind: 'pause' }
  | { readonly kind: 'resume' }
  /**
   * Also when the time of the workflow is up: nothing starts any more, children that run or wait are told, and the workflow
   * ends `canceled` with its last task. Whoever knows of the deadline says `timeout` instead.
   */
  | { readonly kind: 'cancel' }
  /** `reset`: those of `tasks` that repeat all their items, not just those that did not succeed. */
  | { readonly kind: 'rerun'; readonly tasks: readonly string[]; readonly reset: readonly string[] }
  /** The answer to the command `continue`. */
  | { readonly kind: 'continue' }

interface ActionEvent {
  readonly instance: number
  readonly item?: number
  /** The attempt of the command `start`. An event of an earlier attempt is ignored. Absent: the current one. */
  readonly attempt?: number
}

/** Something to do. */
export type Command =
  | StartCommand
  | { readonly kind: 'status'; readonly status: WorkflowStatus }
  /** The workflow may take so long, in seconds, from now on. */
  | { readonly kind: 'deadline'; readonly seconds: number }
  /** The children of the instances that run, or wait, get the same request. */
  | { readonly kind: 'cascade'; readonly request: 'pause' | 'resume' | 'cancel' }
  /** The workflow is over. It comes again when actions that still ran then add errors. */
  | {
      readonly kind: 'finish'
      readonly status: WorkflowStatus
      readonly output: Readonly<Record<string, unknown>> | null
    }
  /** More is ready than one call may start. Send `continue`; after a restart of the server, too, to a run with `ready` rows. */
  | { readonly kind: 'continue' }

/**
 * An instance, item and attempt can come a second time, when a cycle reaches a task that still runs on the same route: then
 * the action starts again, and the first of the two to end counts.
 */
export interface StartCommand {
  readonly kind: 'start'
  readonly instance: number
  readonly task: string
  readonly route: number
  /** Its position in the list; undefined: the task has no items */
  readonly item: number | undefined
  /** 0, then one more with each retry. */
  readonly attempt: number
  readonly action: string
  readonly input: Readonly<Record<string, unknown>> | null
  /** Seconds to wait before. */
  readonly delay: number
  /** Seconds that the action may take; undefined: no limit. */
  readonly timeout: number | undefined
}

/** Names, in the log, the end of a chain by an entry of `next` that leads nowhere. */
export const endOf = (position: number): string => `__t${position}`

/** What explain shows. */
export type LogEntry =
  | {
      readonly kind: 'transition'
      readonly instance: number
      readonly transition: string
      readonly isTaken: boolean
      /** undefined: the transition has no condition */
      readonly value: unknown
      /** Variables that its target gets. */
      readonly published: Readonly<Record<string, unknown>>
      readonly readings: Readings
      /** Why its condition or its variables cannot be evaluated, `<class>: <text>`. */
      readonly errors: readonly string[]
    }
  /** A join has started, or can start no more. */
  | (JoinProgress & { readonly kind: 'join'; readonly instance: number })
  | {
      readonly kind: 'error'
      readonly instance: number | undefined
      readonly message: string
      /** What could not be evaluated: an expression, or a value with expressions in it. */
      readonly expression: unknown
      /** Variables that the expression could see. */
      readonly variables: Readonly<Record<string, unknown>>
      readonly readings: Readings
    }

/** Names of the tasks that have led to a join, and of those that could. */
export interface JoinProgress {
  readonly task: string
  readonly route: number
  readonly need: number
  readonly arrived: readonly string[]
  readonly missing: readonly string[]
}

/** Evaluates the expressions in a value. @throws ExpressionError, or BudgetExhausted, which ends the whole turn */
export type Evaluate = (value: unknown, scope: Scope, readings: Readings | undefined) => unknown

/** Facts that the rows of the conductor do not have. Each is asked for only when an expression reads it. */
export interface Outside {
  /** Variables that all expressions see besides those of the workflow: `svc`, `parent`. */
  readonly environment: Readonly<Record<string, unknown>>
  /** The same while `input` and `vars` are evaluated. */
  readonly startEnvironment: Readonly<Record<string, unknown>>
  /** Result of the last action of an instance or item that ended in an earlier event; null: none */
  resultOf(instance: number, item: number | undefined): unknown
  recordOf(instance: InstanceRow): Pick<TaskRecord, 'id' | 'workflowExecution' | 'startTimestamp' | 'endTimestamp'>
  readKey: Scope['readKey']
  /**
   * Why an action cannot be started, `<class>: <text>`; undefined: it can. Whoever learns it only by asking repeats the call,
   * from the same state, with the reasons; an action that is refused after the commit is an event `refused`.
   */
  whyRefused?(command: StartCommand): string | undefined
}

export interface Limits {
  /** Instances of one run. */
  readonly maxInstances: number
  /** Items of one task. */
  readonly maxItems: number
  /** Characters, as JSON, of the variables that a task sees. */
  readonly maxContextSize: number
  /** The same of all that a run publishes, with its input and `vars`. */
  readonly maxPublished: number
  /** The same of the output, and of the results of failed actions in the errors. */
  readonly maxResultSize: number
  /** Turns of a cycle in a row in which nothing is published and no action runs. */
  readonly maxIdleTurns: number
  /** Actions, and instances without one, that one call starts. */
  readonly maxStartsPerTurn: number
}

const MI = 1024 * 1024

export const defaultLimits: Limits = {
  maxInstances: 100_000,
  maxItems: 100_000,
  maxContextSize: 16 * MI,
  maxPublished: 256 * MI,
  maxResultSize: 64 * MI,
  maxIdleTurns: 10_000,
  maxStartsPerTurn: 1_000,
}

export interface Outcome {
  /** undefined: the event changes nothing, because it is late or refused */
  readonly changes: Changes | undefined
  readonly commands: readonly Command[]
  readonly log: readonly LogEntry[]
  /** Why a request is refused. */
  readonly refused: string | undefined
}
