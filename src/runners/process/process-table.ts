/**
 * Reads `/proc`: processes, their parents and sessions, and the marker in their environment. The kernel can delay each
 * of these reads, so only the thread behind `process-reader.ts` calls them while processes are being stopped.
 */
import { randomUUID } from 'node:crypto'
import { closeSync, openSync, readFileSync, readSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { parseStat, codeOf } from '../../lib/process/index.ts'

export interface ProcessRow {
  pid: number
  ppid: number
  pgid: number
  sid: number
  /** Clock ticks since boot. */
  startTime: number
  /** False for a zombie, which no longer runs. */
  alive: boolean
  /** It runs the program of its parent: forked, and has not called exec since. */
  isFork: boolean
}

/** Environments beyond this size are searched only in part; the kernel limits a whole argument block to 6 MiB. */
const MAX_ENVIRONMENT_BYTES = 8 * 1024 * 1024
let buffer = Buffer.allocUnsafeSlow(64 * 1024)

/**
 * Identifies the current boot; start times of processes are comparable within it only. If the system does not tell, the
 * id is unique, so that no process is mistaken for one of an earlier server.
 */
export function readBootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()
  } catch {
    return randomUUID()
  }
}

/** Pids of all processes, greatest first: in a tree that keeps forking, the newest matters most. */
export async function listPids(): Promise<number[]> {
  const pids: number[] = []
  for (const name of await readdir('/proc')) {
    const first = name.charCodeAt(0)
    if (first >= 0x31 && first <= 0x39) pids.push(Number(name))
  }
  return pids.sort((a, b) => b - a)
}

/** The row of a process, or undefined when there is none. */
export function readProcess(pid: number): ProcessRow | undefined {
  const length = readInto(`/proc/${pid}/stat`, 4096)
  if (typeof length !== 'number' || length === 0) return undefined
  const { isEnded, ...row } = parseStat(buffer.toString('latin1', 0, length))
  return { pid, ...row, alive: !isEnded }
}

/**
 * Children of the first thread of a process, counted up to some hundreds. Unlike other files of `/proc` this one is
 * always readable; kernels built without it report none.
 */
export function countChildren(pid: number): number {
  const length = readInto(`/proc/${pid}/task/${pid}/children`, 4096)
  if (typeof length !== 'number') return 0
  let count = 0
  for (let at = buffer.indexOf(0x20); at !== -1 && at < length; at = buffer.indexOf(0x20, at + 1)) count += 1
  return count
}

const MARK_LABEL = 'Max realtime timeout'
/** Far above any limit in practical use. */
const LEAST_MARK = 2n ** 61n

/** The mark of a marker that ends like an id; undefined for any other. */
export function markOf(marker: string): bigint | undefined {
  const digits = /[0-9a-f]{15}$/.exec(marker)?.[0]
  return digits === undefined ? undefined : LEAST_MARK + BigInt(`0x${digits}`)
}

/**
 * The mark that a process was given or has inherited.
 *
 * It is the soft limit of the time a real-time process may run without a pause: 70,000 years and more, so it limits no
 * process. Unlike an environment it survives `env -i`, and every account can read it.
 */
export function readMark(pid: number): bigint | undefined {
  const length = readInto(`/proc/${pid}/limits`, 4096)
  if (typeof length !== 'number') return undefined
  const soft = new RegExp(`^${MARK_LABEL} +([0-9]+) `, 'm').exec(buffer.toString('latin1', 0, length))?.[1]
  if (soft === undefined) return undefined
  const mark = BigInt(soft)
  return mark >= LEAST_MARK ? mark : undefined
}

/** Whether the pid still belongs to the process with this start time. */
export function isRunning(pid: number, startTime: number): boolean {
  const row = readProcess(pid)
  return row !== undefined && row.alive && row.startTime === startTime
}

/** The value of a variable in the initial environment of a process; null when it is not readable. */
export function readMarker(pid: number, name: string): string | undefined | null {
  const length = readInto(`/proc/${pid}/environ`, MAX_ENVIRONMENT_BYTES)
  if (length === 'EACCES' || length === 'EPERM') return null
  if (typeof length !== 'number') return undefined
  const environment = buffer.subarray(0, length)
  const wanted = `${name}=`
  for (let at = environment.indexOf(wanted); at !== -1; at = environment.indexOf(wanted, at + 1)) {
    if (at > 0 && environment[at - 1] !== 0) continue
    const end = environment.indexOf(0, at)
    return environment.toString('utf8', at + wanted.length, end === -1 ? length : end)
  }
  return undefined
}

/** Number of bytes read into the shared buffer, or the error code. */
function readInto(path: string, maxBytes: number): number | string {
  let fd: number
  try {
    fd = openSync(path, 'r')
  } catch (error) {
    return codeOf(error) ?? 'EUNKNOWN'
  }
  try {
    let length = 0
    for (;;) {
      if (length === buffer.length) {
        if (length >= maxBytes) return length
        const larger = Buffer.allocUnsafeSlow(buffer.length * 2)
        buffer.copy(larger)
        buffer = larger
      }
      const got = readSync(fd, buffer, length, buffer.length - length, null)
      length += got
      if (got === 0 || length >= maxBytes) return length
    }
  } catch (error) {
    return codeOf(error) ?? 'EUNKNOWN'
  } finally {
    closeSync(fd)
  }
}
