/** The directories of the log files while the server runs: files that disappear are made anew, also when nothing is logged. */
import { access, constants } from 'node:fs/promises'
import { dirname } from 'node:path'
import { watchFolders, type FolderWatch } from '../lib/files/index.ts'
import type { RootLog } from '../lib/log/index.ts'
import { hasCode } from '../lib/process/index.ts'
import type { Module } from './module.ts'

export function createLogFolders(log: RootLog): Module {
  const folders = new Set(log.paths.map((path) => dirname(path)))
  /** Files that exist and may not be written any more. */
  const locked = new Set<string>()
  let watch: FolderWatch | undefined
  /** By directory. */
  const looks = new Map<string, Promise<void>>()

  const describe = (path: string, why: string): string =>
    `log.file, log.audit_file or a logging configuration: ${path} ${why} while the server runs. Put it back with its permissions, or log lines are lost`

  async function lookAtFiles(folder: string): Promise<void> {
    for (const path of log.paths) {
      if (dirname(path) !== folder) continue
      try {
        await access(path, constants.W_OK)
        if (locked.delete(path)) log.warning('log.file_back', 'A log file can be written again', { file: path })
      } catch (error) {
        if (hasCode(error, 'ENOENT')) {
          await log.reopen()
          log.warning('log.file_gone', 'A log file was deleted or moved; svc continues in a new one', { file: path })
        } else if (hasCode(error, 'EACCES', 'EPERM') && !locked.has(path)) {
          locked.add(path)
          log.error('log.file_locked', describe(path, LOST_PERMISSION), { file: path })
        }
      }
    }
  }

  return {
    name: 'log_folders',
    readiness() {
      const [file] = locked
      const [path, why] = watch?.lost.entries().next().value ?? (file === undefined ? [] : [file, LOST_PERMISSION])
      if (path === undefined || why === undefined) return undefined
      return { reason: 'log_not_writable', problem: `${describe(path, why)}.` }
    },
    async start() {
      watch ??= await watchFolders({
        paths: [...folders],
        mustBeWritable: true,
        lost(folder, why) {
          log.error('log.folder_gone', describe(folder, why), { folder })
          // Makes a directory that was deleted.
          void log.reopen()
        },
        back: (folder) => log.warning('log.folder_back', 'A directory of log files can be used again', { folder }),
        seen(folder) {
          if (looks.has(folder)) return
          const look = lookAtFiles(folder).finally(() => looks.delete(folder))
          looks.set(folder, look)
        },
      })
    },
    async stop() {
      watch?.stop()
      await Promise.all(looks.values())
    },
  }
}

const LOST_PERMISSION = 'may not be written by the account of the server any more'
