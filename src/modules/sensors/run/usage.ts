/** Memory and processor time of a sensor: of the process that svc started. */
import { readFileSync } from 'node:fs'

/** As Linux reports times to programs, whatever the kernel uses. */
const TICKS_PER_SECOND = 100
const PAGE_BYTES = 4096

/** Undefined: the process has ended, or this system does not tell. Reads two small files of `/proc`. */
export function measureProcess(pid: number): { memory_bytes: number; cpu_seconds: number } | undefined {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name of the program, in parentheses, may contain anything.
    const [, , , , , , , , , , , user = '', system = '', childUser = '', childSystem = ''] = fields
      .slice(fields.lastIndexOf(')') + 2)
      .split(' ')
    const pages = readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ')[1]
    const ticks = [user, system, childUser, childSystem].reduce((sum, text) => sum + Number(text), 0)
    return { memory_bytes: Number(pages) * PAGE_BYTES, cpu_seconds: ticks / TICKS_PER_SECOND }
  } catch {
    return undefined
  }
}
