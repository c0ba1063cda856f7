/** Output into files. */
import { fstatSync, writeFileSync } from 'node:fs'

/**
 * Has everything that is printed go into the file that standard output may be, or fail. By itself Node writes a piece once,
 * and does not look how much of it a disk has taken that is nearly full: the rest would go without a word.
 */
export function writeFilesWhole(): void {
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
