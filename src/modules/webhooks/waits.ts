/** Requests with `Prefer: wait`: they wait until every execution of their trigger instances has finished. */
import type { Bus } from '../../bus/index.ts'
import { isFinal, type Executions } from '../executions/index.ts'
import type { Triggers } from '../triggers/index.ts'

export interface OutcomeWait {
  /**
   * Resolves with whether all executions have finished, at the latest after `seconds` or when the client disconnects.
   *
   * @param onClose see `ApiRequest`
   */
  end(seconds: number, onClose: (listener: () => void) => () => void): Promise<boolean>
  /** Ends the wait. */
  cancel(): void
}

export interface Waits {
  /**
   * Starts a wait, before or after the instances are stored. Undefined: too many requests wait.
   *
   * @param stored whether the instances are stored
   */
  begin(instanceIds: readonly string[], stored: boolean): OutcomeWait | undefined
  start(): void
  /** Ends all waits. */
  stop(): void
}

interface Waiter {
  /** Pending instances. */
  instances: Set<string>
  /** Unfinished executions. */
  executions: Set<string>
  settle(hasFinished: boolean): void
}

export function createWaits(deps: {
  bus: Bus
  triggers: Pick<Triggers, 'findInstance'>
  executions: Pick<Executions, 'statusOf' | 'ofTriggerInstance'>
  maxWaiting: number
}): Waits {
  const { bus, triggers, executions, maxWaiting } = deps
  const waiters = new Set<Waiter>()
  const byInstance = new Map<string, Set<Waiter>>()
  const byExecution = new Map<string, Set<Waiter>>()
  let subscriptions: (() => void)[] = []

  function addExecutions(waiter: Waiter, ids: readonly string[]): void {
    for (const id of ids) {
      const status = executions.statusOf(id)
      if (status === undefined || isFinal(status)) continue
      waiter.executions.add(id)
      add(byExecution, id, waiter)
    }
  }

  function settleIfDone(waiter: Waiter): void {
    if (waiter.instances.size === 0 && waiter.executions.size === 0) waiter.settle(true)
  }

  function onProcessed(id: string, executionIds: readonly string[]): void {
    const waiting = byInstance.get(id)
    if (waiting === undefined) return
    byInstance.delete(id)
    for (const waiter of waiting) {
      waiter.instances.delete(id)
      addExecutions(waiter, executionIds)
      settleIfDone(waiter)
    }
  }

  function onFinished(id: string): void {
    const waiting = byExecution.get(id)
    if (waiting === undefined) return
    byExecution.delete(id)
    for (const waiter of waiting) {
      waiter.executions.delete(id)
      settleIfDone(waiter)
    }
  }

  /** Reads the rows, because facts can be lost. */
  function haveFinished(instanceIds: readonly string[]): boolean {
    return instanceIds.every(
      (id) =>
        triggers.findInstance(id)?.status !== 'pending' &&
        executions.ofTriggerInstance(id).every((execution) => {
          const status = executions.statusOf(execution)
          return status === undefined || isFinal(status)
        }),
    )
  }

  return {
    begin(instanceIds, stored) {
      if (waiters.size >= maxWaiting) return undefined
      let resolve: (hasFinished: boolean) => void = () => undefined
      const ended = new Promise<boolean>((settled) => (resolve = settled))
      const waiter: Waiter = {
        instances: new Set(),
        executions: new Set(),
        settle(hasFinished) {
          if (!waiters.delete(waiter)) return
          for (const id of waiter.instances) remove(byInstance, id, waiter)
          for (const id of waiter.executions) remove(byExecution, id, waiter)
          resolve(hasFinished)
        },
      }
      waiters.add(waiter)
      for (const id of instanceIds) {
        if (!stored || triggers.findInstance(id)?.status === 'pending') {
          waiter.instances.add(id)
          add(byInstance, id, waiter)
        } else {
          addExecutions(waiter, executions.ofTriggerInstance(id))
        }
      }
      settleIfDone(waiter)
      return {
        cancel: () => waiter.settle(false),
        async end(seconds, onClose) {
          const timer = setTimeout(() => waiter.settle(haveFinished(instanceIds)), seconds * 1000)
          const unwatch = onClose(() => waiter.settle(false))
          try {
            return await ended
          } finally {
            clearTimeout(timer)
            unwatch()
          }
        },
      }
    },
    start() {
      subscriptions = [
        bus.subscribe('trigger_instance.processed', ({ id, execution_ids: ids }) => onProcessed(id, ids)),
        bus.subscribe('execution.updated', ({ execution }) => {
          if (byExecution.size > 0 && isFinal(execution.status)) onFinished(execution.id)
        }),
      ]
    },
    stop() {
      for (const unsubscribe of subscriptions) unsubscribe()
      subscriptions = []
      for (const waiter of waiters) waiter.settle(false)
    },
  }
}

function add(index: Map<string, Set<Waiter>>, id: string, waiter: Waiter): void {
  const waiting = index.get(id)
  if (waiting === undefined) index.set(id, new Set([waiter]))
  else waiting.add(waiter)
}

function remove(index: Map<string, Set<Waiter>>, id: string, waiter: Waiter): void {
  const waiting = index.get(id)
  waiting?.delete(waiter)
  if (waiting?.size === 0) index.delete(id)
}
