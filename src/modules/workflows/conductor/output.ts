/** The end of a workflow: joins that can start no more, and the output. */
import { entriesOf, keysOf, objectOf } from '../../../lib/json/index.ts'
import { mergedVariables, type Variables } from './contexts.ts'
import { logJoin } from './joins.ts'
import { inMi, sizeOf } from './sizes.ts'
import { assign, ConductError, messageOf, noteError, taskOf, type Turn } from './turn.ts'

/**
 * What follows from the end of a workflow.
 *
 * @param hasReason whether it has ended for a reason of its own: then nobody asks for joins that lack arrivals
 */
export function finish(turn: Turn, hasReason: boolean): void {
  if (!hasReason) reportUnreachableJoins(turn)
  renderOutput(turn)
}

/**
 * Joins with some arrivals, but not enough, fail the workflow, unless it is canceled. When it has failed while tasks still
 * run, or could start, only those count that nothing can complete any more: all tasks before them have started.
 */
function reportUnreachableJoins(turn: Turn): void {
  const { draft } = turn
  const isAtRest = draft.workflow.active === 0 && draft.workflow.ready === 0
  for (const instance of draft.allStaged()) {
    const task = taskOf(turn, instance)
    const { route } = instance
    if (task.joinNeed === undefined || instance.isReady) continue
    if (!isAtRest && task.inbound.some((source) => draft.latest(source, route) === undefined)) continue
    logJoin(turn, instance)
    if (draft.workflow.status === 'canceled') continue
    noteError(turn, instance.id, {
      message: `UnreachableJoinError: The join task|route "${task.name}|${route}" is partially satisfied but unreachable.`,
      task_id: task.name,
      route,
    })
    draft.setWorkflow({ status: 'failed' })
  }
}

/** The variables of all terminal instances; none, if no instance is terminal. */
function terminalVariables({ draft, contexts }: Turn): Variables {
  const terminal = draft.terminal().sort((a, b) => (a.order ?? 0) - (b.order ?? 0))
  return terminal.length === 0
    ? {}
    : mergedVariables(
        draft,
        contexts,
        terminal.map(({ context }) => context ?? 0),
      )
}

/** Renders the output of a workflow that is over. Entries that fail are left out; a workflow that had succeeded fails. */
export function renderOutput(turn: Turn): void {
  const { draft } = turn
  const form = turn.definition.output
  if (form === undefined || draft.workflow.output !== null) return
  const variables = terminalVariables(turn)
  const sight = keysOf(variables).length === 0 ? { variables, environment: {} } : { variables }
  const rendered = assign(turn, form, sight, (error) => {
    failOutput(turn, error)
  })
  const output = limited(turn, rendered)
  if (keysOf(output).length > 0) draft.setWorkflow({ output })
}

function failOutput(turn: Turn, error: unknown): void {
  noteError(turn, null, { message: messageOf(error) })
  if (turn.draft.workflow.status === 'succeeded') turn.draft.setWorkflow({ status: 'failed' })
}

/** Leaves out what is too much. */
function limited(turn: Turn, output: Variables): Variables {
  const { maxResultSize } = turn.limits
  let size = 0
  const isKept = ([name, value]: [string, unknown]): boolean => {
    const added = sizeOf(objectOf([[name, value]]))
    if (size + added <= maxResultSize) {
      size += added
      return true
    }
    const text = `The output would be larger than ${inMi(maxResultSize)} Mi characters with "${name}". Keep large data in files, and give out where it is.`
    failOutput(turn, new ConductError('LimitError', text))
    return false
  }
  return objectOf(entriesOf(output).filter(isKept))
}
