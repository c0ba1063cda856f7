/** The server of this machine: whether it runs, signalling it, and waiting for its end. */
import { accessSync, constants } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { readRunFile, startTimeOf, type RunFile } from '../../core/run-file.ts'
import { hasCode } from '../../lib/process/index.ts'
import { CliFailure } from '../failures.ts'
import { withProgress } from '../output/progress.ts'
import { SAME_SIGNAL_MS } from '../signals.ts'

const POLL_MS = 50
const ANSWER_MS = 5000
const MAX_ANSWER_CHARACTERS = 10_000
/** What a stop takes besides the grace of running actions: they get 5 seconds to end, the rest is for clearing up. */
const STOP_MARGIN_MS = 50_000

/** @returns undefined when it does not run @throws CliFailure when this account may not know */
export function findServer(basePath: string): RunFile | undefined {
  try {
    accessSync(basePath, constants.X_OK)
  } catch (error) {
    if (!hasCode(error, 'EACCES')) return undefined
    throw new CliFailure(
      `This account may not enter ${basePath}, where it is told whether the server runs. Run this command as root or as the account of the server.`,
    )
  }
  return readRunFile(basePath)
}

/** Another process may have its pid by now. */
function hasEnded({ pid, process_start_time: startTime }: RunFile): boolean {
  return startTimeOf(pid) !== startTime
}

/** Does nothing when it has ended. @throws CliFailure when this account may not */
export function signalServer(server: RunFile, signal: NodeJS.Signals): void {
  if (hasEnded(server)) return
  try {
    process.kill(server.pid, signal)
  } catch (error) {
    if (hasCode(error, 'ESRCH')) return
    if (!hasCode(error, 'EPERM')) throw error
    throw new CliFailure(
      `The server, process ${server.pid}, belongs to another account: run this command as root, or as that account.`,
    )
  }
}

/** Whether it was told to stop, and takes no new work. Waits five seconds at most for its answer. */
export async function isStopping({ urls }: RunFile): Promise<boolean> {
  if (!URL.canParse(urls.api)) return false
  const { get } = process.getBuiltinModule(urls.api.startsWith('https:') ? 'node:https' : 'node:http')
  return new Promise((resolve) => {
    // Its certificate may be for other names, or have ended: nothing is told to whoever answers.
    const asked = get(`${urls.api}/readyz`, { rejectUnauthorized: false, timeout: ANSWER_MS }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (part: string) => (text = (text + part).slice(0, MAX_ANSWER_CHARACTERS)))
      response.once('close', () => resolve(text.includes('"stopping"')))
    })
    asked.once('timeout', () => asked.destroy())
    // At the very end nothing listens any more.
    asked.once('error', (error) => resolve(hasCode(error, 'ECONNREFUSED')))
  })
}

export interface StopOptions {
  /** `actionrunner.shutdown_grace_seconds` */
  graceSeconds: number
  /** Running actions get no more time. Default false. */
  isHurried?: boolean
  /** Somebody else has told it to stop. Default false. */
  isTold?: boolean
}

/** Resolves when the process has ended. @throws CliFailure when it does not end in time */
export async function stopServer(
  server: RunFile,
  { graceSeconds, isHurried = false, isTold = false }: StopOptions,
): Promise<void> {
  if (!isTold) signalServer(server, 'SIGTERM')
  const begun = performance.now()
  const elapsed = (): number => performance.now() - begun
  let isSecondDue = isHurried
  await withProgress('Waiting for running actions and for the end of the server', async () => {
    while (!hasEnded(server)) {
      if (isSecondDue && elapsed() > SAME_SIGNAL_MS) {
        signalServer(server, 'SIGTERM')
        isSecondDue = false
      }
      if (elapsed() > graceSeconds * 1000 + STOP_MARGIN_MS) {
        throw new CliFailure(
          `The server, process ${server.pid}, was told to stop and has not ended. "kill -KILL ${server.pid}" ends it at once; the next start finds in the database what it leaves.`,
        )
      }
      await delay(POLL_MS)
    }
  })
}
