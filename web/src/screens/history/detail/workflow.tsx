/** A workflow that runs, or has run: its graph, and its tasks as a list. */
import type { JSX } from 'preact'
import { useMemo, useRef, useState } from 'preact/hooks'
import { ApiError, messageOf } from '../../../api/client.ts'
import { isFinalStatus } from '../../../api/execution-status.ts'
import type { ExecutionRecord, WorkflowRun, WorkflowTaskRecord } from '../../../api/records.ts'
import { Failure } from '../../../components/failure.tsx'
import { StatusBadge } from '../../../components/status-badge.tsx'
import { Table } from '../../../components/table.tsx'
import { Elapsed, Time } from '../../../components/time.tsx'
import { GraphView, showRow } from '../../../components/workflow/graph-view.tsx'
import { areSettled, progressOf, statesOf, takenOf } from '../../../components/workflow/run.ts'
import { hrefOf } from '../../../router.ts'
import { RerunTasks } from './rerun-tasks.tsx'
import { MAX_TASKS, useWorkflow } from './use-workflow.ts'

const MAX_LINKS = 5

export function Workflow({ record, query }: { record: ExecutionRecord; query: URLSearchParams }): JSX.Element {
  const { run, tasks, model, error, graphError, reload } = useWorkflow(record.id)
  const [isRerun, setIsRerun] = useState(false)
  const list = useRef<HTMLDivElement>(null)
  const states = useMemo(() => statesOf(tasks), [tasks])
  const taken = useMemo(() => takenOf(tasks), [tasks])
  // There is none before it starts, or when it could not start.
  const isNone = error instanceof ApiError && error.code === 'NOT_A_WORKFLOW'
  if (run === undefined) {
    if (isNone) return <p class="hint">{messageOf(error)}</p>
    return error === undefined ? <p class="loading">Loading…</p> : <Failure error={error} onRetry={reload} />
  }
  return (
    <section class="card flow-part" aria-label="Workflow">
      <div class="card-head">
        <h2>Workflow</h2>
        <span class="hint">{countsText(run)}</span>
        <span class="spacer" />
        {run.runner === 'orquesta' && (
          <button
            type="button"
            // The list can be older than the status of the execution.
            disabled={!isFinalStatus(record.status) || run.end_timestamp === null || !areSettled(tasks)}
            onClick={() => setIsRerun(true)}
          >
            Re-run from tasks
          </button>
        )}
      </div>
      {error !== undefined && <Failure error={error} onRetry={reload} />}
      <div class="flow-columns" data-of="run">
        {model !== undefined ? (
          <GraphView model={model} states={states} taken={taken} onChoose={(name) => showRow(list.current, name)} />
        ) : graphError !== undefined ? (
          <Failure error={graphError} onRetry={reload} />
        ) : (
          <p class="loading">Loading…</p>
        )}
        <div ref={list} class="flow-list">
          <Tasks tasks={tasks} />
          {run.counts.total > tasks.length && (
            <p class="hint">
              Graph and list have the first {MAX_TASKS} of {run.counts.total.toLocaleString()} tasks.{' '}
              <a href={hrefOf(['history', record.id, 'children'])}>Show child executions</a>
            </p>
          )}
        </div>
      </div>
      {isRerun && <RerunTasks record={record} tasks={tasks} query={query} onClose={() => setIsRerun(false)} />}
    </section>
  )
}

function countsText({ counts: { total, ...counts } }: WorkflowRun): string {
  const parts = Object.entries(counts).flatMap(([status, count]) => (count === 0 ? [] : [`${count} ${status}`]))
  const tasks = total === 1 ? '1 task started' : `${total.toLocaleString()} tasks started`
  return parts.length === 0 ? tasks : `${tasks}: ${parts.join(', ')}`
}

function Tasks({ tasks }: { tasks: readonly WorkflowTaskRecord[] }): JSX.Element {
  if (tasks.length === 0) return <p class="hint">No task has started yet.</p>
  return (
    <Table label="Tasks">
      <thead>
        <tr>
          <th scope="col">Task</th>
          <th scope="col">Route</th>
          <th scope="col">Status</th>
          <th scope="col">Started</th>
          <th scope="col">Elapsed</th>
          <th scope="col">Execution</th>
        </tr>
      </thead>
      <tbody>
        {tasks.map((task) => (
          <Row key={task.position} task={task} />
        ))}
      </tbody>
    </Table>
  )
}

function Row({ task }: { task: WorkflowTaskRecord }): JSX.Element {
  const { name, route, pass, status, start_timestamp: start, elapsed_seconds: seconds } = task
  const notes = progressOf(task)
  return (
    <tr tabIndex={-1} data-row={name}>
      <th scope="row" class="code">
        {name}
      </th>
      <td class="number">
        {route}
        {pass > 1 && `, pass ${pass}`}
      </td>
      <td>
        <StatusBadge status={status} />
        {notes.length > 0 && <div class="hint">{notes.join(', ')}</div>}
        <Waits task={task} />
      </td>
      <td class="number">{start !== null && <Time at={start} isShort />}</td>
      <td class="number">{start !== null && <Elapsed from={start} seconds={seconds ?? undefined} />}</td>
      <td>
        <Executions task={task} />
      </td>
    </tr>
  )
}

const waitingFor = { delay: 'starts later', inquiry: 'waits for an answer', resume: 'waits to be resumed' } as const

function Waits({ task: { waits_for: waits } }: { task: WorkflowTaskRecord }): JSX.Element | null {
  if (waits === null) return null
  return (
    <div class="hint">
      <a href={hrefOf(['history', waits.execution, 'general'])}>{waitingFor[waits.kind]}</a>
    </div>
  )
}

function Executions({ task }: { task: WorkflowTaskRecord }): JSX.Element | null {
  const { name, action, executions, executions_total: total, items } = task
  const [only] = executions
  if (only === undefined) return null
  if (items === null && total === 1) {
    return <a href={hrefOf(['history', only, 'general'])}>{action ?? 'execution'}</a>
  }
  const shown = executions.slice(0, MAX_LINKS)
  return (
    <>
      {shown.map((id, i) => (
        <span key={id}>
          <a href={hrefOf(['history', id, 'general'])} aria-label={`Execution ${i + 1} of ${name}`}>
            {i + 1}
          </a>{' '}
        </span>
      ))}
      {total > shown.length && <span class="hint">and {(total - shown.length).toLocaleString()} more</span>}
    </>
  )
}
