/** Port: what the chain needs of users and permissions. `app.ts` passes in the auth module. */
import type { Request, Response } from 'express'
import { credentialsMissing } from '../core/errors.ts'
import type { Principal, Rights } from './route.ts'

export interface AccessControl {
  /**
   * Identifies the caller.
   *
   * @throws CREDENTIALS_MISSING and its siblings, all of kind `unauthenticated`; ORIGIN_REFUSED for a foreign page with
   *   the cookie; TOO_MANY_FAILURES
   */
  authenticate(request: Request, response: Response): Promise<Principal> | Principal
  /** Whether the request carries a credential, valid or not. Always true while authentication is off. */
  hasCredential(request: Request): boolean
  /**
   * Identifies the user who logs in: by user name and password, or by the header of a trusted proxy.
   *
   * @throws LOGIN_REFUSED, TOO_MANY_FAILURES, QUEUE_FULL, and failures of the backend
   */
  login(request: Request, response: Response): Promise<Principal> | Principal
  rightsOf(principal: Principal): Rights
  /** Whether the credential is still valid, expiry aside, and the caller still has the same rights. */
  isCurrent(principal: Principal): boolean
  /**
   * Ends a lasting answer when the credential is revoked, disabled or deleted, or when changed rights no longer allow
   * it.
   *
   * @returns a function that stops watching
   */
  watch(principal: Principal, answer: LastingAnswer): () => void
}

export interface LastingAnswer {
  /** Called when rights have changed. */
  isAllowed(): boolean
  /** Called at most once. */
  end(): void
}

/** Every permission. */
export const allRights: Rights = {
  may: () => true,
  require: () => undefined,
  requireAdministrator: () => undefined,
  named: () => [],
  onlyOf: undefined,
}

/** The rights of a request without a credential. */
export const noRights: Rights = {
  may: () => false,
  require() {
    throw credentialsMissing()
  },
  requireAdministrator() {
    throw credentialsMissing()
  },
  named: () => [],
  onlyOf: undefined,
}

/** Every caller is the system user with every permission: `auth.enable = False`. */
export function openAccess(systemUser: string): AccessControl {
  const principal: Principal = { user: systemUser, isAdmin: true, method: 'none' }
  return {
    authenticate: () => principal,
    hasCredential: () => true,
    login: () => principal,
    rightsOf: () => allRights,
    isCurrent: () => true,
    watch: () => () => undefined,
  }
}
