/**
 * `pam`: the accounts of this machine, or whatever else a PAM service asks (contract 01, 1.4). Only passwords are checked:
 * account rules, such as the end of an account, are not consulted.
 */
import { stat } from 'node:fs/promises'
import { MAX_USER_CHARACTERS } from '../../../core/account-rules.ts'
import type { JsonObject } from '../../../config/index.ts'
import { hasCode } from '../../../lib/process/index.ts'
import { BackendProblem, type AuthBackend, type BackendContext, type BackendType } from './backend.ts'
import { createPamPool } from './pam-pool.ts'
import { shown } from '../../../lib/text/index.ts'

const DEFAULT_SERVICE = 'login'
const servicePattern = /^(?!\.{1,2}$)[A-Za-z0-9_.-]{1,100}$/
/** Where the library looks for services. */
const SERVICE_FOLDERS = ['/etc/pam.d', '/usr/lib/pam.d']
const LIBRARY = 'libpam.so.0'
/** Most of them wait: for other machines, or because they were refused. The pool bounds those that do more. */
const MAX_CHECKS = 64

/** The rights in this server belong to names, so an account must not get in under several. */
const reasons = {
  unasked: 'accepts without asking for the password. Choose a service that asks.',
  renamed: 'takes the name for that of another account. Log in under the name of the account.',
}

export const pam: BackendType = { name: 'pam', create: (kwargs, context) => createPamBackend(kwargs, context) }

/**
 * @param library tests name one here that is not installed
 * @throws BackendProblem
 */
export async function createPamBackend(
  kwargs: JsonObject,
  { log }: BackendContext,
  library = LIBRARY,
): Promise<AuthBackend> {
  const service = readService(kwargs)
  if (process.geteuid?.() !== 0) {
    throw new BackendProblem(
      'auth.backend: pam checks the passwords of other accounts, which requires root; run the server as root, or choose another backend',
    )
  }
  if (!(await hasService(service))) {
    throw new BackendProblem(
      `auth.backend_kwargs: there is no PAM service "${service}": no file ${fileOf(service)}; set an existing one`,
    )
  }
  const pool = createPamPool({ service, library, log })
  try {
    await pool.start()
  } catch (error) {
    await pool.stop()
    const reason = error instanceof Error ? error.message : String(error)
    throw new BackendProblem(`auth.backend: pam cannot use ${library} (Debian package libpam0g): ${shown(reason)}`)
  }

  return {
    maxChecks: MAX_CHECKS,
    async authenticate(user, password, about = {}) {
      if (!isPossibleName(user) || !isPossiblePassword(password)) return false
      // Without its file PAM would take the rules of another service, "other", and say nothing.
      if (!(await hasService(service))) throw new Error(`the PAM service ${fileOf(service)} is gone`)
      const verdict = await pool.check(user, password)
      if (verdict === 'unasked' || verdict === 'renamed') {
        log.warning(`auth.pam_${verdict}`, `Login refused: the PAM service "${service}" ${reasons[verdict]}`, {
          user,
          ...about,
        })
      }
      return verdict === 'accepted'
    },
    groupsOf: (user) => (isPossibleName(user) ? pool.groupsOf(user) : Promise.resolve([])),
    stop: () => pool.stop(),
  }
}

function readService(kwargs: JsonObject): string {
  const other = Object.keys(kwargs).find((name) => name !== 'service')
  if (other !== undefined) {
    throw new BackendProblem(
      `auth.backend_kwargs: pam has no argument ${JSON.stringify(shown(other))}; it takes {"service": "login"}`,
    )
  }
  const { service = DEFAULT_SERVICE } = kwargs
  if (typeof service !== 'string' || !servicePattern.test(service)) {
    throw new BackendProblem(
      'auth.backend_kwargs: service must be the name of a file in /etc/pam.d such as "login": letters, digits, "_", "." and "-"',
    )
  }
  return service
}

/** The library looks for the name in small letters. */
function fileOf(service: string, folder = SERVICE_FOLDERS[0]): string {
  return `${folder}/${service.toLowerCase()}`
}

async function hasService(service: string): Promise<boolean> {
  for (const folder of SERVICE_FOLDERS) {
    try {
      if ((await stat(fileOf(service, folder))).isFile()) return true
    } catch (error) {
      if (!hasCode(error, 'ENOENT')) throw error
    }
  }
  return false
}

/**
 * Modules make names into file names, arguments, lines of logs and of C strings, so what is special there is nobody's
 * name; an account of this machine cannot have such a name either.
 */
function isPossibleName(user: string): boolean {
  if (user === '' || user.length > MAX_USER_CHARACTERS || !user.isWellFormed()) return false
  return !/^[-.]|[/:\p{Cc}]/u.test(user)
}

/** An empty password would admit accounts without one; PAM modules stop reading at a NUL. */
function isPossiblePassword(password: string): boolean {
  return password !== '' && !password.includes('\0') && password.isWellFormed()
}
