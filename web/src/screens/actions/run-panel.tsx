import type { JSX, RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { change, messageOf } from '../../api/client.ts'
import { isFinalStatus } from '../../api/execution-status.ts'
import { cancelExecution, MAX_RESULT_BYTES, useExecution } from '../../api/execution.ts'
import type { ExecutionRecord } from '../../api/records.ts'
import { Failure } from '../../components/failure.tsx'
import { InquiryById } from '../../components/inquiry-form.tsx'
import { JsonTree } from '../../components/json-tree.tsx'
import { OutputPane } from '../../components/output/output-pane.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { Elapsed } from '../../components/time.tsx'
import { hrefOf } from '../../router.ts'

/** The execution that the form has started, while it runs and after it. */
export function RunPanel({
  first,
  onRun,
}: {
  first: ExecutionRecord
  onRun: (execution: ExecutionRecord) => void
}): JSX.Element {
  const { record, error, reload } = useExecution(first)
  const [problem, setProblem] = useState<string>()
  const [isBusy, setIsBusy] = useState(false)
  const element = useRef<HTMLElement>(null)
  useInSight(element)

  const { id, status, start_timestamp: start, end_timestamp: end, elapsed_seconds: seconds } = record
  const isOver = isFinalStatus(status)
  // The server refuses to cancel what waits for an answer.
  const canBeCanceled = !isOver && status !== 'canceling' && status !== 'pending'

  function ask(what: () => Promise<void>): void {
    setProblem(undefined)
    setIsBusy(true)
    what()
      .catch((failure: unknown) => setProblem(messageOf(failure)))
      .finally(() => setIsBusy(false))
  }
  async function cancel(): Promise<void> {
    try {
      await cancelExecution(id)
    } finally {
      reload()
    }
  }
  async function runAgain(): Promise<void> {
    onRun(await change<ExecutionRecord>('POST', `executions/${id}/re_run`, {}))
  }

  return (
    <section class="card run" aria-label="Current run" ref={element}>
      <header class="page-head">
        <h2>Current run</h2>
        <span role="status">
          <StatusBadge status={status} />
        </span>
        <span class="hint">
          <Elapsed from={start} seconds={end === undefined ? undefined : (seconds ?? 0)} />
        </span>
        <span class="spacer" />
        <a href={hrefOf(['history', id])}>Open execution</a>
        {canBeCanceled && (
          <button type="button" class="danger" disabled={isBusy} onClick={() => ask(cancel)}>
            Cancel
          </button>
        )}
        {isOver && (
          <button type="button" disabled={isBusy} title="Run with the same parameters" onClick={() => ask(runAgain)}>
            Re-run
          </button>
        )}
      </header>
      {problem !== undefined && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      {error !== undefined && <Failure error={error} onRetry={reload} />}
      {status === 'pending' && record.runner.name === 'inquirer' && <InquiryById id={id} onResponse={reload} />}
      <div class="run-output">
        <OutputPane executionId={id} status={status} usesAddress={false} />
      </div>
      {isOver && <Result execution={record} />}
    </section>
  )
}

/** Keeps what grows in sight until somebody looks elsewhere. */
function useInSight(element: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const { current } = element
    if (current === null) return
    const ended = new AbortController()
    const observer = new ResizeObserver(() => current.scrollIntoView({ block: 'nearest' }))
    observer.observe(current)
    const stop = (): void => {
      observer.disconnect()
      ended.abort()
    }
    for (const name of ['wheel', 'touchmove', 'pointerdown', 'keydown']) {
      window.addEventListener(name, stop, { signal: ended.signal, passive: true })
    }
    return stop
  }, [])
}

function Result({ execution }: { execution: ExecutionRecord }): JSX.Element {
  const { id, result, result_size: size = 0 } = execution
  return (
    <div class="run-result">
      <h3>Result</h3>
      {result !== undefined ? (
        <JsonTree value={result} />
      ) : size > MAX_RESULT_BYTES ? (
        <p class="hint">
          It has {size.toLocaleString()} bytes. <a href={hrefOf(['history', id])}>Open the execution to see it</a>
        </p>
      ) : (
        <p class="hint">{size > 0 ? 'Loading…' : 'No result.'}</p>
      )}
    </div>
  )
}
