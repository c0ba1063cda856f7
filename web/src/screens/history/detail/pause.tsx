/** Lets a workflow rest, and go on. */
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { messageOf } from '../../../api/client.ts'
import { isWorkflowRunner, pauseExecution, resumeExecution } from '../../../api/execution.ts'
import type { ExecutionRecord } from '../../../api/records.ts'
import { notify } from '../../../components/notices.tsx'

export function Pause({
  record: { id, status, runner },
  onDone,
}: {
  record: ExecutionRecord
  onDone: () => void
}): JSX.Element | null {
  const [isBusy, setIsBusy] = useState(false)
  if (!isWorkflowRunner(runner.name)) return null
  const isPaused = status === 'paused' || status === 'pausing'
  if (!isPaused && status !== 'running') return null
  async function ask(): Promise<void> {
    setIsBusy(true)
    try {
      await (isPaused ? resumeExecution(id) : pauseExecution(id))
    } catch (error) {
      notify(`Could not ${isPaused ? 'resume' : 'pause'} the workflow: ${messageOf(error)}`, 'failure')
    }
    setIsBusy(false)
    onDone()
  }
  return (
    <button
      type="button"
      disabled={isBusy}
      title={isPaused ? undefined : 'Running tasks end; no further ones start until it is resumed'}
      onClick={() => void ask()}
    >
      {isPaused ? 'Resume' : 'Pause'}
    </button>
  )
}
