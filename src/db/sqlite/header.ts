/** What the first bytes of a database file say about its unused space, also while a server uses it. */
import { open } from 'node:fs/promises'

export interface FileSpace {
  fileBytes: number
  /** Bytes of the file that hold no data. */
  unusedBytes: number
  /** The server can return unused space while it runs; else only `svc compact` can. */
  canShrink: boolean
}

const HEADER_BYTES = 100
const MAGIC = 'SQLite format 3\0'

/** As of the last checkpoint. @returns undefined: it is no database @throws errors of the file system */
export async function readFileSpace(path: string): Promise<FileSpace | undefined> {
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEADER_BYTES), 0, HEADER_BYTES, 0)
    if (bytesRead < HEADER_BYTES || buffer.toString('latin1', 0, MAGIC.length) !== MAGIC) return undefined
    // The file format of SQLite; a page size of 1 stands for 65,536.
    const given = buffer.readUInt16BE(16)
    const pageBytes = given === 1 ? 65_536 : given
    return {
      fileBytes: (await file.stat()).size,
      unusedBytes: buffer.readUInt32BE(36) * pageBytes,
      canShrink: buffer.readUInt32BE(52) !== 0,
    }
  } finally {
    await file.close()
  }
}
