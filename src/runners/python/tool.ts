/** Runs a program for the server itself, with the same process handling as executions. */
import { newId } from '../../core/ids.ts'
import type { RunContext } from '../runner.ts'
import { MARKER_NAME } from '../process/kill-tree.ts'
import type { SpawnRequest } from '../process/launcher.ts'
import { markOf } from '../process/process-table.ts'
import { type ChildEnd, type CommandDeps, watchChild } from '../process/run-command.ts'

export interface ToolOptions {
  timeoutSeconds: number
  signal: AbortSignal
  /** Receives the output as it arrives. */
  emit?: RunContext['emit']
  /** Execution that owns the processes; default: none. */
  executionId?: string
}

/** @throws SpawnError when the program cannot start */
export async function runTool(
  deps: CommandDeps,
  request: SpawnRequest,
  { timeoutSeconds, signal, emit = () => undefined, executionId = newId() }: ToolOptions,
): Promise<ChildEnd> {
  const env = { ...request.env, [MARKER_NAME]: executionId }
  const mark = markOf(executionId)
  const child = await deps.launcher.spawn({ ...request, env, ...(mark === undefined ? {} : { mark }) })
  const context = { executionId, signal, emit, processStarted: () => undefined }
  return await watchChild(deps, context, child, { timeoutSeconds })
}
