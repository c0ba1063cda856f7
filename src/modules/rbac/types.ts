/** Definitions of roles and of who has them, as files say it and as rows keep it. */

/** What a role grants in one item of its file. */
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
  /** By a group of the user. */
  isRemote: boolean
  /** `assignments/<file>`, `mappings/<file>` or `API` */
  source: string
}

export interface Counts {
  created: number
  updated: number
  removed: number
}

/** What applying the definition files changed. */
export interface Applied {
  roles: Counts
  assignments: Counts
  mappings: Counts
}

/** A role as clients see it. */
export interface RoleRecord {
  id: string
  name: string
  description: string
  /** It exists without a definition file. */
  system: boolean
  permission_grant_ids: string[]
  permission_grant_objects: {
    id: string
    /** Null: granted without a resource. */
    resource_uid: string | null
    resource_type: string | null
    permission_types: string[]
  }[]
}

/** Who has which role, as clients see it. */
export interface RoleAssignmentRecord {
  id: string
  user: string
  /** Name. */
  role: string
  description: string
  /** By a group of the user. */
  is_remote: boolean
  /** `assignments/<file>`, `mappings/<file>` or `API` */
  source: string
}

/** `GET /rbac/permission_types`: type of resource → permission type → what it allows. */
export type PermissionTypes = Readonly<Record<string, Readonly<Record<string, string>>>>
