/** Statuses of open executions in memory, so that readers of a stream need not query the rows. */
import type { Bus } from '../../bus/index.ts'
import { isFinal } from './state.ts'
import type { ExecutionStatus } from './types.ts'

export interface Live {
  /** Status of an open execution that has changed since the start; undefined: query the rows. */
  statusOf(id: string): ExecutionStatus | undefined
  /** Executions accepted and not yet started. */
  readonly waitingCount: number
}

const waits: ReadonlySet<ExecutionStatus> = new Set<ExecutionStatus>(['requested', 'delayed'])

/**
 * @param waitingAtStart executions that wait at the start
 * @param maxEntries most statuses in memory; others come from the rows
 */
export function createLive(bus: Bus, waitingAtStart: () => number, maxEntries: number): Live {
  const statuses = new Map<string, ExecutionStatus>()
  let waiting: number | undefined

  const count = (): number => (waiting ??= waitingAtStart())
  function remember(id: string, status: ExecutionStatus): void {
    if (isFinal(status)) statuses.delete(id)
    else if (statuses.size < maxEntries || statuses.has(id)) statuses.set(id, status)
  }

  bus.subscribe('execution.created', ({ execution: { id, status } }) => {
    if (waiting !== undefined && waits.has(status)) waiting += 1
    remember(id, status)
  })
  bus.subscribe('execution.updated', ({ execution: { id, status }, from }) => {
    if (waiting !== undefined) waiting += Number(waits.has(status)) - Number(waits.has(from))
    remember(id, status)
  })

  return {
    statusOf: (id) => statuses.get(id),
    get waitingCount() {
      return count()
    },
  }
}
