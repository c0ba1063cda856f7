/** What somebody may do, in words, as far as `GET /user` tells. */
import type { User } from '../../api/session.ts'

export function ownRightsOf({ method, isAdmin, hasAccessControl, roles }: User): string[] {
  if (method === undefined) {
    return ['Everything, like everybody who reaches this server. Switch on auth.enable before others can reach it.']
  }
  if (!hasAccessControl) {
    if (!isAdmin) return ['What the API key that you came with allows.']
    return [
      'Everything, like everybody who is signed in: access control is off (rbac.enable), so every user is an administrator.',
    ]
  }
  if (isAdmin) return ['Everything: you are an administrator.']
  if (roles.length === 0) {
    return [
      'Nothing yet: you have no role. An administrator gives roles to users, in files or by groups of the directory.',
    ]
  }
  const isObserver = roles.includes('observer')
  return [
    ...(isObserver ? ['See everything, by the role observer.'] : []),
    ...(isObserver && roles.length === 1
      ? ['Change nothing.']
      : [
          `What your ${roles.length === 1 ? 'role' : 'roles'} together ${roles.length === 1 ? 'grants' : 'grant'}, what belongs to you, such as your API keys and your own items of the datastore, and nothing else. When something is refused, the page says which permission is missing.`,
        ]),
  ]
}
