/** The server on this machine: finds its process, signals it and waits for its end. */
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
/** Time for a stop after the grace period: 5 seconds for actions to end, the rest for cleanup. */
const STOP_MARGIN_MS = 50_000

/** @returns undefined when it does not run @throws CliFailure when this account lacks the permission */
export function findServer(basePath: string): RunFile | undefined {
  try {
    accessSync(basePath, constants.X_OK)
  } catch (error) {
    if (!hasCode(error, 'EACCES')) return undefined
    throw new CliFailure(
      `No permission to read ${basePath}, which holds the run file of the server. Run this command as root or as the account of the server.`,
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
      `The server, process ${server.pid}, belongs to another account. Run this command as root or as that account.`,
    )
  }
}

/** Whether the server is stopping and accepts no new work. Waits at most five seconds for its response. */
export async function isStopping({ urls }: RunFile): Promise<boolean> {
  if (!URL.canParse(urls.api)) return false
  const { get } = process.getBuiltinModule(urls.api.startsWith('https:') ? 'node:https' : 'node:http')
  return new Promise((resolve) => {
    // The certificate may be for other names, or expired; the request contains no secret.
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
  /** Skips the grace period of running actions. Default false. */
  skipsGrace?: boolean
  /** The stop signal was already sent. Default false. */
  isSignaled?: boolean
}

/** Resolves when the process has ended. @throws CliFailure when it does not end in time */
export async function stopServer(
  server: RunFile,
  { graceSeconds, skipsGrace = false, isSignaled = false }: StopOptions,
): Promise<void> {
  if (!isSignaled) signalServer(server, 'SIGTERM')
  const begun = performance.now()
  const elapsed = (): number => performance.now() - begun
  let isSecondDue = skipsGrace
  await withProgress('Waiting for running actions and for the server to stop', async () => {
    while (!hasEnded(server)) {
      if (isSecondDue && elapsed() > SAME_SIGNAL_MS) {
        signalServer(server, 'SIGTERM')
        isSecondDue = false
      }
      if (elapsed() > graceSeconds * 1000 + STOP_MARGIN_MS) {
        throw new CliFailure(
          `The server, process ${server.pid}, received the stop signal but still runs. To end it at once: kill -KILL ${server.pid}. The next start recovers its state from the database.`,
        )
      }
      await delay(POLL_MS)
    }
  })
}
