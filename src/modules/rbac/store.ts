/** Tables `roles`, `role_assignments` and `group_mappings`. */
import type { Database, Step, GroupMappingTable, RoleAssignmentTable, RoleTable } from '../../db/index.ts'
import type { Page } from '../../http/index.ts'
import type { MappingDefinition, Role, RoleAssignment, StoredGrant } from './types.ts'
import { readJson, writeJson } from '../../lib/json/index.ts'

export interface AssignmentFilter {
  user?: string | undefined
  role?: string | undefined
  source?: string | undefined
  isRemote?: boolean | undefined
}

export interface RbacStore {
  /** In the order of their names. */
  allRoles(): Role[]
  /** In the order of their names. */
  listRoles(isSystem: boolean | undefined, page: Page): Role[]
  countRoles(isSystem: boolean | undefined): number
  findRole(id: string): Role | undefined
  findRoleByName(name: string): Role | undefined
  insertRoles(roles: readonly Role[]): Step[]
  updateRole(role: Role): Step
  deleteRoles(ids: readonly string[]): Step[]

  ofUser(user: string): RoleAssignment[]
  /** Whether a file gives anybody one of these roles. */
  isAnyAssigned(roles: readonly string[]): boolean
  assignmentsOf(isRemote: boolean): RoleAssignment[]
  /** In the order in which they were made. */
  listAssignments(filter: AssignmentFilter, page: Page): RoleAssignment[]
  countAssignments(filter: AssignmentFilter): number
  findAssignment(id: string): RoleAssignment | undefined
  insertAssignments(assignments: readonly RoleAssignment[]): Step[]
  /** What the role is for and which file says so; not who has it. */
  updateAssignment(assignment: RoleAssignment): Step
  deleteAssignments(ids: readonly string[]): Step[]

  mappings(): MappingDefinition[]
  /** Adds the mapping, or replaces that of the same group. */
  setMapping(mapping: MappingDefinition): Step
  deleteMapping(group: string): Step
}

/** Rows per statement: within the limit of parameters, and few distinct statement texts. */
const ROWS_TOGETHER = 500

export function createRbacStore(database: Database): RbacStore {
  const { build } = database

  function rolesThat(isSystem: boolean | undefined) {
    const query = build.selectFrom('roles')
    return isSystem === undefined ? query : query.where('is_system', '=', Number(isSystem))
  }

  function assignmentsThat({ user, role, source, isRemote }: AssignmentFilter) {
    let query = build.selectFrom('role_assignments')
    if (user !== undefined) query = query.where('user', '=', user)
    if (role !== undefined) query = query.where('role', '=', role)
    if (source !== undefined) query = query.where('source', '=', source)
    return isRemote === undefined ? query : query.where('is_remote', '=', Number(isRemote))
  }

  const manyAssignments = (filter: AssignmentFilter): RoleAssignment[] =>
    database.all(assignmentsThat(filter).selectAll().orderBy('id')).map(toAssignment)

  return {
    allRoles: () => database.all(build.selectFrom('roles').selectAll().orderBy('name')).map(toRole),
    listRoles: (isSystem, page) =>
      database
        .all(
          rolesThat(isSystem)
            .selectAll()
            .orderBy('name')
            .limit(page.limit ?? -1)
            .offset(page.offset),
        )
        .map(toRole),
    countRoles: (isSystem) =>
      database.first(rolesThat(isSystem).select((on) => on.fn.countAll<number>().as('total')))?.total ?? 0,
    findRole(id) {
      const row = database.first(build.selectFrom('roles').selectAll().where('id', '=', id))
      return row && toRole(row)
    },
    findRoleByName(name) {
      const row = database.first(build.selectFrom('roles').selectAll().where('name', '=', name))
      return row && toRole(row)
    },
    insertRoles: (roles) =>
      inParts(roles, (part) => ({ query: build.insertInto('roles').values(part.map(roleRow)), expect: part.length })),
    updateRole: (role) => ({
      query: build.updateTable('roles').set(roleRow(role)).where('id', '=', role.id),
      expect: 1,
    }),
    deleteRoles: (ids) =>
      inParts(ids, (part) => ({ query: build.deleteFrom('roles').where('id', 'in', part), expect: part.length })),

    ofUser: (user) => manyAssignments({ user }),
    isAnyAssigned: (roles) =>
      database.first(assignmentsThat({ isRemote: false }).select('id').where('role', 'in', roles).limit(1)) !==
      undefined,
    assignmentsOf: (isRemote) => manyAssignments({ isRemote }),
    listAssignments: (filter, page) =>
      database
        .all(
          assignmentsThat(filter)
            .selectAll()
            .orderBy('id')
            .limit(page.limit ?? -1)
            .offset(page.offset),
        )
        .map(toAssignment),
    countAssignments: (filter) =>
      database.first(assignmentsThat(filter).select((on) => on.fn.countAll<number>().as('total')))?.total ?? 0,
    findAssignment(id) {
      const row = database.first(build.selectFrom('role_assignments').selectAll().where('id', '=', id))
      return row && toAssignment(row)
    },
    insertAssignments: (assignments) =>
      inParts(assignments, (part) => ({
        query: build.insertInto('role_assignments').values(part.map(assignmentRow)),
        expect: part.length,
      })),
    updateAssignment: ({ id, description, source }) => ({
      query: build.updateTable('role_assignments').set({ description, source }).where('id', '=', id),
      expect: 1,
    }),
    deleteAssignments: (ids) =>
      inParts(ids, (part) => ({
        query: build.deleteFrom('role_assignments').where('id', 'in', part),
        expect: part.length,
      })),

    mappings: () => database.all(build.selectFrom('group_mappings').selectAll().orderBy('source')).map(toMapping),
    setMapping(mapping) {
      const row = mappingRow(mapping)
      return {
        query: build
          .insertInto('group_mappings')
          .values(row)
          .onConflict((conflict) => conflict.column('group_name').doUpdateSet(row)),
      }
    },
    deleteMapping: (group) => ({ query: build.deleteFrom('group_mappings').where('group_name', '=', group) }),
  }
}

function inParts<T>(items: readonly T[], step: (part: readonly T[]) => Step): Step[] {
  const steps: Step[] = []
  for (let start = 0; start < items.length; start += ROWS_TOGETHER) {
    steps.push(step(items.slice(start, start + ROWS_TOGETHER)))
  }
  return steps
}

function toRole({ id, name, description, is_system: isSystem, grants }: RoleTable): Role {
  return { id, name, description, isSystem: isSystem === 1, grants: readJson(grants) as StoredGrant[] } // by `roleRow`
}

function roleRow({ id, name, description, isSystem, grants }: Role): RoleTable {
  return { id, name, description, is_system: Number(isSystem), grants: writeJson(grants) }
}

function toAssignment({ is_remote: isRemote, ...row }: RoleAssignmentTable): RoleAssignment {
  return { ...row, isRemote: isRemote === 1 }
}

function assignmentRow({ isRemote, ...row }: RoleAssignment): RoleAssignmentTable {
  return { ...row, is_remote: Number(isRemote) }
}

function toMapping({ group_name: group, roles, description, enabled, source }: GroupMappingTable): MappingDefinition {
  const names = readJson(roles) as string[] // by `mappingRow`
  return { group, roles: names, description, enabled: enabled === 1, source }
}

function mappingRow({ group, roles, description, enabled, source }: MappingDefinition): GroupMappingTable {
  return { group_name: group, roles: writeJson(roles), description, enabled: Number(enabled), source }
}
