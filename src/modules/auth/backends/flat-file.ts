/** `flat_file`: users and hashes in a file in the format of htpasswd (contract 01, 1.4). Edits count from the next login. */
import { createHmac, randomBytes } from 'node:crypto'
import { constants, open, stat, type FileHandle } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { shown } from '../../../errors.ts'
import type { JsonObject } from '../../../config/options.ts'
import type { Log } from '../../../log.ts'
import { hasCode } from '../secret-file.ts'
import { BackendProblem, type AuthBackend, type BackendContext, type BackendType } from './backend.ts'
import { createFirstAdministrator } from './first-administrator.ts'
import { createPasswordVerifier, hashPassword, isUsableHash } from './password-hash.ts'

const MAX_FILE_BYTES = 16 * 1024 * 1024
/** A file changed less than this before it was read may change again and keep size and time: clocks of files are coarse. */
const SETTLED_MS = 2000
/** Without `O_NONBLOCK`, opening a named pipe would wait for its writer. */
const openFlags = constants.O_RDONLY | constants.O_NONBLOCK

export const flatFile: BackendType = { name: 'flat_file', create }

async function create(kwargs: JsonObject, context: BackendContext): Promise<AuthBackend> {
  const given = readFilePath(kwargs)
  const path = given === undefined ? join(context.basePath, 'htpasswd') : resolve(context.basePath, given)
  if (given === undefined && !(await exists(path))) await createFirstAdministrator(path, context)
  const file = new PasswordFile(path, context.log)
  try {
    await file.read()
  } catch (error) {
    const why = hasCode(error, 'ENOENT') ? 'does not exist' : `cannot be read (${reasonOf(error)})`
    throw new BackendProblem(`auth.backend_kwargs: file_path ${shown(path)} ${why}`)
  }

  const verifier = createPasswordVerifier()
  const decoy = await createDecoy()
  return {
    async authenticate(user, password) {
      const users = await file.read()
      const hash = users.get(user)
      const matches = await verifier.verify(hash ?? decoy(user, users), password)
      return hash !== undefined && matches
    },
    stop: () => verifier.stop(),
  }
}

function readFilePath(kwargs: JsonObject): string | undefined {
  const other = Object.keys(kwargs).find((name) => name !== 'file_path')
  if (other !== undefined) {
    throw new BackendProblem(
      `auth.backend_kwargs: flat_file has no argument ${JSON.stringify(shown(other))}; it takes {"file_path": "/etc/svc/htpasswd"}`,
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
 * A hash to check a stranger's password against, so that the answer takes as long as for somebody in the file: that of
 * some user, always the same one for the same name.
 */
async function createDecoy(): Promise<(user: string, users: Users) => string> {
  const key = randomBytes(32)
  const nobody = await hashPassword(key.toString('hex'))
  return (user, users) => {
    if (users.size === 0) return nobody
    const place = createHmac('sha256', key).update(user).digest().readUInt32LE(0) % users.size
    let i = 0
    for (const hash of users.values()) if (i++ === place) return hash
    return nobody
  }
}

/** The users of the file who can log in, read again when it has changed. */
class PasswordFile {
  readonly #path: string
  readonly #log: Log
  #users: Users = new Map()
  /** Which state of the file was read; undefined: it may have changed since unseen. */
  #state: string | undefined
  #warned = ''

  constructor(path: string, log: Log) {
    this.#path = path
    this.#log = log
  }

  /** @throws the failure of the file system */
  async read(): Promise<Users> {
    const file = await open(this.#path, openFlags)
    try {
      const stats = await file.stat()
      if (!stats.isFile()) throw new Error('it is not a file')
      const { mtimeMs, ctimeMs, size, ino } = stats
      const state = `${mtimeMs} ${ctimeMs} ${size} ${ino}`
      if (state === this.#state) return this.#users
      const isSettled = Date.now() - Math.max(mtimeMs, ctimeMs) > SETTLED_MS
      const { users, unusable } = parse(await readText(file))
      this.#warn(unusable)
      this.#users = users
      this.#state = isSettled ? state : undefined
      return users
    } finally {
      await file.close()
    }
  }

  /** Once for the same users: while a file is fresh, every login reads it. */
  #warn(unusable: string[]): void {
    const names = unusable.join('\n')
    const isNew = names !== this.#warned
    this.#warned = names
    if (!isNew || names === '') return
    this.#log.warning(
      'auth.hash_unsupported',
      'Users of the password file cannot log in: the form of their hashes is not supported, or its cost is too high. Use htpasswd -B.',
      { users: unusable.slice(0, 10), count: unusable.length },
    )
  }
}

/** The size is bounded whatever `stat` says. */
async function readText(file: FileHandle): Promise<string> {
  const chunks: Buffer[] = []
  let total = 0
  for await (const chunk of file.createReadStream({ autoClose: false, end: MAX_FILE_BYTES })) {
    const bytes: Buffer = chunk // no encoding was asked for
    chunks.push(bytes)
    total += bytes.length
  }
  if (total > MAX_FILE_BYTES) throw new Error(`it is larger than ${MAX_FILE_BYTES} bytes`)
  return Buffer.concat(chunks).toString('utf8')
}

/** A later line for the same user replaces an earlier one, also when it then can not be used. */
function parse(text: string): { users: Users; unusable: string[] } {
  const users = new Map<string, string>()
  const unusable = new Set<string>()
  for (const rawLine of text.split('\n')) {
    const line = rawLine.trim()
    const colon = line.indexOf(':')
    if (colon === -1 || line.startsWith('#')) continue
    const user = line.slice(0, colon)
    const hash = line.slice(colon + 1)
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
