/** What somebody may do, in words, as far as `GET /user` tells. */
import type { SessionUser } from '../../api/session.ts'

export function ownRightsOf({ method, isAdmin, hasAccessControl, roles }: SessionUser): string[] {
  if (method === undefined) {
    return [
      'Everything: authentication is off, so everybody who reaches this server may do everything. Set auth.enable before others can reach it.',
    ]
  }
  if (!hasAccessControl) {
    if (!isAdmin) return ['The permissions of your API key.']
    return ['Everything: access control is off (rbac.enable), so every user is an administrator.']
  }
  if (isAdmin) return ['Everything: you are an administrator.']
  if (roles.length === 0) {
    return ['Nothing yet: you have no role. An administrator assigns roles in files or by directory groups.']
  }
  const isObserver = roles.includes('observer')
  return [
    ...(isObserver ? ['View everything, by the role observer.'] : []),
    ...(isObserver && roles.length === 1
      ? ['Change nothing.']
      : [
          `The grants of your ${roles.length === 1 ? 'role' : 'roles'}, and your own API keys and datastore items. When svc refuses a request, the page names the missing permission.`,
        ]),
  ]
}
