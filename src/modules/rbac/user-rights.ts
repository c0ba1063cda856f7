/** What users may do, from the rows, kept in memory until they change. */
import { Lru } from '../../lib/cache/index.ts'
import { createGrantSet, type GrantSet } from './resolve.ts'
import type { UserRights } from './rights.ts'
import type { RbacStore } from './store.ts'
import { administratorRoles, observerRole } from './system-roles.ts'
import type { RoleAssignment } from './types.ts'
import { writeJson } from '../../lib/json/index.ts'

const MAX_USERS = 10_000

export interface KnownUser extends UserRights {
  /** Names, sorted. */
  roles: readonly string[]
}

export interface UserRightsCache {
  ofUser(user: string): KnownUser
  /** The rows have changed. */
  forget(): void
}

/** State shared by all users. */
interface Definitions {
  /** By name of the role; each is compiled once, however many users have it. */
  grants: ReadonlyMap<string, GrantSet>
  /** What enabled mappings give, as `keyOf` says it. */
  mapped: ReadonlySet<string>
}

/** @param countsGroups `rbac.sync_remote_groups`: whether what groups gave counts */
export function createUserRightsCache(store: RbacStore, countsGroups: boolean): UserRightsCache {
  const users = new Lru<string, KnownUser>(MAX_USERS)
  let definitions: Definitions | undefined

  function readDefinitions(): Definitions {
    const enabled = countsGroups ? store.mappings().filter((mapping) => mapping.enabled) : []
    return {
      grants: new Map(store.allRoles().map(({ name, grants }) => [name, createGrantSet(grants)])),
      mapped: new Set(enabled.flatMap(({ roles, source }) => roles.map((role) => keyOf({ role, source })))),
    }
  }

  function read(user: string): KnownUser {
    const { grants, mapped } = (definitions ??= readDefinitions())
    const roles = store
      .ofUser(user)
      // A role that no mapping gives any more does not count, although its row stays until the next login of the user.
      .filter((assignment) => !assignment.isRemote || mapped.has(keyOf(assignment)))
      .map(({ role }) => role)
      .filter((role) => grants.has(role))
    const names = [...new Set(roles)].sort()
    const sets = names.flatMap((name) => grants.get(name) ?? [])
    return {
      roles: names,
      isAdmin: names.some((name) => administratorRoles.includes(name)),
      isObserver: names.includes(observerRole),
      grants: {
        allows: (permission, resource) => sets.some((set) => set.allows(permission, resource)),
        uidsOf: (type) => sets.flatMap((set) => set.uidsOf(type)),
      },
    }
  }

  return {
    ofUser(user) {
      let known = users.get(user)
      if (known === undefined) {
        known = read(user)
        users.set(user, known)
      }
      return known
    },
    forget() {
      users.clear()
      definitions = undefined
    },
  }
}

function keyOf({ role, source }: Pick<RoleAssignment, 'role' | 'source'>): string {
  return writeJson([role, source])
}
