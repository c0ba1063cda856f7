import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { codeOf, hasCode } from './system-error.ts'

export type BoundedFile =
  | { bytes: Buffer; mode: number }
  /** The rest of a sentence that begins with the path, such as `does not exist`. */
  | { problem: string; isMissing: boolean }

/** A file that somebody has named: whatever is there, reading it neither waits for ever nor takes more memory than this. */
export async function readBoundedFile(path: string, maxBytes: number): Promise<BoundedFile> {
  const problem = (text: string): BoundedFile => ({ problem: text, isMissing: false })
  try {
    // Opening a pipe without a writer would wait for one.
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      const stats = await file.stat()
      if (!stats.isFile()) return problem('is not a file')
      if (stats.size > maxBytes) return problem(`is larger than ${maxBytes} bytes`)
      return { bytes: await file.readFile(), mode: stats.mode }
    } finally {
      await file.close()
    }
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return { problem: 'does not exist', isMissing: true }
    if (hasCode(error, 'EACCES', 'EPERM')) return problem('cannot be read: permission denied')
    return problem(`cannot be read (${codeOf(error) ?? String(error)})`)
  }
}
