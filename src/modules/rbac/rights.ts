/** What a caller may do, made from its roles and, for API keys, their scopes. */
import { administratorRequired, isolationDenied, permissionMissing, scopeMissing } from '../../core/errors.ts'
import type { Principal, Rights } from '../../http/index.ts'
import { createGrantSet, observes, type GrantSet } from './resolve.ts'
import { resourceTypeOf, type Permission, type Resource, type Scope } from '../../core/permissions.ts'

/** The union of all roles of a user. */
export interface UserRights {
  isAdmin: boolean
  isObserver: boolean
  grants: GrantSet
}

export interface RightsOptions {
  /** `rbac.enable`; off, every user may do everything. */
  enabled: boolean
  /** `rbac.permission_isolation` */
  isolation: boolean
  readonly ofUser: (user: string) => UserRights
}

/** The owner needs no permission on these. */
const ownTypes: ReadonlySet<string | undefined> = new Set(['api_key', 'key_value_pair'])
const isolatedTypes: ReadonlySet<string | undefined> = new Set(['execution', 'rule'])

export function createRights({ user, scopes }: Principal, options: RightsOptions): Rights {
  const scope = scopes === undefined ? undefined : scopeSet(scopes)
  const isAdmin = (): boolean => scope === undefined && (!options.enabled || options.ofUser(user).isAdmin)

  function isIsolated(permission: Permission): boolean {
    if (!options.enabled || !options.isolation || !isolatedTypes.has(resourceTypeOf(permission))) return false
    if (/_(list|create)$/.test(permission)) return false
    return !options.ofUser(user).isAdmin
  }

  function mayAsUser(permission: Permission, resource: Resource | undefined): boolean {
    if (!options.enabled) return true
    // An API key with scopes is no administrator: it could name this permission and stand for all of them.
    if (permission === 'user_impersonate' && !isAdmin()) {
      if (resource?.owner === undefined || options.ofUser(resource.owner).isAdmin) return false
    }
    const own = options.ofUser(user)
    if (own.isAdmin || (own.isObserver && observes(permission) && resource?.isDecrypted !== true)) return true
    const type = resourceTypeOf(permission)
    if (resource?.owner === user && ownTypes.has(type)) return true
    // Items of other users are for system roles only (rule 10).
    if (type === 'key_value_pair' && resource?.owner !== undefined) return false
    return own.grants.allows(permission, resource)
  }

  function may(permission: Permission, resource?: Resource): boolean {
    if (isIsolated(permission) && resource?.owner !== user) return false
    return mayAsUser(permission, resource) && (scope === undefined || scope.allows(permission, resource))
  }

  return {
    may,
    require(permission, resource) {
      if (may(permission, resource)) return
      if (resource?.owner !== undefined && resource.owner !== user && isIsolated(permission)) {
        throw isolationDenied(user, resource.uid)
      }
      const isScoped = scope?.allows(permission, resource) === false && mayAsUser(permission, resource)
      throw (isScoped ? scopeMissing : permissionMissing)(user, permission, resource?.uid)
    },
    requireAdministrator() {
      if (!isAdmin()) throw administratorRequired()
    },
    named(permission) {
      const type = resourceTypeOf(permission)
      if (type === undefined) return []
      const own = options.enabled ? options.ofUser(user).grants.uidsOf(type) : []
      return [...new Set([...own, ...(scope?.uidsOf(type) ?? [])])].filter((uid) => may(permission, { uid }))
    },
    get onlyOf() {
      return isIsolated('execution_view') ? user : undefined
    },
  }
}

const scopeSets = new WeakMap<readonly Scope[], GrantSet>()

/** The scopes of a cached key are the same object for every request. */
function scopeSet(scopes: readonly Scope[]): GrantSet {
  let set = scopeSets.get(scopes)
  if (set === undefined) {
    set = createGrantSet(scopes)
    scopeSets.set(scopes, set)
  }
  return set
}
