import type { ComponentChildren, JSX, RefObject } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import { ApiError, get, list, request } from '../../api/client.ts'
import { isWorkflowRunner } from '../../api/execution.ts'
import { useLoaded } from '../../api/load.ts'
import type { ActionRecord, ExecutionRecord, PolicyRecord } from '../../api/records.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { Failure } from '../../components/failure.tsx'
import { FieldType } from '../../components/form/field-type.tsx'
import { defaultTextOf, fieldsOf } from '../../components/form/field.ts'
import { LongText } from '../../components/long-text.tsx'
import { Table } from '../../components/table.tsx'
import { WorkflowDefinition } from '../../components/workflow/definition.tsx'
import { hrefOf } from '../../router.ts'
import { RecentExecutions } from './recent-executions.tsx'
import { RunForm } from './run-form.tsx'
import { RunPanel } from './run-panel.tsx'
import { writeJson } from '../../json.ts'

export interface ActionPageProps {
  actionRef: string
  /** Values of parameters. */
  query: URLSearchParams
  /** The next form to be shown takes the focus, and takes this back. */
  takesFocus: RefObject<boolean>
}

interface ShownAction {
  /** With the parameters of its runner. */
  whole: ActionRecord
  /** Names of the parameters that it says something about itself. */
  own: ReadonlySet<string>
}

export function ActionPage({ actionRef, query, takesFocus }: ActionPageProps): JSX.Element {
  const path = encodeURIComponent(actionRef)
  const { data, error, reload } = useLoaded(
    async (signal): Promise<ShownAction> => {
      const [whole, record] = await Promise.all([
        get<ActionRecord>(`actions/views/overview/${path}`, undefined, signal),
        get<ActionRecord>(`actions/${path}`, undefined, signal),
      ])
      return { whole, own: new Set(Object.keys(record.parameters)) }
    },
    [actionRef],
    ['action'],
  )
  const [run, setRun] = useState<ExecutionRecord>()

  if (error !== undefined && data === undefined) return <Failure error={error} onRetry={reload} />
  if (data === undefined) return <p class="loading">Loading…</p>
  const { whole, own } = data
  const { ref, enabled, description, runner_type: runner, pack } = whole
  return (
    <article class="action">
      <header class="page-head">
        <h2>{ref}</h2>
        {!enabled && (
          <span class="badge" data-status="disabled">
            disabled
          </span>
        )}
        <span class="spacer" />
        <CopyButton text={ref} title="Copy reference" />
      </header>
      {description !== '' && (
        <p class="action-description">
          <LongText text={description} />
        </p>
      )}
      <PackProblem pack={pack} />
      <div class="action-columns">
        <div class="action-main">
          <RunForm action={whole} own={own} query={query} takesFocus={takesFocus} onRun={setRun} />
          {run !== undefined && <RunPanel key={run.id} first={run} onRun={setRun} />}
        </div>
        <aside class="action-side" aria-label={`About ${ref}`}>
          <RecentExecutions actionRef={ref} />
          <section class="card">
            <h2>About</h2>
            <dl class="facts">
              <dt>Pack</dt>
              <dd>
                <a href={hrefOf(['actions'], { search: `${pack}.` })}>{pack}</a>
              </dd>
              <dt>Runner</dt>
              <dd>{runner}</dd>
              <Fact title="Entry point" value={whole.entry_point} />
              <Fact title="Metadata" value={whole.metadata_file} />
              {whole.tags.length > 0 && (
                <>
                  <dt>Tags</dt>
                  <dd class="tags">
                    {whole.tags.slice(0, 50).map(({ name, value }, i) => (
                      <span key={i} class="badge">
                        <bdi>{name.slice(0, 200)}</bdi>
                        {value !== '' && (
                          <>
                            : <bdi>{value.slice(0, 200)}</bdi>
                          </>
                        )}
                      </span>
                    ))}
                  </dd>
                </>
              )}
            </dl>
          </section>
          <Policies actionRef={ref} />
        </aside>
      </div>
      <Fold title="Parameters" count={Object.keys(whole.parameters).length}>
        <ParametersTable action={whole} own={own} />
      </Fold>
      {whole.entry_point === '' ? null : isWorkflowRunner(runner) ? (
        <section class="card" aria-label="Workflow">
          <h2>Workflow</h2>
          <Source path={path} isWorkflow />
        </section>
      ) : (
        <Fold title="Source">
          <Source path={path} isWorkflow={false} />
        </Fold>
      )}
    </article>
  )
}

/** Why runs of the action may fail before it begins. Whoever may not view the pack sees nothing of it. */
function PackProblem({ pack }: { pack: string }): JSX.Element | null {
  const { data } = useLoaded(
    (signal) => get<{ config_problem?: string }>(`packs/${encodeURIComponent(pack)}`, undefined, signal),
    [pack],
  )
  if (data?.config_problem === undefined) return null
  return (
    <p class="failure">
      The configuration of the pack has a problem: <LongText text={data.config_problem} />
    </p>
  )
}

function Fact({ title, value }: { title: string; value: string | undefined }): JSX.Element | null {
  if (value === undefined || value === '') return null
  return (
    <>
      <dt>{title}</dt>
      <dd>{value}</dd>
    </>
  )
}

/** What is inside is made when it is opened first. */
function Fold({ title, count, children }: { title: string; count?: number; children: ComponentChildren }): JSX.Element {
  const [wasOpened, setWasOpened] = useState(false)
  return (
    <details
      class="folded card"
      onToggle={(event) => {
        if (event.currentTarget.open) setWasOpened(true)
      }}
    >
      <summary>
        {title} {count !== undefined && <span class="count">{count}</span>}
      </summary>
      {wasOpened && children}
    </details>
  )
}

function ParametersTable({ action, own }: { action: ActionRecord; own: ReadonlySet<string> }): JSX.Element {
  const fields = useMemo(() => fieldsOf(action.parameters), [action])
  if (fields.length === 0) return <p class="hint">No parameters.</p>
  return (
    <Table>
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col">Type</th>
          <th scope="col">Default</th>
          <th scope="col">Source</th>
          <th scope="col">Description</th>
        </tr>
      </thead>
      <tbody>
        {fields.map((field) => (
          <tr key={field.name}>
            <th scope="row" class="code">
              {field.name}
            </th>
            <td>
              <FieldType field={field} />
            </td>
            <td class="code">{defaultTextOf(field) ?? ''}</td>
            <td>{own.has(field.name) ? 'action' : 'runner'}</td>
            <td>
              <LongText text={field.description} />
            </td>
          </tr>
        ))}
      </tbody>
    </Table>
  )
}

const SOURCE_AT_ONCE = 50_000

function Source({ path, isWorkflow }: { path: string; isWorkflow: boolean }): JSX.Element {
  const { data, error, reload } = useLoaded(
    async (signal) => {
      const response = await request('GET', `actions/views/entry_point/${path}`, { signal })
      return response.text()
    },
    [path],
    ['action'],
  )
  const [shown, setShown] = useState(SOURCE_AT_ONCE)
  if (error !== undefined && data === undefined) return <Failure error={error} onRetry={reload} />
  if (data === undefined) return <p class="loading">Loading…</p>
  const text = (
    <div class="action-source">
      <CopyButton text={data} title="Copy source" />
      <pre tabIndex={0}>{data.slice(0, shown)}</pre>
      {data.length > shown && (
        <button type="button" onClick={() => setShown(shown + SOURCE_AT_ONCE * 4)}>
          {data.length - shown} more characters
        </button>
      )}
    </div>
  )
  return isWorkflow ? <WorkflowDefinition text={data}>{text}</WorkflowDefinition> : text
}

function Policies({ actionRef }: { actionRef: string }): JSX.Element | null {
  const { data, error, reload } = useLoaded(
    (signal) => list<PolicyRecord>('policies', { resource_ref: actionRef }, signal),
    [actionRef],
    ['policy'],
  )
  // Who may run an action need not be allowed to see these.
  if (error instanceof ApiError && error.status === 403) return null
  if (error !== undefined && data === undefined) return <Failure error={error} onRetry={reload} />
  if (data === undefined || data.items.length === 0) return null
  return (
    <section class="card">
      <h2>Policies</h2>
      <ul class="list policies">
        {data.items.map(({ id, ref, description, policy_type: type, enabled, parameters }) => (
          <li key={id}>
            <strong>{ref}</strong> {!enabled && <span class="badge">disabled</span>}
            <div class="hint">{description}</div>
            <code>{type}</code> <code>{writeJson(parameters).slice(0, 500)}</code>
          </li>
        ))}
      </ul>
    </section>
  )
}
