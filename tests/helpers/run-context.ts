import type { OutputType, ProcessIdentity, RunContext } from '../../src/runners/runner.ts'
import { newId } from '../../src/core/ids.ts'

export interface RecordedRun {
  context: RunContext
  /** What was emitted so far. */
  output: Record<OutputType, string>
  started: ProcessIdentity[]
  announced: { route: string; message: unknown }[]
}

/** A context that records what a runner does with it. */
export function recordRun(runnerParameters: Record<string, unknown>, more: Partial<RunContext> = {}): RecordedRun {
  const executionId = newId()
  const output = { stdout: '', stderr: '', other: '' }
  const started: ProcessIdentity[] = []
  const announced: RecordedRun['announced'] = []
  const context: RunContext = {
    executionId,
    liveactionId: newId(),
    actionRef: 'core.local',
    pack: 'core',
    user: 'tester',
    runnerParameters,
    actionParameters: {},
    parameterSchemas: {},
    entryPoint: '',
    packFolder: '',
    config: () => ({ values: {} }),
    env: { SVC_ACTION_EXECUTION_ID: executionId, SVC_ACTION_PACK_NAME: 'core' },
    emit: (type, text) => {
      output[type] += text
      return undefined
    },
    announce: (route, message) => announced.push({ route, message }),
    containsSecret: () => false,
    processStarted: (identity) => started.push(identity),
    signal: new AbortController().signal,
    ...more,
  }
  return { context, output, started, announced }
}
