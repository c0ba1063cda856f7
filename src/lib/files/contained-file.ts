/** Reads files below a folder by paths from outside; it never opens a file outside the folder. */
import { constants, type BigIntStats } from 'node:fs'
import { open, realpath, stat, type FileHandle } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { Lru } from '../cache/index.ts'
import { hasCode } from '../process/index.ts'

export type ContainedFile =
  { text: string } | { problem: 'missing' | 'outside' | 'unreadable' | 'not a file' | 'too large' | 'not UTF-8' }

export type ContainedProblem = Extract<ContainedFile, { problem: string }>['problem']

/**
 * The text of a file below `folder`. It follows links, but not out of the folder.
 *
 * @param path relative to the folder, with `/`
 */
export async function readContainedFile(folder: string, path: string, maxBytes: number): Promise<ContainedFile> {
  const file = await readContainedBytes(folder, path, maxBytes)
  return 'problem' in file ? file : decode(file.bytes)
}

/** As `readContainedFile`, for files that are read again and again: a file that is as it was is not opened. */
export function createContainedFiles(limits: { files: number; chars: number }): typeof readContainedFile {
  const kept = new Lru<string, { target: string; text: string; version: string }>(limits.files, limits.chars)
  return async (folder, path, maxBytes) => {
    const key = `${folder}\0${path}`
    const known = kept.get(key)
    if (known !== undefined) {
      const [found, status] = await Promise.all([locate(folder, path), stat(known.target, exactly).catch(nothing)])
      const isSame = 'target' in found && found.target === known.target && status !== undefined
      if (isSame && versionOf(status) === known.version && status.size <= maxBytes) return { text: known.text }
    }
    const begunMs = Date.now()
    const file = await readBytes(folder, path, maxBytes)
    if ('problem' in file) return file
    const decoded = decode(file.bytes)
    const { target, status } = file
    // The times of files are as coarse as the clock of the kernel: a younger file may change without another time.
    const isSettled = begunMs - Number(status.ctimeMs) > SETTLED_MS
    if ('text' in decoded && isSettled) {
      kept.set(key, { target, text: decoded.text, version: versionOf(status) }, decoded.text.length)
    }
    return decoded
  }
}

const SETTLED_MS = 1000
const exactly = { bigint: true } as const
const nothing = (): undefined => undefined
const versionOf = ({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string =>
  [dev, ino, size, mtimeNs, ctimeNs].join(' ')

/** As `readContainedFile`, for binary content. */
export async function readContainedBytes(
  folder: string,
  path: string,
  maxBytes: number,
): Promise<{ bytes: Buffer; mtimeMs: number; mode: number } | { problem: Exclude<ContainedProblem, 'not UTF-8'> }> {
  const file = await readBytes(folder, path, maxBytes)
  if ('problem' in file) return file
  const { mtimeNs, mode } = file.status
  return { bytes: file.bytes, mtimeMs: Number(mtimeNs) / 1e6, mode: Number(mode) }
}

async function readBytes(
  folder: string,
  path: string,
  maxBytes: number,
): Promise<
  { bytes: Buffer; target: string; status: BigIntStats } | { problem: Exclude<ContainedProblem, 'not UTF-8'> }
> {
  const found = await locate(folder, path)
  if ('problem' in found) return found
  let file: FileHandle
  try {
    // Non-blocking, so that a named pipe does not block a thread until it has a writer.
    file = await open(found.target, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
  } catch (error) {
    return { problem: isMissing(error) ? 'missing' : 'unreadable' }
  }
  try {
    const status = await file.stat(exactly)
    if (!status.isFile()) return { problem: 'not a file' }
    if (status.size > maxBytes) return { problem: 'too large' }
    // The file may grow while it is read; only the checked size is read.
    const bytes = Buffer.alloc(Number(status.size))
    const { bytesRead } = await file.read(bytes, 0, bytes.length, 0)
    return { bytes: bytes.subarray(0, bytesRead), target: found.target, status }
  } catch {
    return { problem: 'unreadable' }
  } finally {
    await file.close()
  }
}

/** Why there is no such file below `folder`; undefined: it exists. Does not open the file. */
export async function problemOfContainedFile(
  folder: string,
  path: string,
): Promise<Extract<ContainedProblem, 'missing' | 'outside' | 'unreadable' | 'not a file'> | undefined> {
  const found = await locate(folder, path)
  if ('problem' in found) return found.problem
  try {
    return (await stat(found.target)).isFile() ? undefined : 'not a file'
  } catch (error) {
    return isMissing(error) ? 'missing' : 'unreadable'
  }
}

async function locate(
  folder: string,
  path: string,
): Promise<{ target: string } | { problem: 'missing' | 'outside' | 'unreadable' }> {
  const segments = path.split('/')
  if (path === '' || path.startsWith('/') || path.includes('\0') || segments.includes('..'))
    return { problem: 'outside' }
  try {
    const [root, target] = await Promise.all([realpath(folder), realpath(join(folder, ...segments))])
    return target.startsWith(root.endsWith(sep) ? root : root + sep) ? { target } : { problem: 'outside' }
  } catch (error) {
    return { problem: isMissing(error) ? 'missing' : 'unreadable' }
  }
}

function decode(bytes: Uint8Array): ContainedFile {
  try {
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) }
  } catch {
    return { problem: 'not UTF-8' }
  }
}

function isMissing(error: unknown): boolean {
  return hasCode(error, 'ENOENT', 'ENOTDIR', 'ENAMETOOLONG')
}
