/** Runs chosen tasks of a workflow again, and what follows from them. */
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { change, messageOf } from '../../../api/client.ts'
import type { ExecutionRecord, WorkflowTaskRecord } from '../../../api/records.ts'
import { Dialog } from '../../../components/dialog.tsx'
import { StatusBadge } from '../../../components/status-badge.tsx'
import { rerunChoices } from '../../../components/workflow/run.ts'
import { hrefOf, navigate } from '../../../router.ts'
import { addressOfFilter, historyFilterOf } from '../filters.ts'

export function RerunTasks({
  record: { id, action },
  tasks,
  query,
  onClose,
}: {
  record: ExecutionRecord
  tasks: readonly WorkflowTaskRecord[]
  query: URLSearchParams
  onClose: () => void
}): JSX.Element {
  // What is chosen stays, whatever happens meanwhile.
  const [choices] = useState(() => rerunChoices(tasks))
  const [chosen, setChosen] = useState<ReadonlySet<string>>(
    () => new Set(choices.filter(({ isProposed }) => isProposed).map(({ name }) => name)),
  )
  const [problem, setProblem] = useState<string>()
  const [isBusy, setIsBusy] = useState(false)

  async function rerun(): Promise<void> {
    setIsBusy(true)
    setProblem(undefined)
    try {
      const next = await change<ExecutionRecord>('POST', `executions/${id}/re_run`, { tasks: [...chosen] })
      onClose()
      navigate(hrefOf(['history', next.id, 'workflow'], addressOfFilter(historyFilterOf(query))))
    } catch (error) {
      setProblem(messageOf(error))
      setIsBusy(false)
    }
  }

  return (
    <Dialog title={`Re-run tasks of ${action.ref}`} onClose={onClose}>
      <p>The workflow goes on from these tasks. What the others have done stays.</p>
      <fieldset class="flow-choices">
        <legend>Tasks</legend>
        {choices.map(({ name, status }) => (
          <label key={name} class="check">
            <input
              type="checkbox"
              checked={chosen.has(name)}
              onChange={(event) => {
                const next = new Set(chosen)
                if (event.currentTarget.checked) next.add(name)
                else next.delete(name)
                setChosen(next)
              }}
            />
            {name} <StatusBadge status={status} />
          </label>
        ))}
      </fieldset>
      {problem !== undefined && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      <div class="buttons">
        <button type="button" onClick={onClose}>
          Go back
        </button>
        <button type="button" class="primary" disabled={chosen.size === 0 || isBusy} onClick={() => void rerun()}>
          {isBusy ? 'Starting…' : 'Re-run'}
        </button>
      </div>
    </Dialog>
  )
}
