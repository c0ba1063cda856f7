/** Problem, result, parameters and details of an execution. */
import type { ComponentChildren, JSX } from 'preact'
import { useState } from 'preact/hooks'
import { get, messageOf, request } from '../../../api/client.ts'
import { isFinalStatus } from '../../../api/execution-status.ts'
import type { ExecutionRecord } from '../../../api/records.ts'
import { InquiryById } from '../../../components/inquiry-form.tsx'
import { JsonTree } from '../../../components/json-tree.tsx'
import { notify } from '../../../components/notices.tsx'
import { formatBytes } from '../../../components/size.ts'
import { Elapsed, Time, useNow } from '../../../components/time.tsx'
import { hrefOf } from '../../../router.ts'
import { problemOf } from './problem.ts'
import { readResult, type CommandResult, type ReadResult } from './result.ts'
import { TextBlock } from './text-block.tsx'
import type { TraceName } from './trace.ts'
import { waitingOf } from './waiting.ts'

/** A browser has no pleasure in more. */
const MAX_SHOWN_BYTES = 14 * 1024 * 1024
const MAX_HOSTS = 50

export interface GeneralProps {
  record: ExecutionRecord
  trace: TraceName | undefined
  onChange: () => void
}

export function General({ record, trace, onChange }: GeneralProps): JSX.Element {
  const { status, runner } = record
  const isAsking = status === 'pending' && runner.name === 'inquirer'
  return (
    <div class="general">
      <div class="general-main">
        <Problem record={record} />
        {!isFinalStatus(status) && status !== 'running' && <Waits record={record} />}
        {isAsking && (
          <section class="card" aria-label="Answer">
            <h2>Answer</h2>
            <InquiryById id={record.id} onResponse={onChange} />
          </section>
        )}
        {!isAsking && <Result record={record} />}
        <Parameters record={record} />
      </div>
      <Facts record={record} trace={trace} />
    </div>
  )
}

function Parameters({ record: { id, parameters, parameters_size: size } }: { record: ExecutionRecord }): JSX.Element {
  const [loaded, setLoaded] = useState<Record<string, unknown>>()
  const shown = loaded ?? parameters
  async function load(): Promise<void> {
    const query = { include_attributes: 'parameters' }
    setLoaded((await get<Pick<ExecutionRecord, 'parameters'>>(`executions/${id}`, query)).parameters)
  }
  return (
    <section class="card" aria-label="Parameters">
      <div class="card-head">
        <h2>Parameters</h2>
        {size !== undefined && <span class="hint">{formatBytes(size)}</span>}
      </div>
      {shown !== undefined ? (
        <JsonTree value={shown} />
      ) : size !== undefined ? (
        <LeftOut load={load} />
      ) : (
        <p class="hint">No parameters.</p>
      )}
    </section>
  )
}

function Problem({ record }: { record: ExecutionRecord }): JSX.Element | null {
  const problem = problemOf(record)
  if (problem === undefined) return null
  return (
    <section class="card went-wrong" data-status={record.status} aria-label="Problem">
      <h2>{problem.title}</h2>
      {problem.text !== undefined && <pre tabIndex={0}>{problem.text}</pre>}
      {problem.traceback !== undefined && (
        <details>
          <summary>Traceback</summary>
          <TextBlock title="Traceback" text={problem.traceback} />
        </details>
      )}
    </section>
  )
}

function Waits({ record }: { record: ExecutionRecord }): JSX.Element | null {
  const waiting = waitingOf(record, useNow())
  if (waiting === undefined) return null
  const { sentence, until, isBehindOthers } = waiting
  return (
    <section class="card waits" aria-label="Waiting">
      <p>
        {sentence}
        {until !== undefined && (
          <>
            {' '}
            <Time at={until} />.
          </>
        )}
        {isBehindOthers === true && (
          <>
            {' '}
            <a
              href={hrefOf(['history'], {
                action: record.action.ref,
                status: 'scheduled,running,canceling',
                children: '1',
              })}
            >
              Show running executions
            </a>
          </>
        )}
      </p>
    </section>
  )
}

function Result({ record }: { record: ExecutionRecord }): JSX.Element {
  const { id, result, result_size: size = 0, status } = record
  const [loaded, setLoaded] = useState<{ value: unknown }>()
  const value = loaded === undefined ? result : loaded.value
  const isLeftOut = value === undefined && size > 0 && isFinalStatus(status)
  return (
    <section class="card" aria-label="Result">
      <div class="card-head">
        <h2>Result</h2>
        {size > 0 && (
          <>
            <span class="hint">{formatBytes(size)}</span>
            <Download id={id} />
          </>
        )}
      </div>
      {isLeftOut && size > MAX_SHOWN_BYTES ? (
        <p>The result is too large to show here. Download it instead.</p>
      ) : isLeftOut ? (
        <LeftOut
          load={async () => setLoaded({ value: await (await request('GET', `executions/${id}/result`)).json() })}
        />
      ) : value === undefined ? (
        <p class="hint">{isFinalStatus(status) ? 'No result.' : 'No result yet: the execution has not ended.'}</p>
      ) : (
        <ResultParts result={readResult(value)} />
      )}
    </section>
  )
}

/** What is large, on demand. */
function LeftOut({ load }: { load: () => Promise<void> }): JSX.Element {
  const [isBusy, setIsBusy] = useState(false)
  return (
    <p>
      Not loaded: it is large.{' '}
      <button
        type="button"
        disabled={isBusy}
        onClick={() => {
          setIsBusy(true)
          load()
            .catch((error: unknown) => notify(messageOf(error), 'failure'))
            .finally(() => setIsBusy(false))
        }}
      >
        {isBusy ? 'Loading…' : 'Show'}
      </button>
    </p>
  )
}

/** By a request of the page: a link would have no token where the browser keeps no cookie. */
function Download({ id }: { id: string }): JSX.Element {
  const [isBusy, setIsBusy] = useState(false)
  async function download(): Promise<void> {
    setIsBusy(true)
    try {
      const response = await request('GET', `executions/${id}/result`, { query: { pretty_format: true } })
      const address = URL.createObjectURL(await response.blob())
      const link = document.createElement('a')
      link.href = address
      link.download = `execution_${id}_result.json`
      link.click()
      URL.revokeObjectURL(address)
    } catch (error) {
      notify(messageOf(error), 'failure')
    }
    setIsBusy(false)
  }
  return (
    <button type="button" class="copy" disabled={isBusy} onClick={() => void download()}>
      {isBusy ? 'Downloading…' : 'Download'}
    </button>
  )
}

function ResultParts({ result }: { result: ReadResult }): JSX.Element {
  switch (result.kind) {
    case 'command':
      return <Command result={result} />
    case 'hosts':
      return (
        <>
          {result.hosts.slice(0, MAX_HOSTS).map(({ name, result: one }) => (
            <details key={name} class="host" open={result.hosts.length <= 3 || one.exitCode !== 0}>
              <summary>
                {name} <span class="hint">{one.exitCode === undefined ? '' : `exit code ${one.exitCode}`}</span>
              </summary>
              <Command result={one} />
            </details>
          ))}
          {result.hosts.length > MAX_HOSTS && (
            <p class="hint">{result.hosts.length - MAX_HOSTS} more hosts are in the raw record.</p>
          )}
        </>
      )
    case 'other':
      return <JsonTree value={result.value} />
  }
}

function Command({ result: { exitCode, stdout, stderr, rest } }: { result: CommandResult }): JSX.Element {
  const { result: returned, ...others } = rest
  const cut = 'truncated: see the output for all of it'
  return (
    <div class="command-result">
      {exitCode !== undefined && (
        <p>
          Exit code <code>{exitCode}</code>
        </p>
      )}
      {returned !== undefined && returned !== null && returned !== 'None' && (
        <div>
          <span class="label">Returned</span>
          <JsonTree value={returned} />
        </div>
      )}
      {stdout.text !== '' && (
        <TextBlock title="Standard output" text={stdout.text} {...(stdout.isCut && { note: cut })} />
      )}
      {stderr.text !== '' && (
        <TextBlock title="Standard error" text={stderr.text} {...(stderr.isCut && { note: cut })} />
      )}
      {stdout.text === '' && stderr.text === '' && <p class="hint">No output.</p>}
      {Object.keys(others).length > 0 && <JsonTree value={others} />}
    </div>
  )
}

function Facts({ record, trace }: { record: ExecutionRecord; trace: TraceName | undefined }): JSX.Element {
  const {
    status,
    context,
    runner,
    liveaction,
    start_timestamp: start,
    end_timestamp: end,
    elapsed_seconds: seconds,
    delay,
  } = record
  const { hostname, pid } = liveaction.runner_info
  return (
    <aside class="card general-facts" aria-label="Details">
      <h2>Details</h2>
      <dl class="facts">
        <Origin record={record} trace={trace} />
        <Fact title="User">{context.user}</Fact>
        {context.cancelled_by !== undefined && <Fact title="Canceled by">{context.cancelled_by}</Fact>}
        <Fact title="Runner">{runner.name}</Fact>
        <Fact title="Started">
          <Time at={start} />
        </Fact>
        {end !== undefined && (
          <Fact title="Ended">
            <Time at={end} />
          </Fact>
        )}
        <Fact title="Duration">
          <Elapsed from={start} seconds={isFinalStatus(status) ? (seconds ?? 0) : undefined} />
        </Fact>
        {delay !== undefined && <Fact title="Delay">{(delay / 1000).toLocaleString()} s</Fact>}
        {hostname !== undefined && (
          <Fact title="Host">
            {hostname}
            {pid !== undefined && `, process ${pid}`}
          </Fact>
        )}
      </dl>
      <details>
        <summary>Context</summary>
        <JsonTree value={context} />
      </details>
    </aside>
  )
}

function Fact({ title, children }: { title: string; children: ComponentChildren }): JSX.Element {
  return (
    <>
      <dt>{title}</dt>
      <dd>{children}</dd>
    </>
  )
}

/** Why it has run: the way from what happened to this execution. */
function Origin({ record, trace }: { record: ExecutionRecord; trace: TraceName | undefined }): JSX.Element {
  const { context, rule, trigger_type: triggerType, trigger_instance: instance, parent } = record
  const rerun = context['re-run']
  const retry = context.policies?.retry
  const isAskedFor = rule === undefined && parent === undefined && rerun === undefined && retry === undefined
  return (
    <>
      {isAskedFor && <Fact title="Started by">a request of {context.user}</Fact>}
      {rule !== undefined && (
        <Fact title={rerun === undefined ? 'Rule' : 'Rule of the original'}>
          {'ref' in rule ? <a href={hrefOf(['rules', rule.ref])}>{rule.ref}</a> : rule.name}
        </Fact>
      )}
      {triggerType !== undefined && (
        <Fact title="Trigger type">{'ref' in triggerType ? triggerType.ref : triggerType.name}</Fact>
      )}
      {instance !== undefined && (
        <Fact title="Trigger instance">
          <a href={hrefOf(['triggers', 'instances', instance.id])}>
            <code>{instance.id}</code>
          </a>
        </Fact>
      )}
      {parent !== undefined && (
        <Fact title="Parent">
          <Link id={parent} />
        </Fact>
      )}
      {rerun !== undefined && (
        <Fact title="Re-run of">
          <Link id={rerun.ref} />
        </Fact>
      )}
      {retry !== undefined && (
        <Fact title="Retry">
          number {retry.retry_count}, by the policy {retry.applied_policy}
        </Fact>
      )}
      {trace !== undefined && (
        <Fact title="Trace">
          <a href={hrefOf(['traces', trace.id])}>{trace.trace_tag}</a>
        </Fact>
      )}
    </>
  )
}

function Link({ id }: { id: string }): JSX.Element {
  return (
    <a href={hrefOf(['history', id, 'general'])}>
      <code>{id}</code>
    </a>
  )
}
