/**
 * Recovers executions that an earlier server was running when it stopped: kills their processes and records them as
 * `abandoned`, or queues them again when their action had not begun. Nothing runs twice. Runs at every start.
 */
import type { Log } from '../../../lib/log/index.ts'
import { merge, type Database, type Unit } from '../../../db/index.ts'
import { isWorkflowRunner, type RecordedProcess } from '../../../runners/index.ts'
import type { Change } from '../change.ts'
import type { ExecutionStore } from '../store.ts'
import type { ProcessStore } from './store.ts'
import type { Execution, ExecutionStatus } from '../types.ts'

/** Kills the processes of runs whose server has stopped. @returns how many processes it killed */
export type KillOrphans = (
  leftovers: { executionId: string; process: RecordedProcess | undefined }[],
) => Promise<number>

/** Statuses of executions that a server was running. */
const owned: ExecutionStatus[] = ['running', 'canceling']
const PAGE = 200

export async function recover(deps: {
  store: ExecutionStore
  processes: ProcessStore
  change: Change
  database: Database
  killOrphans: KillOrphans
  readonly hadBegun: (executionId: string) => boolean
  /** Revokes the token of the run. */
  readonly planEnd: (execution: Execution) => Unit
  log: Log
}): Promise<void> {
  const { store, processes: processStore, change, log } = deps
  const processes = processStore.processes()
  for (const status of owned) {
    let afterId = ''
    for (;;) {
      const rows: Execution[] = store.withStatus(status, afterId, PAGE)
      const last = rows.at(-1)
      if (last === undefined) break
      afterId = last.id
      // A workflow goes on from its rows.
      const page = rows.filter(({ runner }) => !isWorkflowRunner(runner.name))
      if (page.length === 0) continue
      const leftovers = page.map(({ id }) => ({ executionId: id, process: processes.get(id) }))
      const killed = await deps.killOrphans(leftovers)
      let queued = 0
      for (const execution of page) {
        const hadBegun = processes.has(execution.id) || deps.hadBegun(execution.id)
        const isRepeatable = execution.status === 'running' && !hadBegun
        if (isRepeatable) queued += 1
        processes.delete(execution.id)
        // Authentication may have been enabled at its start and disabled since.
        const ended = merge(deps.planEnd(execution), { steps: [processStore.deleteProcess(execution.id)], facts: [] })
        await change.settle(execution, [{ kind: isRepeatable ? 'requeue' : 'lost' }], ended)
      }
      log.warning('executions.recovered', 'Recovered executions that were running when the server stopped', {
        count: page.length,
        queued_again: queued,
        status,
        killed_processes: killed,
      })
    }
  }
  // A process whose execution has ended already: the server died between the two.
  const orphans = [...processes].map(([executionId, process]) => ({ executionId, process }))
  if (orphans.length === 0) return
  await deps.killOrphans(orphans)
  const steps = orphans.map(({ executionId }) => processStore.deleteProcess(executionId))
  await deps.database.write({ steps, facts: [] })
}
