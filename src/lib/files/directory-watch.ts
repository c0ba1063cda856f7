/** Notices changes in directories, with one watch of the system for each directory and none for the files in them. */
import { watch as watchOne, type FSWatcher } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { codeOf, hasCode } from '../process/index.ts'

export interface DirectoryWatch {
  /** Watches a directory and those below it, also one that has replaced another. Nothing for a path that is none. */
  add(path: string): Promise<void>
  /** Resolves when the directories that have come so far are watched. */
  settled(): Promise<void>
  stop(): void
}

export interface DirectoryWatchOptions {
  /** Whether a directory is watched, if there is one. Links are not followed. */
  readonly enters: (path: string) => boolean
  /** Something has come, changed or gone. */
  readonly changed: (path: string) => void
  /** @param isLimit the system watches no more, and everything has stopped */
  readonly failed: (error: unknown, isLimit: boolean) => void
  /** For tests. */
  readonly watch?: typeof watchOne
}

export function watchDirectories({ enters, changed, failed, watch = watchOne }: DirectoryWatchOptions): DirectoryWatch {
  const watchers = new Map<string, FSWatcher>()
  /** Paths at which a directory may have come, gone or been replaced. */
  const moved = new Set<string>()
  let following: Promise<void> | undefined
  let isStopped = false

  function stop(): void {
    isStopped = true
    for (const one of watchers.values()) one.close()
    watchers.clear()
    moved.clear()
  }

  function fail(error: unknown): void {
    if (isStopped || hasCode(error, 'ENOENT', 'ENOTDIR')) return
    const isLimit = ['ENOSPC', 'EMFILE', 'ENFILE'].includes(codeOf(error) ?? '')
    if (isLimit) stop()
    failed(error, isLimit)
  }

  function remove(path: string): void {
    // Only a watched directory has watched ones below it.
    if (!watchers.has(path)) return
    for (const [known, one] of watchers) {
      if (known !== path && !known.startsWith(path + sep)) continue
      one.close()
      watchers.delete(known)
    }
  }

  function begin(path: string): void {
    const one = watch(path, { persistent: false }, (event, name) => {
      if (isStopped || watchers.get(path) !== one) return
      const place = name === null ? path : join(path, name)
      if (event === 'rename' && enters(place)) {
        moved.add(place)
        following ??= follow()
      }
      changed(place)
    })
    one.on('error', fail)
    watchers.set(path, one)
  }

  /** What comes into a directory after its watch began is noticed, so that its content is read afterwards. */
  async function add(path: string): Promise<void> {
    remove(path)
    if (isStopped || !enters(path)) return
    try {
      begin(path)
      const entries = await readdir(path, { withFileTypes: true })
      for (const entry of entries) {
        if (entry.isDirectory()) await add(join(path, entry.name))
      }
    } catch (error) {
      fail(error)
    }
  }

  async function follow(): Promise<void> {
    for (const path of moved) {
      moved.delete(path)
      const isDirectory = await lstat(path).then(
        (found) => found.isDirectory(),
        () => false,
      )
      if (isDirectory) await add(path)
      else remove(path)
    }
    following = undefined
  }

  return { add, stop, settled: () => following ?? Promise.resolve() }
}
