/**
 * Password files in the format of htpasswd: one `user:hash` per line (contract 01, 1.4). A change counts from the next
 * login. Every other line, comment and blank stays as it is, byte by byte.
 */
import { randomBytes } from 'node:crypto'
import type { BigIntStats } from 'node:fs'
import { constants, link, open, rename, stat, unlink, type FileHandle } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { problemOfPassword, problemOfUserName } from './account-rules.ts'
import { isAppError } from './errors.ts'
import { createSecretFile, replaceFile, linkTargetOf, type FileOwnership } from '../lib/files/index.ts'
import { hasCode } from '../lib/process/index.ts'
import { shown } from '../lib/text/index.ts'

export const MAX_FILE_BYTES = 16 * 1024 * 1024

/** Without `O_NONBLOCK`, opening a named pipe would wait for its writer. */
const readFlags = constants.O_RDONLY | constants.O_NONBLOCK
const LOCK_LOOK_MS = 10
/** A read and a write take less; after this time the owner of the lock has crashed. */
const STALE_LOCK_MS = 5000
const LOCK_WAIT_MS = 30_000
const MAX_TRIES = 100

/** Why a password file cannot be read or changed, in one line. */
export class PasswordFileProblem extends Error {}

/** Hashes as `$argon2id$…`, the only form that this program writes. */
export async function hashPassword(password: string): Promise<string> {
  // Only commands that set a password load the library.
  const { default: argon2 } = await import('argon2')
  // 19 MiB, two passes, parallelism 1: about 20 ms. The package's default takes 64 MiB and four threads per login.
  return argon2.hash(password, { type: argon2.argon2id, memoryCost: 19_456, timeCost: 2, parallelism: 1 })
}

export interface PasswordLine {
  user: string
  hash: string
}

/** Undefined for comments and lines without a user. */
export function parsePasswordLine(rawLine: string): PasswordLine | undefined {
  const line = rawLine.trim()
  const colon = line.indexOf(':')
  if (colon === -1 || line.startsWith('#')) return undefined
  return { user: line.slice(0, colon), hash: line.slice(colon + 1) }
}

/** @throws errors of the file system, and Error if the path is not a regular file */
export async function openPasswordFile(path: string): Promise<FileHandle> {
  const file = await open(path, readFlags)
  if ((await file.stat()).isFile()) return file
  await file.close()
  throw new Error('it is not a file')
}

/** Limits the size even when `stat` reports less. @throws Error if the file is larger than `MAX_FILE_BYTES` */
export async function readPasswordFile(file: FileHandle): Promise<Buffer> {
  const chunks: Buffer[] = []
  let total = 0
  for await (const chunk of file.createReadStream({ autoClose: false, end: MAX_FILE_BYTES })) {
    const bytes: Buffer = chunk // no encoding was asked for
    chunks.push(bytes)
    total += bytes.length
  }
  if (total > MAX_FILE_BYTES) throw new Error(`it is larger than ${MAX_FILE_BYTES} bytes`)
  return Buffer.concat(chunks)
}

/**
 * Adds the user or replaces its password; creates the file (mode 0600) if it is missing. Of several lines for the user
 * it keeps one.
 *
 * @param confirm called right before the change, with the lock held; an `AppError` from it cancels the change
 * @throws PasswordFileProblem, and errors of `confirm`
 */
export async function setPassword(path: string, user: string, password: string, confirm?: () => void): Promise<void> {
  const wrongName = problemOfUserName(user)
  if (wrongName !== undefined) throw new PasswordFileProblem(`The user name ${wrongName}.`)
  const wrongPassword = problemOfPassword(password)
  if (wrongPassword !== undefined) throw new PasswordFileProblem(`The password ${wrongPassword}.`)
  const hash = await hashPassword(password)
  await change(path, (lines) => {
    confirm?.()
    return withLine(lines, user, hash)
  })
}

/** The lines with one for the user, in the place of its first. */
function withLine(lines: string[], user: string, hash: string): string[] {
  const line = toBytes(`${user}:${hash}`)
  const isOf = linesOf(user)
  const first = lines.findIndex(isOf)
  if (first !== -1) {
    const end = lines[first]?.endsWith('\r') === true ? '\r' : ''
    return lines.flatMap((each, i) => (i === first ? [line + end] : isOf(each) ? [] : [each]))
  }
  // The text after the last line break is either a line without one, or empty.
  return lines.at(-1) === '' ? [...lines.slice(0, -1), line, ''] : [...lines, line, '']
}

/** Sets hashes made elsewhere, each of a form that logins can verify. @throws PasswordFileProblem */
export async function setPasswordHashes(path: string, hashes: ReadonlyMap<string, string>): Promise<void> {
  await change(path, (lines) => [...hashes].reduce((all, [user, hash]) => withLine(all, user, hash), lines))
}

/** By user, of several lines the last, as logins take it; empty if the file is missing. @throws PasswordFileProblem */
export async function passwordHashes(path: string): Promise<Map<string, string>> {
  const { content } = await read(path)
  const hashes = new Map<string, string>()
  for (const rawLine of content.toString('utf8').split('\n')) {
    const line = parsePasswordLine(rawLine)
    if (line !== undefined && line.user !== '') hashes.set(line.user, line.hash)
  }
  return hashes
}

/** @returns false if the user does not exist. @throws PasswordFileProblem */
export async function removeUser(path: string, user: string): Promise<boolean> {
  return change(path, (lines) => {
    const isOf = linesOf(user)
    const left = lines.filter((line) => !isOf(line))
    return left.length === lines.length ? undefined : left
  })
}

/** In file order, each name once; empty if the file is missing. @throws PasswordFileProblem */
export async function userNames(path: string): Promise<string[]> {
  return [...(await passwordHashes(path)).keys()]
}

/** Maps each byte to one character, so that invalid UTF-8 is kept. */
const toBytes = (text: string): string => Buffer.from(text).toString('latin1')

/** Whether a line, read as bytes, belongs to this user. */
function linesOf(user: string): (line: string) => boolean {
  return (line) => parsePasswordLine(Buffer.from(line, 'latin1').toString('utf8'))?.user === user
}

interface State {
  content: Buffer
  /** Undefined: the file does not exist. */
  found: (FileOwnership & { version: string | undefined }) | undefined
}

async function read(path: string): Promise<State> {
  try {
    const file = await openPasswordFile(path)
    try {
      const { mode, uid, gid } = await file.stat()
      const version = await versionOf(file)
      return { content: await readPasswordFile(file), found: { mode: mode & 0o7777, uid, gid, version } }
    } finally {
      await file.close()
    }
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return { content: Buffer.alloc(0), found: undefined }
    throw new PasswordFileProblem(`${shown(path)} cannot be read (${reasonOf(error)})`, { cause: error })
  }
}

/**
 * @param edit receives the lines as bytes, the last one empty if the file ends with a line break; undefined: no change
 */
async function change(path: string, edit: (lines: string[]) => string[] | undefined): Promise<boolean> {
  try {
    const target = await linkTargetOf(path)
    const lock = await takeLock(join(dirname(target), `.${basename(target)}.lock`))
    try {
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        const state = await read(target)
        const lines = edit(state.content.toString('latin1').split('\n'))
        if (lines === undefined) return false
        const content = Buffer.from(lines.join('\n'), 'latin1')
        if (content.length > MAX_FILE_BYTES) throw new Error(`it would be larger than ${MAX_FILE_BYTES} bytes`)
        if (await replace(target, content, state, lock)) return true
      }
      throw new Error('other processes keep changing it; try again')
    } finally {
      await lock.release()
    }
  } catch (error) {
    if (error instanceof PasswordFileProblem || isAppError(error)) throw error
    throw new PasswordFileProblem(`${shown(path)} cannot be changed (${reasonOf(error)})`, { cause: error })
  }
}

/** @returns false, without a change, if the file has been replaced since it was read */
async function replace(path: string, content: Buffer, { found }: State, lock: Lock): Promise<boolean> {
  if (found === undefined) return createSecretFile(path, content)
  return replaceFile(path, content, found, async () => {
    if (!(await lock.isHeld())) throw new Error('another process took over the lock of this change; try again')
    // Programs such as htpasswd ignore the lock.
    return (await versionOf(path)) === found.version
  })
}

async function versionOf(path: string | FileHandle): Promise<string | undefined> {
  const stats = await statIfAny(path)
  return stats && `${stats.ino} ${stats.size} ${stats.mtimeNs} ${stats.ctimeNs}`
}

async function statIfAny(path: string | FileHandle): Promise<BigIntStats | undefined> {
  try {
    return await (typeof path === 'string' ? stat(path, { bigint: true }) : path.stat({ bigint: true }))
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}

interface Lock {
  isHeld(): Promise<boolean>
  release(): Promise<void>
}

/** Waits until this process has created the lock file. */
async function takeLock(path: string): Promise<Lock> {
  const started = performance.now()
  let seen: { identity: string | undefined; since: number } | undefined
  let own = await makeLock(path)
  while (own === undefined) {
    const now = performance.now()
    if (now - started > LOCK_WAIT_MS) {
      throw new Error(`other processes keep changing it; if none does, remove ${shown(path)}`)
    }
    const identity = await identityOf(path)
    if (seen === undefined || seen.identity !== identity) seen = { identity, since: now }
    else if (identity !== undefined && now - seen.since > STALE_LOCK_MS) await removeStale(path, identity)
    await delay(LOCK_LOOK_MS)
    own = await makeLock(path)
  }
  const isHeld = async (): Promise<boolean> => (await identityOf(path)) === own
  return {
    isHeld,
    async release() {
      if (await isHeld()) await unlink(path)
    },
  }
}

/** @returns the identity of the new lock file; undefined if one exists */
async function makeLock(path: string): Promise<string | undefined> {
  try {
    await (await open(path, 'wx', 0o600)).close()
    return await identityOf(path)
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return undefined
    throw error
  }
}

/** Not its content: the account may lack permission to read another writer's lock. */
async function identityOf(path: string): Promise<string | undefined> {
  const stats = await statIfAny(path)
  return stats && `${stats.ino} ${stats.mtimeNs}`
}

/** Another writer may take the lock over between the check and the removal; then the function puts it back. */
async function removeStale(path: string, identity: string): Promise<void> {
  const aside = `${path}.${randomBytes(9).toString('base64url')}`
  try {
    await rename(path, aside)
    if ((await identityOf(aside)) !== identity) await link(aside, path)
  } catch (error) {
    if (!hasCode(error, 'ENOENT', 'EEXIST')) throw error
  } finally {
    await unlink(aside).catch(() => undefined)
  }
}

function reasonOf(error: unknown): string {
  if (hasCode(error, 'EACCES', 'EPERM')) return 'permission denied'
  if (hasCode(error, 'ENOENT')) return 'there is no such folder'
  return error instanceof Error ? error.message : String(error)
}
