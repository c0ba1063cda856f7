export { broken, failed } from './broken.ts'
export { conduct, createMemory, type Memory, type World } from './conduct.ts'
export { ContextCache, variablesOf, type Variables } from './contexts.ts'
export { ACTION_FAILED } from './end.ts'
export { addRows, apply, Draft, type Changes, type StoredRows } from './draft.ts'
export { arrivalsOf, joinProgress } from './joins.ts'
export { review, type Part } from './review.ts'
export {
  emptyState,
  errorKey,
  type Arrival,
  type ContextRow,
  type ErrorEntry,
  type ErrorRow,
  type InstanceRow,
  type ItemCounts,
  type ItemRow,
  type State,
  type WorkflowRow,
} from './state.ts'
export {
  endStatuses,
  isActive,
  isCompleted,
  isHeld,
  type EndStatus,
  type TaskStatus,
  type WorkflowStatus,
} from './status.ts'
export {
  defaultLimits,
  endOf,
  type Command,
  type Evaluate,
  type Event,
  type Limits,
  type LogEntry,
  type Outcome,
  type Outside,
  type StartCommand,
} from './types.ts'
