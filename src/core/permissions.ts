import { shown } from '../lib/text/index.ts'

/** The user of sensors; it has no record. Its tokens alone may use all keys of the system. */
export const sensorsUser = 'sensors_container'

/** Resource type → permission type → what it allows. */
export const permissionTypes = {
  runner_type: {
    runner_type_list: 'List runner types.',
    runner_type_view: 'View a runner type.',
    runner_type_modify: 'Enable and disable a runner type.',
    runner_type_all: 'Everything about a runner type.',
  },
  pack: {
    pack_list: 'List packs.',
    pack_view: 'View a pack and its configuration.',
    pack_create: 'Create packs.',
    pack_modify: 'Change a pack.',
    pack_delete: 'Delete a pack.',
    pack_install: 'Install packs.',
    pack_uninstall: 'Uninstall packs.',
    pack_register: 'Register the content of packs.',
    pack_config: 'Write the configuration of packs, and read its secrets by templates.',
    pack_search: 'Search the catalogue of packs.',
    pack_views_index_health: 'View the state of the catalogue of packs.',
    pack_all: 'Everything about a pack itself; not about its content.',
  },
  sensor_type: {
    sensor_type_list: 'List sensor types.',
    sensor_type_view: 'View a sensor type.',
    sensor_type_modify: 'Enable and disable a sensor type.',
    sensor_type_all: 'Everything about a sensor type.',
  },
  action: {
    action_list: 'List actions.',
    action_view: 'View an action, and executions of it.',
    action_create: 'Create an action.',
    action_modify: 'Change an action.',
    action_delete: 'Delete an action.',
    action_execute: 'Run an action; view, repeat and stop executions of it.',
    action_all: 'Everything about an action.',
  },
  action_alias: {
    action_alias_list: 'List action aliases.',
    action_alias_view: 'View an action alias.',
    action_alias_create: 'Create an action alias.',
    action_alias_modify: 'Change an action alias.',
    action_alias_match: 'Find the action alias that fits a text.',
    action_alias_help: 'View the help of action aliases.',
    action_alias_delete: 'Delete an action alias.',
    action_alias_all: 'Everything about an action alias.',
  },
  rule: {
    rule_list: 'List rules.',
    rule_view: 'View a rule and its enforcements.',
    rule_create: 'Create a rule.',
    rule_modify: 'Change a rule.',
    rule_delete: 'Delete a rule.',
    rule_all: 'Everything about a rule.',
  },
  rule_enforcement: {
    rule_enforcement_list: 'List rule enforcements.',
    rule_enforcement_view: 'View a rule enforcement.',
  },
  execution: {
    execution_list: 'List executions; the list holds those that may be viewed.',
    execution_view: 'View an execution, its result and its output.',
    execution_rerun: 'Run an execution again.',
    execution_stop: 'Cancel, pause and resume an execution.',
    execution_all: 'Everything about an execution.',
    execution_views_filters_list: 'List the values that executions can be filtered by.',
  },
  key_value_pair: {
    key_value_pair_list: 'List key-value pairs.',
    key_value_pair_view: 'View a key-value pair.',
    key_value_pair_set: 'Set a key-value pair.',
    key_value_pair_delete: 'Delete a key-value pair.',
    key_value_pair_all: 'Everything about a key-value pair.',
  },
  webhook: {
    webhook_list: 'List webhooks.',
    webhook_view: 'View a webhook.',
    webhook_create: 'Register a webhook, by a rule.',
    webhook_send: 'Send to a webhook.',
    webhook_delete: 'Delete a webhook.',
    webhook_all: 'Everything about a webhook.',
  },
  timer: {
    timer_list: 'List timers.',
    timer_view: 'View a timer.',
    timer_all: 'Everything about a timer.',
  },
  api_key: {
    api_key_list: 'List API keys.',
    api_key_view: 'View an API key of somebody else.',
    api_key_create: 'Create API keys for oneself.',
    api_key_modify: 'Change an API key of somebody else.',
    api_key_delete: 'Delete an API key of somebody else.',
    api_key_all: 'Everything about an API key.',
  },
  trace: {
    trace_list: 'List traces.',
    trace_view: 'View a trace.',
    trace_all: 'Everything about a trace.',
  },
  trigger: {
    trigger_list: 'List triggers.',
    trigger_view: 'View a trigger.',
    trigger_all: 'Everything about a trigger.',
  },
  policy_type: {
    policy_type_list: 'List policy types.',
    policy_type_view: 'View a policy type.',
    policy_type_all: 'Everything about a policy type.',
  },
  policy: {
    policy_list: 'List policies.',
    policy_view: 'View a policy.',
    policy_create: 'Create policies.',
    policy_modify: 'Change a policy.',
    policy_delete: 'Delete a policy.',
    policy_all: 'Everything about a policy.',
  },
  stream: {
    stream_view: 'Follow event streams; they hold events of executions that may be viewed.',
  },
  inquiry: {
    inquiry_list: 'List inquiries.',
    inquiry_view: 'View an inquiry.',
    inquiry_respond: 'Respond to an inquiry.',
    inquiry_all: 'Everything about an inquiry.',
  },
  user: {
    user_impersonate: 'Act for another user who is no administrator: the owner of an execution or of an API key.',
  },
} as const satisfies Record<string, Record<string, string>>

export type ResourceType = keyof typeof permissionTypes

export type Permission = { [R in ResourceType]: keyof (typeof permissionTypes)[R] & string }[ResourceType]

/** Permissions on a whole resource type, granted without a resource. The others are every `…_list`. */
const namedGlobal = [
  'pack_install',
  'pack_uninstall',
  'pack_create',
  'pack_register',
  'pack_config',
  'pack_search',
  'pack_views_index_health',
  'action_alias_match',
  'action_alias_help',
  'api_key_create',
  'policy_create',
  'stream_view',
  'inquiry_respond',
  'inquiry_view',
  'user_impersonate',
] as const satisfies readonly Permission[]

export type GlobalPermission = Extract<Permission, `${string}_list`> | (typeof namedGlobal)[number]
/** Requires a resource. */
export type ResourcePermission = Exclude<Permission, GlobalPermission>

const globals: ReadonlySet<string> = new Set(namedGlobal)

export function isGlobalPermission(permission: Permission): permission is GlobalPermission {
  return permission.endsWith('_list') || globals.has(permission)
}

const typeOf = new Map<string, ResourceType>(
  // `Object.entries` loses the types of the names.
  (Object.entries(permissionTypes) as [ResourceType, object][]).flatMap(([type, permissions]) =>
    Object.keys(permissions).map((permission): [string, ResourceType] => [permission, type]),
  ),
)

/** The resource type of a permission; undefined if the permission type does not exist. */
export function resourceTypeOf(permission: string): ResourceType | undefined {
  return typeOf.get(permission)
}

export function isPermission(name: string): name is Permission {
  return typeOf.has(name)
}

/** Sorted. */
export const globalPermissions: readonly Permission[] = [...typeOf.keys()]
  .filter((name) => isPermission(name))
  .filter((permission) => isGlobalPermission(permission))
  .sort()

/** Permissions on pack content; they can also be granted on a whole pack. */
const grantedOnPacks: ReadonlySet<string> = new Set<Permission>([
  ...(['view', 'modify', 'all'] as const).map((verb) => `sensor_type_${verb}` as const),
  ...(['view', 'create', 'modify', 'delete', 'execute', 'all'] as const).map((verb) => `action_${verb}` as const),
  ...(['view', 'create', 'modify', 'delete', 'all'] as const).flatMap(
    (verb) => [`action_alias_${verb}`, `rule_${verb}`] as const,
  ),
])

/**
 * Why a permission type cannot be granted on a resource (contract 11, 11.6); undefined: it can. The text repeats at
 * most 200 characters of each.
 */
export function problemOfGrant(permission: string, resourceUid: string): string | undefined {
  const colon = resourceUid.indexOf(':')
  const type = resourceUid.slice(0, Math.max(colon, 0))
  if (!Object.hasOwn(permissionTypes, type) || colon === resourceUid.length - 1) {
    return `Invalid resource "${shown(resourceUid)}": it is one of ${Object.keys(permissionTypes).join(', ')}, a colon, and which one, such as action:core:local`
  }
  const isFitting = typeOf.get(permission) === type || (type === 'pack' && grantedOnPacks.has(permission))
  return isFitting ? undefined : `Invalid permission type "${shown(permission)}" for resource type "${type}"`
}

/** The target of a permission check. */
export interface Resource {
  /** As messages name it (contract 00, 0.12). */
  uid: string
  /** The uid that grants name, if it differs: grants on an execution name its action. */
  grantedBy?: string
  /** Uid of the pack that contains it; grants on the pack also count. */
  pack?: string
  /** The user who owns it: an execution, a rule, an API key, a user's datastore item, or the user itself. */
  owner?: string
  /** The request gets the plain text of an encrypted value: the role `observer` does not suffice. */
  isDecrypted?: boolean
}

/** @param ref `<pack>.<name>` */
function packAndName(ref: string): { pack: string; name: string } {
  const dot = ref.indexOf('.')
  return { pack: ref.slice(0, Math.max(dot, 0)), name: ref.slice(dot + 1) }
}

export const packResource = (ref: string): Resource => ({ uid: `pack:${ref}` })

/** @param ref `<pack>.<name>` */
export function actionAliasResource(ref: string): Resource {
  const { pack, name } = packAndName(ref)
  return { uid: `action_alias:${pack}:${name}`, pack: `pack:${pack}` }
}

/** @param ref `<pack>.<name>` */
export function actionResource(ref: string): Resource {
  const { pack, name } = packAndName(ref)
  return { uid: `action:${pack}:${name}`, pack: `pack:${pack}` }
}

export function executionResource(execution: { id: string; action_ref: string; user: string }): Resource {
  const { uid, pack } = actionResource(execution.action_ref)
  return {
    uid: `execution:${execution.id}`,
    grantedBy: uid,
    ...(pack === undefined ? {} : { pack }),
    owner: execution.user,
  }
}

/** @param ref `<pack>.<class_name>` */
export function sensorResource(ref: string): Resource {
  const { pack, name } = packAndName(ref)
  return { uid: `sensor_type:${pack}:${name}`, pack: `pack:${pack}` }
}

export const runnerTypeResource = (name: string): Resource => ({ uid: `runner_type:${name}` })

/** Grants name the action that asks through the inquiry. @param asker the workflow execution of the inquiry */
export function inquiryResource({ id, asker }: { id: string; asker: { action_ref: string } | undefined }): Resource {
  const uid = `inquiry:${id}`
  if (asker === undefined) return { uid }
  const action = actionResource(asker.action_ref)
  return { uid, grantedBy: action.uid, ...(action.pack === undefined ? {} : { pack: action.pack }) }
}

export const userResource = (name: string): Resource => ({ uid: `user:${name}`, owner: name })

export function apiKeyResource(key: { id: string; key_hash: string; user: string }): Resource {
  return { uid: `api_key:${key.id}`, grantedBy: `api_key:${key.key_hash}`, owner: key.user }
}

/**
 * For trigger types, triggers and instances: grants name `trigger:<pack>:<name>` of the trigger type. @param typeRef
 * `<pack>.<name>`
 */
export function triggerResource(typeRef: string): Resource {
  const { pack, name } = packAndName(typeRef)
  return { uid: `trigger:${pack}:${name}` }
}

/** Grants on a timer name its trigger. @param uid of its trigger */
export function timerResource(uid: string): Resource {
  return { uid: uid.replace(/^trigger:/, 'timer:') }
}

/** @param user the author */
export function ruleResource({ ref, user }: { ref: string; user: string }): Resource {
  const { pack, name } = packAndName(ref)
  return { uid: `rule:${pack}:${name}`, pack: `pack:${pack}`, owner: user }
}

/** @param ref `<pack>.<name>` */
export function policyResource(ref: string): Resource {
  const { pack, name } = packAndName(ref)
  return { uid: `policy:${pack}:${name}` }
}

/** @param uid of the type */
export const policyTypeResource = (uid: string): Resource => ({ uid })

/** Grants name its rule. */
export function ruleEnforcementResource(enforcement: { id: string; rule_ref: string }): Resource {
  const { pack, name } = packAndName(enforcement.rule_ref)
  return { uid: `rule_enforcement:${enforcement.id}`, grantedBy: `rule:${pack}:${name}`, pack: `pack:${pack}` }
}

/** @param hook without slashes around it */
export const webhookResource = (hook: string): Resource => ({ uid: `webhook:${hook}` })

/** @param id of the trace */
export const traceResource = (id: string): Resource => ({ uid: `trace:${id}` })

/** @param user for an item in the user scope; else empty */
export function keyResource({ scope, name, user }: { scope: string; name: string; user: string }): Resource {
  if (user === '') return { uid: `key_value_pair:${scope}:${name}` }
  return { uid: `key_value_pair:${scope}:${user}:${name}`, owner: user }
}

/** A subset of the user's permissions. */
export interface Scope {
  permission_types: readonly Permission[]
  /** Absent: every resource. */
  resource_uid?: string
}
