/** Contract 03, 3.5. `pending` waits for a person; `pausing` … `resuming` are for workflows. */
export const executionStatuses = [
  'requested',
  'delayed',
  'scheduled',
  'running',
  'pending',
  'pausing',
  'paused',
  'resuming',
  'canceling',
  'succeeded',
  'failed',
  'timeout',
  'abandoned',
  'canceled',
] as const

export type ExecutionStatus = (typeof executionStatuses)[number]
