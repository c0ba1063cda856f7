/** The changes that make the rows match the definition files. */
import { isDeepStrictEqual } from 'node:util'
import type { Step } from '../../db/index.ts'
import { newId } from '../../core/ids.ts'
import type { RbacStore } from './store.ts'
import { systemRoles } from './system-roles.ts'
import type {
  Applied,
  Counts,
  Definitions,
  GrantDefinition,
  MappingDefinition,
  Role,
  RoleAssignment,
  StoredGrant,
} from './types.ts'
import { writeJson } from '../../lib/json/index.ts'

export interface ApplyPlan {
  /** None: the rows say it already. */
  steps: Step[]
  applied: Applied
  created: RoleAssignment[]
  removed: RoleAssignment[]
}

/**
 * System roles and assignments from elsewhere than a file stay; so do the ids of what is there already, and what groups
 * have given as long as the same file maps the same group.
 */
export function planApply(store: RbacStore, definitions: Definitions): ApplyPlan {
  const roles = planRoles(store, definitions)
  const assignments = planAssignments(store, definitions)
  const mappings = planMappings(store, definitions.mappings)
  return {
    steps: [...roles.steps, ...assignments.steps, ...mappings.steps],
    applied: { roles: roles.counts, assignments: assignments.counts, mappings: mappings.counts },
    created: assignments.created,
    removed: [...assignments.removed, ...mappings.removed],
  }
}

interface Plan {
  steps: Step[]
  counts: Counts
}

function planRoles(store: RbacStore, definitions: Definitions): Plan {
  const left = new Map(
    store
      .allRoles()
      .filter(({ isSystem }) => !isSystem)
      .map((role) => [role.name, role]),
  )
  const created: Role[] = []
  const updated: Role[] = []
  for (const { name, description, grants } of definitions.roles) {
    const role = left.get(name)
    left.delete(name)
    if (role === undefined) {
      created.push({ id: newId(), name, description, isSystem: false, grants: withIds(grants, []) })
      continue
    }
    const wanted = { ...role, description, grants: withIds(grants, role.grants) }
    if (!isDeepStrictEqual(wanted, role)) updated.push(wanted)
  }
  const removed = [...left.values()].map(({ id }) => id)
  return {
    steps: [
      ...store.deleteRoles(removed),
      ...updated.map((role) => store.updateRole(role)),
      ...store.insertRoles(created),
    ],
    counts: { created: created.length, updated: updated.length, removed: removed.length },
  }
}

/** A grant that was there keeps its id. */
function withIds(grants: readonly GrantDefinition[], stored: readonly StoredGrant[]): StoredGrant[] {
  const idsOf = new Map<string, string[]>()
  const keyOf = ({ resource_uid: uid, permission_types: types }: GrantDefinition): string => writeJson([uid, types])
  for (const grant of stored) idsOf.set(keyOf(grant), [...(idsOf.get(keyOf(grant)) ?? []), grant.id])
  return grants.map((grant) => ({ id: idsOf.get(keyOf(grant))?.shift() ?? newId(), ...grant }))
}

function planAssignments(
  store: RbacStore,
  definitions: Definitions,
): Plan & { created: RoleAssignment[]; removed: RoleAssignment[] } {
  const keyOf = (user: string, role: string): string => writeJson([user, role])
  const left = new Map(
    store
      .assignmentsOf(false)
      .filter(({ source }) => source.startsWith('assignments/'))
      .map((assignment) => [keyOf(assignment.user, assignment.role), assignment]),
  )
  const created: RoleAssignment[] = []
  const updated: RoleAssignment[] = []
  for (const { user, roles, description, source } of definitions.assignments) {
    for (const role of roles) {
      const key = keyOf(user, role)
      const assignment = left.get(key)
      left.delete(key)
      if (assignment === undefined) {
        created.push({ id: newId(), user, role, description, isRemote: false, source })
      } else if (assignment.description !== description || assignment.source !== source) {
        updated.push({ ...assignment, description, source })
      }
    }
  }
  const removed = [...left.values()]
  return {
    steps: [
      ...store.deleteAssignments(removed.map(({ id }) => id)),
      ...updated.map((assignment) => store.updateAssignment(assignment)),
      ...store.insertAssignments(created),
    ],
    counts: { created: created.length, updated: updated.length, removed: removed.length },
    created,
    removed,
  }
}

function planMappings(store: RbacStore, mappings: readonly MappingDefinition[]): Plan & { removed: RoleAssignment[] } {
  const stored = store.mappings()
  const left = new Map(stored.map((mapping) => [mapping.group, mapping]))
  const counts: Counts = { created: 0, updated: 0, removed: 0 }
  const steps: Step[] = []
  for (const mapping of mappings) {
    const known = left.get(mapping.group)
    left.delete(mapping.group)
    if (isDeepStrictEqual(known, mapping)) continue
    steps.push(store.setMapping(mapping))
    counts[known === undefined ? 'created' : 'updated'] += 1
  }
  for (const group of left.keys()) steps.push(store.deleteMapping(group))
  counts.removed = left.size

  // The file may map another group now, or one day again: the members of this one would have the roles of that.
  const sourceOf = new Map(mappings.map(({ group, source }) => [group, source]))
  const gone = new Set(stored.filter(({ group, source }) => sourceOf.get(group) !== source).map(({ source }) => source))
  const removed = gone.size === 0 ? [] : store.assignmentsOf(true).filter(({ source }) => gone.has(source))
  steps.push(...store.deleteAssignments(removed.map(({ id }) => id)))
  return { steps, counts, removed }
}

/** Those that are missing. */
export function planSystemRoles(store: RbacStore): Step[] {
  const missing = systemRoles.filter(({ name }) => store.findRoleByName(name) === undefined)
  return store.insertRoles(
    missing.map(({ name, description }) => ({ id: newId(), name, description, isSystem: true, grants: [] })),
  )
}

/** Replaces the remote assignments of a user by what enabled mappings give to these groups. */
export function planSync(
  store: RbacStore,
  user: string,
  groups: readonly string[],
): Pick<ApplyPlan, 'steps' | 'created' | 'removed'> {
  const keyOf = (role: string, source: string): string => writeJson([role, source])
  const left = new Map(
    store
      .ofUser(user)
      .filter(({ isRemote }) => isRemote)
      .map((assignment) => [keyOf(assignment.role, assignment.source), assignment]),
  )
  const groupsOfUser = new Set(groups)
  const created = new Map<string, RoleAssignment>()
  for (const { group, roles, enabled, source, description } of store.mappings()) {
    if (!enabled || !groupsOfUser.has(group)) continue
    for (const role of roles) {
      const key = keyOf(role, source)
      if (left.delete(key) || created.has(key)) continue
      created.set(key, { id: newId(), user, role, description, isRemote: true, source })
    }
  }
  const removed = [...left.values()]
  return {
    steps: [...store.deleteAssignments(removed.map(({ id }) => id)), ...store.insertAssignments([...created.values()])],
    created: [...created.values()],
    removed,
  }
}
