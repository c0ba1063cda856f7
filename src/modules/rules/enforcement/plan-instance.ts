/** Plans one unit per trigger instance: its enforcements, their executions and its final status. */
import { merge, type Unit } from '../../../db/index.ts'
import { isStorageFailure } from '../../../core/errors.ts'
import type { Log } from '../../../lib/log/index.ts'
import { createSecretValues } from '../../../lib/secrets/index.ts'
import type { Metrics } from '../../../core/metrics.ts'
import { nowMicros } from '../../../core/time.ts'
import type { Triggers } from '../../triggers/index.ts'
import type { QueuedInstance, TriggerInstance } from '../../triggers/types.ts'
import { Lru } from '../../../lib/cache/index.ts'
import type { Rule } from '../types.ts'
import type { Bindings } from './bindings.ts'
import { createParameterBudget, type Enforcer, type PlannedEnforcement } from './enforce.ts'
import { evaluateRules, type ViewsFor } from './evaluate.ts'

/** Rules whose warning svc remembers. */
const MAX_WARNED = 1000

export interface InstancePlanner {
  /**
   * Undefined: the instance is no longer pending, or the engine has stopped and the next start processes it.
   *
   * @throws STORAGE_FAILED
   */
  plan(queued: QueuedInstance, run: PlanRun): Promise<Unit | undefined>
  /** Sets an instance to `processing_failed` after an unexpected error, so that the queue continues. */
  planFailed(queued: QueuedInstance, error: unknown): Unit
}

export interface PlanRun {
  /** Awaited after each rule; yields to the event loop. */
  readonly betweenRules: () => Promise<void>
  readonly isActive: () => boolean
  /** Resolves when what was planned before is committed, or stays pending because the engine stops. */
  readonly settled: () => Promise<void>
}

export function createInstancePlanner(deps: {
  bindings: Bindings
  enforcer: Enforcer
  triggers: Triggers
  readonly viewsFor: ViewsFor
  log: Log
  metrics: Metrics
}): InstancePlanner {
  const { bindings, enforcer, triggers, viewsFor, log, metrics } = deps
  const warned = new Lru<string, true>(MAX_WARNED)

  async function plan(queued: QueuedInstance, run: PlanRun): Promise<Unit | undefined> {
    try {
      return await planEnforcements(queued, run)
    } catch (error) {
      if (isStorageFailure(error)) throw error
      return planFailed(queued, error)
    }
  }

  async function planEnforcements(
    { id, trigger_id: triggerId }: QueuedInstance,
    { betweenRules, isActive, settled }: PlanRun,
  ): Promise<Unit | undefined> {
    const stored = triggers.findInstance(id)
    if (stored === undefined || stored.status !== 'pending') return undefined
    const instance = triggers.openInstance(stored)
    if (triggers.find(triggerId) === undefined) {
      log.error('rules.trigger_missing', 'Dropped a trigger instance: its trigger is no longer registered', {
        trigger_instance_id: id,
        trigger: instance.trigger,
        trace_id: instance.trace_id,
      })
      return planEnd(instance, 'processing_failed', [])
    }
    const begun = performance.now()
    const viewOf = viewsFor(instance)
    const planned: PlannedEnforcement[] = []
    const budget = createParameterBudget()
    const context = { now: nowMicros(), viewOf }
    let lookedAt = begun
    for (const { compiled, verdict } of evaluateRules(bindings.of(triggerId), context)) {
      if (verdict.reduced !== undefined) warnOfReduced(compiled.rule, verdict.reduced)
      if (verdict.verdict === 'matched') {
        // Rows say which runs have not ended, those of the events before too.
        if (compiled.running?.rules?.overlap !== undefined) await settled()
        if (!isActive()) return undefined
        planned.push(await enforcer.plan(compiled, instance, viewOf(compiled.rule), budget))
      } else if (verdict.verdict === 'failed') {
        planned.push(
          enforcer.planFailure(
            compiled.rule,
            instance,
            createSecretValues(instance.secrets)?.maskText(verdict.reason ?? '') ?? verdict.reason ?? '',
          ),
        )
      }
      const now = performance.now()
      metrics.time('rule.processed', { rule: compiled.rule.ref }, now - lookedAt)
      if (verdict.verdict === 'matched') metrics.count('rule.matched', { rule: compiled.rule.ref })
      lookedAt = now
      await betweenRules()
      if (!isActive()) return undefined
    }
    const { trigger, trigger_type: type } = instance
    metrics.time('trigger.processed', { trigger, type }, performance.now() - begun)
    return planEnd(instance, 'processed', planned)
  }

  /** Once per version of a rule while the server runs: its author, or an administrator, has to act. */
  function warnOfReduced({ id, revision, ref }: Rule, reason: string): void {
    const key = `${id} ${revision}`
    if (warned.get(key) === true) return
    warned.set(key, true)
    log.warning('rules.payload_reduced', `Rule "${ref}" sees only a part of its trigger instances. ${reason}`, {
      rule: ref,
    })
  }

  function planEnd(
    { id }: Pick<TriggerInstance, 'id'>,
    status: 'processed' | 'processing_failed',
    planned: readonly PlannedEnforcement[],
  ): Unit {
    const execution_ids = planned.flatMap(({ executionId }) => executionId ?? [])
    // That nothing came of it: processed again, it ends the same.
    return merge(...planned.map(({ unit }) => unit), {
      steps: triggers.planProcessed(id, status).steps,
      facts: [{ name: 'trigger_instance.processed', payload: { id, execution_ids } }],
      isUnpromised: true,
    })
  }

  function planFailed(queued: QueuedInstance, error: unknown): Unit {
    log.error('rules.instance_failed', 'Could not process a trigger instance', {
      trigger_instance_id: queued.id,
      trigger: queued.trigger,
      trace_id: queued.trace_id,
      error,
    })
    return planEnd(queued, 'processing_failed', [])
  }

  return { plan, planFailed }
}
