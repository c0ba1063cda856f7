/**
 * The run file: which process serves a base path now, and where. It is a hint for tools on the same machine; what keeps two
 * servers from one database is the lock of that.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { chmod, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { accountOf, parseStat } from '../lib/process/index.ts'
/** Beside it in the base path. */
export const controlSocketName = 'svc.sock'
export const runFileName = 'svc.run'

export interface RunFile {
  pid: number
  /** Of the process, in clock ticks since the machine was started: another process may get the same pid. */
  process_start_time: number
  /** Wire timestamp. */
  started_at: string
  version: string
  urls: { auth: string; api: string; stream: string }
}

/** Replaces what an earlier server has left. @throws what the file system says */
export async function writeRunFile(basePath: string, run: Omit<RunFile, 'pid' | 'process_start_time'>): Promise<void> {
  const path = join(basePath, runFileName)
  const temporary = `${path}.${process.pid}.tmp`
  const content: RunFile = { pid: process.pid, process_start_time: startTimeOf(process.pid) ?? 0, ...run }
  await writeFile(temporary, `${JSON.stringify(content)}\n`)
  // For tools of accounts that may enter the folder.
  await chmod(temporary, 0o644)
  await rename(temporary, path)
}

export async function removeRunFile(basePath: string): Promise<void> {
  await rm(join(basePath, runFileName), { force: true })
}

/**
 * What serves the base path; undefined when nothing does, or nobody may tell. Root signals the process that is named there, so
 * a process of another account than that of the file does not count.
 */
export function readRunFile(basePath: string): RunFile | undefined {
  let run: Partial<RunFile>
  let writer: number
  try {
    const file = openSync(join(basePath, runFileName), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      writer = fstatSync(file).uid
      const content: unknown = JSON.parse(readFileSync(file, 'utf8'))
      run = typeof content === 'object' && content !== null ? content : {}
    } finally {
      closeSync(file)
    }
  } catch {
    return undefined
  }
  const { pid, process_start_time: startTime } = run
  if (!Number.isSafeInteger(pid) || pid === undefined || pid < 1 || startTimeOf(pid) !== startTime) return undefined
  if (accountOf(pid)?.uid !== writer) return undefined
  const { started_at = '', version = '', urls } = run
  return {
    pid,
    process_start_time: startTime ?? 0,
    started_at,
    version,
    urls: { auth: urls?.auth ?? '', api: urls?.api ?? '', stream: urls?.stream ?? '' },
  }
}

/** In clock ticks since the machine was started; undefined for a process that has ended. */
export function startTimeOf(pid: number): number | undefined {
  try {
    const { isEnded, startTime } = parseStat(readFileSync(`/proc/${pid}/stat`, 'latin1'))
    return isEnded ? undefined : startTime
  } catch {
    return undefined
  }
}
