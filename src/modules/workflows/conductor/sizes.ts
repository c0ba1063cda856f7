/** How much a run may publish, and how much of it a task may see. Sizes are characters of JSON. */
import { keysOf, writeJson } from '../../../lib/json/index.ts'
import { addContext, mergedVariables, type Variables } from './contexts.ts'
import type { Draft } from './draft.ts'
import { ConductError, type Turn } from './turn.ts'
import type { Limits } from './types.ts'

/**
 * Adds a context, unless it is too large.
 *
 * @returns its number
 * @throws ConductError when it is too large, or the run has published too much
 */
export function addLimitedContext(turn: Turn, parents: readonly number[], values: Variables): number {
  const { draft, contexts, limits } = turn
  const own = sizeOf(values)
  const most = parents.reduce((sum, parent) => sum + sizeOfContext(turn, parent), own)
  const exact = (): number => sizeOf(mergedVariables(draft, contexts, parents, values))
  const size = countContext(draft, limits, { own, most, exact })
  const id = parents.length === 0 ? draft.addContext([], values) : addContext(draft, parents, values)
  const row = draft.context(id)
  if (!contexts.sizes.has(row)) contexts.sizes.set(row, size)
  return id
}

function sizeOfContext({ draft, contexts }: Turn, id: number): number {
  const row = draft.context(id)
  const known = contexts.sizes.get(row)
  if (known !== undefined) return known
  const size = sizeOf(mergedVariables(draft, contexts, [id]))
  contexts.sizes.set(row, size)
  return size
}

export interface ContextSize {
  /** Of the values that it adds. */
  readonly own: number
  /** Of all variables, at most: some of them may replace others. */
  readonly most: number
  /** Of all variables. It takes a look at each, and is only asked for when `most` exceeds the limit. */
  readonly exact: () => number
}

/**
 * Counts a context that is about to be added, unless it is too large.
 *
 * @returns a size that it does not exceed
 * @throws ConductError as `addLimitedContext`
 */
export function countContext(draft: Draft, limits: Limits, { own, most, exact }: ContextSize): number {
  const published = draft.workflow.published + own
  if (published > limits.maxPublished)
    throw new ConductError(
      'LimitError',
      `The workflow has published ${inMi(published)} Mi characters; a run may publish ${inMi(limits.maxPublished)} Mi. Keep large data in files, and publish where it is.`,
    )
  const size = most > limits.maxContextSize ? exact() : most
  if (size > limits.maxContextSize)
    throw new ConductError(
      'LimitError',
      `The variables of the workflow would have ${inMi(size)} Mi characters; they may have ${inMi(limits.maxContextSize)} Mi. Publish less, or keep large data in files.`,
    )
  draft.setWorkflow({ published })
  return size
}

export const sizeOf = (values: Variables): number => (keysOf(values).length === 0 ? 0 : writeJson(values).length)

export const inMi = (characters: number): string => (characters / 1024 / 1024).toFixed(2).replace(/\.?0+$/, '')
