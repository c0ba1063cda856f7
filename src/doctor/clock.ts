/** The clock of this machine, which retention, timers and tokens depend on. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'
import { newestExecution } from '../db/index.ts'
import { ok, failedCheck, programOptions, warning, type HealthCheck, type CheckContext } from './check.ts'

const run = promisify(execFile)
const MIN_YEAR = 2025
const MAX_YEAR = 2099
/** A clock correction may step back by this much. */
const TOLERANCE_MS = 60_000
const TIMEOUT_MS = 2000

export const clock: HealthCheck = {
  name: 'clock',
  async run(context) {
    const now = context.now()
    const year = now.getUTCFullYear()
    const remedy =
      'Set the clock ("timedatectl set-ntp true" synchronizes it over the network), then restart the server.'
    if (year < MIN_YEAR || year > MAX_YEAR) return [failedCheck(`The clock is wrong: ${now.toISOString()}.`, remedy)]
    const { path } = context.loaded.config.database
    const newest = existsSync(path) ? newestExecution(path) : undefined
    if (newest !== undefined && Date.parse(newest) > now.getTime() + TOLERANCE_MS) {
      return [failedCheck(`The clock (${now.toISOString()}) is behind the newest execution (${newest}).`, remedy)]
    }
    if (await isUnsynchronized(context)) {
      return [
        warning(
          'The clock is not synchronized over the network.',
          'Run "timedatectl set-ntp true", or install chrony.',
        ),
      ]
    }
    return [ok(`The clock is plausible: ${now.toISOString()}.`)]
  },
}

/** Known only with systemd. */
async function isUnsynchronized(context: CheckContext): Promise<boolean> {
  try {
    const words = ['show', '--property=NTPSynchronized', '--value']
    const { stdout } = await run('timedatectl', words, programOptions(context, TIMEOUT_MS))
    return String(stdout).trim() === 'no'
  } catch {
    return false
  }
}
