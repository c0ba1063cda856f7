/** The endpoints of a workflow that runs, or has run. */
import { noExecutions, notAWorkflow, queryInvalid, resourceNotFound } from '../../../core/errors.ts'
import { isId } from '../../../core/ids.ts'
import { executionResource } from '../../../core/permissions.ts'
import { route, type Rights, type Route } from '../../../http/index.ts'
import { isWorkflowRunner } from '../../../runners/index.ts'
import type { Executions } from '../../executions/index.ts'
import type { Execution } from '../../executions/types.ts'
import type { Inspector } from '../inspection/inspector.ts'
import type { WorkflowHeader, WorkflowStore } from '../store.ts'
import { WorkflowExplanation, WorkflowGraph, WorkflowRun } from '../types.ts'
import type { ExplainRun } from './explanation.ts'
import type { Progress } from './progress.ts'

const DEFAULT_TASKS = 50
const MAX_TASKS = 200

export function createRunRoutes({
  executions,
  store,
  progress,
  inspector,
  explain,
}: {
  executions: Pick<Executions, 'find' | 'last'>
  store: Pick<WorkflowStore, 'find' | 'ofExecution' | 'definitionText'>
  progress: Progress
  inspector: Pick<Inspector, 'graph'>
  readonly explain: ExplainRun
}): Route[] {
  /** `last` is the workflow that the last execution belongs to. @throws NO_EXECUTIONS, RESOURCE_NOT_FOUND */
  const executionOf = (id: string): Execution => {
    const found = id === 'last' ? lastWorkflow() : isId(id) ? executions.find(id) : undefined
    if (found !== undefined) return found
    throw id === 'last' ? noExecutions() : resourceNotFound(id)
  }

  /** The last execution, or the closest workflow above it: the last execution of a workflow is one of its tasks. */
  function lastWorkflow(): Execution | undefined {
    const last = executions.last()
    for (
      let found = last;
      found !== undefined;
      found = found.parent === null ? undefined : executions.find(found.parent)
    )
      if (isWorkflowRunner(found.runner.name)) return found
    return last
  }

  /** The workflow of an execution; of one that a re-run has taken its tasks from, too. @throws NOT_A_WORKFLOW */
  function workflowOf(execution: Execution): WorkflowHeader {
    const { workflow_execution: id } = execution.context // only the server sets it
    const header = store.ofExecution(execution.id) ?? (typeof id === 'string' ? store.find(id) : undefined)
    if (header === undefined) throw notAWorkflow(execution.id, whyNone(execution))
    return header
  }

  /** The workflow of an execution that the caller may see as a whole. @throws NOT_A_WORKFLOW, PERMISSION_DENIED */
  function visibleWorkflow(asked: Execution, rights: Rights): WorkflowHeader {
    const header = workflowOf(asked)
    const running = header.execution === asked.id ? asked : executions.find(header.execution)
    // A re-run may belong to somebody else.
    if (running !== undefined) rights.require('execution_view', executionResource(running))
    return header
  }

  return [
    route({
      surface: 'api',
      method: 'get',
      path: '/executions/:id/workflow',
      permission: 'execution_view',
      resource: ({ params }) => executionResource(executionOf(params.id)),
      summary: 'Shows how far a workflow has come: its status, counts of its tasks, and a page of them.',
      query: {
        after: { type: 'integer', description: 'Only tasks after this position. Default: from the first one.' },
        limit: {
          type: 'integer',
          description: `Most tasks of the page. Default: ${DEFAULT_TASKS}; maximum: ${MAX_TASKS}.`,
        },
      },
      response: WorkflowRun,
      failures: [400, 404],
      handler({ params, query, rights }) {
        const header = visibleWorkflow(executionOf(params.id), rights)
        const { after = -1, limit = DEFAULT_TASKS } = query
        if (limit < 1 || limit > MAX_TASKS)
          throw queryInvalid(`Limit, "${limit}" specified, must be from 1 to ${MAX_TASKS}.`)
        return progress.of(header, after, limit)
      },
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/executions/:id/workflow/graph',
      permission: 'execution_view',
      resource: ({ params }) => executionResource(executionOf(params.id)),
      summary: 'The graph of the definition that a workflow runs: its text when the workflow began.',
      response: WorkflowGraph,
      failures: [400, 404, 503],
      async handler({ params, rights }) {
        const { definition } = visibleWorkflow(executionOf(params.id), rights)
        return inspector.graph(store.definitionText(definition) ?? '')
      },
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/executions/:id/workflow/explain',
      permission: 'execution_view',
      resource: ({ params }) => executionResource(executionOf(params.id)),
      summary:
        'Explains a workflow: for each task that has ended, its transitions with the values of their conditions and what they read; what failed and what that saw; what the workflow waits for. Secrets are masked.',
      query: { task: { type: 'string', description: 'Only the task of this name.' } },
      response: WorkflowExplanation,
      failures: [404],
      async handler({ params, query, rights }) {
        const header = visibleWorkflow(executionOf(params.id), rights)
        const explanation = await explain(header, query.task)
        if (explanation === undefined) throw resourceNotFound(params.id)
        return explanation
      },
    }),
  ]
}

function whyNone({ action, runner, status, end_timestamp: end, context }: Execution): string {
  if (!isWorkflowRunner(runner.name)) return `its action ${action.ref} has the runner ${runner.name}.`
  if (context['workflow_execution'] !== undefined) return 'its workflow has been removed.'
  return end === null
    ? `its workflow has not started yet: it is ${status}.`
    : `its workflow has never started. The result of the execution says why.`
}
