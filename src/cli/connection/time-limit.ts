/** For what is better left out than waited for: names that TAB offers, the version of the server. */
import { cliProcess } from '../cli-process.ts'

const TIMEOUT_MS = 1000

/** Aborted when a server has had its time. To be called before the first request of the process. */
export function createTimeLimit(): AbortSignal {
  // Looking for the address of a host cannot be given up; the C library reads this when it does so for the first time.
  cliProcess().env['RES_OPTIONS'] ??= 'timeout:1 attempts:1'
  return AbortSignal.timeout(TIMEOUT_MS)
}
