/** What is known in memory of executions that have not ended, so that readers of a stream need not ask the rows. */
import type { Bus } from '../../bus/index.ts'
import { isFinal } from './state.ts'
import type { ExecutionStatus } from './types.ts'

export interface Live {
  /** Status of an execution this server has seen change and not end; undefined: ask the rows. */
  statusOf(id: string): ExecutionStatus | undefined
  /** Executions accepted and not yet started. */
  readonly waitingCount: number
}

const waits: ReadonlySet<ExecutionStatus> = new Set<ExecutionStatus>(['requested', 'delayed'])

/**
 * @param waitingAtStart executions that wait already
 * @param maxEntries bound on the statuses remembered; those beyond it are read from the rows
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
