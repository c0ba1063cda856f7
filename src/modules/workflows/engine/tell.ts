/** Changes executions in the commit of what caused it, and tells the workflows that they belong to. */
import type { Executions } from '../../executions/index.ts'
import type { Execution, ExecutionStatus } from '../../executions/types.ts'
import type { WorkflowAction, WorkflowStore } from '../store.ts'
import type { WorkflowCommit } from './commit.ts'
import { newsOfAction } from './news.ts'
import type { Run } from './run.ts'

export interface Tell {
  /** That of the workflow, as the commit leaves it. */
  readonly executionOf: (commit: WorkflowCommit, run: Run) => Execution
  /** Changes an execution, and tells the workflow that it belongs to. @returns undefined: an event does not fit its status */
  readonly change: (
    commit: WorkflowCommit,
    execution: Execution,
    ...events: Parameters<Executions['planChange']>[1][]
  ) => Execution | undefined
  /** Tells the workflow of an action what has become of it. */
  readonly tellOf: (commit: WorkflowCommit, action: WorkflowAction, before: ExecutionStatus, after: Execution) => void
}

export function createTell(deps: {
  executions: Pick<Executions, 'find' | 'planChange' | 'resultWithSecrets'>
  store: Pick<WorkflowStore, 'actionOf'>
}): Tell {
  const { executions, store } = deps

  function executionOf(commit: WorkflowCommit, run: Run): Execution {
    const { execution: id } = run.header
    const execution = commit.execution(id) ?? executions.find(id)
    if (execution === undefined) throw new Error(`the workflow ${run.header.id} has no execution`)
    return execution
  }

  function tellOf(commit: WorkflowCommit, action: WorkflowAction, before: ExecutionStatus, after: Execution): void {
    const secrets: unknown[] = []
    const result = (): unknown => {
      const { value, secrets: found } = executions.resultWithSecrets(after)
      secrets.push(...found)
      const item = action.item ?? undefined
      commit.putResult(action.workflow, { instance: action.instance, item }, { value, size: after.result_size ?? 0 })
      return value
    }
    for (const event of newsOfAction(before, after, action, result))
      commit.tell(action.workflow, event, { secrets, child: after })
  }

  function change(
    commit: WorkflowCommit,
    execution: Execution,
    ...events: Parameters<Executions['planChange']>[1][]
  ): Execution | undefined {
    const planned = executions.planChange(execution, ...events)
    if (planned === undefined) return undefined
    commit.add(planned.unit)
    commit.putExecution(planned.execution)
    const action = execution.parent === null ? undefined : store.actionOf(execution.id)
    if (action !== undefined) tellOf(commit, action, execution.status, planned.execution)
    return planned.execution
  }

  return { executionOf, change, tellOf }
}
