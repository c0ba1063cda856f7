/** Waiting for executions. */
import { cliProcess } from '../cli-process.ts'
import {
  FIRST_POLL_MS,
  getExecution,
  isFinalRecord,
  mayPass,
  MAX_OUTAGE_MS,
  POLL_GROWTH,
  MAX_POLL_MS,
  recordStatusOf,
} from './calls.ts'
import { canShowProgress } from '../output/progress.ts'
import type { Session } from '../session.ts'
import { watchStatus } from './status-stream.ts'

/** Statuses in which the execution stands still until a person or a policy acts (contract 09, 9.4 "Flow"). */
const standingStatuses: ReadonlySet<string> = new Set(['pending', 'paused'])

const DOT_MS = 2000
/**
 * The stream may belong to another server and stay silent, so svc also polls the status, at growing intervals.
 */
const FIRST_CHECK_MS = 5000
const MAX_CHECK_MS = 60_000

/**
 * Waits until the execution has ended, or waits for a person: with the event stream if there is one,
 * else by polling. Survives a restart of the server.
 *
 * @param tellsTasks whether to tell of the tasks of a workflow, too
 * @returns the status
 */
export async function waitForEnd(session: Session, id: string, tellsTasks = false): Promise<string> {
  const progress = session.progress(`Execution ${id}`)
  // Lines about tasks show that svc waits, too.
  const dots = tellsTasks ? { stop: () => undefined } : startDots(session)
  const stream = watchStatus(session, id)
  const tasks = tellsTasks ? (await import('./live-tasks.ts')).followTasks(session, id) : undefined
  let interval = FIRST_POLL_MS
  let check = FIRST_CHECK_MS
  let failingSince: number | undefined
  const isOver = (status: string): boolean => {
    if (status !== '') progress.update(`Execution ${id} is ${status}`)
    return isFinalRecord(status) || standingStatuses.has(status)
  }
  try {
    for (;;) {
      // The stream does not tell what happened before it was opened, so the status is asked for after that.
      const { opening } = stream
      try {
        const status = recordStatusOf(await getExecution(session, id, { include_attributes: 'status' }))
        if (isOver(status)) return status
        failingSince = undefined
      } catch (error) {
        failingSince ??= performance.now()
        if (!mayPass(error) || performance.now() - failingSince > MAX_OUTAGE_MS) throw error
      }
      const isStreaming = opening !== undefined && failingSince === undefined
      const deadline = performance.now() + (isStreaming ? check : interval)
      while (stream.opening === opening && !isOver(stream.status)) if (!(await stream.news(deadline))) break
      if (isOver(stream.status)) return stream.status
      if (isStreaming) check = Math.min(MAX_CHECK_MS, check * 2)
      else interval = Math.min(MAX_POLL_MS, interval * POLL_GROWTH)
    }
  } finally {
    stream.close()
    tasks?.stop()
    dots.stop()
    progress.stop()
  }
}

/** Prints a dot now and then where no progress line can be shown. */
function startDots(session: Session): { stop(): void } {
  const { stderr, env } = cliProcess()
  if (session.form !== 'human' || canShowProgress(stderr, env)) return { stop: () => undefined }
  let count = 0
  const timer = setInterval(() => {
    session.note('.')
    count += 1
  }, DOT_MS)
  return {
    stop() {
      clearInterval(timer)
      if (count > 0) session.note('\n')
    },
  }
}
