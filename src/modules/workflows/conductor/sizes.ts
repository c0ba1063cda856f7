/** How much a run may publish, and how much of it a task may see. Sizes are characters of JSON. */
import { keysOf, writeJson } from '../../../lib/json/index.ts'
import { addContext, mergedVariables, type Variables } from './contexts.ts'
import { ConductError, type Turn } from './turn.ts'

/**
 * Adds a context, unless it is too large. Its exact size takes a look at all variables, and is only determined when the sizes
 * of its parents and its own values together exceed the limit.
 *
 * @returns its number
 * @throws ConductError when it is too large, or the run has published too much
 */
export function addLimitedContext(turn: Turn, parents: readonly number[], values: Variables): number {
  const { draft, contexts, limits } = turn
  const own = keysOf(values).length === 0 ? 0 : writeJson(values).length
  const published = draft.workflow.published + own
  if (published > limits.maxPublished)
    throw new ConductError(
      'LimitError',
      `The workflow has published ${inMi(published)} Mi characters; a run may publish ${inMi(limits.maxPublished)} Mi. Keep large data in files, and publish where it is.`,
    )
  let size = parents.reduce((sum, parent) => sum + sizeOf(turn, parent), own)
  if (size > limits.maxContextSize) size = writeJson(mergedVariables(draft, contexts, parents, values)).length
  if (size > limits.maxContextSize)
    throw new ConductError(
      'LimitError',
      `The variables of the workflow would have ${inMi(size)} Mi characters; they may have ${inMi(limits.maxContextSize)} Mi. Publish less, or keep large data in files.`,
    )
  const id = parents.length === 0 ? draft.addContext([], values) : addContext(draft, parents, values)
  const row = draft.context(id)
  if (!contexts.sizes.has(row)) contexts.sizes.set(row, size)
  draft.setWorkflow({ published })
  return id
}

function sizeOf({ draft, contexts }: Turn, id: number): number {
  const row = draft.context(id)
  const known = contexts.sizes.get(row)
  if (known !== undefined) return known
  const size = writeJson(mergedVariables(draft, contexts, [id])).length
  contexts.sizes.set(row, size)
  return size
}

const inMi = (characters: number): string => (characters / 1024 / 1024).toFixed(2).replace(/\.?0+$/, '')
