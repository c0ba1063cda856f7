/** Deletes workflows: with the executions that ran them, or before these (contract 10, 10.5). */
import { idBound } from '../../core/ids.ts'
import { retire, type OldRecords, type Retention } from '../../core/retention.ts'
import { microsOf } from '../../core/time.ts'
import type { Database } from '../../db/index.ts'
import type { ExecutionWorkflows } from '../executions/ports.ts'
import type { WorkflowStore } from './store.ts'

/** Of each table: some milliseconds of work. */
const ROWS_AT_ONCE = 500
const WORKFLOWS_AT_ONCE = 50

export function createRemoval(deps: {
  store: WorkflowStore
  database: Pick<Database, 'write'>
}): Pick<ExecutionWorkflows, 'holdersOf' | 'remove'> {
  const { store, database } = deps
  return {
    holdersOf: (executions) => store.holdersOf(executions),
    async remove(executions) {
      // From here on nobody finds them, so that nobody repeats a workflow of which parts are gone. The next removal finishes
      // what the end of the server interrupts.
      await database.write({ steps: [store.detach(executions)], facts: [] })
      for (;;) {
        const workflows = store.detached(WORKFLOWS_AT_ONCE)
        if (workflows.length === 0) return
        const ids = workflows.map(({ id }) => id)
        for (let isMore = true; isMore;) {
          const results = await database.write({ steps: store.deleteRows(ids, ROWS_AT_ONCE), facts: [] })
          isMore = results.some(({ changes }) => changes >= ROWS_AT_ONCE)
        }
        await database.write({ steps: store.deleteHeaders(workflows), facts: [] })
      }
    },
  }
}

/** Of workflows whose executions stay. */
export function createWorkflowRetention(deps: {
  store: Pick<WorkflowStore, 'startedBefore'>
  readonly remove: ExecutionWorkflows['remove']
}): Retention {
  /** A workflow in another one stays as long as that is open. */
  function look({ before, after, limit }: OldRecords): { ids: string[]; next: string | undefined } {
    const rows = deps.store.startedBefore(idBound(microsOf(before)), after, limit)
    const over = rows.filter(
      ({ end, rootEnd, active }) => end !== null && end < before && rootEnd !== null && active === 0,
    )
    return { ids: over.map(({ execution }) => execution), next: rows.length < limit ? undefined : rows.at(-1)?.id }
  }

  return retire({
    kind: 'workflows',
    atOnce: WORKFLOWS_AT_ONCE,
    look,
    async removeAll(executions) {
      await deps.remove(executions)
      return executions.length
    },
  })
}
