/** Contract of an authentication backend: where user names and passwords are checked in standalone mode. */
import type { JsonObject } from '../../../config/index.ts'
import type { Log, LogFields } from '../../../lib/log/index.ts'

export interface BackendContext {
  /** Absolute `system.base_path`; relative paths among the arguments start there. */
  basePath: string
  log: Log
}

export interface AuthBackend {
  /**
   * Whether this is the user's password. A user nobody knows is false after as much time as a wrong password takes.
   * Undefined when it cannot be decided and the login is to be refused all the same; nobody's failures count it.
   *
   * @param about where the login comes from, for lines of the log
   * @throws when it cannot be decided, for example because a file cannot be read: the login is answered with 500
   */
  authenticate(user: string, password: string, about?: LogFields): Promise<boolean | undefined>
  /** How many checks may be under way at a time; default 2, since hashing takes memory and a processor. */
  readonly maxChecks?: number
  /**
   * Names of the groups of a user, for roles that groups bring (`rbac.sync_remote_groups`); absent when the backend knows
   * of no groups. Empty for a user nobody knows.
   *
   * @throws when it cannot be found out
   */
  groupsOf?(user: string): Promise<string[]>
  /** Absent when users are kept somewhere else, where this server cannot change them. */
  readonly accounts?: Accounts
  /** Idempotent. */
  stop?(): Promise<void>
}

/** The users a backend keeps itself. */
export interface Accounts {
  names(): Promise<string[]>
  /**
   * Adds the user, or replaces the password.
   *
   * @param confirm called right before, while nobody else can change anything; an `AppError` that it throws keeps all as it is
   * @throws when it cannot be stored
   */
  setPassword(user: string, password: string, confirm?: () => void): Promise<void>
  /** @returns false if there is none of this name. @throws when it cannot be stored */
  remove(user: string): Promise<boolean>
}

export interface BackendType {
  name: string
  /**
   * @param kwargs `auth.backend_kwargs`
   * @throws BackendProblem
   */
  create(kwargs: JsonObject, context: BackendContext): Promise<AuthBackend>
}

/** Why the backend cannot be used, in one line that begins with the option: the server does not start. */
export class BackendProblem extends Error {}
