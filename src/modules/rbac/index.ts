/** Role based access control: roles, who has them, and what that allows (contract 11). */
import type { Bus } from '../../bus/bus.ts'
import type { Config } from '../../config/load.ts'
import type { Database } from '../../db/database.ts'
import type { Principal, Rights } from '../../http/route.ts'
import type { Log } from '../../log.ts'
import type { Module } from '../../module.ts'
import { createGrantSet } from './resolve.ts'
import { createRights } from './rights.ts'

export interface RbacDeps {
  database: Database
  bus: Bus
  log: Log
  config: Config['rbac']
  /** Absolute `system.base_path`: definitions are in its folder `rbac`. */
  basePath: string
}

export interface Rbac extends Module {
  /** `rbac.enable` */
  readonly enabled: boolean
  rightsOf(principal: Principal): Rights
  /** Everybody is while access control is off. */
  isAdmin(user: string): boolean
  /** Names, sorted; empty while access control is off. */
  rolesOf(user: string): string[]
  /** Replaces the roles that a user has by groups. @param groups of the user, as the backend names them */
  syncGroups(user: string, groups: readonly string[]): Promise<void>
}

export function createRbac(deps: RbacDeps): Rbac {
  const enabled = deps.config.enable
  const nobody = { isAdmin: false, isObserver: false, grants: createGrantSet([]) }
  return {
    name: 'rbac',
    enabled,
    rightsOf: (principal) =>
      createRights(principal, { enabled, isolation: deps.config.permission_isolation, ofUser: () => nobody }),
    isAdmin: () => !enabled,
    rolesOf: () => [],
    syncGroups: () => Promise.resolve(),
  }
}
