/** What the chain of a request asks of whoever knows users and permissions; `app.ts` hands it the auth module. */
import type { Request, Response } from 'express'
import type { Permission, Principal } from './route.ts'

export interface AccessControl {
  /** Who is calling. @throws CREDENTIALS_MISSING and its siblings, all of kind `unauthenticated` */
  authenticate(request: Request, response: Response): Promise<Principal> | Principal
  /** Whose user name and password these are. @throws LOGIN_REFUSED */
  login(request: Request, response: Response): Promise<Principal> | Principal
  /** @throws PERMISSION_DENIED */
  requirePermission(principal: Principal, permission: Permission): void
}

/** Everybody is the system user and may do everything: what `auth.enable = False` means. */
export function openAccess(systemUser: string): AccessControl {
  const principal: Principal = { user: systemUser, isAdmin: true, method: 'none' }
  return { authenticate: () => principal, login: () => principal, requirePermission: () => undefined }
}
