/** What a list of executions can be narrowed by, and in which order it comes. */
import type { ExecutionCountTable } from '../../../db/index.ts'
import type { Place } from '../../../http/index.ts'

/** What a list can be narrowed by; `null` matches records where the attribute is missing. */
export interface ExecutionFilter {
  ids?: string[]
  action?: string
  status?: string
  /** Two or more, of which each will do. */
  statuses?: readonly string[]
  user?: string
  runner?: string
  parent?: string | null
  liveaction?: string
  rule?: string | null
  trigger?: string | null
  trigger_type?: string | null
  trigger_instance?: string | null
  /** Wire timestamps. */
  startedAfter?: string
  startedBefore?: string
  /** Inclusive. */
  startedFrom?: string
  startedTo?: string
  /** Of the id; lower case hexadecimal digits. */
  idBeginning?: string
  /** Each is in the action reference, the name of the rule or the acting user, whatever the case of its letters. */
  words?: readonly string[]
  /** Conditions on paths inside the record: `context.user` = `x`. */
  paths?: PathFilter[]
  /** What the caller may see, whatever else is asked for. */
  within?: Visibility
}

/** Filters by the name of what started an execution, or by its reference. */
export const referencedNames = ['rule', 'trigger', 'trigger_type'] as const

export interface PathFilter {
  column: PathColumn | SnapshotPart
  path: string
  value: string
  /** Name of a parameter. Executions with a secret in it do not match: a caller could guess values. */
  unlessSecret?: string
}

/** The executions that a caller can see; an absent attribute does not limit them. */
export interface Visibility {
  /** Executions of these actions. */
  actionRefs?: readonly string[]
  /** Executions of this acting user. */
  user?: string
}

/** Columns that hold what `filter` can look into. */
export type PathColumn = 'parameters' | 'context' | 'liveaction' | 'result'

/** Parts of a record that are stored once for many executions. */
export const snapshotParts = ['action', 'runner', 'rule', 'trigger', 'trigger_type', 'trigger_instance'] as const
export type SnapshotPart = (typeof snapshotParts)[number]

export type SortColumn =
  'id' | 'status' | 'action_ref' | 'user' | 'runner' | 'parent' | 'rule' | 'trigger' | 'trigger_type'

export interface Sort {
  column: SortColumn
  direction: 'asc' | 'desc'
}

export interface ExecutionPage {
  filter: ExecutionFilter
  sort: Sort[]
  /** Only in the order of ids. */
  place?: Place
  limit: number | undefined
  offset: number
}

export type CountDimension = Exclude<keyof ExecutionCountTable, 'count' | 'child'>
