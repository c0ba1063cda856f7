/** The rows of a workflow, as a server reads them after its start. */
import { readJson, writeJson } from '../../src/lib/json/index.ts'
import { addRows, emptyState, type State } from '../../src/modules/workflows/conductor/index.ts'

/** The same state, made of its rows alone. */
export function readAgain(state: State): State {
  const rows = <Row>(table: ReadonlyMap<unknown, Row>): Row[] => readJson(writeJson([...table.values()])) as Row[]
  const { instances, arrivals, items, contexts, joins, sources, routes, errors, workflow } = state
  return addRows(
    { ...emptyState(), workflow: readJson(writeJson(workflow)) as State['workflow'] },
    {
      instances: rows(instances),
      arrivals: rows(arrivals),
      items: rows(items),
      contexts: rows(contexts),
      joins: rows(joins),
      sources: rows(sources),
      routes: rows(routes),
      errors: rows(errors),
    },
  )
}
