/** Contract of an authentication backend: where user names and passwords are checked in standalone mode. */
import type { JsonObject } from '../../../config/options.ts'
import type { Log } from '../../../log.ts'

export interface BackendContext {
  /** Absolute `system.base_path`; relative paths among the arguments start there. */
  basePath: string
  log: Log
}

export interface AuthBackend {
  /**
   * Whether this is the user's password. A user nobody knows is false after as much time as a wrong password takes.
   *
   * @throws when it cannot be decided, for example because a file cannot be read: the login is answered with 500
   */
  authenticate(user: string, password: string): Promise<boolean>
  /** Idempotent. */
  stop?(): Promise<void>
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
