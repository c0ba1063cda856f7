/** Interface of an authentication backend, which checks user names and passwords in standalone mode. */
import type { JsonObject } from '../../../config/index.ts'
import type { Log, LogFields } from '../../../lib/log/index.ts'

export interface BackendContext {
  /** Absolute `system.base_path`; relative paths among the arguments start there. */
  basePath: string
  log: Log
}

export interface AuthBackend {
  /**
   * Whether this is the user's password. An unknown user returns false and takes as long as a wrong password.
   * Undefined: the backend cannot decide; the login is refused, but does not count as a failure.
   *
   * @param about log fields of the login
   * @throws if the check fails, for example because a file cannot be read; the login gets 500
   */
  authenticate(user: string, password: string, about?: LogFields): Promise<boolean | undefined>
  /** Maximum number of concurrent checks. Default: 2, because hashing needs memory and a processor. */
  readonly maxChecks?: number
  /**
   * Groups of a user, for role assignments by group (`rbac.sync_remote_groups`). Empty for an unknown user. Absent: the
   * backend has no groups.
   *
   * @throws if the lookup fails
   */
  groupsOf?(user: string): Promise<string[]>
  /** Absent: another system stores the users, so svc cannot change them. */
  readonly accounts?: Accounts
  /** Idempotent. */
  stop?(): Promise<void>
}

/** Users that the backend stores itself. */
export interface Accounts {
  names(): Promise<string[]>
  /**
   * Adds the user, or replaces the password.
   *
   * @param confirm called right before the change, under the lock; an `AppError` from it cancels the change
   * @throws if the change cannot be stored
   */
  setPassword(user: string, password: string, confirm?: () => void): Promise<void>
  /** @returns false if the user does not exist. @throws if the change cannot be stored */
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

/** Why the backend cannot be used, in one line that starts with the option. The server does not start. */
export class BackendProblem extends Error {}
