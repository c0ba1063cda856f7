/**
 * `ldap`: users and groups of a directory (spec: Directory backend options; contract 01, 1.4).
 *
 * A login finds the user and its groups as the service account, then binds with the password on a separate connection.
 * Every failure refuses the login and is logged.
 */
import { randomBytes } from 'node:crypto'
import type { JsonObject } from '../../../config/index.ts'
import type { Log, LogFields } from '../../../lib/log/index.ts'
import { isLoopback } from '../../../lib/network/index.ts'
import type { AuthBackend, BackendContext, BackendType } from './backend.ts'
import { DirectoryFailure, DirectoryRefusal, type Search } from './ldap/connection.ts'
import { createDirectory, type Directory, type LocatedEntry } from './ldap/directory.ts'
import { normaliseDn } from './ldap/dn.ts'
import { createGroupCache, type GroupCache } from './ldap/group-cache.ts'
import { readLdapOptions, type LdapOptions } from './ldap/options.ts'
import { isPlainName } from './ldap/user-names.ts'

const MAX_GROUPS = 5000
/** Two entries are enough to detect an ambiguous name. */
const MAX_USERS = 2
/**
 * Codes that refuse this user, not the service: constraint violation, no such object, inappropriate
 * authentication, invalid credentials, insufficient rights, unwilling to perform (RFC 4511, appendix A).
 */
const userCodes: ReadonlySet<number> = new Set([19, 32, 48, 49, 50, 53])

export const ldap: BackendType = { name: 'ldap', create: (kwargs, context) => createLdapBackend(kwargs, context) }

/** @param now milliseconds of a clock that is never set back; @throws BackendProblem */
export async function createLdapBackend(
  kwargs: JsonObject,
  { basePath, log }: BackendContext,
  now: () => number = () => performance.now(),
): Promise<AuthBackend> {
  const options = await readLdapOptions(kwargs, basePath)
  warnOfChoices(options, log)
  const { cache } = options
  return new LdapBackend(
    options,
    createDirectory(options, log, now),
    cache && createGroupCache(cache.maxUsers, cache.ttlSeconds, now),
    log,
  )
}

function warnOfChoices({ encryption, tls, servers, isDefaultAccountPattern }: LdapOptions, log: Log): void {
  if (encryption !== 'none' && !tls.isVerified) {
    log.warning(
      'auth.directory_unverified',
      'The certificate of the directory is not verified, so an attacker on the network can read passwords. Set cacert in auth.backend_kwargs.',
    )
  }
  if (encryption === 'none' && servers.some(({ host }) => !isLoopback(host))) {
    log.warning(
      'auth.directory_unencrypted',
      'Passwords are sent to the directory unencrypted. Set use_ssl or use_tls, and cacert, in auth.backend_kwargs.',
    )
  }
  if (isDefaultAccountPattern) {
    log.warning(
      'auth.directory_default_pattern',
      'Neither id_attr nor account_pattern is set in auth.backend_kwargs. svc finds users by the attribute uid.',
    )
  }
}

/** Log message of a refused login. */
interface Refusal {
  reason: string
  fields?: LogFields
}

class LdapBackend implements AuthBackend {
  readonly #options: LdapOptions
  readonly #directory: Directory
  readonly #cache: GroupCache | undefined
  readonly #log: Log

  constructor(options: LdapOptions, directory: Directory, cache: GroupCache | undefined, log: Log) {
    this.#options = options
    this.#directory = directory
    this.#cache = cache
    this.#log = log
  }

  async authenticate(user: string, password: string, about: LogFields = {}): Promise<boolean | undefined> {
    let refusal: Refusal | undefined
    try {
      refusal = await this.#check(user, password)
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      const fields = { user, ...about, reason, ...(isExpected(error) ? {} : { error }) }
      this.#log.warning('auth.directory_failed', 'A login failed because of the directory.', fields)
      return undefined
    }
    if (refusal === undefined) return true
    this.#log.info('auth.directory_refused', refusal.reason, { user, ...about, ...refusal.fields })
    return false
  }

  async groupsOf(user: string): Promise<string[]> {
    const known = this.#cache?.get(user)
    if (known !== undefined) return [...known.groups]
    if (!isPlainName(user)) return []
    return this.#directory.ask(async (search) => {
      const entry = await this.#findUser(search, user)
      return 'reason' in entry ? [] : this.#groupsOf(search, user, entry)
    })
  }

  stop(): Promise<void> {
    this.#directory.stop()
    this.#cache?.clear()
    return Promise.resolve()
  }

  /** Undefined: the login succeeds. */
  async #check(user: string, password: string): Promise<Refusal | undefined> {
    // Directories accept a bind without a password as an anonymous bind.
    if (password === '') return { reason: 'Refused a login without a password.' }
    if (!isPlainName(user)) return { reason: 'Refused a user name with control characters or extra blanks.' }
    const found = await this.#directory.ask(async (search) => {
      const entry = await this.#findUser(search, user)
      if ('reason' in entry) return entry
      const groups = await this.#groupsOf(search, user, entry)
      return this.#checkGroups(groups) ?? entry
    })
    if ('reason' in found) {
      await this.#tryDecoy()
      return found
    }
    try {
      await this.#directory.tryBind(found.dn, password, found.servers)
      return undefined
    } catch (error) {
      if (!(error instanceof DirectoryRefusal) || !userCodes.has(error.code)) throw error
      return { reason: 'The directory refused the password.', fields: { dn: found.dn, reason: error.message } }
    }
  }

  async #findUser(search: (search: Search) => Promise<LocatedEntry[]>, user: string): Promise<LocatedEntry | Refusal> {
    const { baseOu, scope, accountPattern, userNames } = this.#options
    const entries = await search({
      base: baseOu,
      scope,
      filter: accountPattern.fill({ username: user }),
      attributes: userNames.attributes,
      maxEntries: MAX_USERS,
    })
    const [entry, second] = entries
    if (entry === undefined) return { reason: 'The directory has no such user.' }
    if (second !== undefined) {
      return { reason: 'The directory has more than one such user.', fields: { dns: [entry.dn, second.dn] } }
    }
    if (userNames.stand(user, entry.values)) return entry
    return {
      reason: 'The directory writes the user name differently.',
      fields: { dn: entry.dn, names: entry.values.slice(0, 10) },
    }
  }

  /** Group names as the directory spells them. */
  async #groupsOf(
    search: (search: Search) => Promise<LocatedEntry[]>,
    user: string,
    { dn }: LocatedEntry,
  ): Promise<string[]> {
    const known = this.#cache?.get(user)
    if (known?.dn === dn) return [...known.groups]
    const { baseOuGroup, scope, groupPattern } = this.#options
    const entries = await search({
      base: baseOuGroup,
      scope,
      filter: groupPattern.fill({ username: user, user_dn: dn }),
      attributes: ['1.1'],
    })
    if (entries.length > MAX_GROUPS) throw new DirectoryFailure(`the user is in more than ${MAX_GROUPS} groups`)
    const groups = entries.map((entry) => entry.dn)
    this.#cache?.set(user, { dn, groups })
    return groups
  }

  #checkGroups(groups: readonly string[]): Refusal | undefined {
    const { groups: wanted, needsAllGroups } = this.#options
    const names = new Set(groups.map(normaliseDn))
    const isFine = needsAllGroups ? wanted.every((group) => names.has(group)) : wanted.some((group) => names.has(group))
    if (isFine) return undefined
    const reason = `The user is not in ${needsAllGroups ? 'every one' : 'any'} of the groups of group_dns.`
    return { reason, fields: { groups: groups.slice(0, 20) } }
  }

  /**
   * Makes as many connections and binds for an unknown user as for a wrong password. Binds with a random name, so that
   * the directory counts no failure for a real account.
   */
  async #tryDecoy(): Promise<void> {
    const nobody = `cn=${randomBytes(12).toString('hex')},${this.#options.baseOu}`
    try {
      await this.#directory.tryBind(nobody, randomBytes(12).toString('hex'))
    } catch (error) {
      if (!isExpected(error)) throw error
    }
  }
}

function isExpected(error: unknown): boolean {
  return error instanceof DirectoryFailure || error instanceof DirectoryRefusal
}
