/**
 * The run file: which process serves a base path, and where. It is a hint for tools on the same machine; the lock of
 * the database keeps two servers apart.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { chmod, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { accountOf, parseStat } from '../lib/process/index.ts'
import { readJson, writeJson } from '../lib/json/index.ts'
/** In the base path, beside the run file. */
export const controlSocketName = 'svc.sock'
export const runFileName = 'svc.run'

export interface RunFile {
  pid: number
  /** Start time of the process in clock ticks since boot: another process may get the same pid. */
  process_start_time: number
  /** Wire timestamp. */
  started_at: string
  version: string
  urls: { auth: string; api: string; stream: string }
}

/** Replaces the file of an earlier server. @throws errors of the file system */
export async function writeRunFile(basePath: string, run: Omit<RunFile, 'pid' | 'process_start_time'>): Promise<void> {
  const path = join(basePath, runFileName)
  const temporary = `${path}.${process.pid}.tmp`
  const content: RunFile = { pid: process.pid, process_start_time: startTimeOf(process.pid) ?? 0, ...run }
  await writeFile(temporary, `${writeJson(content)}\n`)
  // Readable by tools of other accounts that may enter the folder.
  await chmod(temporary, 0o644)
  await rename(temporary, path)
}

export async function removeRunFile(basePath: string): Promise<void> {
  await rm(join(basePath, runFileName), { force: true })
}

/**
 * The process that serves the base path; undefined when none does or it cannot be verified. Root sends signals to that
 * process, so a process counts only when it has the account of the file.
 */
export function readRunFile(basePath: string): RunFile | undefined {
  let run: Partial<RunFile>
  let writer: number
  try {
    const file = openSync(join(basePath, runFileName), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      writer = fstatSync(file).uid
      const content: unknown = readJson(readFileSync(file, 'utf8'))
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

/** In clock ticks since boot; undefined for a process that has ended. */
export function startTimeOf(pid: number): number | undefined {
  try {
    const { isEnded, startTime } = parseStat(readFileSync(`/proc/${pid}/stat`, 'latin1'))
    return isEnded ? undefined : startTime
  } catch {
    return undefined
  }
}
