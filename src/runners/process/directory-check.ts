/**
 * Keeps a file system that does not answer away from the launcher. Starting a process in such a directory takes as long as
 * the silence lasts; meanwhile no other process starts, and nobody learns that one has ended.
 */
import { stat } from 'node:fs/promises'

/**
 * Resolves to whether the file system answers in time, whatever it answers: the launcher tells what is wrong. While several
 * do not answer, the others cannot be asked.
 */
export type DirectoryCheck = (path: string) => Promise<boolean>

export const DIRECTORY_LIMIT_MS = 5000
/** Each directory that does not answer holds a thread of Node's pool, which has four. */
const MAX_ASKED = 2

export interface DirectoryCheckOptions {
  limitMs?: number
  /** Asks the file system; tests put a silent one here. */
  ask?: (path: string) => Promise<unknown>
}

export function createDirectoryCheck(options: DirectoryCheckOptions = {}): DirectoryCheck {
  // The trailing dot is looked up in the directory itself, as changing into it does.
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
      const timer = setTimeout(() => end(false), limitMs)
      waiting.add(look)
      look()
    })
}
