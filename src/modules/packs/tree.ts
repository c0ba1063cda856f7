/** Copying the files of a pack from wherever they come from: only plain files, within bounds, with plain rights. */
import { constants } from 'node:fs'
import { mkdir, open, readdir, readlink, symlink, type FileHandle } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { packTooLarge } from '../../core/errors.ts'

/** Of a pack; what a hostile archive or repository can cost. */
export const MAX_PACK_FILES = 20_000
export const MAX_PACK_BYTES = 268_435_456
const MAX_DEPTH = 40
/** Names that are not part of a pack, at any depth. */
const leftOut: ReadonlySet<string> = new Set(['.git', '__pycache__'])

/** Counts what a pack holds. */
export class PackBounds {
  #files = 0
  #bytes = 0

  /** @throws PACK_TOO_LARGE */
  add(bytes: number): void {
    this.#files += 1
    this.#bytes += bytes
    if (this.#files > MAX_PACK_FILES || this.#bytes > MAX_PACK_BYTES) {
      throw packTooLarge(MAX_PACK_FILES, MAX_PACK_BYTES)
    }
  }
}

/**
 * Copies a folder. Links stay links where they lead to somewhere inside; other links, devices, pipes and sockets are left
 * out.
 *
 * @param target is made
 * @returns skipped paths, relative to the folder
 * @throws PACK_TOO_LARGE; the reason of the abort
 */
export async function copyTree(source: string, target: string, signal: AbortSignal): Promise<string[]> {
  const bounds = new PackBounds()
  const omitted: string[] = []
  const copyFolder = async (path: string, depth: number): Promise<void> => {
    if (depth > MAX_DEPTH) throw packTooLarge(MAX_PACK_FILES, MAX_PACK_BYTES)
    await mkdir(join(target, path), { mode: 0o755 })
    const entries = await readdir(join(source, path), { withFileTypes: true })
    for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      signal.throwIfAborted()
      if (leftOut.has(entry.name)) continue
      const inner = posix.join(path, entry.name)
      if (entry.isDirectory()) {
        bounds.add(0)
        await copyFolder(inner, depth + 1)
      } else if (entry.isFile()) {
        await copyFile(join(source, inner), join(target, inner), bounds)
      } else if (!(entry.isSymbolicLink() && (await copyLink(source, target, inner, bounds)))) {
        omitted.push(inner)
      }
    }
  }
  await copyFolder('.', 0)
  return omitted
}

async function copyFile(from: string, to: string, bounds: PackBounds): Promise<void> {
  // Neither following what has become a link meanwhile, nor waiting for who writes to a pipe.
  const file = await open(from, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  let copy: FileHandle | undefined
  try {
    const status = await file.stat()
    if (!status.isFile()) return
    bounds.add(status.size)
    copy = await open(to, 'wx', (status.mode & 0o100) === 0 ? 0o644 : 0o755)
    const buffer = Buffer.alloc(Math.min(status.size, 1_048_576))
    // No more than was counted, even when it grows meanwhile.
    for (let left = status.size; left > 0;) {
      const { bytesRead } = await file.read(buffer, 0, Math.min(left, buffer.length))
      if (bytesRead === 0) break
      await copy.writeFile(buffer.subarray(0, bytesRead))
      left -= bytesRead
    }
  } finally {
    await copy?.close()
    await file.close()
  }
}

/** Only what leads to somewhere inside by its words alone. */
async function copyLink(source: string, target: string, path: string, bounds: PackBounds): Promise<boolean> {
  const to = await readlink(join(source, path))
  if (to.startsWith('/')) return false
  const end = posix.join(posix.dirname(path), to)
  if (end === '..' || end.startsWith('../')) return false
  bounds.add(0)
  await symlink(to, join(target, path))
  return true
}
