import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from 'node:fs'
import { open } from 'node:fs/promises'
import { codeOf, hasCode } from '../process/index.ts'

export type BoundedFile =
  | { bytes: Buffer; mode: number }
  /** The rest of a sentence that begins with the path, such as `does not exist`. */
  | { problem: string; isMissing: boolean }

/** Opening a pipe without a writer would block. */
const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK

/** Reads a file whose path comes from outside: it neither blocks nor uses more memory than `maxBytes`. */
export async function readBoundedFile(path: string, maxBytes: number): Promise<BoundedFile> {
  try {
    const file = await open(path, FLAGS)
    try {
      const stats = await file.stat()
      return findProblem(stats, maxBytes) ?? { bytes: await file.readFile(), mode: stats.mode }
    } finally {
      await file.close()
    }
  } catch (error) {
    return unreadable(error)
  }
}

/** The synchronous form of `readBoundedFile`, for use before the event loop matters. */
export function readBoundedFileSync(path: string, maxBytes: number): BoundedFile {
  try {
    const file = openSync(path, FLAGS)
    try {
      const stats = fstatSync(file)
      return findProblem(stats, maxBytes) ?? { bytes: readFileSync(file), mode: stats.mode }
    } finally {
      closeSync(file)
    }
  } catch (error) {
    return unreadable(error)
  }
}

function problem(text: string): BoundedFile {
  return { problem: text, isMissing: false }
}

function findProblem(stats: Stats, maxBytes: number): BoundedFile | undefined {
  if (!stats.isFile()) return problem('is not a file')
  return stats.size > maxBytes ? problem(`is larger than ${maxBytes} bytes`) : undefined
}

function unreadable(error: unknown): BoundedFile {
  if (hasCode(error, 'ENOENT', 'ENOTDIR')) return { problem: 'does not exist', isMissing: true }
  if (hasCode(error, 'EACCES', 'EPERM')) return problem('cannot be read: permission denied')
  // The path holds a zero character.
  if (hasCode(error, 'ERR_INVALID_ARG_VALUE')) return problem('is not the name of a file')
  return problem(`cannot be read (${codeOf(error) ?? String(error)})`)
}
