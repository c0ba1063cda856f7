/** The next attempt of what a rule with `retry` has started. */
import type { Unit } from '../../db/index.ts'
import { isAppError } from '../../core/errors.ts'
import type { Log } from '../../lib/log/index.ts'
import { attemptOf } from './attempts.ts'
import type { ExecutionService } from './service.ts'
import type { Execution, RetryRules } from './types.ts'

export interface RuleRetry {
  /** Whether the rule decides about retries, and no policy. */
  decides(execution: Execution): boolean
  /** Plans the next attempt of an ended execution, in the same unit. Never throws. */
  planRetry(ended: Execution): Unit | undefined
}

export function createRuleRetry(deps: {
  readonly planRetry: ExecutionService['planRetry']
  log: Log
  /** From 0 to 1. */
  readonly random: () => number
}): RuleRetry {
  const { log } = deps
  return {
    decides: ({ liveaction: { running } }) => running?.retry !== undefined,
    planRetry(ended) {
      const { running } = ended.liveaction
      const seconds = running?.retry && delayOf(running.retry, ended, deps.random)
      if (seconds === undefined) return undefined
      const about = { execution_id: ended.id, action: ended.action_ref, rule: ended.origin?.rule.ref }
      try {
        const again = { context: {}, delayMs: Math.round(seconds * 1000) }
        return deps.planRetry(ended, again, { rule: ended.origin?.rule.ref, retried_execution_id: ended.id }).unit
      } catch (error) {
        if (isAppError(error)) {
          log.warning('rule.retry_ended', `Could not retry the execution of a rule: ${error.message}`, about)
        } else {
          log.error('rule.not_retried', 'Could not retry the execution of a rule', { ...about, error })
        }
        return undefined
      }
    },
  }
}

/** @returns seconds until the next attempt; undefined: there is none */
export function delayOf(
  retry: RetryRules,
  ended: Pick<Execution, 'status' | 'log' | 'liveaction' | 'context'>,
  random: () => number,
): number | undefined {
  if (!retry.on.some((status) => status === ended.status)) return undefined
  // Refused, or settled by a user, before the first attempt.
  if (!ended.log.some(({ status }) => status === 'scheduled')) return undefined
  const attempt = attemptOf(ended)
  if (attempt >= retry.attempts) return undefined
  // No more than 100 attempts: the power is finite.
  const grown = retry.backoff === 'exponential' ? retry.delay * 2 ** (attempt - 1) : retry.delay
  const whole = Math.min(grown, retry.max_delay)
  return retry.jitter ? whole * (0.5 + random() / 2) : whole
}
