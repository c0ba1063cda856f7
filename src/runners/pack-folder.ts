/** The folder of a pack that is gone: what the result of an execution says. */
import { access, constants, stat } from 'node:fs/promises'
import { hasCode } from '../lib/process/index.ts'
import type { RunContext } from './runner.ts'

/** For a file of the pack that cannot be used. @returns a sentence; undefined: the folder is not the reason */
export async function findPackFolderProblem({
  pack,
  packFolder,
}: Pick<RunContext, 'pack' | 'packFolder'>): Promise<string | undefined> {
  if (packFolder === '') return undefined
  try {
    if (!(await stat(packFolder)).isDirectory()) return `The folder of the pack "${pack}" was replaced by a file.`
    await access(packFolder, constants.X_OK)
    return undefined
  } catch (error) {
    return hasCode(error, 'ENOENT', 'ENOTDIR')
      ? `The folder of the pack "${pack}" was deleted or moved. Put it back, or install the pack again.`
      : `The folder of the pack "${pack}" cannot be used. Permit the account of the server to read it.`
  }
}
