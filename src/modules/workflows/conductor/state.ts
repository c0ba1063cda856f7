/**
 * The state of a run of a workflow: tables of plain rows. They are what the store writes, and all that the conductor knows.
 *
 * The conductor never changes a state. It returns the rows that an event changes, and `apply` puts them into the state once
 * they are stored.
 */
import { createHash } from 'node:crypto'
import { writeJson } from '../../../lib/json/index.ts'
import type { WorkflowStatus, TaskStatus } from './status.ts'

/** One per run. */
export interface WorkflowRow {
  readonly status: WorkflowStatus
  /** What a user has asked for: tasks with items start none until `resume`. */
  readonly request: 'pause' | 'cancel' | null
  /** Rows made so far of each kind: the next number of each. */
  readonly instances: number
  readonly contexts: number
  readonly routes: number
  readonly errors: number
  /** Instances that have started. */
  readonly starts: number
  /** Engine commands among them. They are no tasks, and the counts below leave them out. */
  readonly commands: number
  /** Instances that run now, and those that wait for a person or for a paused child. */
  readonly active: number
  readonly held: number
  /** Instances that have ended, by status. */
  readonly succeeded: number
  readonly failed: number
  readonly canceled: number
  /** Instances that may start, or go on with their items, as soon as the workflow runs. */
  readonly ready: number
  /** Those of them that clean up after a failure. */
  readonly cleanups: number
  /** Instances without an action that ended in a row in a cycle, while nothing was published or waited for. */
  readonly idle: number
  /** Characters of all contexts, as JSON. */
  readonly published: number
  /** null: not rendered, or nothing could be rendered */
  readonly output: Readonly<Record<string, unknown>> | null
}

/** One pass of a task on a route. Engine commands have instances too. */
export interface InstanceRow {
  readonly id: number
  /** Index in `Definition.tasks`. */
  readonly task: number
  readonly route: number
  readonly status: TaskStatus
  /** Position among the instances that have started; null: has not started */
  readonly order: number | null
  /** 1 for the first instance of the task that starts on the route, 2 for the second; 0: has not started */
  readonly pass: number
  /** Whether it may start, repeat, or start further items. */
  readonly isReady: boolean
  /** Whether it runs although the workflow has failed: the task before it asked for `fail` as well. */
  readonly isCleanup: boolean
  /** Context that the task sees; null: it has not started, and its arrivals decide */
  readonly context: number | null
  /** How it came about. The arrivals at a join are rows of their own: `arrivals` counts them. */
  readonly previous: readonly Arrival[]
  readonly arrivals: number
  /**
   * Positions in `Task.outgoing` of the transitions that were taken; null: none was evaluated, as the task has not ended, or
   * its action could not be started
   */
  readonly taken: readonly number[] | null
  /** Times that the task has been repeated by its retry. */
  readonly retries: number
  /** null: the task has no retry */
  readonly retry: { readonly count: number; readonly delay: number } | null
  /** Whether the workflow's output sees the variables of this instance. */
  readonly isTerminal: boolean
  readonly items: ItemCounts | null
}

/** A transition that was taken to an instance. */
export interface Arrival {
  readonly from: number
  /** Position in `Task.outgoing` of the instance `from`. */
  readonly transition: number
  readonly context: number
}

export interface ArrivalRow extends Arrival {
  readonly instance: number
  readonly index: number
}

export interface ItemCounts {
  readonly count: number
  /** null: all at once */
  readonly concurrency: number | null
  /** Items below it have started or need not start. */
  readonly next: number
  readonly active: number
  /** Wait for a person, or paused. */
  readonly held: number
  readonly failed: number
  readonly canceled: number
}

/** An item that has started. */
export interface ItemRow {
  readonly instance: number
  readonly index: number
  readonly status: ItemStatus
  /** The instance whose action gave the result: an earlier one, if a re-run did not repeat the item. */
  readonly source: number
}

export type ItemStatus =
  'running' | 'pending' | 'paused' | 'succeeded' | 'failed' | 'timeout' | 'abandoned' | 'canceled'

/**
 * Variables, as a difference to the contexts before it. Number 0 has the workflow's input and `vars`.
 */
export interface ContextRow {
  readonly id: number
  /** Merged one after the other; several at a join. */
  readonly parents: readonly number[]
  readonly values: Readonly<Record<string, unknown>>
}

/** A join on a route. */
export interface JoinRow {
  readonly task: number
  readonly route: number
  /** Inbound tasks whose latest instance on the route leads here. */
  readonly arrived: number
  /** Times that it has started. */
  readonly fired: number
}

/** An inbound task of a join. */
export interface JoinSourceRow {
  readonly task: number
  readonly route: number
  readonly source: number
  /** Times that the join had started when the source last started after an arrival; 0: it has arrived at most once. */
  readonly firedBefore: number
  /** Whether the latest instance of the source is among them. */
  readonly hasArrived: boolean
}

/** Number 0 is not stored: it has no parent. */
export interface RouteRow {
  readonly id: number
  readonly parent: number
  /** The transition that made it. */
  readonly origin: string
}

export interface ErrorRow {
  readonly id: number
  /** The instance that it belongs to; null: to the workflow */
  readonly instance: number | null
  /** `errorKey` of the entry. */
  readonly key: string
  readonly entry: ErrorEntry
}

/** As users see it in the result of the execution. */
export interface ErrorEntry {
  readonly type: 'error'
  readonly message: string
  readonly task_id?: string
  readonly route?: number
  readonly task_transition_id?: string
  readonly result?: unknown
}

export interface Rows {
  readonly instances: ReadonlyMap<number, InstanceRow>
  /** Key: `arrivalKey`. */
  readonly arrivals: ReadonlyMap<string, ArrivalRow>
  /** Key: `itemKey`. */
  readonly items: ReadonlyMap<string, ItemRow>
  readonly contexts: ReadonlyMap<number, ContextRow>
  /** Key: `placeKey`. */
  readonly joins: ReadonlyMap<string, JoinRow>
  /** Key: `sourceKey`. */
  readonly sources: ReadonlyMap<string, JoinSourceRow>
  readonly routes: ReadonlyMap<number, RouteRow>
  readonly errors: ReadonlyMap<number, ErrorRow>
}

/** What the rows say, ordered by the questions that the conductor asks. Computed from the rows, never stored. */
export interface Indexes {
  /** Place → the latest instance that has started. */
  readonly latest: ReadonlyMap<string, number>
  /** Place → the instance that waits to start. */
  readonly staged: ReadonlyMap<string, number>
  readonly ready: ReadonlyMap<number, true>
  readonly terminal: ReadonlyMap<number, true>
  /** Task and position → a route on which the task has started. */
  readonly routesOf: ReadonlyMap<string, number>
  readonly routeCounts: ReadonlyMap<number, number>
  /** Route → the number of the set of transitions on its way. */
  readonly ways: ReadonlyMap<number, number>
  /** Task and way → the routes on which the task has started, as bits: see `numbers.ts`. */
  readonly startedOn: ReadonlyMap<string, number>
  readonly errorKeys: ReadonlyMap<string, number>
}

export interface State extends Rows, Indexes {
  readonly workflow: WorkflowRow
}

export const placeKey = (task: number, route: number): string => `${task}/${route}`
export const sourceKey = (task: number, route: number, source: number): string => `${task}/${route}/${source}`
export const itemKey = (instance: number, index: number): string => `${instance}/${index}`
export const arrivalKey = itemKey
/** Equal entries have equal keys. */
export const errorKey = (entry: ErrorEntry): string => createHash('sha256').update(writeJson(entry)).digest('base64')

const newWorkflow: WorkflowRow = {
  status: 'requested',
  request: null,
  instances: 0,
  contexts: 0,
  routes: 1,
  errors: 0,
  starts: 0,
  commands: 0,
  active: 0,
  held: 0,
  succeeded: 0,
  failed: 0,
  canceled: 0,
  ready: 0,
  cleanups: 0,
  idle: 0,
  published: 0,
  output: null,
}

/** The state before the event `started`. */
export function emptyState(): State {
  return {
    workflow: newWorkflow,
    instances: new Map(),
    arrivals: new Map(),
    items: new Map(),
    contexts: new Map(),
    joins: new Map(),
    sources: new Map(),
    routes: new Map(),
    errors: new Map(),
    latest: new Map(),
    staged: new Map(),
    ready: new Map(),
    terminal: new Map(),
    routesOf: new Map(),
    routeCounts: new Map(),
    ways: new Map(),
    startedOn: new Map(),
    errorKeys: new Map(),
  }
}
