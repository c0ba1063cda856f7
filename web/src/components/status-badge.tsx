import type { JSX } from 'preact'

/** Of an execution, a trigger instance, an enforcement: the word says it, the colour helps. */
export function StatusBadge({ status }: { status: string }): JSX.Element {
  return (
    <span class="badge" data-status={status}>
      {status.replaceAll('_', ' ')}
    </span>
  )
}
