/** What the chain of a request asks of whoever knows users and permissions; `app.ts` hands it the auth module. */
import type { Request, Response } from 'express'
import { credentialsMissing } from '../core/errors.ts'
import type { Principal, Rights } from './route.ts'

export interface AccessControl {
  /**
   * Who is calling.
   *
   * @throws CREDENTIALS_MISSING and its siblings, all of kind `unauthenticated`; ORIGIN_REFUSED for a foreign page with the
   *   cookie; TOO_MANY_FAILURES
   */
  authenticate(request: Request, response: Response): Promise<Principal> | Principal
  /** Whether there is something that `authenticate` would look at, be it good or not; or nobody needs anything. */
  hasCredential(request: Request): boolean
  /**
   * Who logs in: by user name and password, or because a trusted web server in front says so.
   *
   * @throws LOGIN_REFUSED, TOO_MANY_FAILURES, QUEUE_FULL, and whatever keeps the backend from deciding
   */
  login(request: Request, response: Response): Promise<Principal> | Principal
  rightsOf(principal: Principal): Rights
  /** Whether the credential that proved who is calling still does, expiry aside, and makes the caller as powerful. */
  isCurrent(principal: Principal): boolean
  /**
   * Ends an answer that goes on when the credential is taken away, be it revoked, disabled or deleted, or when its user's
   * rights have changed and it is not allowed any more.
   *
   * @returns stops watching
   */
  watch(principal: Principal, answer: LastingAnswer): () => void
}

export interface LastingAnswer {
  /** Asked when rights have changed. */
  isAllowed(): boolean
  /** Called once. */
  end(): void
}

/** May do everything. */
export const allRights: Rights = {
  may: () => true,
  require: () => undefined,
  requireAdministrator: () => undefined,
  named: () => [],
  onlyOf: undefined,
}

/** Of somebody without a credential. */
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

/** Everybody is the system user and may do everything: what `auth.enable = False` means. */
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
