/** Role-based access control: roles, assignments and permissions (contract 11). */
import { join } from 'node:path'
import type { Bus } from '../../bus/index.ts'
import type { Config } from '../../config/index.ts'
import type { Database } from '../../db/index.ts'
import type { Principal, Rights } from '../../http/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { Module } from '../../core/module.ts'
import { sensorsUser, type Scope } from '../../core/permissions.ts'
import { createGrantSet } from './resolve.ts'
import { createRights, type UserRights } from './rights.ts'
import { createRbacRoutes } from './routes.ts'
import { createRbacService } from './service.ts'
import { createRbacStore } from './store.ts'
import { createUserRightsCache } from './user-rights.ts'

export interface RbacDeps {
  database: Database
  bus: Bus
  log: Log
  config: Config['rbac']
  /** Absolute `system.base_path`: definitions are in its folder `rbac`. */
  basePath: string
  /** `api.max_page_size` */
  maxPageSize: number
}

/** `start` throws one error with everything that is wrong with the definition files. */
export interface Rbac extends Module {
  /** `rbac.enable` */
  readonly enabled: boolean
  rightsOf(principal: Principal): Rights
  /** Those of a user who is not calling, within the scopes of the credential behind the work. */
  rightsOfUser(user: string, scopes?: readonly Scope[]): Rights
  /** Everybody is while access control is off. */
  isAdmin(user: string): boolean
  /** Names, sorted; empty while access control is off. */
  rolesOf(user: string): string[]
  /**
   * Replaces the roles that a user has by groups; does nothing unless `rbac.sync_remote_groups`.
   *
   * @param groups of the user, as the backend names them
   * @throws when it cannot be stored
   */
  syncGroups(user: string, groups: readonly string[]): Promise<void>
  /**
   * Sees to it that somebody is administrator, else warns. At the very first start with access control, while there is no
   * definition file at all, it is whom `findFirst` names.
   *
   * @param findFirst the account that this server has made itself and that nobody can have replaced; undefined: none
   */
  ensureAdministrator(findFirst: () => Promise<string | undefined>): Promise<void>
}

/** Sensors keep their state in the datastore. A user of that name who logs in has nothing of it. */
const ofSensors: UserRights = {
  isAdmin: false,
  isObserver: false,
  grants: createGrantSet([
    {
      permission_types: ['key_value_pair_list', 'key_value_pair_view', 'key_value_pair_set', 'key_value_pair_delete'],
    },
  ]),
}

const isSensor = ({ user, isServiceToken }: Principal): boolean => isServiceToken === true && user === sensorsUser

export function createRbac({ database, bus, log, config, basePath, maxPageSize }: RbacDeps): Rbac {
  const { enable: enabled, permission_isolation: isolation, sync_remote_groups: countsGroups } = config
  const store = createRbacStore(database)
  const service = createRbacService({ database, store, log, folder: join(basePath, 'rbac'), countsGroups })
  const users = createUserRightsCache(store, countsGroups)
  // Subscribes before those that check permissions again on the same event.
  if (enabled) bus.subscribe('rbac.changed', () => users.forget())
  const options = { enabled, isolation, ofUser: (user: string) => users.ofUser(user) }
  return {
    name: 'rbac',
    enabled,
    routes: createRbacRoutes({ enabled, store, service, maxPageSize }),
    rightsOf: (principal) =>
      createRights(principal, isSensor(principal) ? { ...options, ofUser: () => ofSensors } : options),
    rightsOfUser: (user, scopes) =>
      createRights({ user, isAdmin: false, method: 'none', ...(scopes === undefined ? {} : { scopes }) }, options),
    isAdmin: (user) => !enabled || users.ofUser(user).isAdmin,
    rolesOf: (user) => (enabled ? [...users.ofUser(user).roles] : []),
    async syncGroups(user, groups) {
      if (enabled && countsGroups) await service.syncGroups(user, groups)
    },
    async ensureAdministrator(findFirst) {
      if (enabled) await service.ensureAdministrator(findFirst)
    },
    async start() {
      if (enabled) await service.start()
    },
    async reload() {
      if (!enabled) return
      const result = await service.apply({})
      if (!('problems' in result)) return
      for (const problem of result.problems) {
        log.error('rbac.definition_invalid', `${problem}; no definition was applied, and the roles are unchanged`)
      }
    },
  }
}
