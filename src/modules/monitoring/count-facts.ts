/** Measurements from bus events, so that their publishers need not measure. */
import type { Bus } from '../../bus/index.ts'
import type { Metrics } from '../../core/metrics.ts'
import { microsOf } from '../../core/time.ts'
import type { Execution, ExecutionStatus, LogEntry } from '../executions/types.ts'

const ends: ReadonlySet<ExecutionStatus> = new Set<ExecutionStatus>([
  'succeeded',
  'failed',
  'timeout',
  'canceled',
  'abandoned',
])

/** @returns stops the subscription */
export function countFacts(bus: Bus, metrics: Metrics): () => void {
  const stops = [
    bus.subscribe('execution.created', ({ execution: { status } }) => metrics.count('execution.status', { status })),
    bus.subscribe('execution.updated', ({ execution, from }) => {
      const { status, action_ref: action } = execution
      metrics.count('execution.status', { status: from }, -1)
      metrics.count('execution.status', { status })
      if (ends.has(status)) metrics.count('execution.ended', { action, status })
      const runner = execution.runner.name
      if (status === 'running') {
        const waited = millisecondsBetween(lastWith(execution, 'requested'), execution.log.at(-1))
        if (waited !== undefined) metrics.time('execution.wait', { runner }, waited)
      } else if (from === 'running' || (from === 'canceling' && ends.has(status))) {
        if (status === 'canceling') return
        const ran = millisecondsBetween(lastWith(execution, 'running'), execution.log.at(-1))
        if (ran !== undefined) metrics.time('execution.run', { action, runner }, ran)
      }
    }),
  ]
  return () => stops.forEach((stop) => stop())
}

function lastWith({ log }: Execution, status: ExecutionStatus): LogEntry | undefined {
  return log.findLast((entry) => entry.status === status)
}

function millisecondsBetween(from: LogEntry | undefined, to: LogEntry | undefined): number | undefined {
  if (from === undefined || to === undefined) return undefined
  return Math.max(0, (microsOf(to.timestamp) - microsOf(from.timestamp)) / 1000)
}
