/** What can be done with users (contract 01, 1.6), and with their accounts where the backend keeps those. */
import { problemOfPassword, problemOfUserName } from '../../core/account-rules.ts'
import { Conflict, merge, type Database, type Step, type Unit } from '../../db/index.ts'
import {
  administratorOrSelfRequired,
  administratorRequired,
  bodyInvalid,
  conflict,
  currentPasswordWrong,
  namedNotFound,
  nameTaken,
  passwordsKeptElsewhere,
} from '../../core/errors.ts'
import { aboutCaller, type Caller, slicePage, type Page } from '../../http/index.ts'
import type { Log } from '../../lib/log/index.ts'
import { formatMicros } from '../../core/time.ts'
import { refuseScoped, type ApiKeys } from './api-keys/index.ts'
import type { Accounts } from './backends/backend.ts'
import type { Logins } from './logins.ts'
import type { PasswordCheck } from './password-check.ts'
import type { AuthStore, User, UserChanges } from './store.ts'
import type { NewUserRequest, UserRecord, UserRequest } from './types.ts'
import { shown } from '../../lib/text/index.ts'
import { readJson, writeJson } from '../../lib/json/index.ts'

/** Undefined: no filter. */
export interface UserFilter {
  name: string | undefined
  is_service: boolean | undefined
  is_disabled: boolean | undefined
}

export interface Users {
  /** By name, including accounts without a login so far. @returns one page, and the number of matches */
  list(filter: UserFilter, page: Page): Promise<{ records: UserRecord[]; total: number }>
  /** For administrators and the user. @throws NAMED_NOT_FOUND, PERMISSION_DENIED */
  get(name: string, caller: Caller): Promise<UserRecord>
  /** @throws BODY_INVALID, NAME_TAKEN, PASSWORDS_KEPT_ELSEWHERE, PERMISSION_DENIED, CONFLICT */
  create(request: NewUserRequest, caller: Caller): Promise<UserRecord>
  /** Sets the password of a new user if a stop of the server prevented that. @throws NAMED_NOT_FOUND, and as `create` */
  complete(request: NewUserRequest): Promise<UserRecord>
  /**
   * A new password ends all tokens of the user but the one that the request came with.
   *
   * @throws NAMED_NOT_FOUND, BODY_INVALID, PASSWORDS_KEPT_ELSEWHERE, PERMISSION_DENIED, CURRENT_PASSWORD_WRONG,
   *   TOO_MANY_FAILURES, CONFLICT
   */
  update(name: string, request: UserRequest, caller: Caller): Promise<UserRecord>
  /**
   * With account, tokens and API keys; executions of the user continue.
   *
   * @throws NAMED_NOT_FOUND, BODY_INVALID, PERMISSION_DENIED
   */
  delete(name: string, caller: Caller): Promise<void>
}

export interface UsersOptions {
  database: Database
  store: AuthStore
  apiKeys: Pick<ApiKeys, 'removalOf'>
  logins: Pick<Logins, 'epochOf' | 'endAll'>
  log: Log
  /** Undefined: the passwords are kept where this server cannot change them. */
  accounts: Accounts | undefined
  checkPassword: PasswordCheck | undefined
  /** `auth.backend`, or what stands in front, for messages. */
  backendName: string
  /** Takes away the roles that groups have brought. */
  readonly forgetGroups: (user: string) => Promise<void>
  /** What else goes with a user, in the same unit. */
  readonly planDeletion: (user: string) => Unit
  /** Microseconds since the epoch. */
  readonly now: () => number
}

export function createUsers(options: UsersOptions): Users {
  const { database, store, apiKeys, logins, log, accounts, checkPassword, backendName, now } = options

  const namesOfAccounts = async (): Promise<ReadonlySet<string>> => new Set(await accounts?.names())

  function toRecord(name: string, user: User | undefined, accountNames: ReadonlySet<string>): UserRecord {
    return {
      name,
      is_service: user?.is_service === 1,
      is_disabled: user?.is_disabled === 1,
      nicknames: readJson(user?.nicknames ?? '{}') as Record<string, string>, // as `create` and `update` store it
      created_at: user?.created_at ?? null,
      has_password: accounts === undefined ? null : accountNames.has(name),
    }
  }

  /** @throws NAMED_NOT_FOUND */
  async function find(name: string): Promise<UserRecord> {
    const accountNames = await namesOfAccounts()
    const user = store.findUser(name)
    if (user === undefined && !accountNames.has(name)) throw namedNotFound(name)
    return toRecord(name, user, accountNames)
  }

  function begin(name: string): Change {
    let epoch = logins.epochOf(name)
    const requireCurrent = (): void => {
      if (logins.epochOf(name) !== epoch) throw conflict(`User "${shown(name)}"`)
    }
    return {
      requireCurrent,
      endLogins() {
        requireCurrent()
        logins.endAll(name)
        epoch = logins.epochOf(name)
      },
    }
  }

  /** How to set this password. @throws PASSWORDS_KEPT_ELSEWHERE, BODY_INVALID */
  function readPassword(given: unknown): ((user: string, change: Change) => Promise<void>) | undefined {
    if (given === undefined) return undefined
    if (accounts === undefined) throw passwordsKeptElsewhere(backendName)
    const password = readText('password', given)
    const problem = problemOfPassword(password)
    if (problem !== undefined) throw bodyInvalid(`password ${problem}`, { path: ['password'] })
    return async (user, change) => {
      await accounts.setPassword(user, password, () => change.endLogins())
      // Of those, too, that have read the old one in between.
      change.endLogins()
    }
  }

  /** @throws PERMISSION_DENIED, BODY_INVALID, CURRENT_PASSWORD_WRONG, TOO_MANY_FAILURES */
  async function requireMayUpdate(name: string, request: UserRequest, caller: Caller): Promise<void> {
    const { principal, requestId, remoteAddress: address } = caller
    refuseScoped(principal, 'change users')
    const isSelf = principal.user === name
    if (!isSelf && !principal.isAdmin) throw administratorRequired()
    const isMore = [request.is_service, request.is_disabled, request.nicknames].some((value) => value !== undefined)
    if (isMore && !principal.isAdmin) throw administratorRequired()
    if (isSelf && request.is_disabled === true)
      throw bodyInvalid('is_disabled: nobody can disable oneself', { path: ['is_disabled'] })
    if (!isSelf || request.password === undefined) return
    if (request.current_password === undefined) {
      if (principal.isAdmin) return
      throw bodyInvalid('current_password is missing: it is needed to change the own password', {
        path: ['current_password'],
      })
    }
    const current = readText('current_password', request.current_password)
    if (await checkPassword?.(name, current, { address, requestId })) return
    log.audit('user.password_refused', 'The current password was wrong', aboutCaller(caller))
    throw currentPasswordWrong()
  }

  return {
    async list(filter, page) {
      const [users, accountNames] = await Promise.all([store.users(), namesOfAccounts()])
      const known = new Set(users.map(({ name }) => name))
      const unused = [...accountNames].filter((name) => !known.has(name))
      const records = [
        ...users.map((user) => toRecord(user.name, user, accountNames)),
        ...unused.map((name) => toRecord(name, undefined, accountNames)),
      ].filter(
        (record) =>
          (filter.name === undefined || record.name === filter.name) &&
          (filter.is_service === undefined || record.is_service === filter.is_service) &&
          (filter.is_disabled === undefined || record.is_disabled === filter.is_disabled),
      )
      records.sort((one, other) => (one.name < other.name ? -1 : 1))
      return { records: slicePage(records, page), total: records.length }
    },

    async get(name, { principal }) {
      if (!principal.isAdmin && principal.user !== name) throw administratorOrSelfRequired()
      return find(name)
    },

    async create({ name, password: givenPassword, is_service: isService = false, nicknames = {} }, caller) {
      refuseScoped(caller.principal, 'create users')
      const problem = problemOfUserName(name)
      if (problem !== undefined) throw bodyInvalid(`name ${problem}`, { path: ['name'] })
      const setPassword = readPassword(givenPassword)
      const change = begin(name)
      const taken = (): Error => nameTaken(`A user "${shown(name)}"`, name)
      if ((await namesOfAccounts()).has(name) || store.findUser(name) !== undefined) throw taken()
      const user: User = {
        name,
        is_service: isService ? 1 : 0,
        created_at: formatMicros(now()),
        nicknames: writeJson(nicknames),
        is_disabled: 0,
      }
      try {
        // The record first: of two who ask for the same name only one sets the password.
        await database.write({ steps: [store.insertNewUser(user)], facts: [] })
      } catch (error) {
        throw error instanceof Conflict ? taken() : error
      }
      if (setPassword !== undefined) {
        try {
          await setPassword(name, change)
        } catch (error) {
          await database.write({ steps: [store.deleteUser(name)], facts: [] })
          throw error
        }
      }
      const has = setPassword === undefined ? 'without a password here' : 'with a password'
      log.audit('user.created', `User "${name}" created, ${has}.`, {
        ...aboutCaller(caller),
        name,
        is_service: isService,
        nicknames: Object.keys(nicknames),
      })
      return find(name)
    },

    async complete({ name, password }) {
      const setPassword = readPassword(password)
      const change = begin(name)
      const accountNames = await namesOfAccounts()
      if (store.findUser(name) === undefined) throw namedNotFound(name)
      if (!accountNames.has(name)) await setPassword?.(name, change)
      return find(name)
    },

    async update(name, request, caller) {
      const setPassword = readPassword(request.password)
      // Taken before the check of the current password.
      const change = begin(name)
      await requireMayUpdate(name, request, caller)
      const before = await find(name)
      if (request.name !== undefined && request.name !== name) {
        throw bodyInvalid(
          `name "${shown(request.name)}" is not the one of this user, "${shown(name)}"; it cannot be changed`,
          { path: ['name'] },
        )
      }
      const { is_service: isService, is_disabled: isDisabled, nicknames } = request
      const changes: UserChanges = {
        ...(isService === undefined ? {} : { is_service: isService ? 1 : 0 }),
        ...(isDisabled === undefined ? {} : { is_disabled: isDisabled ? 1 : 0 }),
        ...(nicknames === undefined ? {} : { nicknames: writeJson(nicknames) }),
      }
      await setPassword?.(name, change)
      const steps: Step[] = []
      if (Object.keys(changes).length > 0) {
        // There may be no more than an account yet.
        steps.push(store.insertUser(name, formatMicros(now())), store.updateUser(name, changes))
      }
      if (setPassword !== undefined) steps.push(store.deleteTokensOf(name, ownTokenOf(name, caller)))
      if (steps.length === 0) return before
      if (isDisabled === true) change.endLogins()
      else change.requireCurrent()
      await database.write({ steps, facts: [{ name: 'user.changed', payload: { name } }] })

      const changed = [...(setPassword === undefined ? [] : ['password']), ...Object.keys(changes)]
      log.audit('user.updated', `User "${name}" updated.`, { ...aboutCaller(caller), name, changed })
      if (isDisabled !== undefined && isDisabled !== before.is_disabled) {
        const state = isDisabled ? 'disabled' : 'enabled'
        log.audit(`user.${state}`, `User "${name}" ${state}.`, { ...aboutCaller(caller), name })
      }
      return find(name)
    },

    async delete(name, caller) {
      refuseScoped(caller.principal, 'delete users')
      if (caller.principal.user === name) throw bodyInvalid('name: nobody can delete oneself')
      await find(name)
      // Changes under way must not restore the account, and logins that started before the deletion must fail.
      logins.endAll(name)
      await accounts?.remove(name)
      logins.endAll(name)
      const unit = merge(options.planDeletion(name), {
        steps: [store.deleteUser(name), store.deleteTokensOf(name), apiKeys.removalOf(name)],
        facts: [{ name: 'user.changed', payload: { name } }],
      })
      await database.write(unit)
      // A request admitted just before can be in the same commit, after the deletion.
      await database.write(unit)
      log.audit('user.deleted', `User "${name}" deleted, with all tokens, API keys and items of the datastore.`, {
        ...aboutCaller(caller),
        name,
      })
      await options.forgetGroups(name)
    },
  }
}

/** One request to change a user. */
interface Change {
  /** @throws CONFLICT once another one has ended the logins of the user */
  requireCurrent(): void
  /** What is proved counts no more, neither for logins nor for other changes under way. @throws CONFLICT as above */
  endLogins(): void
}

/** The value is not repeated. @throws BODY_INVALID */
function readText(name: string, value: unknown): string {
  if (typeof value === 'string') return value
  throw bodyInvalid(`${name} must be text`, { path: [name] })
}

/** The id of the token that asks, if it is one of this user. */
function ownTokenOf(name: string, { principal }: Caller): string | undefined {
  return principal.user === name ? principal.tokenId : undefined
}
