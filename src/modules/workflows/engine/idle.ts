/** Finds workflows that make no progress: nothing of them runs or waits, and yet they have not ended. */
import type { MaintenanceTask } from '../../../core/module.ts'
import { setImmediate } from 'node:timers/promises'
import type { Executions } from '../../executions/index.ts'
import type { WorkflowStore } from '../store.ts'
import { hasOpenChild } from './parents.ts'

const PAGE = 100
const MAX_SECONDS_BETWEEN = 60

export interface IdleRun {
  readonly id: string
  /** Nothing has happened since. */
  readonly revision: number
}

/**
 * A workflow is idle while none of its executions is open: none runs, is queued or delayed, waits for a response, or is a
 * workflow that is paused. The time counts from when svc first sees that, so that no clock which is set shortens it.
 */
export function createIdleCheck(deps: {
  store: Pick<WorkflowStore, 'open'>
  executions: Pick<Executions, 'openChildren'>
  /** `workflow_engine.gc_max_idle_sec` */
  maxIdleSeconds: number
  /** Milliseconds. */
  readonly monotonic: () => number
  /** Ends it, unless something has happened since. */
  readonly end: (run: IdleRun) => Promise<void>
}): MaintenanceTask {
  const { store, executions, maxIdleSeconds, monotonic, end } = deps
  let known = new Map<string, { revision: number; since: number }>()

  async function check(signal: AbortSignal): Promise<void> {
    const now = monotonic()
    const idle: typeof known = new Map()
    for (let afterId = ''; ;) {
      const page = store.open(afterId, PAGE)
      for (const header of page) {
        const { id, revision, status } = header
        // A person resumes what is paused.
        if (status === 'paused' || hasOpenChild(executions, header)) continue
        const before = known.get(id)
        const since = before?.revision === revision ? before.since : now
        if (now - since < maxIdleSeconds * 1000) idle.set(id, { revision, since })
        else await end({ id, revision })
      }
      afterId = page.at(-1)?.id ?? ''
      if (page.length < PAGE || signal.aborted) break
      await setImmediate()
    }
    known = idle
  }

  return { name: 'idle workflows', everySeconds: Math.min(maxIdleSeconds, MAX_SECONDS_BETWEEN), run: check }
}
