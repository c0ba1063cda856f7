/**
 * Reads `/proc`: who runs, whose child and session it is, and which marker its environment carries. The kernel can delay
 * each of these reads, so that only the thread behind `process-reader.ts` calls them while processes are ended.
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
  /** False for a zombie: nothing of it runs any more. */
  alive: boolean
}

/** Environments beyond this are not searched to their end; the kernel limits a whole argument block to 6 MiB. */
const MAX_ENVIRONMENT_BYTES = 8 * 1024 * 1024
let buffer = Buffer.allocUnsafeSlow(64 * 1024)

/**
 * Names the time since the machine was started; start times of processes mean nothing beyond it. Where the system does
 * not tell, a name that equals no other, so that no process is taken for one of an earlier server.
 */
export function readBootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()
  } catch {
    return randomUUID()
  }
}

/** Pids of all processes, greatest first: the newest of a tree that keeps forking is the one worth reaching. */
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
 * How many children the first thread of a process has, up to some hundreds. Unlike the other files of `/proc` this one can
 * be read at any time; kernels built without it tell of none.
 */
export function countChildren(pid: number): number {
  const length = readInto(`/proc/${pid}/task/${pid}/children`, 4096)
  if (typeof length !== 'number') return 0
  let count = 0
  for (let at = buffer.indexOf(0x20); at !== -1 && at < length; at = buffer.indexOf(0x20, at + 1)) count += 1
  return count
}

const MARK_LABEL = 'Max realtime timeout'
/** Far above any limit that somebody sets. */
const LEAST_MARK = 2n ** 61n

/** The mark of a marker that ends as ids do; undefined for any other. */
export function markOf(marker: string): bigint | undefined {
  const digits = /[0-9a-f]{15}$/.exec(marker)?.[0]
  return digits === undefined ? undefined : LEAST_MARK + BigInt(`0x${digits}`)
}

/**
 * The mark a process was given or has inherited.
 *
 * It is the soft limit of the time a real-time process may run without a pause: 70,000 years and more, so it limits
 * nobody. Unlike an environment it is not lost by `env -i`, and everybody may read it.
 */
export function readMark(pid: number): bigint | undefined {
  const length = readInto(`/proc/${pid}/limits`, 4096)
  if (typeof length !== 'number') return undefined
  const soft = new RegExp(`^${MARK_LABEL} +([0-9]+) `, 'm').exec(buffer.toString('latin1', 0, length))?.[1]
  if (soft === undefined) return undefined
  const mark = BigInt(soft)
  return mark >= LEAST_MARK ? mark : undefined
}

/** Whether the process with this pid is still the one that was started then. */
export function isRunning(pid: number, startTime: number): boolean {
  const row = readProcess(pid)
  return row !== undefined && row.alive && row.startTime === startTime
}

/** The value of a variable in the environment a process was started with; null when it may not be read. */
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

/** Bytes now in the shared buffer, or the error code. */
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
