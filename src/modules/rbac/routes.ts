import {
  accessControlOff,
  administratorOrSelfRequired,
  definitionsInvalid,
  namedNotFound,
  resourceNotFound,
  resourceTypeUnknown,
} from '../../core/errors.ts'
import { aboutCaller, listEndpoint, route, textFilter, type ApiRequest, type Route } from '../../http/index.ts'
import { isId } from '../../core/ids.ts'
import type { RbacService } from './service.ts'
import type { RbacStore } from './store.ts'
import {
  Applied,
  PermissionDescriptions,
  PermissionTypes,
  RoleAssignmentRecord,
  RoleRecord,
  type Role,
  type RoleAssignment,
} from './types.ts'
import { permissionTypes } from '../../core/permissions.ts'

const DEFAULT_LIMIT = 100

export interface RbacRoutesOptions {
  /** `rbac.enable`; off, every list is empty. */
  enabled: boolean
  store: RbacStore
  service: RbacService
  maxPageSize: number
}

export function createRbacRoutes({ enabled, store, service, maxPageSize }: RbacRoutesOptions): Route[] {
  return [
    route({
      surface: 'api',
      method: 'get',
      path: '/rbac/permission_types',
      permission: 'administrator',
      summary: 'Gets all permission types by type of resource.',
      response: PermissionTypes,
      handler: (): PermissionTypes => permissionTypes,
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/rbac/permission_types/:type',
      permission: 'administrator',
      summary: 'Gets the permission types of one type of resource.',
      response: PermissionDescriptions,
      failures: [404],
      handler({ params }) {
        const found = Object.entries(permissionTypes).find(([type]) => type === params.type)
        if (found === undefined) throw resourceTypeUnknown(params.type)
        return found[1]
      },
    }),
    listEndpoint({
      path: '/rbac/roles',
      permission: 'administrator',
      summary: 'Lists roles by name.',
      record: RoleRecord,
      query: { system: { type: 'boolean', description: 'True: only built-in roles. False: only other roles.' } },
      page: { defaultLimit: DEFAULT_LIMIT, maxPageSize },
      find({ query, page }) {
        if (!enabled) return { records: [], total: 0 }
        return { records: store.listRoles(query.system, page).map(roleRecord), total: store.countRoles(query.system) }
      },
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/rbac/roles/:name_or_id',
      permission: 'administrator',
      summary: 'Gets one role.',
      response: RoleRecord,
      failures: [404],
      handler({ params }) {
        const { name_or_id: nameOrId } = params
        const role = !enabled
          ? undefined
          : ((isId(nameOrId) ? store.findRole(nameOrId) : undefined) ?? store.findRoleByName(nameOrId))
        if (role === undefined) throw namedNotFound(nameOrId)
        return roleRecord(role)
      },
    }),
    listEndpoint({
      path: '/rbac/role_assignments',
      permission: 'authenticated',
      summary: 'Lists role assignments, oldest first. Users who are no administrators must give `user=<self>`.',
      record: RoleAssignmentRecord,
      query: {
        user: { type: 'string', description: 'Only roles of this user.' },
        role: { type: 'string', description: 'Only this role, by its name.' },
        source: { type: 'string', description: 'Only assignments from this file, such as `assignments/ops.yaml`.' },
        remote: { type: 'boolean', description: 'True: only roles from groups. False: only other roles.' },
      },
      page: { defaultLimit: DEFAULT_LIMIT, maxPageSize },
      find(request) {
        const { query, page } = request
        const user = textFilter(query, 'user')
        requireAdministratorOr(user, request)
        if (!enabled) return { records: [], total: 0 }
        const filter = {
          user,
          role: textFilter(query, 'role'),
          source: textFilter(query, 'source'),
          isRemote: query.remote,
        }
        return {
          records: store.listAssignments(filter, page).map(assignmentRecord),
          total: store.countAssignments(filter),
        }
      },
    }),
    route({
      surface: 'api',
      method: 'get',
      path: '/rbac/role_assignments/:id',
      permission: 'authenticated',
      summary: 'Gets one role assignment: one of your own, or any as an administrator.',
      response: RoleAssignmentRecord,
      failures: [403, 404],
      handler(request) {
        const { id } = request.params
        const assignment = enabled && isId(id) ? store.findAssignment(id) : undefined
        if (assignment === undefined) throw resourceNotFound(id)
        requireAdministratorOr(assignment.user, request)
        return assignmentRecord(assignment)
      },
    }),
    route({
      surface: 'api',
      method: 'post',
      path: '/rbac/definitions/apply',
      permission: 'administrator',
      summary: 'Applies the definition files of roles, assignments and group mappings: all of them, or none.',
      response: Applied,
      failures: [400, 503],
      async handler(request) {
        if (!enabled) throw accessControlOff()
        const result = await service.apply(aboutCaller(request))
        if ('problems' in result) throw definitionsInvalid(result.problems)
        return result.applied
      },
    }),
  ]
}

function roleRecord({ id, name, description, isSystem, grants }: Role): RoleRecord {
  return {
    id,
    name,
    description,
    system: isSystem,
    permission_grant_ids: grants.map((grant) => grant.id),
    permission_grant_objects: grants.map((grant) => ({
      id: grant.id,
      resource_uid: grant.resource_uid ?? null,
      resource_type: grant.resource_uid?.slice(0, grant.resource_uid.indexOf(':')) ?? null,
      permission_types: grant.permission_types,
    })),
  }
}

function assignmentRecord({ isRemote, ...row }: RoleAssignment): RoleAssignmentRecord {
  const { id, user, role, description, source } = row
  return { id, user, role, description, is_remote: isRemote, source }
}

/** @throws PERMISSION_DENIED */
function requireAdministratorOr(user: string | undefined, { principal }: Pick<ApiRequest, 'principal'>): void {
  if (!principal.isAdmin && user !== principal.user) throw administratorOrSelfRequired()
}
