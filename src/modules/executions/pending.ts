/** Executions that wait for an answer from outside. */
import type { Change } from './change.ts'
import type { ExecutionListStore } from './list/store.ts'
import type { Executions } from './public.ts'
import type { ResultSecrets } from './secrets/results.ts'
import type { ExecutionStore } from './store.ts'
import type { Execution } from './types.ts'

export function createPending(deps: {
  store: Pick<ExecutionStore, 'findWithResult'>
  list: Pick<ExecutionListStore, 'page' | 'total'>
  change: Pick<Change, 'try'>
  results: Pick<ResultSecrets, 'encrypt'>
}): Pick<Executions, 'pending' | 'respond'> {
  const { store, list, change, results } = deps
  return {
    async pending(runner, page) {
      const filter = { status: 'pending', runner }
      const [ids, total] = await Promise.all([list.page({ filter, sort: [], ...page }), list.total(filter)])
      function* executions(): Generator<Execution> {
        for (const id of ids) {
          const execution = store.findWithResult(id)
          if (execution?.status === 'pending') yield execution
        }
      }
      return { executions: executions(), total }
    },
    async respond(seen, result, masked) {
      if (masked === undefined) return change.try(seen, { kind: 'respond', result })
      return change.try(seen, { kind: 'respond', result: masked, sealed: results.encrypt(seen, result) })
    },
  }
}
