/** Definitions of roles, assignments and group mappings: in files, in the database and on the wire. */
import { record, Type, type Static } from '../../lib/schema/index.ts'

/** One grant in the definition file of a role. */
export interface GrantDefinition {
  permission_types: string[]
  /** Absent: without a resource. */
  resource_uid?: string
}

export interface RoleDefinition {
  name: string
  description: string
  grants: GrantDefinition[]
}

export interface AssignmentDefinition {
  user: string
  /** Names, each once. */
  roles: string[]
  description: string
  /** `assignments/<file>` */
  source: string
}

export interface MappingDefinition {
  group: string
  /** Names, each once. */
  roles: string[]
  description: string
  enabled: boolean
  /** `mappings/<file>` */
  source: string
}

export interface Definitions {
  roles: RoleDefinition[]
  assignments: AssignmentDefinition[]
  mappings: MappingDefinition[]
}

/** A grant of a stored role. */
export interface StoredGrant extends GrantDefinition {
  id: string
}

export interface Role {
  id: string
  name: string
  description: string
  isSystem: boolean
  grants: StoredGrant[]
}

export interface RoleAssignment {
  id: string
  user: string
  /** Name. */
  role: string
  description: string
  /** The role comes from a group of the user. */
  isRemote: boolean
  /** `assignments/<file>`, `mappings/<file>` or `API` */
  source: string
}

/** Numbers of definitions that changed. */
export const Counts = record(
  'DefinitionCounts',
  Type.Object({ created: Type.Integer(), updated: Type.Integer(), removed: Type.Integer() }),
  { example: { created: 2, updated: 0, removed: 1 } },
)
export type Counts = Static<typeof Counts>

/** The changes that applying the definition files made. */
export const Applied = record(
  'AppliedDefinitions',
  Type.Object({ roles: Counts, assignments: Counts, mappings: Counts }),
  {
    example: {
      roles: { created: 2, updated: 0, removed: 1 },
      assignments: { created: 1, updated: 0, removed: 0 },
      mappings: { created: 0, updated: 0, removed: 0 },
    },
  },
)
export type Applied = Static<typeof Applied>

const grantExample = {
  id: '67a1f0c2e4b0a1d2c3e4f50c',
  resource_uid: 'pack:deploy',
  resource_type: 'pack',
  permission_types: ['action_execute'],
}

const GrantRecord = record(
  'PermissionGrant',
  Type.Object({
    id: Type.String(),
    resource_uid: Type.Nullable(Type.String({ description: 'Null: granted without a resource.' })),
    resource_type: Type.Nullable(Type.String()),
    permission_types: Type.Array(Type.String()),
  }),
  { example: grantExample },
)

/** A role as clients see it. */
export const RoleRecord = record(
  'Role',
  Type.Object({
    id: Type.String(),
    name: Type.String(),
    description: Type.String(),
    system: Type.Boolean({ description: 'Built in: the role exists without a definition file.' }),
    permission_grant_ids: Type.Array(Type.String()),
    permission_grant_objects: Type.Array(GrantRecord),
  }),
  {
    example: {
      id: '67a1f0c2e4b0a1d2c3e4f50b',
      name: 'deployer',
      description: 'Deploys.',
      system: false,
      permission_grant_ids: [grantExample.id],
      permission_grant_objects: [grantExample],
    },
  },
)
export type RoleRecord = Static<typeof RoleRecord>

/** The assignment of a role to a user, as clients see it. */
export const RoleAssignmentRecord = record(
  'RoleAssignment',
  Type.Object({
    id: Type.String(),
    user: Type.String(),
    role: Type.String({ description: 'Name of the role.' }),
    description: Type.String(),
    is_remote: Type.Boolean({ description: 'The role comes from a group of the user.' }),
    source: Type.String({ description: '`assignments/<file>`, `mappings/<file>` or `API`.' }),
  }),
  {
    example: {
      id: '67a1f0c2e4b0a1d2c3e4f50d',
      user: 'ada',
      role: 'deployer',
      description: '',
      is_remote: false,
      source: 'assignments/ada.yaml',
    },
  },
)
export type RoleAssignmentRecord = Static<typeof RoleAssignmentRecord>

/** The permission types of one type of resource. */
export const PermissionDescriptions = record(
  'PermissionDescriptions',
  Type.MapOf(Type.String(), { description: 'Permission type → what it allows.' }),
  { example: { pack_view: 'View a pack.' } },
)

/** `GET /rbac/permission_types`. */
export const PermissionTypes = record(
  'PermissionTypes',
  Type.MapOf(PermissionDescriptions, { description: 'Type of resource → its permission types.' }),
  { example: { pack: { pack_view: 'View a pack.' } } },
)
export type PermissionTypes = Static<typeof PermissionTypes>
