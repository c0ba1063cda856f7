/** `flat_file`: users and hashes in an htpasswd file (contract 01, 1.4). Edits apply from the next login. */
import { createHmac, randomBytes } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { accountsFailed, isAppError } from '../../../core/errors.ts'
import type { JsonObject } from '../../../config/index.ts'
import type { Log } from '../../../lib/log/index.ts'
import {
  openPasswordFile,
  parsePasswordLine,
  readPasswordFile,
  removeUser,
  setPassword,
  userNames,
} from '../../../core/password-file.ts'
import { hasCode } from '../../../lib/process/index.ts'
import { BackendProblem, type AuthBackend, type BackendContext, type BackendType } from './backend.ts'
import { createFirstAdministrator, createKeptPassword, FIRST_ADMINISTRATOR } from './first-administrator.ts'
import { createPasswordVerifier, isUsableHash } from './password-hash.ts'
import { shown } from '../../../lib/text/index.ts'
import { writeJson } from '../../../lib/json/index.ts'

/** Age from which a change of the file shows in its times. File clocks are coarse: an earlier change can be missed. */
const SETTLED_MS = 2000

export const flatFile: BackendType = { name: 'flat_file', create }

async function create(kwargs: JsonObject, context: BackendContext): Promise<AuthBackend> {
  const given = readFilePath(kwargs)
  const defaultPath = join(context.basePath, 'htpasswd')
  const path = given === undefined ? defaultPath : resolve(context.basePath, given)
  if (given === undefined && !(await exists(path))) await createFirstAdministrator(path, context)
  const file = new PasswordFile(path, context.log)
  try {
    await file.read()
  } catch (error) {
    const why = hasCode(error, 'ENOENT') ? 'does not exist' : `cannot be read (${reasonOf(error)})`
    throw new BackendProblem(`auth.backend_kwargs: file_path ${shown(path)} ${why}`)
  }

  const verifier = createPasswordVerifier()
  const decoy = createDecoy()
  const kept = createKeptPassword(context)
  // Other programs can have changed the password while the server was off.
  if (path === defaultPath) {
    const hash = (await file.read()).get(FIRST_ADMINISTRATOR)
    await kept.review(async (password) => hash !== undefined && verifier.verify(hash, password))
  }
  const reviewKept = async (user: string, isCurrent: (password: string) => boolean): Promise<void> => {
    if (path === defaultPath && user === FIRST_ADMINISTRATOR) await kept.review(isCurrent)
  }
  /** Never creates a missing file again, because it contained other users too. */
  const requireFile = async (): Promise<void> => void (await file.read())
  return {
    async authenticate(user, password) {
      const users = await file.read()
      const hash = users.get(user)
      const checked = hash ?? decoy(user, users)
      if (checked === undefined) return false
      const matches = await verifier.verify(checked, password)
      if (hash === undefined || !matches) return false
      await reviewKept(user, (first) => first === password)
      return true
    },
    accounts: {
      names: () =>
        orUnavailable(async () => {
          await requireFile()
          return userNames(path)
        }),
      setPassword: (user, password, confirm) =>
        orUnavailable(async () => {
          await requireFile()
          await setPassword(path, user, password, confirm)
          await reviewKept(user, (first) => first === password)
        }),
      remove: (user) =>
        orUnavailable(async () => {
          const isRemoved = await removeUser(path, user)
          await reviewKept(user, () => false)
          return isRemoved
        }),
    },
    stop: () => verifier.stop(),
  }
}

/** @throws STORAGE_FAILED with the cause */
async function orUnavailable<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw isAppError(error) ? error : accountsFailed(error)
  }
}

function readFilePath(kwargs: JsonObject): string | undefined {
  const other = Object.keys(kwargs).find((name) => name !== 'file_path')
  if (other !== undefined) {
    throw new BackendProblem(
      `auth.backend_kwargs: flat_file has no argument ${writeJson(shown(other))}; use {"file_path": "/etc/svc/htpasswd"}`,
    )
  }
  const path = kwargs['file_path']
  if (path === undefined) return undefined
  if (typeof path !== 'string' || path === '' || path.includes('\0')) {
    throw new BackendProblem('auth.backend_kwargs: file_path must be a path such as "/etc/svc/htpasswd"')
  }
  return path
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path)
    return true
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false
    throw new BackendProblem(`auth.backend_kwargs: file_path ${shown(path)} cannot be read (${reasonOf(error)})`)
  }
}

function reasonOf(error: unknown): string {
  if (hasCode(error, 'EACCES')) return 'permission denied'
  return error instanceof Error ? error.message : String(error)
}

type Users = ReadonlyMap<string, string>

/**
 * A hash to check for an unknown user, so that the response takes as long as for a known one: the hash of some user,
 * always the same for the same name. Undefined: the file has no users.
 */
export function createDecoy(): (user: string, users: Users) => string | undefined {
  const key = randomBytes(32)
  return (user, users) => {
    const place = createHmac('sha256', key).update(user).digest().readUInt32LE(0) % users.size
    let i = 0
    for (const hash of users.values()) if (i++ === place) return hash
    return undefined
  }
}

/** Users of the file who can log in. Read again after a change of the file. */
class PasswordFile {
  readonly #path: string
  readonly #log: Log
  #users: Users = new Map()
  /** State of the file at the last read; undefined: the file is too new to detect a change. */
  #state: string | undefined
  #warned = ''

  constructor(path: string, log: Log) {
    this.#path = path
    this.#log = log
  }

  /** @throws the failure of the file system */
  async read(): Promise<Users> {
    const file = await openPasswordFile(this.#path)
    try {
      const { mtimeMs, ctimeMs, size, ino } = await file.stat()
      const state = `${mtimeMs} ${ctimeMs} ${size} ${ino}`
      if (state === this.#state) return this.#users
      const isSettled = Date.now() - Math.max(mtimeMs, ctimeMs) > SETTLED_MS
      const { users, unusable } = parse((await readPasswordFile(file)).toString('utf8'))
      this.#warn(unusable)
      this.#users = users
      this.#state = isSettled ? state : undefined
      return users
    } finally {
      await file.close()
    }
  }

  /** Warns once for the same users, because every login reads a new file. */
  #warn(unusable: string[]): void {
    const names = unusable.join('\n')
    const isNew = names !== this.#warned
    this.#warned = names
    if (!isNew || names === '') return
    this.#log.warning(
      'auth.hash_unsupported',
      'Users of the password file cannot log in: their password hashes are unsupported or too expensive to check. Set new passwords with svc user passwd.',
      { users: unusable.slice(0, 10), count: unusable.length },
    )
  }
}

/** A later line for a user replaces an earlier one, even if its hash is unsupported. */
function parse(text: string): { users: Users; unusable: string[] } {
  const users = new Map<string, string>()
  const unusable = new Set<string>()
  for (const rawLine of text.split('\n')) {
    const line = parsePasswordLine(rawLine)
    if (line === undefined) continue
    const { user, hash } = line
    if (isUsableHash(hash)) {
      users.set(user, hash)
      unusable.delete(user)
    } else {
      users.delete(user)
      unusable.add(user)
    }
  }
  return { users, unusable: [...unusable] }
}
