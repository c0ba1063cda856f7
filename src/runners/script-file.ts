/** The script that an action names as its entry point: a file inside the folder of its pack. */
import { constants } from 'node:fs'
import { open, realpath } from 'node:fs/promises'
import { dirname, relative, sep } from 'node:path'
import { codeOf } from '../lib/process/index.ts'
import { findPackFolderProblem } from './pack-folder.ts'
import { DIRECTORY_LIMIT_MS, type DirectoryCheck } from './process/directory-check.ts'
import type { RunContext } from './runner.ts'

export interface ScriptFile {
  /** Absolute path as the action names it; the script finds its neighbours by this path. */
  path: string
  /** The same with links resolved. */
  realPath: string
  /** Relative to the folder of the pack, for messages. */
  name: string
  /** Permission bits. */
  mode: number
  /** The beginning as Latin-1, at most `HEAD_BYTES`. */
  head: string
}

/** The system reads this many bytes of a `#!` line. */
export const HEAD_BYTES = 256

/** Follows links, but not out of the pack. `problem` is a sentence for the result of the execution. */
export async function findScript(
  { entryPoint, packFolder, pack }: Pick<RunContext, 'entryPoint' | 'packFolder' | 'pack'>,
  directoryCheck: DirectoryCheck,
): Promise<ScriptFile | { problem: string }> {
  if (entryPoint === '') {
    return { problem: 'The action has no "entry_point": it must name the script, relative to the folder "actions".' }
  }
  const name = relative(packFolder, entryPoint)
  const cannot = (why: string): { problem: string } => ({
    problem: `The entry point "${name}" of the action in the pack "${pack}" is unusable: ${why}.`,
  })
  if (packFolder === '' || name.startsWith(`..${sep}`)) return cannot('it is outside the folder of the pack')
  if (!(await directoryCheck(dirname(entryPoint)))) {
    return cannot(
      `its file system, or one queried before it, did not answer within ${DIRECTORY_LIMIT_MS / 1000} seconds`,
    )
  }
  try {
    const [folder, realPath] = await Promise.all([realpath(packFolder), realpath(entryPoint)])
    if (!realPath.startsWith(folder + sep)) return cannot('its links lead out of the folder of the pack')
    // Non-blocking: a named pipe without a writer would block.
    const file = await open(realPath, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
    try {
      const status = await file.stat()
      if (!status.isFile()) return cannot('it is not a file')
      const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0)
      const head = buffer.subarray(0, bytesRead).toString('latin1')
      return { path: entryPoint, realPath, name, mode: status.mode & 0o7777, head }
    } finally {
      await file.close()
    }
  } catch (error) {
    const problem = await findPackFolderProblem({ pack, packFolder })
    if (problem !== undefined) return { problem }
    return cannot(reasons[codeOf(error) ?? ''] ?? 'the system refused to read it')
  }
}

const reasons: Record<string, string> = {
  ENOENT: 'it does not exist',
  ENOTDIR: 'it does not exist',
  ENAMETOOLONG: 'its name is too long',
  EACCES: 'the account of the server cannot read it',
  ELOOP: 'its links lead in a circle',
}
