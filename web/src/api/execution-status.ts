import type { ExecutionStatus } from './records.ts'

/** In the order of a life: whether nothing comes after it but a delete. */
const isFinal: Readonly<Record<ExecutionStatus, boolean>> = {
  requested: false,
  scheduled: false,
  running: false,
  delayed: false,
  pending: false,
  pausing: false,
  paused: false,
  resuming: false,
  canceling: false,
  succeeded: true,
  failed: true,
  timeout: true,
  abandoned: true,
  canceled: true,
}

export const executionStatuses: readonly string[] = Object.keys(isFinal)

const finalStatuses = new Set(Object.entries(isFinal).flatMap(([status, ends]) => (ends ? status : [])))

/** @param status of an execution; of anything else none is final */
export function isFinalStatus(status: string): boolean {
  return finalStatuses.has(status)
}
