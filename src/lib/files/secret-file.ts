/** Files that only the server's account can read. They appear complete or not at all, and survive a power cut. */
import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, unlinkSync, writeFileSync } from 'node:fs'
import { link, lstat, mkdir, open, readlink, realpath, rename, rm, stat, type FileHandle } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { hasCode } from '../process/index.ts'
import { syncFolder, syncFolderSync } from './sync-folder.ts'

const MAX_LINKS = 40

/**
 * Creates the folder and its missing parents with mode 0700; an existing folder is unchanged. Node's recursive mode
 * never ends where a folder refuses new ones with ENOENT, as `/proc` does.
 */
export async function makeFolder(path: string): Promise<void> {
  if (await isFolder(path)) return
  const parent = dirname(path)
  if (parent !== path) await makeFolder(parent)
  try {
    await mkdir(path, { mode: 0o700 })
    await syncFolder(parent)
  } catch (error) {
    // Another process may have created it.
    if (!(await isFolder(path))) throw error
  }
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  )
}

/**
 * Creates the file with mode 0600 and missing folders with 0700. @returns false, without a change, if the file exists
 */
export async function createSecretFile(path: string, content: string | Buffer): Promise<boolean> {
  await makeFolder(dirname(path))
  return withTemporaryFile(path, content, async (temporary) => {
    try {
      await link(temporary, path)
      return true
    } catch (error) {
      if (hasCode(error, 'EEXIST')) return false
      throw error
    }
  })
}

/** The synchronous form of `createSecretFile`, for a small file that an installation creates once. */
export function createSecretFileSync(path: string, content: string): boolean {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const temporary = temporaryNameFor(path)
  const file = openSync(temporary, 'wx', 0o600)
  try {
    writeFileSync(file, content)
    fsyncSync(file)
    linkSync(temporary, path)
    syncFolderSync(dirname(path))
    syncFolderSync(dirname(dirname(path)))
    return true
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false
    throw error
  } finally {
    closeSync(file)
    unlinkSync(temporary)
  }
}

/** As `createSecretFile`, but replaces an existing file. */
export async function replaceSecretFile(path: string, content: string | Buffer): Promise<void> {
  await makeFolder(dirname(path))
  await withTemporaryFile(path, content, (temporary) => rename(temporary, path))
}

/** Owner and mode of a file. */
export interface FileOwnership {
  mode: number
  uid: number
  gid: number
}

/**
 * Replaces a file that others may also read.
 *
 * @param isDue called when the new content is ready
 * @returns false, without a change, if it is not due
 * @throws also when the file cannot get this owner
 */
export async function replaceFile(
  path: string,
  content: Buffer,
  ownership: FileOwnership,
  isDue: () => Promise<boolean>,
): Promise<boolean> {
  const replaceIfDue = async (temporary: string): Promise<boolean> => {
    const mayReplace = await isDue()
    if (mayReplace) await rename(temporary, path)
    return mayReplace
  }
  return withTemporaryFile(path, content, replaceIfDue, ownership)
}

/** The target of a chain of symbolic links, which need not exist. */
export async function linkTargetOf(path: string): Promise<string> {
  let target = resolve(path)
  for (let links = 0; links < MAX_LINKS; links++) {
    const folder = await realpath(dirname(target)).catch((error: unknown) => {
      if (hasCode(error, 'ENOENT')) return dirname(target)
      throw error
    })
    target = join(folder, basename(target))
    const isLink = await lstat(target).then(
      (found) => found.isSymbolicLink(),
      () => false,
    )
    if (!isLink) return target
    target = resolve(folder, await readlink(target))
  }
  throw new Error('too many levels of symbolic links')
}

const temporaryNameFor = (path: string): string => join(dirname(path), `.${randomBytes(9).toString('base64url')}.tmp`)

/** Removes what `use` leaves of the temporary file: it may hold a secret. */
async function withTemporaryFile<T>(
  path: string,
  content: string | Buffer,
  use: (temporary: string) => Promise<T>,
  ownership?: FileOwnership,
): Promise<T> {
  const temporary = temporaryNameFor(path)
  const file = await open(temporary, 'wx', 0o600)
  try {
    try {
      if (ownership !== undefined) await setOwnership(file, ownership)
      await write(file, content).catch((error: unknown) => {
        // Errors of an open file do not name it.
        throw error instanceof Error ? Object.assign(error, { message: `${error.message} '${path}'` }) : error
      })
    } finally {
      await file.close()
    }
    const used = await use(temporary)
    await syncFolder(dirname(path))
    return used
  } finally {
    await rm(temporary, { force: true })
  }
}

async function write(file: FileHandle, content: string | Buffer): Promise<void> {
  await file.writeFile(content)
  await file.sync()
}

async function setOwnership(file: FileHandle, { mode, uid, gid }: FileOwnership): Promise<void> {
  const own = await file.stat()
  if (own.uid !== uid || own.gid !== gid) {
    await file.chown(uid, gid).catch((error: unknown) => {
      throw new Error(
        'the new file could not get the same owner; run the command as root or as the owner of the file',
        { cause: error },
      )
    })
  }
  await file.chmod(mode)
}
