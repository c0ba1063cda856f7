/** The statuses of workflows and tasks, and what changes them, as tables. */

/** `timeout`: the last node of a chain timed out. */
export type WorkflowStatus =
  | 'requested'
  | 'running'
  | 'pausing'
  | 'paused'
  | 'resuming'
  | 'canceling'
  | 'succeeded'
  | 'failed'
  | 'timeout'
  | 'canceled'

/** `staged`: waits to start. `retrying`: waits for its next attempt. `pending`: waits for a person. */
export type TaskStatus =
  | 'staged'
  | 'running'
  | 'retrying'
  | 'pending'
  | 'pausing'
  | 'paused'
  | 'canceling'
  | 'succeeded'
  | 'failed'
  | 'canceled'

/** How an action can end. */
export const endStatuses = ['succeeded', 'failed', 'timeout', 'abandoned', 'canceled'] as const
export type EndStatus = (typeof endStatuses)[number]

/** What a workflow hears: of its tasks, or of a user. */
export type WorkflowEvent =
  | 'task started'
  /** succeeded, or failed and something follows the failure */
  | 'task ended'
  | 'task failed'
  /** `do: fail`, once the task before it has ended */
  | 'fail'
  | 'task canceled'
  | 'task pending'
  | 'task paused'
  | 'pause'
  | 'resume'
  | 'cancel'

/**
 * What is left to do. `active`: tasks run. Otherwise `held`: tasks wait for a person or a paused child; otherwise `open`:
 * tasks may start; otherwise `done`.
 */
export type Remainder = 'active' | 'held' | 'open' | 'done'

type Next = WorkflowStatus | Readonly<Record<Remainder, WorkflowStatus>>

const next = (active: WorkflowStatus, held: WorkflowStatus, open = held, done = open): Next => ({
  active,
  held,
  open,
  done,
})
const stop = next('pausing', 'paused')
const cancel = next('canceling', 'canceled')

/** Status → event → next status. An event that a status does not list is refused; after the end all are. */
const workflowTable: Readonly<Record<WorkflowStatus, Readonly<Partial<Record<WorkflowEvent, Next>>>>> = {
  requested: {
    'task started': 'running',
    'task ended': next('running', 'paused', 'running', 'succeeded'),
    'task failed': 'failed',
    fail: 'failed',
    pause: 'paused',
    cancel: 'canceled',
  },
  running: {
    'task started': 'running',
    'task ended': next('running', 'paused', 'running', 'succeeded'),
    'task failed': 'failed',
    fail: 'failed',
    'task canceled': cancel,
    'task pending': stop,
    'task paused': next('running', 'paused'),
    pause: stop,
    resume: 'running',
    cancel,
  },
  pausing: {
    'task started': 'pausing',
    'task ended': stop,
    'task failed': 'failed',
    fail: 'failed',
    'task canceled': cancel,
    'task pending': stop,
    'task paused': stop,
    pause: 'pausing',
    resume: 'resuming',
    cancel,
  },
  paused: {
    'task started': 'running',
    'task ended': 'paused',
    'task failed': 'failed',
    // As in the original engine: a workflow that is asked to pause lets the branches go on that `do: fail` leaves open.
    fail: 'paused',
    'task canceled': cancel,
    'task pending': 'paused',
    'task paused': 'paused',
    pause: 'paused',
    resume: next('resuming', 'resuming', 'resuming', 'succeeded'),
    cancel,
  },
  resuming: {
    'task started': 'running',
    'task ended': next('running', 'paused', 'running', 'succeeded'),
    'task failed': 'failed',
    fail: 'failed',
    'task canceled': cancel,
    'task pending': stop,
    'task paused': next('running', 'paused'),
    pause: stop,
    resume: 'resuming',
    cancel,
  },
  canceling: {
    'task started': 'canceling',
    'task ended': cancel,
    'task failed': cancel,
    fail: cancel,
    'task canceled': cancel,
    'task pending': cancel,
    'task paused': cancel,
    cancel: 'canceling',
  },
  // Told by the tasks that end with it: `do: fail` beside a transition that leads nowhere.
  succeeded: { fail: 'failed' },
  failed: {},
  timeout: {},
  canceled: {},
}

/** undefined: the status does not admit the event */
export function nextWorkflowStatus(
  status: WorkflowStatus,
  event: WorkflowEvent,
  remainder: Remainder,
): WorkflowStatus | undefined {
  const found = workflowTable[status][event]
  return typeof found === 'object' ? found[remainder] : found
}

const completed: ReadonlySet<string> = new Set(['succeeded', 'failed', 'timeout', 'canceled'])
export const isCompleted = (status: WorkflowStatus | TaskStatus): boolean => completed.has(status)

/** Tasks with these run: a workflow that pauses or is canceled waits for them. */
const active: ReadonlySet<TaskStatus> = new Set(['running', 'pausing', 'canceling'] as const)
export const isActive = (status: TaskStatus): boolean => active.has(status)

const held: ReadonlySet<TaskStatus> = new Set(['pending', 'paused'] as const)
export const isHeld = (status: TaskStatus): boolean => held.has(status)

/** A task whose action has ended. A task does not tell a time limit from another failure. */
export const endedTaskStatus: Readonly<Record<EndStatus, 'succeeded' | 'failed' | 'canceled'>> = {
  succeeded: 'succeeded',
  failed: 'failed',
  timeout: 'failed',
  abandoned: 'failed',
  canceled: 'canceled',
}

/** What is left of the items of a task of which none runs; the first that applies. `open`: items that have not started. */
export type ItemRemainder = 'canceled' | 'held' | 'failed' | 'open' | 'done'

/** Remainder → status of the task; with what a user has asked for. */
export const itemsTaskStatus: Readonly<
  Record<'pause' | 'cancel' | 'none', Readonly<Record<ItemRemainder, TaskStatus>>>
> = {
  none: { canceled: 'canceled', held: 'paused', failed: 'failed', open: 'running', done: 'succeeded' },
  pause: { canceled: 'canceled', held: 'paused', failed: 'failed', open: 'paused', done: 'succeeded' },
  cancel: { canceled: 'canceled', held: 'canceled', failed: 'canceled', open: 'canceled', done: 'succeeded' },
}
