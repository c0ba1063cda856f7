/**
 * `pam`: accounts of this machine, or another source that a PAM service uses (contract 01, 1.4). svc checks only
 * passwords and ignores account rules such as expiry.
 */
import { stat } from 'node:fs/promises'
import { MAX_USER_CHARACTERS } from '../../../core/account-rules.ts'
import type { JsonObject } from '../../../config/index.ts'
import { hasCode } from '../../../lib/process/index.ts'
import { BackendProblem, type AuthBackend, type BackendContext, type BackendType } from './backend.ts'
import { createPamPool } from './pam-pool.ts'
import { shown } from '../../../lib/text/index.ts'
import { writeJson } from '../../../lib/json/index.ts'

const DEFAULT_SERVICE = 'login'
const servicePattern = /^(?!\.{1,2}$)[A-Za-z0-9_.-]{1,100}$/
/** Folders of PAM services. */
const SERVICE_FOLDERS = ['/etc/pam.d', '/usr/lib/pam.d']
const LIBRARY = 'libpam.so.0'
/** Most checks wait for other machines or for the delay of a refusal. The pool limits the running ones. */
const MAX_CHECKS = 64

/** Permissions belong to names, so an account must log in under one name only. */
const reasons = {
  unasked: 'accepts logins without requesting the password. Choose a service that requests it.',
  renamed: 'maps the name to another account. Log in with the name of that account.',
}

export const pam: BackendType = { name: 'pam', create: (kwargs, context) => createPamBackend(kwargs, context) }

/**
 * @param library PAM library; tests pass a missing one
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
      'auth.backend: pam requires root to check passwords of other accounts. Run the server as root or choose another backend.',
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
      // Without the file, PAM silently uses the rules of the service "other".
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
      `auth.backend_kwargs: pam has no argument ${writeJson(shown(other))}; use {"service": "login"}`,
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

/** The library looks up the name in lower case. */
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
 * Rejects names with special characters, because modules use names as file names, arguments, log text and C strings.
 * Accounts of this machine cannot have such names either.
 */
function isPossibleName(user: string): boolean {
  if (user === '' || user.length > MAX_USER_CHARACTERS || !user.isWellFormed()) return false
  return !/^[-.]|[/:\p{Cc}]/u.test(user)
}

/** An empty password would admit accounts without one; PAM modules stop reading at a NUL. */
function isPossiblePassword(password: string): boolean {
  return password !== '' && !password.includes('\0') && password.isWellFormed()
}
