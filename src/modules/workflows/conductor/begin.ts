/** The start of a workflow: its input, its variables, its first tasks. */
import { setOwn } from '../../../lib/json/index.ts'
import { addContext } from './contexts.ts'
import { fail } from './end.ts'
import { stage } from './joins.ts'
import { FIRST_ROUTE } from './routes.ts'
import { addLimitedContext } from './sizes.ts'
import { assign, messageOf, noteError, secondsOf, taskOf, tellWorkflow, type Turn } from './turn.ts'

/**
 * Stages the start tasks, or fails the workflow when an expression of its input or variables fails.
 *
 * @param input parameters of the execution; those that the workflow does not declare are left out
 */
export function beginWorkflow(turn: Turn, input: Readonly<Record<string, unknown>>): void {
  const { definition, draft } = turn
  const environment = turn.outside.startEnvironment
  let hasFailed = false
  const onError = (error: unknown): void => {
    hasFailed = true
    noteError(turn, null, { message: messageOf(error) })
  }
  const inputs: Record<string, unknown> = {}
  for (const variable of definition.input) {
    const { name } = variable
    if (Object.hasOwn(input, name)) setOwn(inputs, name, input[name])
    else {
      const assigned = assign(turn, [variable], { variables: inputs, environment }, onError)
      if (Object.hasOwn(assigned, name)) setOwn(inputs, name, assigned[name])
    }
  }
  const vars = assign(turn, definition.vars, { variables: inputs, environment }, onError)
  try {
    addLimitedContext(turn, [], { ...inputs, ...vars })
  } catch (error) {
    onError(error)
    draft.addContext([], {})
  }
  if (hasFailed) {
    tellWorkflow(turn, 'task failed')
    return
  }
  draft.setWorkflow({ status: 'running' })
  try {
    const seconds = secondsOf(turn, definition.timeout, { variables: { ...inputs, ...vars }, environment }, 'timeout')
    if (seconds !== undefined) turn.commands.push({ kind: 'deadline', seconds })
    for (const start of definition.starts) {
      const staged = stage(turn, taskOf(turn, { task: start }), FIRST_ROUTE, true)
      draft.changeInstance(staged.id, { context: addContext(draft, [0], {}) })
    }
  } catch (error) {
    fail(turn, null, { message: messageOf(error) })
  }
}
