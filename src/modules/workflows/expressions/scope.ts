/** A task execution as `task()` shows it. */
export interface TaskRecord {
  readonly id: string
  readonly workflowExecution: string
  readonly name: string
  readonly route: number
  readonly status: string
  /** null while it runs */
  readonly result: unknown
  /** ISO 8601 */
  readonly startTimestamp: string
  /** ISO 8601; null while it runs */
  readonly endTimestamp: string | null
}

/** The task that an expression belongs to. */
export interface CurrentTask {
  readonly name: string
  readonly route: number
  readonly status: string
  /** null before the task has ended */
  result(): unknown
}

/** A key of the datastore, as `svckv` names it: the keys of a user are those of the user who runs the workflow. */
export interface DatastoreKey {
  readonly scope: 'system' | 'user'
  /** empty for `system` */
  readonly user: string
  readonly name: string
}

/**
 * All that an expression can see. Each part is asked for only when an expression reads it, so that its owner makes no more
 * than that. Two readings within one evaluation must give the same.
 */
export interface Scope {
  /** undefined: there is no such variable. Also asked for names with two underscores, which expressions cannot read. */
  variable(name: string): unknown
  /** All variables, in order. */
  variables(): Readonly<Record<string, unknown>>
  /** undefined where no task is current: in `input`, `vars` and `output` */
  readonly task: CurrentTask | undefined
  /** undefined outside of a task with items */
  readonly item: unknown
  /** @param route default: the route of the current task, else the nearest of those it came from; undefined: has not run */
  taskStatus(name: string, route: number | undefined): string | undefined
  /** The latest task execution of that name. @param route as for `taskStatus` */
  taskRecord(name: string, route: number | undefined): TaskRecord | undefined
  /**
   * The value of a key, encrypted ones as they are stored unless `decrypt` is set; undefined: there is none.
   *
   * @throws Error with the reason when the user cannot read it, or it cannot be decrypted
   */
  readKey(key: DatastoreKey, decrypt: boolean): unknown
}

/** One call of a function, and what it gave. */
export interface Reading {
  /** as in `ctx` */
  readonly name: string
  /** named ones as an object at the end */
  readonly args: readonly unknown[]
  readonly value: unknown
}

/** What an evaluation has read of its scope, in order: filled for whoever asks why a value came about. */
export type Readings = Reading[]
