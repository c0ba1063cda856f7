/**
 * Notices when the files of an open database are not where they were, or may not be opened again. The connections keep the files that they have opened:
 * what is written to a deleted file is lost with the server, and a new connection would open other files than the old ones.
 */
import { constants, statSync, type Stats } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { codeOf, hasCode } from '../../lib/process/index.ts'

const LOOK_EVERY_MS = 1000

/** The database, its write-ahead log, and the index of that. */
const suffixes = ['', '-wal', '-shm'] as const

export interface Place {
  /** Why the database may not be used: a sentence that names the file. Undefined: all is in its place. */
  readonly problem: string | undefined
  stop(): void
}

/** @param path of a database whose files exist @param changed is called with each new state of `problem` */
export function watchPlace(path: string, changed: (problem: string | undefined) => void): Place {
  const files = suffixes.map((suffix) => ({ file: `${path}${suffix}`, suffix, opened: statSync(`${path}${suffix}`) }))
  let problem: string | undefined
  let isLooking = false
  let isStopped = false

  async function look(): Promise<void> {
    const found = (await Promise.all(files.map(findProblem))).find((each) => each !== undefined)
    if (isStopped || found === problem) return
    problem = found
    changed(found)
  }

  const timer = setInterval(() => {
    // A file system that does not respond gets one request at a time.
    if (isLooking) return
    isLooking = true
    void look().finally(() => {
      isLooking = false
    })
  }, LOOK_EVERY_MS)
  timer.unref()

  return {
    get problem() {
      return problem
    },
    stop() {
      isStopped = true
      clearInterval(timer)
    },
  }
}

async function findProblem(watched: { file: string; suffix: string; opened: Stats }): Promise<string | undefined> {
  const { file, suffix, opened } = watched
  const remedy =
    suffix === ''
      ? 'Put it back, or stop the server and restore a backup with svc restore.'
      : 'Restart the server; the database itself has everything that was stored.'
  try {
    const { dev, ino } = await stat(file)
    if (dev === opened.dev && ino === opened.ino) return await findLostPermission(file)
    return `${file} was replaced by another file while the server runs. ${remedy}`
  } catch (error) {
    const code = codeOf(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return `${file} was deleted or moved while the server runs. ${remedy}`
    return `${file} cannot be reached (${code ?? String(error)}) while the server runs. Make it accessible again.`
  }
}

/** The connections still work, but no other one could be opened: not the next start's, nor that of a backup. */
async function findLostPermission(file: string): Promise<string | undefined> {
  for (const [path, mode] of [
    [file, constants.R_OK | constants.W_OK],
    [dirname(file), constants.R_OK | constants.W_OK | constants.X_OK],
  ] as const) {
    try {
      await access(path, mode)
    } catch (error) {
      if (!hasCode(error, 'EACCES', 'EPERM')) continue
      return `the account of the server has lost the permission to read or write ${path}. Permit it again; svc then continues by itself.`
    }
  }
  return undefined
}
