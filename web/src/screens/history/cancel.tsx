/** Ending executions: one, or several that somebody has chosen. */
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { messageOf } from '../../api/client.ts'
import { isFinalStatus } from '../../api/execution-status.ts'
import { cancelExecution } from '../../api/execution.ts'
import type { ExecutionSummary } from '../../api/execution-summary.ts'
import { Confirm } from '../../components/dialog.tsx'
import { notify } from '../../components/notices.tsx'

/** Requests at once. */
const TOGETHER = 4

export function CancelSelected({
  selected,
  onClear,
}: {
  selected: readonly ExecutionSummary[]
  onClear: () => void
}): JSX.Element | null {
  const [isAsking, setIsAsking] = useState(false)
  const [isBusy, setIsBusy] = useState(false)
  if (selected.length === 0) return null
  const open = selected.filter(({ status }) => !isFinalStatus(status) && status !== 'canceling')

  async function cancelAll(): Promise<void> {
    setIsBusy(true)
    const { done, refusals } = await cancelEach(open.map(({ id }) => id))
    setIsBusy(false)
    const [refusal] = refusals
    if (done > 0) notify(`Canceled ${executions(done)}.`)
    if (refusal !== undefined) notify(`Could not cancel ${executions(refusals.length)}: ${refusal}`, 'failure')
    onClear()
  }

  return (
    <div class="selection" role="status">
      <span>{selected.length} selected</span>
      <button type="button" class="danger" disabled={open.length === 0 || isBusy} onClick={() => setIsAsking(true)}>
        {isBusy ? 'Canceling…' : open.length === 0 ? 'None to cancel' : `Cancel ${open.length}`}
      </button>
      <button type="button" class="quiet" onClick={onClear}>
        Clear selection
      </button>
      {isAsking && (
        <Confirm
          title={`Cancel ${executions(open.length)}?`}
          text="svc stops their process trees. The output so far is kept."
          action={`Cancel ${executions(open.length)}`}
          onConfirm={() => void cancelAll()}
          onClose={() => setIsAsking(false)}
        />
      )}
    </div>
  )
}

function executions(count: number): string {
  return count === 1 ? '1 execution' : `${count} executions`
}

async function cancelEach(ids: readonly string[]): Promise<{ done: number; refusals: string[] }> {
  const left = [...ids]
  const refusals: string[] = []
  const work = async (): Promise<void> => {
    for (let id = left.shift(); id !== undefined; id = left.shift()) {
      await cancelExecution(id).catch((error: unknown) => refusals.push(messageOf(error)))
    }
  }
  await Promise.all(Array.from({ length: TOGETHER }, work))
  return { done: ids.length - refusals.length, refusals }
}
