/** Removes files by age. */
import { opendir, rmdir, stat, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { hasCode } from '../../lib/process/index.ts'

/**
 * Removes the files below `folder` with a modification time before `beforeMs` (milliseconds since the epoch), and
 * folders that become empty. Neither follows nor removes links. Missing files are no error.
 *
 * @returns the number of removed files
 */
export async function removeExpiredFiles(folder: string, beforeMs: number, signal: AbortSignal): Promise<number> {
  let removed = 0
  const directory = await opendir(folder).catch(ifThere)
  if (directory === undefined) return removed
  for await (const entry of directory) {
    if (signal.aborted) break
    const path = join(folder, entry.name)
    if (entry.isDirectory()) {
      removed += await removeExpiredFiles(path, beforeMs, signal)
    } else if (entry.isFile()) {
      const found = await stat(path).catch(ifThere)
      if (found === undefined || found.mtimeMs >= beforeMs) continue
      await unlink(path).catch(ifThere)
      removed += 1
      await rmdir(dirname(path)).catch(ifEmpty)
    }
  }
  return removed
}

function ifThere(error: unknown): undefined {
  if (!hasCode(error, 'ENOENT')) throw error
}

function ifEmpty(error: unknown): undefined {
  if (!hasCode(error, 'ENOTEMPTY') && !hasCode(error, 'ENOENT')) throw error
}
