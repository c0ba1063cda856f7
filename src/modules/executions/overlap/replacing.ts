/**
 * A run of a rule with `overlap: replace` cancels the runs of the rule before it, and starts when they are gone. That it
 * has to is said by its row: it waits until then, over restarts too.
 */
import type { Bus } from '../../../bus/index.ts'
import type { Log } from '../../../lib/log/index.ts'
import type { Change } from '../change.ts'
import { isCancelable, isFinal, replacedText } from '../state.ts'
import type { ExecutionStore } from '../store.ts'
import type { Execution } from '../types.ts'

/** Runs that are canceled together. */
const PAGE = 100
/** Pause after a failure, such as a full disk. */
const RETRY_AFTER_MS = 1000

export interface Replacing {
  /** Cancels what an earlier server has left to cancel. Resolves when all of it has been tried. */
  start(): Promise<void>
  stop(): void
}

export function createReplacing(deps: {
  store: Pick<ExecutionStore, 'find' | 'ruleRuns'>
  change: Pick<Change, 'try'>
  bus: Bus
  log: Log
  /** Acting user of what the system does by itself. */
  systemUser: string
}): Replacing {
  const { store, change, log } = deps
  const timers = new Set<NodeJS.Timeout>()
  let active = false

  deps.bus.subscribe('execution.created', ({ execution }) => {
    if (active && replaces(execution)) void makeRoom(execution.id)
  })

  /** Never rejects. */
  async function makeRoom(id: string): Promise<void> {
    try {
      const canceled = new Set<string>()
      for (;;) {
        const before = store.ruleRuns.before(id, PAGE)
        const others = before.filter((other) => !canceled.has(other))
        await Promise.all(others.map((other) => cancel(other, id)))
        for (const other of others) canceled.add(other)
        // One that has ended meanwhile may have left a retry in its place.
        if (others.length > 0) continue
        if (before.length === PAGE) again(id)
        return
      }
    } catch (error) {
      log.error('rule.not_replaced', 'Could not cancel the runs that a run of a rule replaces: trying again', {
        execution_id: id,
        error,
      })
      again(id)
    }
  }

  function again(id: string): void {
    if (!active) return
    const timer = setTimeout(() => {
      timers.delete(timer)
      void makeRoom(id)
    }, RETRY_AFTER_MS)
    timers.add(timer)
  }

  async function cancel(id: string, replacedBy: string): Promise<void> {
    for (;;) {
      const seen = store.find(id)
      if (seen === undefined || isFinal(seen.status) || seen.status === 'canceling') return
      const event = isCancelable(seen.status)
        ? ({ kind: 'cancel', user: deps.systemUser, replacedBy } as const)
        : // An inquiry that nobody has answered.
          ({ kind: 'settle', status: 'canceled', result: { message: replacedText(replacedBy) } } as const)
      const changed = await change.try(seen, event)
      if (changed === undefined) continue
      log.audit('execution.replaced', 'Canceling action execution, which a newer run of its rule replaces.', {
        execution_id: id,
        rule: seen.origin?.rule.ref,
        replaced_by: replacedBy,
      })
      return
    }
  }

  return {
    async start() {
      active = true
      for (let place = 0; ;) {
        const page = store.ruleRuns.all(place, PAGE)
        for (const { id } of page) {
          const execution = store.find(id)
          if (execution !== undefined && replaces(execution)) await makeRoom(id)
        }
        place = page.at(-1)?.place ?? 0
        if (page.length < PAGE) return
      }
    },
    stop() {
      active = false
      for (const timer of timers) clearTimeout(timer)
      timers.clear()
    },
  }
}

const replaces = ({ status, liveaction: { running } }: Execution): boolean =>
  running?.overlap === 'replace' && !isFinal(status)
