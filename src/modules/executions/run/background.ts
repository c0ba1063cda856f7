/** Stops processes that outlived a run whose record has ended: here, and on other machines through its runner. */
import type { Log } from '../../../lib/log/index.ts'
import { isObject } from '../../../lib/schema/index.ts'
import type { Runner, StoppedBackground } from '../../../runners/index.ts'
import { aboutExecution } from '../audit.ts'
import type { Execution } from '../types.ts'
import type { Prepare } from './dispatcher.ts'
import type { KillOrphans } from './recovery.ts'

/** Joins requests about the same execution: each asks all its hosts. */
export type StopBackground = (execution: Execution) => Promise<StoppedBackground>

export function createStopBackground(deps: {
  runners: ReadonlyMap<string, Runner>
  prepare: Prepare
  killOrphans: KillOrphans
  /** The stored result. */
  resultOf(id: string): unknown
  log: Log
}): StopBackground {
  const pending = new Map<string, Promise<StoppedBackground>>()

  async function stop(execution: Execution): Promise<StoppedBackground> {
    const result = deps.resultOf(execution.id)
    if (!isObject(result)) return { stopped: 0, problems: [] }
    // What outlived the run, as its runner saw on this machine.
    if (isObject(result['background']) && 'pids' in result['background']) {
      const stopped = await deps.killOrphans([{ executionId: execution.id, process: undefined }])
      return { stopped, problems: [] }
    }
    const elsewhere = deps.runners.get(execution.runner.name)?.stopBackground
    if (elsewhere === undefined) return { stopped: 0, problems: [] }
    const found = await elsewhere({
      executionId: execution.id,
      result,
      runnerParameters: async () => (await deps.prepare(execution, [])).runnerParameters,
    })
    if (found.problems.length > 0) {
      const message = 'Could not stop background processes of an action execution on other hosts'
      const about = { ...aboutExecution(execution), problems: found.problems }
      deps.log.warning('execution.background_not_stopped', message, about)
    }
    return found
  }

  return (execution) => {
    const { id } = execution
    const running = pending.get(id) ?? stop(execution).finally(() => pending.delete(id))
    pending.set(id, running)
    return running
  }
}
