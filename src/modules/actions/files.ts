/** Writes and removes files below a pack's `actions` folder on request: all files of a request or none. */
import { constants, type Stats } from 'node:fs'
import { link, lstat, mkdir, open, realpath, rename, rm, rmdir, stat, unlink } from 'node:fs/promises'
import { basename, dirname, join, relative, sep } from 'node:path'
import { dataFileInvalid, isAppError, packFileDenied, packFileFailed, packFolderMissing } from '../../core/errors.ts'
import { newId } from '../../core/ids.ts'
import { syncFolder } from '../../lib/files/index.ts'
import { hasCode } from '../../lib/process/index.ts'

/** Changes on disk, pending until kept or undone. */
export interface FileChange {
  /** Absolute paths. */
  readonly written: readonly string[]
  /** Keeps the changes. Never rejects: leftover files are hidden and harmless. */
  keep(): Promise<void>
  /** Undoes the changes. @throws Error when the disk fails */
  undo(): Promise<void>
}

/** A file to write below the `actions` folder. */
export interface NewFile {
  /** As `pathInPack` takes it. */
  file_path: string
  content: string | Buffer
  /** Default: when it begins with `#!`. */
  isExecutable?: boolean
}

/** Of an entry point that is shown or copied. */
export const MAX_ENTRY_POINT_BYTES = 5_000_000
const MAX_PATH_CHARS = 1024
const MAX_DEPTH = 10

/**
 * The path of a requested file, relative to the pack.
 *
 * @param path relative to the `actions` folder, or beginning with `actions/`
 * @throws DATA_FILE_INVALID
 */
export function pathInPack(path: string): string {
  const inner = path.startsWith('actions/') ? path.slice('actions/'.length) : path
  const segments = inner.split('/')
  if (inner.length > MAX_PATH_CHARS || segments.length > MAX_DEPTH) {
    throw dataFileInvalid(path, `it is longer than ${MAX_PATH_CHARS} characters, or has more than ${MAX_DEPTH} parts`)
  }
  if (segments.some((segment) => segment === '' || segment === '.' || segment === '..') || /[\\\p{Cc}]/u.test(inner)) {
    throw dataFileInvalid(path, 'use a path below the actions folder of the pack, without "..", "\\" and empty parts')
  }
  return `actions/${inner}`
}

/**
 * Writes files atomically. A file that begins with `#!` becomes executable; other permissions of a replaced file stay.
 *
 * @param folder absolute path of the pack
 * @param options makesFolder: creates the folder `actions` if the pack has none; default false
 * @throws DATA_FILE_INVALID, PACK_FOLDER_MISSING, PACK_FILE_DENIED, PACK_FILE_FAILED; then nothing has changed
 */
export async function writeFiles(
  pack: string,
  folder: string,
  files: readonly NewFile[],
  { makesFolder = false }: { makesFolder?: boolean } = {},
): Promise<FileChange> {
  const byPath = new Map<string, NewFile>()
  for (const file of files) {
    const path = pathInPack(file.file_path)
    if (byPath.has(path)) throw dataFileInvalid(file.file_path, 'it occurs twice')
    byPath.set(path, file)
  }
  return change('write', async (done) => {
    if (makesFolder) await done.at('actions', () => makeActionsFolder(pack, folder, done))
    const root = await actionsFolder(pack, folder)
    for (const [path, file] of byPath) await done.at(path, () => writeFile(root, path, file, done))
  })
}

async function makeActionsFolder(pack: string, folder: string, done: Done): Promise<void> {
  if ((await statusOf(folder)) === undefined) throw packFolderMissing(pack)
  await makeFolder(join(folder, 'actions'), done)
}

/**
 * Removes files; missing files count as removed.
 *
 * @param paths relative to the pack, from `pathInPack`
 * @throws as `writeFiles`
 */
export async function removeFiles(pack: string, folder: string, paths: readonly string[]): Promise<FileChange> {
  return change('delete', async (done) => {
    const root = await actionsFolder(pack, folder)
    for (const path of paths) await done.at(path, () => removeFile(root, path, done))
  })
}

/** @returns its absolute path without links @throws PACK_FOLDER_MISSING */
export async function actionsFolder(pack: string, folder: string | undefined): Promise<string> {
  if (folder === undefined) throw packFolderMissing(pack)
  try {
    const packRoot = await realpath(folder)
    const root = await realpath(join(packRoot, 'actions'))
    if (isWithin(packRoot, root) && (await stat(root)).isDirectory()) return root
  } catch (error) {
    if (!hasCode(error, 'ENOENT', 'ENOTDIR', 'EACCES', 'ELOOP')) throw error
  }
  throw packFolderMissing(pack)
}

/** The steps taken, and how to undo each. */
interface Done {
  written: string[]
  /** Those with new or renamed names, which the record counts on after a power cut. */
  folders: Set<string>
  undo: (() => Promise<unknown>)[]
  keep: (() => Promise<unknown>)[]
  /** Names the file to which an error belongs. */
  at(path: string, work: () => Promise<void>): Promise<void>
}

async function change(verb: 'write' | 'delete', work: (done: Done) => Promise<void>): Promise<FileChange> {
  const done: Done = {
    written: [],
    folders: new Set(),
    undo: [],
    keep: [],
    async at(path, step) {
      try {
        await step()
      } catch (error) {
        if (isAppError(error)) throw error
        if (hasCode(error, 'EACCES', 'EPERM', 'EROFS')) throw packFileDenied(verb, path, error)
        if (hasCode(error, 'ENOTDIR', 'EISDIR', 'ENAMETOOLONG', 'ELOOP')) {
          throw dataFileInvalid(path, 'a part of it is neither a folder nor a file, or its name is too long')
        }
        throw packFileFailed(verb, path, error)
      }
    },
  }
  const undo = async (): Promise<void> => {
    for (const step of done.undo.toReversed()) await step()
  }
  try {
    await work(done)
    for (const path of done.folders) await syncFolder(path)
  } catch (error) {
    await undo()
    throw error
  }
  return {
    written: done.written,
    undo,
    async keep() {
      for (const step of done.keep) await step().catch(() => undefined)
    },
  }
}

async function writeFile(root: string, path: string, { content, isExecutable }: NewFile, done: Done): Promise<void> {
  const target = await placeOf(root, path, done)
  const before = await statusOf(target)
  if (before?.isDirectory() === true) throw dataFileInvalid(path, 'a folder of that name exists')

  const temporary = hiddenBeside(target, 'new')
  const flags = constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY | constants.O_NOFOLLOW
  const isScript = isExecutable === true || content.slice(0, 2).toString() === '#!'
  const file = await open(temporary, flags, isScript ? 0o777 : 0o666)
  // Harmless once it has become the file itself.
  done.undo.push(() => rm(temporary, { force: true }))
  try {
    await file.writeFile(content)
    if (before?.isFile() === true) await file.chmod((before.mode & 0o777) | (isScript ? 0o111 : 0))
    await file.sync()
  } finally {
    await file.close()
  }

  if (before === undefined) {
    done.undo.push(() => rm(target, { force: true }))
  } else {
    const old = hiddenBeside(target, 'old')
    await link(target, old)
    done.undo.push(() => rename(old, target))
    done.keep.push(() => unlink(old))
  }
  await rename(temporary, target)
  done.written.push(target)
  done.folders.add(dirname(target))
}

async function removeFile(root: string, path: string, done: Done): Promise<void> {
  let target: string
  try {
    target = await placeOf(root, path)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return
    throw error
  }
  const before = await statusOf(target)
  if (before === undefined) return
  if (before.isDirectory()) throw dataFileInvalid(path, 'it is a folder')
  const old = hiddenBeside(target, 'old')
  await rename(target, old)
  done.undo.push(() => rename(old, target))
  done.keep.push(() => unlink(old))
  done.folders.add(dirname(target))
}

/**
 * The absolute path of a file; no link may lead out of the folder.
 *
 * @param done given: creates missing folders
 * @throws DATA_FILE_INVALID, system errors
 */
async function placeOf(root: string, path: string, done?: Done): Promise<string> {
  let folder = root
  for (const segment of relative('actions', dirname(path)).split('/')) {
    if (segment === '') continue
    const next = join(folder, segment)
    if (done !== undefined) await makeFolder(next, done)
    folder = await realpath(next)
    if (!isWithin(root, folder)) throw dataFileInvalid(path, 'it leads out of the actions folder of the pack')
  }
  return join(folder, basename(path))
}

async function makeFolder(path: string, done: Done): Promise<void> {
  try {
    await mkdir(path)
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return
    throw error
  }
  done.folders.add(dirname(path))
  // Unless another program has put a file there since.
  done.undo.push(() => rmdir(path).catch(() => undefined))
}

/** Does not follow links; undefined when the path does not exist. */
async function statusOf(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}

/** Registration ignores names that begin with a dot. */
function hiddenBeside(target: string, what: 'new' | 'old'): string {
  return join(dirname(target), `.svc-${newId()}.${what}`)
}

function isWithin(root: string, path: string): boolean {
  return path === root || path.startsWith(root.endsWith(sep) ? root : root + sep)
}
