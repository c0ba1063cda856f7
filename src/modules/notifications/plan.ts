/** What is owed when an execution ends or a run is missed: rows of the outbox, in the same unit. */
import { conditionsOf, usesIn, type Condition, type NotifyUse } from '../../core/notify.ts'
import { newId } from '../../core/ids.ts'
import { now } from '../../core/time.ts'
import type { Fact } from '../../bus/index.ts'
import type { Step, Unit } from '../../db/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { Attempt } from '../executions/ports.ts'
import type { Execution } from '../executions/types.ts'
import { conditionOf, contentOf } from './content.ts'
import { conditionsOfDestination } from './definition.ts'
import type { Destinations } from './destinations.ts'
import type { MissedRun } from './ports.ts'
import type { NotificationsSettings } from './settings.ts'
import type { NotificationStore } from './store.ts'
import type { Content, Notification } from './types.ts'

/** What a rule says of whom it notifies, and the action that it runs. */
export interface NotifyingRule {
  ref: string
  pack: string
  notify: unknown
  action: string
}

export interface Planning {
  /** Never throws. */
  planEnd(execution: Execution, attempt: Attempt): Unit | undefined
  /** Never throws. */
  planMissed(missed: MissedRun): Unit | undefined
}

/** A destination that is to hear of something. */
interface Target {
  /** As a row has it. */
  name: string
  on: ReadonlySet<Condition>
  use: NotifyUse
  isKnown: boolean
}

export function createPlanning(deps: {
  store: Pick<NotificationStore, 'insert' | 'insertRecovery' | 'hasFailed' | 'markFailed' | 'clearFailed'>
  destinations: Pick<Destinations, 'find'>
  /** Undefined: it is gone. */
  readonly ruleOf: (id: string) => NotifyingRule | undefined
  /** `notify` of an action and its pack; undefined: it is gone. */
  readonly notifyOfAction: (ref: string) => { notify: unknown; pack: string } | undefined
  /** Waiting notifications of a destination. */
  readonly waiting: (destination: string) => number
  log: Log
  settings: Pick<NotificationsSettings, 'enabled' | 'globals' | 'on' | 'maxPending'>
}): Planning {
  const { store, destinations, settings, log } = deps

  /** The nearest of them that names a destination counts: the rule, then the action, then the configuration. */
  function targetsOf(sources: readonly { notify: unknown; pack: string | undefined }[]): Target[] {
    const targets = new Map<string, Target>()
    for (const { notify, pack } of sources) {
      for (const use of usesIn(notify)) {
        const destination = destinations.find(use.use, pack)
        const name = destination?.name ?? use.use
        if (targets.has(name)) continue
        const on =
          use.on === undefined ? conditionsOfDestination({ on: destination?.on }, settings.on) : conditionsOf(use.on)
        targets.set(name, { name, on, use, isKnown: destination !== undefined })
      }
    }
    return [...targets.values()]
  }

  const globals = { notify: settings.globals, pack: undefined }

  function notificationFor(
    target: Target,
    occasion: Condition,
    about: Pick<Notification, 'job' | 'rule' | 'execution'>,
    content: Content,
  ): Notification {
    const { to, message } = target.use
    const at = now()
    const isFull = deps.waiting(target.name) >= settings.maxPending
    const error = !target.isKnown
      ? `There is no destination "${target.name}": add notifications/${target.name}.yaml to the base path`
      : isFull
        ? `More than ${settings.maxPending} notifications wait for this destination`
        : null
    return {
      id: newId(),
      destination: target.name,
      occasion,
      status: !target.isKnown ? 'failed' : isFull ? 'suppressed' : 'pending',
      ...about,
      attempts: 0,
      due_at: at,
      created_at: at,
      queued_at: at,
      sent_at: null,
      error,
      digest: null,
      content: {
        ...content,
        ...(to === undefined ? {} : { to }),
        ...(message === undefined ? {} : { message }),
      },
    }
  }

  function unitOf(steps: Step[], planned: readonly Notification[]): Unit {
    const facts = planned
      .filter(({ status }) => status === 'pending')
      .map(({ destination }): Fact => ({ name: 'notification.planned', payload: { destination } }))
    return { steps, facts }
  }

  function planEnd(execution: Execution, { attempt, willRetry }: Attempt): Unit | undefined {
    // A workflow speaks for its children.
    if (willRetry || execution.parent !== null || 'parent' in execution.context) return undefined
    const condition = conditionOf(execution.status)
    if (condition === undefined) return undefined
    const { origin, action } = execution
    const rule = origin === null ? undefined : deps.ruleOf(origin.rule.id)
    const targets = targetsOf([
      { notify: rule?.notify, pack: rule?.pack },
      { notify: action.notify, pack: action.pack },
      globals,
    ])
    if (targets.length === 0) return undefined
    const job = origin?.rule.ref ?? execution.action_ref
    const about = { job, rule: origin?.rule.ref ?? null, execution: execution.id }
    const content = contentOf(execution, attempt)
    const remembers = targets.some(({ on }) => on.has('recovered'))
    if (condition !== 'succeeded') {
      const told = targets
        .filter(({ on }) => on.has(condition))
        .map((target) => notificationFor(target, condition, about, content))
      const steps = told.map((notification) => store.insert(notification))
      if (remembers) steps.push(store.markFailed(job, content.at))
      return steps.length === 0 ? undefined : unitOf(steps, told)
    }
    const hasFailed = remembers && store.hasFailed(job)
    const told: Notification[] = []
    const steps: Step[] = []
    for (const target of targets) {
      const { on } = target
      const isRecovery = hasFailed && on.has('recovered')
      if (!isRecovery && !on.has('succeeded')) continue
      const notification = notificationFor(target, isRecovery ? 'recovered' : 'succeeded', about, content)
      told.push(notification)
      const recovery = on.has('succeeded') ? 'recovered or succeeded' : 'recovered only'
      steps.push(isRecovery ? store.insertRecovery(notification, recovery) : store.insert(notification))
    }
    if (hasFailed) steps.push(store.clearFailed(job))
    return steps.length === 0 ? undefined : unitOf(steps, told)
  }

  function planMissed(missed: MissedRun): Unit | undefined {
    const { due, expect, lastSuccess, reason, executionId } = missed
    const { id, ref } = missed.rule
    const rule = deps.ruleOf(id)
    const action = rule === undefined ? undefined : deps.notifyOfAction(rule.action)
    const targets = targetsOf([
      { notify: rule?.notify, pack: rule?.pack },
      { notify: action?.notify, pack: action?.pack },
      globals,
    ])
    const content: Content = {
      ...(rule === undefined ? {} : { action: rule.action }),
      at: now(),
      due,
      expect,
      last_success: lastSuccess,
      ...(reason === undefined ? {} : { reason }),
    }
    const about = { job: ref, rule: ref, execution: executionId ?? null }
    const told = targets
      .filter(({ on }) => on.has('missed'))
      .map((target) => notificationFor(target, 'missed', about, content))
    const steps = told.map((notification) => store.insert(notification))
    if (targets.some(({ on }) => on.has('recovered'))) steps.push(store.markFailed(ref, content.at))
    return steps.length === 0 ? undefined : unitOf(steps, told)
  }

  /** What is announced must not keep the change from being stored. */
  function guarded<A extends unknown[]>(plan: (...args: A) => Unit | undefined): (...args: A) => Unit | undefined {
    return (...args) => {
      if (!settings.enabled) return undefined
      try {
        return plan(...args)
      } catch (error) {
        log.error('notification.not_planned', 'Could not plan notifications', { error })
        return undefined
      }
    }
  }

  return { planEnd: guarded(planEnd), planMissed: guarded(planMissed) }
}
