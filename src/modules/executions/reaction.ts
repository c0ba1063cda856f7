/** What a change of status brings about in other modules, in the same unit. */
import type { Metrics } from '../../core/metrics.ts'
import { merge } from '../../db/index.ts'
import type { ExecutionPolicies, PlanReaction } from './ports.ts'
import type { ParameterSecrets } from './secrets/parameters.ts'
import { isFinal } from './state.ts'
import type { Execution } from './types.ts'

export function createExecutionReaction(deps: {
  readonly planReaction: PlanReaction
  policies: Pick<ExecutionPolicies, 'planRetry'>
  parameters: Pick<ParameterSecrets, 'masked'>
  metrics: Metrics
}): (execution: Execution) => ReturnType<PlanReaction> {
  return (execution) => {
    const started = performance.now()
    const reaction = deps.planReaction(execution, deps.parameters.masked(execution))
    if (!isFinal(execution.status)) return reaction
    const reacted = performance.now()
    const retry = deps.policies.planRetry(execution)
    deps.metrics.time('execution.reaction', {}, reacted - started)
    deps.metrics.time('execution.policies', {}, performance.now() - reacted)
    return retry === undefined ? reaction : merge(reaction, retry)
  }
}
