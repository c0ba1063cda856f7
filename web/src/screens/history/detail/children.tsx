/** What an execution has started, as a tree that grows while it runs. */
import type { JSX } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { get } from '../../../api/client.ts'
import { useExecutionEvents } from '../../../api/execution-events.ts'
import { isFinalStatus } from '../../../api/execution-status.ts'
import { summaryQuery, type ExecutionSummary } from '../../../api/execution-summary.ts'
import { useLoaded } from '../../../api/load.ts'
import type { ExecutionRecord } from '../../../api/records.ts'
import { Failure } from '../../../components/failure.tsx'
import { StatusBadge } from '../../../components/status-badge.tsx'
import { Elapsed } from '../../../components/time.tsx'
import { hrefOf } from '../../../router.ts'
import { parametersText } from '../row-text.ts'
import { branchesOf, emptyTree, MAX_NODES, withExecutions, type Tree, type TreeNode } from './tree.ts'

export function Children({ record: { id, status } }: { record: ExecutionRecord }): JSX.Element {
  const [tree, setTree] = useState<Tree>(emptyTree)
  const latest = useRef(tree)
  function take(executions: readonly ExecutionSummary[], isCut = false): void {
    const next = withExecutions(latest.current, executions, id)
    latest.current = isCut ? { ...next, isCut } : next
    setTree(latest.current)
  }
  const { error, isLoading, reload } = useLoaded(
    async (signal) => {
      const query = { ...summaryQuery, limit: MAX_NODES }
      const found = await get<ExecutionSummary[]>(`executions/${id}/children`, query, signal)
      take(found, found.length === MAX_NODES)
    },
    [id],
  )
  useExecutionEvents({
    onOpen: reload,
    onExecution(execution) {
      const { parent = '' } = execution
      if (parent === id || latest.current.nodes.has(parent)) take([execution])
    },
  })
  const branches = branchesOf(tree, id)
  return (
    <section class="card" aria-label="Children">
      <div class="card-head">
        <h2>Children</h2>
        <a href={hrefOf(['history'], { parent: id })}>Show as list</a>
      </div>
      {error !== undefined && <Failure error={error} onRetry={reload} />}
      {branches.length === 0 ? (
        <p class="hint">
          {isLoading ? 'Loading…' : isFinalStatus(status) ? 'No child executions.' : 'No child executions so far.'}
        </p>
      ) : (
        <Branches nodes={branches} />
      )}
      {tree.isCut && (
        <p class="hint">
          Showing the first {MAX_NODES}. <a href={hrefOf(['history'], { parent: id })}>Show all</a>
        </p>
      )}
    </section>
  )
}

function Branches({ nodes }: { nodes: readonly TreeNode[] }): JSX.Element {
  return (
    <ul class="tree">
      {nodes.map((node) => (
        <Branch key={node.execution.id} node={node} />
      ))}
    </ul>
  )
}

function Branch({ node: { execution, children } }: { node: TreeNode }): JSX.Element {
  const [isOpen, setIsOpen] = useState(true)
  return (
    <li>
      {children.length > 0 && (
        <button
          type="button"
          class="quiet fold"
          aria-expanded={isOpen}
          aria-label={`Children of ${execution.action.ref}`}
          onClick={() => setIsOpen(!isOpen)}
        >
          {isOpen ? '▾' : '▸'}
        </button>
      )}
      <Child execution={execution} />
      {isOpen && children.length > 0 && <Branches nodes={children} />}
    </li>
  )
}

function Child({ execution }: { execution: ExecutionSummary }): JSX.Element {
  const { id, action, status, start_timestamp: start, elapsed_seconds: seconds } = execution
  return (
    <span class="child">
      <StatusBadge status={status} />
      <a href={hrefOf(['history', id, 'general'])}>{action.ref}</a>
      <span class="parameters">{parametersText(execution)}</span>
      <span class="hint">
        <Elapsed from={start} seconds={isFinalStatus(status) ? (seconds ?? 0) : undefined} />
      </span>
    </span>
  )
}
