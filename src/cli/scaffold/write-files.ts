/**
 * Writes the files of one command: all of them or none. Each appears complete, and no file is replaced that the command does
 * not own.
 */
import { randomBytes } from 'node:crypto'
import { copyFile, link, lstat, mkdir, open, rename, rm, rmdir } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import { describeFileError, syncFolder } from '../../lib/files/index.ts'
import { hasCode } from '../../lib/process/index.ts'
import { absolutePath, cliProcess } from '../cli-process.ts'
import { CliFailure } from '../failures.ts'
import { printable } from '../output/print.ts'

export interface PlannedFile {
  /** Absolute. */
  path: string
  text: string
  /** Default: false. */
  isExecutable?: boolean
  /** Whether a file of that name may be replaced. Default: false. */
  replaces?: boolean
}

/** A file that is written, but has a temporary name. */
interface Prepared {
  file: PlannedFile
  temporary: string
  /** A copy of the file that it replaces. */
  backup?: string
}

/** A path as people type it: relative when it is below the current folder. */
export function shownPath(path: string): string {
  const short = relative(cliProcess().cwd(), path)
  return printable(short === '' ? '.' : short.startsWith(`..${sep}`) || short === '..' ? path : short)
}

/** @throws CliFailure that names every file that would be replaced */
export async function refuseObstacles(files: readonly PlannedFile[]): Promise<void> {
  const found: string[] = []
  for (const { path, replaces = false } of files) {
    // Whatever it is: a link to nothing is in the way, too.
    const stats = await lstat(path).catch((error: unknown) => {
      if (hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined
      throw failure(path, error)
    })
    if (stats !== undefined && !(replaces && stats.isFile())) found.push(path)
  }
  if (found.length === 0) return
  throw new CliFailure(
    `${found.length === 1 ? 'This file exists' : 'These files exist'} already, so nothing was written:\n${found
      .map((path) => `  ${shownPath(path)}`)
      .join('\n')}\nMove ${found.length === 1 ? 'it' : 'them'} away, or choose another name or folder.`,
  )
}

/**
 * Writes the files, in their order, after all of them have found room on the disk; then removes others. After a failure
 * everything is as before.
 *
 * @param removed absolute paths of files
 * @throws CliFailure
 */
export async function writeFiles(files: readonly PlannedFile[], removed: readonly string[] = []): Promise<void> {
  await refuseObstacles(files)
  const undo: (() => Promise<unknown>)[] = []
  const folders: string[] = []
  const leftovers: string[] = []
  let isDone = false
  let place = ''
  try {
    const prepared: Prepared[] = []
    for (const file of files) {
      place = file.path
      await makeFolders(dirname(file.path), folders)
      prepared.push(await prepare(file, leftovers))
    }
    for (const each of prepared) {
      place = each.file.path
      await putInPlace(each, undo)
    }
    for (const path of removed) {
      place = path
      const away = temporaryNameFor(path)
      await rename(path, away)
      leftovers.push(away)
      undo.push(() => rename(away, path))
    }
    for (const folder of new Set([...files.map(({ path }) => path), ...removed].map((path) => dirname(path)))) {
      place = folder
      await syncFolder(folder)
    }
    isDone = true
  } catch (error) {
    for (const step of undo.toReversed()) await step().catch(() => undefined)
    throw error instanceof CliFailure ? error : failure(place, error)
  } finally {
    for (const path of leftovers) await rm(path, { force: true }).catch(() => undefined)
    if (!isDone) for (const path of folders.toReversed()) await rmdir(path).catch(() => undefined)
  }
}

function failure(path: string, error: unknown): CliFailure {
  return new CliFailure(
    `Cannot write ${shownPath(path)}: ${printable(describeFileError(path, error))}. Nothing was written.`,
  )
}

/**
 * Not with Node's recursive mode, which never ends where a folder refuses new ones with ENOENT, as `/proc` does.
 *
 * @param made gets the new ones
 */
async function makeFolders(path: string, made: string[]): Promise<void> {
  if (await exists(path)) return
  if (dirname(path) !== path) await makeFolders(dirname(path), made)
  try {
    await mkdir(path)
    made.push(path)
  } catch (error) {
    // Another program may have made it.
    if (!hasCode(error, 'EEXIST') || !(await exists(path))) throw error
  }
}

async function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  )
}

async function prepare(file: PlannedFile, leftovers: string[]): Promise<Prepared> {
  const temporary = temporaryNameFor(file.path)
  // The mask of the account applies.
  const handle = await open(temporary, 'wx', file.isExecutable === true ? 0o777 : 0o666)
  leftovers.push(temporary)
  try {
    await handle.writeFile(file.text)
    await handle.sync()
  } finally {
    await handle.close()
  }
  if (file.replaces !== true || !(await exists(file.path))) return { file, temporary }
  const backup = temporaryNameFor(file.path)
  leftovers.push(backup)
  await copyFile(file.path, backup)
  return { file, temporary, backup }
}

async function putInPlace({ file, temporary, backup }: Prepared, undo: (() => Promise<unknown>)[]): Promise<void> {
  const { path } = file
  if (backup !== undefined) {
    await rename(temporary, path)
    undo.push(() => rename(backup, path))
    return
  }
  try {
    // Fails when another program has made the file meanwhile.
    await link(temporary, path)
  } catch (error) {
    if (hasCode(error, 'EEXIST')) {
      throw new CliFailure(`${shownPath(path)} exists by now: another program made it. Nothing was written.`)
    }
    if (!hasCode(error, 'EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS')) throw error
    // A file system without links: the name is reserved before the file takes it.
    await (await open(path, 'wx')).close()
    undo.push(() => rm(path, { force: true }))
    await rename(temporary, path)
    return
  }
  undo.push(() => rm(path, { force: true }))
}

const temporaryNameFor = (path: string): string => join(dirname(path), `.${randomBytes(9).toString('base64url')}.tmp`)

/** A folder or file of the command line as an absolute path. @throws CliFailure for a path that no system has */
export function pathOf(given: string): string {
  if (given === '') throw new CliFailure('The path is empty.', 2)
  if (given.includes('\0')) throw new CliFailure('The path has a character that no path can have.', 2)
  return absolutePath(given)
}
