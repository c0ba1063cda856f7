/** A workflow that is watched while it runs: its graph, its status and its tasks. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { get, isAbort } from '../../../api/client.ts'
import { useExecutionEvents } from '../../../api/execution-events.ts'
import { useLoaded } from '../../../api/load.ts'
import type { WorkflowGraph, WorkflowRun, WorkflowTaskRecord } from '../../../api/records.ts'
import { modelOf, type GraphModel } from '../../../components/workflow/graph.ts'
import { lastSettled } from '../../../components/workflow/run.ts'

/** However often something happens, it is read once in this time. */
const EVERY_MS = 1000
const PAGE_SIZE = 200
/** As many are shown. */
export const MAX_TASKS = 600

export interface WatchedWorkflow {
  /** Undefined until it is loaded. */
  run: WorkflowRun | undefined
  /** The first ones, in the order of their starts. */
  tasks: readonly WorkflowTaskRecord[]
  model: GraphModel | undefined
  error: unknown
  graphError: unknown
  readonly reload: () => void
}

export function useWorkflow(id: string): WatchedWorkflow {
  const [shown, setShown] = useState<{ run: WorkflowRun; tasks: readonly WorkflowTaskRecord[] }>()
  const [error, setError] = useState<unknown>()
  const latest = useRef(shown)
  const [reader] = useState(() => createReader(read))
  useEffect(() => () => reader.stop(), [])

  async function read(signal: AbortSignal): Promise<void> {
    try {
      const next = await readTasks(id, latest.current, signal)
      latest.current = next
      setShown(next)
      setError(undefined)
    } catch (failure) {
      if (!isAbort(failure)) setError(failure)
    }
  }

  useExecutionEvents({
    onOpen: reader.ask,
    onExecution(execution) {
      const { parent } = execution
      // After a re-run from tasks another execution runs the same workflow.
      const runs = latest.current?.run.execution
      if (execution.id === id || parent === id || (runs !== undefined && (execution.id === runs || parent === runs)))
        reader.ask()
    },
  })
  const isLoaded = shown !== undefined
  // It exists once the workflow has started.
  const graph = useLoaded(
    async (signal) =>
      isLoaded ? modelOf(await get<WorkflowGraph>(`executions/${id}/workflow/graph`, undefined, signal)) : undefined,
    [id, isLoaded],
  )
  return {
    run: shown?.run,
    tasks: shown?.tasks ?? [],
    model: graph.data,
    error,
    graphError: graph.error,
    reload() {
      reader.ask()
      if (graph.error !== undefined) graph.reload()
    },
  }
}

/** @param known what was read before: what has ended stays as it is, unless the workflow goes on after its end */
async function readTasks(
  id: string,
  known: { run: WorkflowRun; tasks: readonly WorkflowTaskRecord[] } | undefined,
  signal: AbortSignal,
): Promise<{ run: WorkflowRun; tasks: readonly WorkflowTaskRecord[] }> {
  const settled = known === undefined || known.run.end_timestamp !== null ? -1 : lastSettled(known.tasks)
  const tasks = known?.tasks.filter(({ position }) => position <= settled) ?? []
  let after = settled
  for (;;) {
    const run = await get<WorkflowRun>(`executions/${id}/workflow`, { after, limit: PAGE_SIZE }, signal)
    tasks.push(...run.tasks)
    if (run.next === null || tasks.length >= MAX_TASKS) return { run, tasks: tasks.slice(0, MAX_TASKS) }
    after = run.next
  }
}

/** Reads at once, and then at most once in `EVERY_MS`; who asks meanwhile is served by the next reading. */
function createReader(read: (signal: AbortSignal) => Promise<void>): { ask: () => void; stop: () => void } {
  const controller = new AbortController()
  const { signal } = controller
  let timer: ReturnType<typeof setTimeout> | undefined
  let isReading = false
  let isAsked = false
  let lastAt = -Infinity
  async function run(): Promise<void> {
    timer = undefined
    isReading = true
    isAsked = false
    lastAt = performance.now()
    await read(signal)
    isReading = false
    if (isAsked) ask()
  }
  function ask(): void {
    isAsked = true
    if (isReading || timer !== undefined || signal.aborted) return
    timer = setTimeout(() => void run(), Math.max(0, lastAt + EVERY_MS - performance.now()))
  }
  ask()
  return {
    ask,
    stop() {
      clearTimeout(timer)
      controller.abort()
    },
  }
}
