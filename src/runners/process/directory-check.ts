/**
 * Keeps unresponsive file systems away from the launcher. Starting a process in such a directory blocks until the file
 * system responds; until then no other process starts, and no exit is noticed.
 */
import { stat } from 'node:fs/promises'

/**
 * Resolves to whether the file system answers in time, whatever the answer: the launcher reports errors. While several
 * file systems do not answer, no others can be checked.
 */
export type DirectoryCheck = (path: string) => Promise<boolean>

export const DIRECTORY_LIMIT_MS = 5000
/** Each unanswered check blocks a thread of Node's pool, which has four. */
const MAX_ASKED = 2

export interface DirectoryCheckOptions {
  limitMs?: number
  /** Queries the file system; tests replace it with one that never answers. */
  ask?: (path: string) => Promise<unknown>
}

export function createDirectoryCheck(options: DirectoryCheckOptions = {}): DirectoryCheck {
  // The trailing dot is looked up in the directory itself, as chdir does.
  const { limitMs = DIRECTORY_LIMIT_MS, ask = (path) => stat(`${path}/.`) } = options
  const asked = new Set<string>()
  const waiting = new Set<() => void>()

  async function start(path: string): Promise<void> {
    asked.add(path)
    await ask(path).catch(() => undefined)
    asked.delete(path)
    for (const look of waiting) look()
  }

  return (path) =>
    new Promise((resolve) => {
      let isAsked = false
      const end = (isAnswered: boolean): void => {
        clearTimeout(timer)
        waiting.delete(look)
        resolve(isAnswered)
      }
      const look = (): void => {
        if (isAsked && !asked.has(path)) return end(true)
        if (!asked.has(path) && asked.size < MAX_ASKED) void start(path)
        isAsked = asked.has(path)
      }
      // After a stall of the event loop, answers that came during it are read between the timer and the immediate.
      const timer = setTimeout(() => setImmediate(() => end(false)), limitMs)
      waiting.add(look)
      look()
    })
}
