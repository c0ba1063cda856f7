/** The time of this machine: what is kept, what timers do and which tokens are valid depends on it. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'
import { newestExecution } from '../db/index.ts'
import { ok, problem, programOptions, warning, type Check, type Patient } from './check.ts'

const run = promisify(execFile)
const LEAST_YEAR = 2025
const MOST_YEAR = 2099
/** A clock that is set right may go back by so much. */
const TOLERANCE_MS = 60_000
const ASK_MS = 2000

export const clock: Check = {
  name: 'clock',
  async look(patient) {
    const now = patient.now()
    const year = now.getUTCFullYear()
    const remedy = 'Set the clock ("timedatectl set-ntp true" has the network keep it right), then restart the server.'
    if (year < LEAST_YEAR || year > MOST_YEAR) return [problem(`The clock says ${now.toISOString()}.`, remedy)]
    const { path } = patient.loaded.config.database
    const newest = existsSync(path) ? newestExecution(path) : undefined
    if (newest !== undefined && Date.parse(newest) > now.getTime() + TOLERANCE_MS) {
      return [
        problem(
          `The clock says ${now.toISOString()}, and the newest execution is from ${newest}, which is later.`,
          remedy,
        ),
      ]
    }
    if (await isAdrift(patient)) {
      return [
        warning(
          'Nothing keeps the clock right: it is not synchronized with the network.',
          'Run "timedatectl set-ntp true", or install chrony.',
        ),
      ]
    }
    return [ok(`The clock says ${now.toISOString()}.`)]
  },
}

/** Only what systemd knows; where there is none, nobody is asked. */
async function isAdrift(patient: Patient): Promise<boolean> {
  try {
    const words = ['show', '--property=NTPSynchronized', '--value']
    const { stdout } = await run('timedatectl', words, programOptions(patient, ASK_MS))
    return String(stdout).trim() === 'no'
  } catch {
    return false
  }
}
