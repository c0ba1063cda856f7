/** What is measured of workflows (contract 10, 10.4). */
import type { Bus } from '../../bus/index.ts'
import type { Metrics } from '../../core/metrics.ts'
import type { Gauge } from '../../core/module.ts'
import { isWorkflowRunner } from '../../runners/index.ts'
import { isFinal } from '../executions/index.ts'
import type { WorkflowStore } from './store.ts'

/** Measures each workflow, and each execution of a task, when it has ended. */
export function measureWorkflows(bus: Bus, metrics: Metrics): void {
  bus.subscribe('execution.updated', ({ execution }) => {
    const { status, elapsed_seconds: elapsed, context, runner } = execution
    if (!isFinal(status) || elapsed === null) return
    if (isWorkflowRunner(runner.name)) metrics.time('workflow.run', { status }, elapsed * 1000)
    // Only the server writes these parts of a context.
    if ('orquesta' in context || 'chain' in context) metrics.time('workflow.action', { status }, elapsed * 1000)
  })
}

export function createGauges(store: Pick<WorkflowStore, 'countOpen'>): Gauge[] {
  return [{ key: 'workflows.open', about: 'Workflows that have started and not ended.', read: () => store.countOpen() }]
}
