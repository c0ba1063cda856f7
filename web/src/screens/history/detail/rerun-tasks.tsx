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
  /** Those that repeat all their items. */
  const [reset, setReset] = useState<ReadonlySet<string>>(new Set())
  const [problem, setProblem] = useState<string>()
  const [isBusy, setIsBusy] = useState(false)

  async function rerun(): Promise<void> {
    setIsBusy(true)
    setProblem(undefined)
    try {
      const next = await change<ExecutionRecord>('POST', `executions/${id}/re_run`, {
        tasks: [...chosen],
        reset: [...reset].filter((name) => chosen.has(name)),
      })
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
        {choices.map(({ name, status, hasItems }) => (
          <div key={name}>
            <label class="check">
              <input
                type="checkbox"
                checked={chosen.has(name)}
                onChange={(event) => setChosen(withName(chosen, name, event.currentTarget.checked))}
              />
              {name} <StatusBadge status={status} />
            </label>
            {hasItems && (
              <label class="check flow-choice-more">
                <input
                  type="checkbox"
                  aria-label={`Repeat all items of ${name}`}
                  disabled={!chosen.has(name)}
                  checked={reset.has(name)}
                  onChange={(event) => setReset(withName(reset, name, event.currentTarget.checked))}
                />
                Repeat all items, not just those without success
              </label>
            )}
          </div>
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

function withName(names: ReadonlySet<string>, name: string, isIn: boolean): ReadonlySet<string> {
  const next = new Set(names)
  if (isIn) next.add(name)
  else next.delete(name)
  return next
}
