/** Waiting for executions. */
import { cliProcess } from '../cli-process.ts'
import {
  FIRST_POLL_MS,
  getExecution,
  isFinal,
  mayPass,
  PATIENCE_MS,
  POLL_GROWTH,
  SLOWEST_POLL_MS,
  statusOf,
} from './calls.ts'
import { canShowProgress } from '../output/progress.ts'
import type { Session } from '../session.ts'
import { watchStatus } from './status-stream.ts'

/** Statuses in which the execution stands still until a person or a policy acts (contract 09, 9.4 "Flow"). */
const standingStatuses: ReadonlySet<string> = new Set(['pending', 'paused'])

const DOT_MS = 2000
/**
 * The stream may be that of another server and never tell anything, so the status is also asked for, ever more rarely.
 */
const FIRST_CHECK_MS = 5000
const SLOWEST_CHECK_MS = 60_000

/**
 * Waits until the execution has ended, or stands still until somebody acts: told by the event stream where there is one,
 * else by asking again and again. Survives a restart of the server.
 *
 * @returns the status
 */
export async function waitForEnd(session: Session, id: string): Promise<string> {
  const progress = session.progress(`Execution ${id}`)
  const dots = startDots(session)
  const stream = watchStatus(session, id)
  let interval = FIRST_POLL_MS
  let check = FIRST_CHECK_MS
  let failingSince: number | undefined
  const isOver = (status: string): boolean => {
    if (status !== '') progress.update(`Execution ${id} is ${status}`)
    return isFinal(status) || standingStatuses.has(status)
  }
  try {
    for (;;) {
      // The stream does not tell what happened before it was opened, so the status is asked for after that.
      const { opening } = stream
      try {
        const status = statusOf(await getExecution(session, id, { include_attributes: 'status' }))
        if (isOver(status)) return status
        failingSince = undefined
      } catch (error) {
        failingSince ??= performance.now()
        if (!mayPass(error) || performance.now() - failingSince > PATIENCE_MS) throw error
      }
      const isTold = opening !== undefined && failingSince === undefined
      const deadline = performance.now() + (isTold ? check : interval)
      while (stream.opening === opening && !isOver(stream.status)) if (!(await stream.news(deadline))) break
      if (isOver(stream.status)) return stream.status
      if (isTold) check = Math.min(SLOWEST_CHECK_MS, check * 2)
      else interval = Math.min(SLOWEST_POLL_MS, interval * POLL_GROWTH)
    }
  } finally {
    stream.close()
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
