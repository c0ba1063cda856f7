/** Notices when a folder that could be used is deleted, moved or loses permissions, and when it can be used again. */
import { access, constants, stat } from 'node:fs/promises'
import { describeFileError } from './file-error.ts'
import { hasCode } from '../process/index.ts'

const LOOK_EVERY_MS = 1000

export interface FolderWatch {
  /** Folders that cannot be used now and could be before → why, as the end of a sentence: `was deleted or moved`. */
  readonly lost: ReadonlyMap<string, string>
  stop(): void
}

export interface FolderWatchOptions {
  /** Absolute. A folder that is missing from the start is not lost. */
  paths: readonly string[]
  /** The account of the server must also be able to write there. Default: to read and enter. */
  mustBeWritable?: boolean
  /** Another folder at the path is none of them. Default: it is as good. */
  mustBeSame?: boolean
  /** Called once per loss. */
  lost?(path: string, why: string): void
  /** It can be used again. */
  back?(path: string): void
  /** Called after each look at a folder that can be used. */
  seen?(path: string): void
}

/** Resolves after the first look. */
export async function watchFolders(options: FolderWatchOptions): Promise<FolderWatch> {
  const { paths, mustBeWritable = false, mustBeSame = false } = options
  const mode = constants.R_OK | constants.X_OK | (mustBeWritable ? constants.W_OK : 0)
  /** Path → the folder that was there first. */
  const known = new Map<string, string>()
  const lost = new Map<string, string>()
  let isLooking = false
  let isStopped = false

  async function look(path: string): Promise<void> {
    const found = await examine(path, mode)
    if (isStopped) return
    const first = known.get(path)
    const isOther = mustBeSame && first !== undefined && 'id' in found && found.id !== first
    const why = 'why' in found ? found.why : isOther ? 'was replaced by another directory' : undefined
    if ('id' in found && !isOther) known.set(path, found.id)
    if (why === undefined) {
      if (lost.delete(path)) options.back?.(path)
      options.seen?.(path)
    } else if (known.has(path)) {
      const isNews = !lost.has(path)
      lost.set(path, why)
      if (isNews) options.lost?.(path, why)
    }
  }

  async function lookAtAll(): Promise<void> {
    // One request at a time, whichever file system does not respond: the system has few threads for them.
    if (isLooking) return
    isLooking = true
    try {
      for (const path of paths) await look(path)
    } finally {
      isLooking = false
    }
  }

  await lookAtAll()
  const timer = setInterval(() => void lookAtAll(), LOOK_EVERY_MS)
  timer.unref()
  return {
    lost,
    stop() {
      isStopped = true
      clearInterval(timer)
    },
  }
}

async function examine(path: string, mode: number): Promise<{ id: string } | { why: string }> {
  try {
    const found = await stat(path)
    if (!found.isDirectory()) return { why: 'was replaced by a file' }
    await access(path, mode)
    return { id: `${found.dev}:${found.ino}` }
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return { why: 'was deleted or moved' }
    return { why: `cannot be used: ${describeFileError(path, error)}` }
  }
}
