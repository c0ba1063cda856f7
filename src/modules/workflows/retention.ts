/** Deletes workflows with the executions that ran them. */
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
