import type { Gauge } from '../../core/module.ts'
import type { Runs } from './run/runs.ts'
import type { ExecutionStore } from './store.ts'

/** @param slots `actionrunner.actions_pool_size` */
export function createGauges(
  store: Pick<ExecutionStore, 'countWithStatus'>,
  runs: Pick<Runs, 'freeSlots'>,
  slots: number,
): Gauge[] {
  return [
    {
      key: 'actionrunner.queue.request',
      about: 'Executions waiting for a slot.',
      read: () => store.countWithStatus('requested'),
    },
    {
      key: 'actionrunner.queue.work',
      about: 'Executions with a slot that are starting.',
      read: () => store.countWithStatus('scheduled'),
    },
    {
      key: 'actionrunner.queue.cancel',
      about: 'Canceled executions whose processes still run.',
      read: () => store.countWithStatus('canceling'),
    },
    { key: 'actionrunner.slots.used', about: 'Running executions.', read: () => slots - runs.freeSlots() },
    {
      key: 'actionrunner.slots.size',
      about: 'Maximum of running executions (actionrunner.actions_pool_size).',
      read: () => slots,
    },
    ...(['delayed', 'running', 'pending'] as const).map((status) => ({
      key: `executions.${status}`,
      about: `Executions with status ${status}.`,
      read: () => store.countWithStatus(status),
    })),
  ]
}
