import { describeFileError } from '../../lib/files/index.ts'
import type { Log } from '../../lib/log/index.ts'

/** Logs directories that cannot be used, each once until it is usable again. */
export interface FolderProblems {
  /** @param folder absolute */
  report(folder: string, error: unknown): void
  /** It can be used: its next problem is logged. */
  clear(folder: string): void
  /** A sentence about a directory that could be used before. @param why `was deleted or moved` */
  describeLoss(folder: string, why: string): string
}

export function createFolderProblems(settings: {
  log: Log
  basePaths: readonly string[]
  configsPath: string
}): FolderProblems {
  const { log, basePaths, configsPath } = settings
  const reported = new Set<string>()

  function optionOf(folder: string): string {
    if (folder === configsPath) return 'configs in system.base_path'
    return folder === basePaths[0]
      ? 'content.system_packs_base_path (packs in system.base_path unless given)'
      : 'content.packs_base_paths'
  }

  function describe(folder: string, why: string): string {
    const remedy =
      folder === configsPath
        ? 'Packs have no configurations until you make it a directory and run svc pack register'
        : 'Create the directory or change the option, then run svc pack register'
    return `${optionOf(folder)}: ${folder} cannot be used: ${why}. ${remedy}`
  }

  return {
    report(folder, error) {
      if (reported.has(folder)) return
      reported.add(folder)
      log.warning('packs.unreadable', describe(folder, describeFileError(folder, error)), { folder })
    },
    describeLoss(folder, why) {
      const effect = folder === configsPath ? 'packs have no configurations' : 'actions of its packs fail'
      return `${optionOf(folder)}: ${folder} ${why} while the server runs: ${effect}. Put it back with its permissions; svc then continues by itself`
    },
    clear: (folder) => void reported.delete(folder),
  }
}
