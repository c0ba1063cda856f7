/** What a change of status brings about in other modules, in the same unit. */
import type { Metrics } from '../../core/metrics.ts'
import { merge } from '../../db/index.ts'
import { attemptOf } from './attempts.ts'
import type {
  ExecutionJobs,
  ExecutionNotifications,
  ExecutionPolicies,
  ExecutionReaction,
  PlanReaction,
} from './ports.ts'
import type { RuleRetry } from './rule-retry.ts'
import type { ParameterSecrets } from './secrets/parameters.ts'
import { isFinal } from './state.ts'
import type { Execution } from './types.ts'

export function createExecutionReaction(deps: {
  readonly planReaction: PlanReaction
  policies: Pick<ExecutionPolicies, 'planRetry'>
  jobs: ExecutionJobs
  ruleRetry: RuleRetry
  notifications: ExecutionNotifications
  parameters: Pick<ParameterSecrets, 'masked'>
  metrics: Metrics
}): ExecutionReaction {
  const retriesOf = (execution: Execution): Pick<ExecutionPolicies, 'planRetry'> =>
    deps.ruleRetry.decides(execution) ? deps.ruleRetry : deps.policies
  return (execution) => {
    const started = performance.now()
    const ended = isFinal(execution.status)
    // First, because the reactions say whether another attempt follows.
    const retry = ended ? retriesOf(execution).planRetry(execution) : undefined
    const retried = performance.now()
    const attempt = { attempt: attemptOf(execution), willRetry: retry !== undefined }
    const reaction = deps.planReaction(execution, deps.parameters.masked(execution), attempt)
    if (!ended) return reaction
    deps.metrics.time('execution.policies', {}, retried - started)
    deps.metrics.time('execution.reaction', {}, performance.now() - retried)
    const notified = deps.notifications.planEnd(execution, attempt)
    const job = deps.jobs.planEnd(execution, attempt)
    const isAlone = retry === undefined && notified === undefined && job === undefined
    return isAlone ? reaction : merge(reaction, notified, job, retry)
  }
}
