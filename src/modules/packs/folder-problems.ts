import { describeFileError } from '../../lib/files/index.ts'
import type { Log } from '../../lib/log/index.ts'

/** Logs directories that cannot be used, each once until it is usable again. */
export interface FolderProblems {
  /** @param folder absolute */
  report(folder: string, error: unknown): void
  /** It can be used: its next problem is logged. */
  clear(folder: string): void
}

export function createFolderProblems(settings: {
  log: Log
  basePaths: readonly string[]
  configsPath: string
}): FolderProblems {
  const { log, basePaths, configsPath } = settings
  const reported = new Set<string>()

  function describe(folder: string, why: string): string {
    if (folder === configsPath) {
      return `configs in system.base_path: ${folder} cannot be used: ${why}. Packs have no configurations until you make it a directory and run svc pack register`
    }
    const option =
      folder === basePaths[0]
        ? 'content.system_packs_base_path (packs in system.base_path unless given)'
        : 'content.packs_base_paths'
    return `${option}: ${folder} cannot be used: ${why}. Create the directory or change the option, then run svc pack register`
  }

  return {
    report(folder, error) {
      if (reported.has(folder)) return
      reported.add(folder)
      log.warning('packs.unreadable', describe(folder, describeFileError(folder, error)), { folder })
    },
    clear: (folder) => void reported.delete(folder),
  }
}
