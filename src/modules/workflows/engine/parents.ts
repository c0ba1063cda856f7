/** The executions of the tasks of a run: a re-run has those of the executions before it, too. */
import type { Executions } from '../../executions/index.ts'
import type { Execution } from '../../executions/types.ts'
import type { WorkflowHeader } from '../store.ts'

type Source = Pick<Executions, 'openChildren'>
type Place = Pick<WorkflowHeader, 'execution' | 'earlier'>

/** Ids of the executions that run it, and have run it, and may have open children. */
const parentsOf = ({ execution, earlier }: Place): string[] => [
  execution,
  ...(earlier === null ? [] : earlier.split(' ')),
]

/** The oldest that have not ended. */
export function openChildrenOf(executions: Source, run: Place, afterId: string, limit: number): Execution[] {
  const [own, ...others] = parentsOf(run).map((id) => executions.openChildren(id, afterId, limit))
  if (others.length === 0) return own ?? []
  return [...(own ?? []), ...others.flat()].sort((a, b) => (a.id < b.id ? -1 : 1)).slice(0, limit)
}

export const hasOpenChild = (executions: Source, run: Place): boolean =>
  openChildrenOf(executions, run, '', 1).length > 0

/** `WorkflowHeader.earlier` of the re-run of a run. */
export function earlierOf(executions: Source, run: Place): string | null {
  const open = parentsOf(run).filter((id) => executions.openChildren(id, '', 1).length > 0)
  return open.length === 0 ? null : open.join(' ')
}
