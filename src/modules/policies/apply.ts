/** Applies the policies of an action to its executions. A policy that fails is logged and ignored. */
import type { Unit } from '../../db/index.ts'
import { isAppError } from '../../core/errors.ts'
import type { Log } from '../../lib/log/index.ts'
import { Lru } from '../../lib/cache/index.ts'
import { isObject } from '../../lib/schema/index.ts'
import type { Executions } from '../executions/index.ts'
import type { Execution } from '../executions/types.ts'
import type { AppliedPolicy } from './policy-type.ts'
import { findPolicyType } from './policy-types.ts'
import type { PolicyStore } from './store.ts'
import type { ExecutionPolicies, Limit } from '../executions/ports.ts'

const MAX_CACHED = 2_000

interface Applied extends AppliedPolicy {
  ref: string
}

export interface Applying extends ExecutionPolicies {
  /** Drops the cached policies of an action. */
  forget(actionRef: string): void
}

export function createApplying(deps: {
  store: Pick<PolicyStore, 'enabledOf'>
  executions: Pick<Executions, 'planRetry'>
  log: Log
}): Applying {
  const { store, executions, log } = deps
  const byAction = new Lru<string, readonly Applied[]>(MAX_CACHED)

  function appliedTo(actionRef: string): readonly Applied[] {
    let applied = byAction.get(actionRef)
    if (applied === undefined) {
      applied = store.enabledOf(actionRef).flatMap((policy) => {
        const type = findPolicyType(policy.policy_type)
        if (type !== undefined) return [{ ref: policy.ref, ...type.apply(policy) }]
        log.error('policy.not_applied', 'A policy has an unknown type', { policy: policy.ref })
        return []
      })
      byAction.set(actionRef, applied)
    }
    return applied
  }

  function notApplied({ id, action_ref: action }: Execution, error: unknown, policy?: string): void {
    log.error('policy.not_applied', 'Could not apply a policy; the execution continues', {
      execution_id: id,
      action,
      ...(policy === undefined ? {} : { policy }),
      error,
    })
  }

  function limitsOf(execution: Execution, open: () => Record<string, unknown>): readonly Limit[] {
    const limits: Limit[] = []
    for (const policy of appliedTo(execution.action_ref)) {
      try {
        const limit = policy.limitOf?.(execution, open)
        if (limit !== undefined) limits.push(limit)
      } catch (error) {
        notApplied(execution, error, policy.ref)
      }
    }
    return limits
  }

  function planRetry(ended: Execution): Unit | undefined {
    if (ended.status !== 'failed' && ended.status !== 'timeout') return undefined
    // The creator of a child execution decides about retries.
    if (ended.parent !== null || ended.context['parent'] !== undefined) return undefined
    // Refused, or settled by a user, before the first attempt.
    if (!ended.log.some(({ status }) => status === 'scheduled')) return undefined
    const count = retryCountOf(ended)
    for (const policy of appliedTo(ended.action_ref)) {
      const retry = policy.retryOf?.(ended, count)
      if (retry === undefined) continue
      const { ref } = policy
      const applied = { applied_policy: ref, retry_count: count + 1, retried_liveaction_id: ended.liveaction_id }
      const again = {
        context: { policies: { ...policiesOf(ended), retry: applied } },
        delayMs: Math.round(retry.delaySeconds * 1000),
      }
      try {
        return executions.planRetry(ended, again, { policy: ref, retried_execution_id: ended.id }).unit
      } catch (error) {
        if (!isAppError(error)) throw error
        const about = { execution_id: ended.id, action: ended.action_ref, policy: ref }
        log.warning('policy.retry_ended', `Could not retry an execution: ${error.message}`, about)
        return undefined
      }
    }
    return undefined
  }

  return {
    forget: (actionRef) => byAction.delete(actionRef),
    limitsOf(execution, open) {
      try {
        return limitsOf(execution, open)
      } catch (error) {
        notApplied(execution, error)
        return []
      }
    },
    planRetry(ended) {
      try {
        return planRetry(ended)
      } catch (error) {
        notApplied(ended, error)
        return undefined
      }
    },
  }
}

/** Only the server writes this context. */
function policiesOf({ context }: Execution): Record<string, unknown> {
  const { policies } = context
  return isObject(policies) ? policies : {}
}

function retryCountOf(execution: Execution): number {
  const { retry } = policiesOf(execution)
  const count = isObject(retry) ? retry['retry_count'] : 0
  return typeof count === 'number' && count > 0 ? count : 0
}
