/**
 * The base path while the server runs: notices when it is deleted, moved or not accessible, and makes the files anew
 * by which tools find the server.
 */
import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Module } from '../core/module.ts'
import { watchFolders, type FolderWatch } from '../lib/files/index.ts'
import type { Log } from '../lib/log/index.ts'
import { hasCode } from '../lib/process/index.ts'

export interface BasePath extends Module {
  /** Calls `make` whenever the file is missing although the base path can be used. @param name below the base path */
  keep(name: string, make: () => Promise<void>): void
}

export function createBasePath({ path, log }: { path: string; log: Log }): BasePath {
  const kept = new Map<string, () => Promise<void>>()
  const failed = new Set<string>()
  let watch: FolderWatch | undefined
  let making: Promise<void> | undefined

  const describe = (why: string): string =>
    `system.base_path: ${path} ${why} while the server runs. Put it back with its permissions, or restart the server`

  async function makeMissing(): Promise<void> {
    for (const [name, make] of kept) {
      const file = join(path, name)
      if (await isThere(file)) continue
      try {
        await make()
        failed.delete(name)
        log.warning('base_path.file_made', 'A file by which tools find the server was missing; svc made it anew', {
          file,
        })
      } catch (error) {
        if (failed.has(name)) continue
        failed.add(name)
        log.warning('base_path.file_missing', 'A file by which tools find the server is missing and cannot be made', {
          file,
          error,
        })
      }
    }
  }

  return {
    name: 'base_path',
    keep: (name, make) => void kept.set(name, make),
    readiness() {
      const why = watch?.lost.get(path)
      return why === undefined ? undefined : { reason: 'base_path_gone', problem: `${describe(why)}.` }
    },
    async start() {
      watch ??= await watchFolders({
        paths: [path],
        mustBeWritable: true,
        // Keys, passwords and environments are not in another one.
        mustBeSame: true,
        lost: (_, why) => log.critical('base_path.gone', describe(why), { path }),
        back: () => log.warning('base_path.back', 'The base path can be used again', { path }),
        seen() {
          making ??= makeMissing().finally(() => {
            making = undefined
          })
        },
      })
    },
    async stop() {
      watch?.stop()
      await making
    },
  }
}

/** What cannot be looked at counts as there. */
async function isThere(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    (error: unknown) => !hasCode(error, 'ENOENT'),
  )
}
