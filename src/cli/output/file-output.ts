/** Output to files. */
import { fstatSync, writeFileSync } from 'node:fs'

/**
 * Writes standard output to a file completely, or fails. By default Node writes a chunk once
 * and ignores a partial write on a nearly full disk, so the rest would be lost silently.
 */
export function writeFilesSynchronously(): void {
  const { fd } = process.stdout
  if (!fstatSync(fd).isFile()) return
  process.stdout._write = (chunk: Uint8Array, _encoding, done) => {
    try {
      writeFileSync(fd, chunk)
    } catch (error) {
      done(error instanceof Error ? error : new Error(String(error)))
      return
    }
    done()
  }
}
