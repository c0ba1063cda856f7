/** Explains a run to whoever may view its execution. */
import type { Executions } from '../../executions/index.ts'
import type { Engine } from '../engine/engine.ts'
import { explain, type ActionFacts } from '../explain.ts'
import type { WorkflowHeader, WorkflowStore } from '../store.ts'
import type { WorkflowExplanation } from '../types.ts'

/** @param task only tasks of this name; undefined: all @returns undefined: the run has been removed meanwhile */
export type ExplainRun = (header: WorkflowHeader, task: string | undefined) => Promise<WorkflowExplanation | undefined>

/** Passes, failures and waits in an answer, of each. */
const MAX_EXPLAINED = 100

export function createExplainRun(deps: {
  engine: Pick<Engine, 'view'>
  executions: Pick<Executions, 'find' | 'resultWithSecrets' | 'templatesOf'>
  store: Pick<WorkflowStore, 'latestAction'>
}): ExplainRun {
  const { engine, executions, store } = deps

  function actionOf(workflow: string, instance: number, item: number | undefined): ActionFacts | undefined {
    const action = store.latestAction(workflow, instance, item ?? null)
    if (action === undefined) return undefined
    const { execution } = action
    const found = executions.find(execution)
    if (found === undefined) return undefined
    const { status } = found
    return { execution, status, delayedUntil: status === 'delayed' ? found.due_timestamp : null }
  }

  return async ({ id }, task) => {
    const seen = await engine.view(id, (run, outside, execution) => {
      const read: unknown[] = []
      const world = { outside, workflow: execution, templates: () => executions.templatesOf(execution, read) }
      const explanation = explain({
        definition: run.program.graph,
        state: run.state,
        review: (part) => run.program.review(run.state, part, world),
        // Masked, as all of the answer is in the end.
        input: execution.parameters,
        actionOf: (instance, item) => actionOf(id, instance, item),
        task,
        limit: MAX_EXPLAINED,
      })
      run.addSecrets(read)
      // What the output schema of the workflow marks may have been published before.
      run.addSecrets(executions.resultWithSecrets(execution.id).secrets)
      return { run, explanation }
    })
    if (seen === undefined) return undefined
    // Only now are all secrets known that expressions have read.
    const masked = await seen.run.secretValues?.maskLater(seen.explanation)
    return (masked as WorkflowExplanation | undefined) ?? seen.explanation // a copy of it
  }
}
