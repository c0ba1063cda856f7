import {
  accessControlOff,
  administratorOrSelfRequired,
  definitionsInvalid,
  namedNotFound,
  resourceNotFound,
  resourceTypeUnknown,
} from '../../core/errors.ts'
import {
  aboutCaller,
  flagFilter,
  listReply,
  pageHeaders,
  pageQuery,
  parsePage,
  textFilter,
  type Page,
  type ApiRequest,
  type Route,
} from '../../http/index.ts'
import { isId } from '../../core/ids.ts'
import type { JsonSchema } from '../../lib/schema/index.ts'
import type { RbacService } from './service.ts'
import type { RbacStore } from './store.ts'
import type { PermissionTypes, Role, RoleAssignment, RoleAssignmentRecord, RoleRecord } from './types.ts'
import { permissionTypes } from '../../core/permissions.ts'

const DEFAULT_LIMIT = 100

const text: JsonSchema = { type: 'string' }

const roleSchema: JsonSchema = {
  title: 'Role',
  type: 'object',
  required: ['id', 'name', 'description', 'system', 'permission_grant_ids', 'permission_grant_objects'],
  properties: {
    id: text,
    name: text,
    description: text,
    system: { type: 'boolean', description: 'It exists without a definition file.' },
    permission_grant_ids: { type: 'array', items: text },
    permission_grant_objects: {
      type: 'array',
      items: {
        type: 'object',
        required: ['id', 'resource_uid', 'resource_type', 'permission_types'],
        properties: {
          id: text,
          resource_uid: { type: ['string', 'null'], description: 'Null: granted without a resource.' },
          resource_type: { type: ['string', 'null'] },
          permission_types: { type: 'array', items: text },
        },
      },
    },
  },
}

const assignmentSchema: JsonSchema = {
  title: 'RoleAssignment',
  type: 'object',
  required: ['id', 'user', 'role', 'description', 'is_remote', 'source'],
  properties: {
    id: text,
    user: text,
    role: { type: 'string', description: 'Name of the role.' },
    description: text,
    is_remote: { type: 'boolean', description: 'By a group of the user.' },
    source: { type: 'string', description: '`assignments/<file>`, `mappings/<file>` or `API`.' },
  },
}

const descriptionsSchema: JsonSchema = {
  type: 'object',
  description: 'Permission type → what it allows.',
  additionalProperties: text,
}

const countsSchema: JsonSchema = {
  type: 'object',
  required: ['created', 'updated', 'removed'],
  properties: { created: { type: 'integer' }, updated: { type: 'integer' }, removed: { type: 'integer' } },
}

export interface RbacRoutesOptions {
  /** `rbac.enable`; off, there is nothing to list. */
  enabled: boolean
  store: RbacStore
  service: RbacService
  maxPageSize: number
}

export function createRoutes({ enabled, store, service, maxPageSize }: RbacRoutesOptions): Route[] {
  const pageOf = ({ query, principal }: ApiRequest): Page =>
    parsePage(query, principal, { defaultLimit: DEFAULT_LIMIT, maxPageSize })

  return [
    {
      surface: 'api',
      method: 'get',
      path: '/rbac/permission_types',
      permission: 'administrator',
      summary: 'Every permission type there is, by the type of resource it is about.',
      response: { type: 'object', additionalProperties: descriptionsSchema },
      handler: (): PermissionTypes => permissionTypes,
    },
    {
      surface: 'api',
      method: 'get',
      path: '/rbac/permission_types/:type',
      permission: 'administrator',
      summary: 'The permission types about one type of resource.',
      response: descriptionsSchema,
      failures: [404],
      handler({ params }) {
        const { type = '' } = params
        const found = Object.entries(permissionTypes).find(([known]) => known === type)
        if (found === undefined) throw resourceTypeUnknown(type)
        return found[1]
      },
    },
    {
      surface: 'api',
      method: 'get',
      path: '/rbac/roles',
      permission: 'administrator',
      summary: 'Lists roles in the order of their names.',
      query: { system: { type: 'boolean', description: 'Only system roles, or only others.' }, ...pageQuery },
      response: { type: 'array', items: roleSchema },
      failures: [400, 403],
      handler(request) {
        const page = pageOf(request)
        if (!enabled) return listReply([], pageHeaders(page, 0))
        const isSystem = flagFilter(request.query, 'system')
        const records = store.listRoles(isSystem, page).map(roleRecord)
        return listReply(records, pageHeaders(page, store.countRoles(isSystem)))
      },
    },
    {
      surface: 'api',
      method: 'get',
      path: '/rbac/roles/:name_or_id',
      permission: 'administrator',
      summary: 'Gets one role.',
      response: roleSchema,
      failures: [404],
      handler({ params }) {
        const { name_or_id: nameOrId = '' } = params
        const role = !enabled
          ? undefined
          : ((isId(nameOrId) ? store.findRole(nameOrId) : undefined) ?? store.findRoleByName(nameOrId))
        if (role === undefined) throw namedNotFound(nameOrId)
        return roleRecord(role)
      },
    },
    {
      surface: 'api',
      method: 'get',
      path: '/rbac/role_assignments',
      permission: 'authenticated',
      summary: 'Lists who has which role, oldest first; for others than administrators only with `user=<self>`.',
      query: {
        user: { type: 'string', description: 'Only roles of this user.' },
        role: { type: 'string', description: 'Only this role, by its name.' },
        source: { type: 'string', description: 'Only what this file says, such as `assignments/ops.yaml`.' },
        remote: { type: 'boolean', description: 'Only roles by groups, or only others.' },
        ...pageQuery,
      },
      response: { type: 'array', items: assignmentSchema },
      failures: [400, 403],
      handler(request) {
        const { query } = request
        const user = textFilter(query, 'user')
        requireAdministratorOr(user, request)
        const page = pageOf(request)
        if (!enabled) return listReply([], pageHeaders(page, 0))
        const filter = {
          user,
          role: textFilter(query, 'role'),
          source: textFilter(query, 'source'),
          isRemote: flagFilter(query, 'remote'),
        }
        const records = store.listAssignments(filter, page).map(assignmentRecord)
        return listReply(records, pageHeaders(page, store.countAssignments(filter)))
      },
    },
    {
      surface: 'api',
      method: 'get',
      path: '/rbac/role_assignments/:id',
      permission: 'authenticated',
      summary: 'Gets one role assignment: one of your own, or any as an administrator.',
      response: assignmentSchema,
      failures: [403, 404],
      handler(request) {
        const { id = '' } = request.params
        const assignment = enabled && isId(id) ? store.findAssignment(id) : undefined
        if (assignment === undefined) throw resourceNotFound(id)
        requireAdministratorOr(assignment.user, request)
        return assignmentRecord(assignment)
      },
    },
    {
      surface: 'api',
      method: 'post',
      path: '/rbac/definitions/apply',
      permission: 'administrator',
      summary: 'Reads the definition files of roles, assignments and group mappings again: all of them, or none.',
      response: {
        type: 'object',
        required: ['roles', 'assignments', 'mappings'],
        properties: { roles: countsSchema, assignments: countsSchema, mappings: countsSchema },
      },
      failures: [400, 503],
      async handler(request) {
        if (!enabled) throw accessControlOff()
        const result = await service.apply(aboutCaller(request))
        if ('problems' in result) throw definitionsInvalid(result.problems)
        return result.applied
      },
    },
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
function requireAdministratorOr(user: string | undefined, { principal }: ApiRequest): void {
  if (!principal.isAdmin && user !== principal.user) throw administratorOrSelfRequired()
}
