/** The `cancel` queue: stops the processes of canceled executions. */
import type { Log } from '../../../lib/log/index.ts'
import { createRowQueue } from '../../../queue/index.ts'
import { isWorkflowRunner, type StopReason } from '../../../runners/index.ts'
import type { Change } from '../change.ts'
import type { ExecutionStore } from '../store.ts'
import { hasRun } from '../state.ts'
import type { Execution } from '../types.ts'

/** A run with a slot. */
export interface ActiveRun {
  controller: AbortController
  /** Who canceled it, when that could not be stored. */
  canceledBy?: string
  ended: Promise<void>
}

export interface CancelQueue {
  /** Takes an execution with status `canceling`. */
  offer(execution: Execution): void
  start(pollSeconds: number): void
  stop(): void
}

export function createCancelQueue(deps: {
  store: Pick<ExecutionStore, 'withStatus' | 'countWithStatus'>
  change: Pick<Change, 'settle'>
  log: Log
  /** By execution id. */
  runs: ReadonlyMap<string, ActiveRun>
  /** Most executions that are canceled at once. */
  slots: number
}): CancelQueue {
  const { store, change, log, runs } = deps
  const queue = createRowQueue<Execution>({
    idOf: (execution) => execution.id,
    load: (afterId, limit) => store.withStatus('canceling', afterId, limit),
    depth: () => store.countWithStatus('canceling'),
  })
  queue.onWake(pump)

  /** After a failed read the next poll of the queue finds the executions. */
  function takeCanceling(): Execution[] {
    try {
      return queue.take(deps.slots)
    } catch (error) {
      log.error('dispatcher.failed', 'Could not read canceled executions: trying again', { error })
      return []
    }
  }

  function pump(): void {
    for (const execution of takeCanceling()) {
      if (isWorkflowRunner(execution.runner.name) && hasRun(execution)) {
        // It ends with the last of its actions.
        queue.done(execution)
        continue
      }
      const run = runs.get(execution.id)
      if (run !== undefined) {
        run.controller.abort('cancel' satisfies StopReason)
        // The run ends the execution. It may not have started yet, and storing its end may fail.
        void run.ended.then(() => {
          queue.done(execution)
          queue.wake()
        })
        continue
      }
      void change
        .settle(execution, [{ kind: 'exit', status: 'failed', result: {} }])
        .catch((error: unknown) =>
          log.error('dispatcher.failed', 'Could not end a canceled execution', {
            execution_id: execution.id,
            error,
          }),
        )
        .finally(() => queue.done(execution))
    }
  }

  return {
    offer: (execution) => queue.offer(execution),
    start(pollSeconds) {
      queue.startPolling(pollSeconds)
      pump()
    },
    stop: () => queue.stop(),
  }
}
