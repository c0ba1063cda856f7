/** Requests on their way from a workflow to its children, and what the end of a workflow takes back. */
import type { Executions } from '../../executions/index.ts'
import type { Execution, ExecutionStatus } from '../../executions/types.ts'
import type { Event } from '../conductor/index.ts'
import type { CascadeRequest, WorkflowStore } from '../store.ts'
import type { WorkflowCommit } from './commit.ts'
import { newsOfWorkflow } from './news.ts'
import { openChildrenOf } from './parents.ts'
import type { Run } from './run.ts'
import type { Tell } from './tell.ts'

/** Children that get a request in the commit of their parent; the others follow in further ones. */
const CHILDREN_PER_COMMIT = 50
/** Result of an inquiry that svc takes back. */
export const WITHDRAWN = 'Its workflow has ended: nobody needs the response any more.'

export interface Cascades {
  /** It takes the place of an earlier request that has not come to all children yet. */
  begin(commit: WorkflowCommit, run: Run, request: CascadeRequest): void
  /** The request that is on its way to the children of a workflow reaches the next of them. */
  readonly goOn: (commit: WorkflowCommit, run: Run) => void
  /** An action that still ran when the workflow ended has become an inquiry. */
  withdrawLate(commit: WorkflowCommit, run: Run, event: Extract<Event, { kind: 'pending' }>): void
}

export function createCascades(deps: {
  executions: Pick<Executions, 'openChildren'>
  store: Pick<WorkflowStore, 'actionOf' | 'latestAction' | 'ofExecution' | 'putCascade'>
  tell: Tell
  /** Another commit, after this one. */
  readonly next: (commit: WorkflowCommit, run: Run, plan: (next: WorkflowCommit, run: Run) => void) => void
}): Cascades {
  const { executions, store, tell } = deps
  const { change, executionOf } = tell

  function goOn(commit: WorkflowCommit, run: Run): void {
    const { cascade: request, cascade_after: after } = run.header
    if (request !== null) reach(commit, run, request, after)
  }

  /** The row says what the next commit owes, so that the end of the server does not lose it. */
  function reach(commit: WorkflowCommit, run: Run, kind: CascadeRequest, afterId: string): void {
    const { cascade: before } = run.header
    const children = openChildrenOf(executions, run.header, afterId, CHILDREN_PER_COMMIT)
    const last = children.length < CHILDREN_PER_COMMIT ? undefined : children.at(-1)
    if (last !== undefined || before !== null) {
      commit.touch(run)
      const noted = store.putCascade(run.header, last === undefined ? null : kind, last?.id ?? '')
      commit.add({ steps: noted.steps, facts: [] })
      run.header = noted.header
    }
    const execution = executionOf(commit, run)
    const isLate = execution.status === 'timeout'
    for (const seen of children) {
      const child = commit.execution(seen.id) ?? seen
      if (kind === 'withdraw') withdraw(commit, run, child)
      else pass(commit, child, kind, whoAsked(execution, kind), isLate)
    }
    if (last !== undefined) deps.next(commit, run, goOn)
  }

  /** @param isLate the workflow has taken too long, and so have those in it: running actions are stopped as well */
  function pass(
    commit: WorkflowCommit,
    child: Execution,
    kind: Exclude<CascadeRequest, 'withdraw'>,
    user: string,
    isLate: boolean,
  ): void {
    const own = store.ofExecution(child.id)
    if (own !== undefined) {
      const changed = change(commit, child, isLate ? { kind: 'expire' } : { kind, user })
      const event = changed === undefined ? undefined : newsOfWorkflow(changed)
      if (event !== undefined) commit.tell(own.id, event)
      return
    }
    if (kind !== 'cancel') return
    if (child.status === 'pending') {
      const result = { message: 'Action canceled by user.', user }
      change(commit, child, { kind: 'settle', status: 'canceled', result })
    } else if (waits.has(child.status)) {
      change(commit, child, { kind: 'cancel', user }, { kind: 'exit', status: 'canceled', result: {} })
    } else if (isLate) {
      change(commit, child, { kind: 'cancel', user })
    }
    // Others run to their end.
  }

  function withdrawLate(
    commit: WorkflowCommit,
    run: Run,
    { instance, item }: Extract<Event, { kind: 'pending' }>,
  ): void {
    const action = store.latestAction(run.header.id, instance, item ?? null)
    const child = action === undefined ? undefined : commit.execution(action.execution)
    if (child !== undefined) withdraw(commit, run, child)
  }

  /**
   * A failed workflow needs no response any more, unless the inquiry cleans up. Workflows in it that have stopped because it was
   * asked to pause would wait for ever; others go on to their end.
   */
  function withdraw(commit: WorkflowCommit, run: Run, child: Execution): void {
    if (child.status === 'pending') {
      const action = store.actionOf(child.id)
      const isCleanup = action !== undefined && run.state.instances.get(action.instance)?.isCleanup === true
      if (isCleanup) return
      change(commit, child, { kind: 'settle', status: 'canceled', result: { message: WITHDRAWN } })
      return
    }
    const own = store.ofExecution(child.id)
    if (own === undefined || run.state.workflow.request !== 'pause' || !isHalted.has(child.status)) return
    change(commit, child, { kind: 'cancel', user: whoAsked(executionOf(commit, run), 'pause') })
    commit.tell(own.id, { kind: 'cancel' })
  }

  return { begin: (commit, run, request) => reach(commit, run, request, ''), goOn, withdrawLate }
}

export const isHalted: ReadonlySet<ExecutionStatus> = new Set<ExecutionStatus>(['pausing', 'paused', 'resuming'])
const waits: ReadonlySet<ExecutionStatus> = new Set<ExecutionStatus>(['requested', 'delayed', 'scheduled'])

const doneBy = { cancel: 'cancelled_by', pause: 'paused_by', resume: 'resumed_by' } as const
function whoAsked({ context, user }: Execution, request: keyof typeof doneBy): string {
  const by = context[doneBy[request]]
  return typeof by === 'string' ? by : user
}
