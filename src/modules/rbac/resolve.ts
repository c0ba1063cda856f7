import {
  isGlobalPermission,
  isPermission,
  permissionTypes,
  resourceTypeOf,
  type Permission,
  type Resource,
  type ResourceType,
} from '../../core/permissions.ts'

/** Names that are no permission types are allowed in, and grant nothing. */
export interface Grant {
  permission_types: readonly string[]
  /** Absent: a grant without a resource; in the scopes of an API key, every resource. */
  resource_uid?: string
}

export interface GrantSet {
  /** @param resource absent: without a resource, or on all there can be */
  allows(permission: Permission, resource?: Resource): boolean
  /** Uids of the resources of this type that grants name. */
  uidsOf(type: ResourceType): string[]
}

/** What view follows from. */
const verbs = ['create', 'modify', 'delete', 'execute', 'all']

/** Permission types that imply each one, itself included. */
interface Implying {
  /** When granted on the resource or its pack (rules 3, 5, 6, 7, 8 and 10). */
  onResource: readonly Permission[]
  /**
   * When granted without a resource. What is about a whole type says nothing about each resource of it: who may create
   * API keys may not view those of everybody.
   */
  onAll: readonly Permission[]
}

const implyingOf: ReadonlyMap<Permission, Implying> = new Map(
  Object.values(permissionTypes)
    // `Object.keys` forgets which names there are.
    .flatMap((permissions) => Object.keys(permissions) as Permission[])
    .map((permission) => {
      const onResource = namesOfImplying(permission).filter(isPermission)
      const onAll = onResource.filter(
        (implying) =>
          implying === permission || !isGlobalPermission(implying) || permission === 'rule_enforcement_list',
      )
      return [permission, { onResource, onAll }]
    }),
)

function namesOfImplying(permission: Permission): string[] {
  const type = resourceTypeOf(permission) ?? ''
  const all = `${type}_all`
  switch (permission) {
    case 'execution_view':
      return [permission, all, 'action_view', 'action_execute', 'action_all']
    case 'execution_rerun':
    case 'execution_stop':
      return [permission, all, 'action_execute', 'action_all']
    case 'rule_enforcement_view':
      return [permission, 'rule_view', ...verbs.map((verb) => `rule_${verb}`)]
    case 'rule_enforcement_list':
      return [permission, 'rule_list']
    case 'inquiry_respond':
      return [permission, all, 'action_execute', 'action_all']
    case 'key_value_pair_view':
      return [permission, all, 'key_value_pair_list', 'key_value_pair_set', 'key_value_pair_delete']
    default:
      if (permission.endsWith('_view')) return [permission, ...verbs.map((verb) => `${type}_${verb}`)]
      // Of a whole type nobody has everything by having everything of one resource; the others are about one.
      return permission.endsWith('_list') ? [permission] : [permission, all]
  }
}

export function createGrantSet(grants: Iterable<Grant>): GrantSet {
  /** By uid; '' is no resource. */
  const granted = new Map<string, Set<string>>()
  for (const { resource_uid: uid = '', permission_types: types } of grants) {
    const known = granted.get(uid) ?? new Set()
    for (const type of types) known.add(type)
    granted.set(uid, known)
  }
  const isGranted = (uid: string | undefined, implying: readonly string[]): boolean => {
    const types = uid === undefined ? undefined : granted.get(uid)
    return types !== undefined && implying.some((type) => types.has(type))
  }
  return {
    allows(permission, resource) {
      const implying = implyingOf.get(permission)
      if (implying === undefined) return false
      if (isGranted('', implying.onAll)) return true
      if (resource === undefined) return false
      const { onResource } = implying
      return isGranted(resource.grantedBy ?? resource.uid, onResource) || isGranted(resource.pack, onResource)
    },
    uidsOf: (type) => [...granted.keys()].filter((uid) => uid.startsWith(`${type}:`)),
  }
}

/** The system role that sees everything and changes nothing. */
export const observes = (permission: Permission): boolean => /_(view|list|search)$/.test(permission)
