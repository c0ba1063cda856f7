/** Which kind of record an export holds, and what it is here: under our names, in the form that the API of svc takes. */
import { isObject } from '../lib/schema/index.ts'
import { microsOf, parseTimestamp } from '../core/time.ts'
import type { Decrypt } from './cipher.ts'
import { ownText, ownTriggerType, ownTexts } from './names.ts'
import type { ExportedRecord, Fields } from './read-records.ts'

/** Kinds that svc takes over, in the order in which it does: what stands before may be named by what stands behind. */
export const recordKinds = [
  'user',
  'key',
  'api_key',
  'config',
  'role',
  'role_assignment',
  'group_mapping',
  'trigger_type',
  'action',
  'rule',
  'action_alias',
  'policy',
  'sensor',
] as const
export type RecordKind = (typeof recordKinds)[number]

/** Kinds of the history, which is large and optional. */
export const historyKinds = ['execution', 'execution_output', 'trigger_instance', 'rule_enforcement', 'trace'] as const
export type HistoryKind = (typeof historyKinds)[number]

/** Needed to read others, but not taken over for themselves. */
const lookupKinds = ['trigger', 'permission_grant', 'live_action'] as const
type LookupKind = (typeof lookupKinds)[number]

/** Kinds that are not taken over, and why. */
export const leftBehind = {
  token: 'users log in again',
  runner_type: 'svc has its own runners',
  pack: 'packs are taken over as folders',
  config_schema: 'it comes with the folder of its pack',
  policy_type: 'svc has its own policy types',
  rule_type: 'svc has its own rule types',
  workflow_execution: 'executions have the results of workflows',
  task_execution: 'executions have the results of workflows',
  queue_item: 'svc schedules executions itself',
  other: 'svc does not know this kind of record',
} as const
export type LeftBehindKind = keyof typeof leftBehind

export type AnyKind = RecordKind | HistoryKind | LookupKind | LeftBehindKind

/** Collections of MongoDB, without `_d_b`. */
const collections: Readonly<Record<string, AnyKind>> = {
  user: 'user',
  key_value_pair: 'key',
  api_key: 'api_key',
  config: 'config',
  role: 'role',
  user_role_assignment: 'role_assignment',
  group_to_role_mapping: 'group_mapping',
  trigger_type: 'trigger_type',
  action: 'action',
  rule: 'rule',
  action_alias: 'action_alias',
  policy: 'policy',
  action_execution: 'execution',
  action_execution_output: 'execution_output',
  live_action: 'live_action',
  trigger_instance: 'trigger_instance',
  rule_enforcement: 'rule_enforcement',
  trace: 'trace',
  trigger: 'trigger',
  permission_grant: 'permission_grant',
  token: 'token',
  runner_type: 'runner_type',
  pack: 'pack',
  config_schema: 'config_schema',
  sensor_type: 'sensor',
  policy_type: 'policy_type',
  rule_type: 'rule_type',
  workflow_execution: 'workflow_execution',
  task_execution: 'task_execution',
  action_execution_scheduling_queue_item: 'queue_item',
  action_execution_state: 'queue_item',
}

/** Attributes that only records of a kind have; the first kind that fits is the one. */
const marks: readonly (readonly [AnyKind, readonly string[]])[] = [
  ['execution', ['liveaction', 'action', 'status']],
  ['execution_output', ['execution_id', 'output_type', 'data']],
  ['rule_enforcement', ['trigger_instance_id', 'rule']],
  ['trigger_instance', ['trigger', 'occurrence_time']],
  ['trace', ['trace_tag', 'action_executions']],
  ['api_key', ['key_hash', 'user']],
  ['rule', ['trigger', 'criteria', 'action']],
  ['action_alias', ['formats', 'action_ref']],
  ['policy', ['policy_type', 'resource_ref']],
  ['workflow_execution', ['graph', 'spec']],
  ['task_execution', ['task_id', 'workflow_execution']],
  ['sensor', ['trigger_types', 'artifact_uri']],
  ['sensor', ['trigger_types', 'class_name']],
  ['runner_type', ['runner_module', 'runner_parameters']],
  ['action', ['runner_type', 'name']],
  ['trigger_type', ['payload_schema', 'parameters_schema']],
  ['trigger', ['type', 'parameters', 'ref']],
  ['token', ['token', 'expiry']],
  ['role_assignment', ['role', 'user']],
  ['group_mapping', ['group', 'roles']],
  ['permission_grant', ['permission_types', 'resource_type']],
  ['role', ['permission_grants', 'name']],
  ['role', ['permission_grant_objects', 'name']],
  ['pack', ['version', 'author', 'ref']],
  ['config_schema', ['pack', 'attributes']],
  ['config', ['pack', 'values']],
  ['policy_type', ['module', 'resource_type']],
  ['live_action', ['action', 'status', 'action_is_workflow']],
  ['key', ['name', 'value']],
  ['user', ['name', 'is_service']],
]

export function kindOf({ fields, collection }: ExportedRecord): AnyKind {
  if (collection !== undefined) return collections[collection.replace(/_d_b$/, '')] ?? 'other'
  return marks.find(([, names]) => names.every((name) => Object.hasOwn(fields, name)))?.[0] ?? 'other'
}

/** What a record becomes. */
export type Converted =
  | { name: string; desired: Fields; fromPack: boolean }
  | { name: string; refused: string }
  | { name: string; skipped: string }

/** Records that others name. */
export interface Lookups {
  /** Reference → type and parameters, as the database keeps triggers of rules. */
  triggers: ReadonlyMap<string, Fields>
  /** Id → grant. */
  grants: ReadonlyMap<string, Fields>
  readonly decrypt: Decrypt
  /** Microseconds since the epoch. */
  now: number
}

type Convert = (fields: Fields, lookups: Lookups) => Converted

const text = (value: unknown): string => (typeof value === 'string' ? value : '')
const isGiven = (value: unknown): boolean => value !== undefined && value !== null && value !== ''

/** Only attributes with a value. */
function given(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => isGiven(value)))
}

const refOf = (fields: Fields): string =>
  text(fields['ref']) || [text(fields['pack']), text(fields['name'])].filter((part) => part !== '').join('.')

const isOfPack = (fields: Fields): boolean => isGiven(fields['metadata_file'])

/** The record lacks what it consists of, as lists of the command line do. */
const incomplete = (name: string, missing: readonly string[], how: string): Converted => ({
  name,
  refused: `the export has no ${missing.join(', ')}: ${how}`,
})

const wholeExport = 'export whole records, with "-a all" or from the API or the database'

const absentOf = (fields: Fields, names: readonly string[]): string[] => names.filter((name) => !isGiven(fields[name]))

const converters: Readonly<Record<RecordKind, Convert>> = {
  user(fields) {
    const name = text(fields['name'])
    const nicknames = isObject(fields['nicknames']) ? fields['nicknames'] : {}
    const isService = fields['is_service'] === true
    if (!isService && Object.keys(nicknames).length === 0)
      return { name, skipped: 'svc makes the user at the first login' }
    return { name, fromPack: false, desired: { name, is_service: isService, nicknames } }
  },
  key: convertKey,
  api_key(fields) {
    const user = text(fields['user'])
    const hash = text(fields['key_hash'])
    const id = text(fields['id'] ?? fields['_id'])
    const name = `${user}/${id || hash.slice(0, 8)}`
    if (/^\*+$/.test(hash)) return { name, refused: 'its hash is masked: export with --show-secrets' }
    if (!/^[0-9a-f]{128}$/i.test(hash)) return { name, refused: 'its hash is not one of SHA-512' }
    const desired = {
      ...(/^[0-9a-f]{24}$/.test(id) ? { id } : {}),
      user,
      key_hash: hash.toLowerCase(),
      metadata: isObject(fields['metadata']) ? fields['metadata'] : {},
      enabled: fields['enabled'] !== false,
    }
    return user === '' ? { name, refused: 'it has no user' } : { name, fromPack: false, desired }
  },
  config(fields) {
    const name = text(fields['pack'])
    return { name, fromPack: false, desired: { values: unescaped(fields['values']) } }
  },
  role(fields, { grants }) {
    const name = text(fields['name'])
    if (fields['system'] === true) return { name, skipped: 'svc has the system roles' }
    const objects = list(fields['permission_grant_objects'] ?? fields['permission_grants'])
    const found = objects.map((item) => (isObject(item) ? item : grants.get(text(item))))
    if (found.includes(undefined)) return { name, refused: 'its permission grants are not in the export' }
    const permissionGrants = found.filter(isObject).map((grant) =>
      given({
        resource_uid: typeof grant['resource_uid'] === 'string' ? ownUid(grant['resource_uid']) : undefined,
        permission_types: list(grant['permission_types']),
      }),
    )
    return {
      name,
      fromPack: false,
      desired: given({ name, description: fields['description'], permission_grants: permissionGrants }),
    }
  },
  role_assignment(fields) {
    const name = text(fields['user'])
    if (fields['is_remote'] === true) return { name, skipped: 'it comes from a group mapping at each login' }
    return { name, fromPack: false, desired: { username: name, roles: [text(fields['role'])] } }
  },
  group_mapping(fields) {
    const name = text(fields['group'])
    return {
      name,
      fromPack: false,
      desired: given({
        group: name,
        roles: list(fields['roles']),
        description: fields['description'],
        enabled: fields['enabled'],
      }),
    }
  },
  trigger_type(fields) {
    const name = ownTriggerType(refOf(fields))
    if (name.startsWith('core.svc.')) return { name, skipped: 'svc has this trigger type' }
    return {
      name,
      fromPack: isOfPack(fields),
      desired: given({
        name: fields['name'],
        pack: fields['pack'],
        description: fields['description'],
        payload_schema: unescaped(fields['payload_schema']),
        parameters_schema: unescaped(fields['parameters_schema']),
        tags: tagsOf(fields),
      }),
    }
  },
  action(fields) {
    const name = refOf(fields)
    const missing = absentOf(fields, ['runner_type', 'pack', 'name'])
    if (missing.length > 0) return incomplete(name, missing, wholeExport)
    const runner = isObject(fields['runner_type']) ? fields['runner_type']['name'] : fields['runner_type']
    return {
      name,
      fromPack: isOfPack(fields),
      desired: given({
        name: fields['name'],
        pack: fields['pack'],
        description: fields['description'],
        enabled: fields['enabled'],
        runner_type: runner,
        entry_point: fields['entry_point'],
        parameters: ownTexts(unescaped(fields['parameters'])),
        output_schema: unescaped(fields['output_schema']),
        tags: tagsOf(fields),
        notify: unescaped(fields['notify']),
      }),
    }
  },
  rule: convertRule,
  action_alias(fields) {
    const name = refOf(fields)
    return {
      name,
      fromPack: isOfPack(fields),
      desired: given({
        name: fields['name'],
        pack: fields['pack'],
        description: fields['description'],
        enabled: fields['enabled'],
        action_ref: fields['action_ref'],
        formats: fields['formats'],
        ack: ownTexts(fields['ack']),
        result: ownTexts(fields['result']),
        extra: unescaped(fields['extra']),
        immutable_parameters: unescaped(fields['immutable_parameters']),
      }),
    }
  },
  policy(fields) {
    const name = refOf(fields)
    const missing = absentOf(fields, ['policy_type', 'resource_ref', 'name'])
    if (missing.length > 0) return incomplete(name, missing, wholeExport)
    return {
      name,
      fromPack: isOfPack(fields),
      desired: given({
        name: fields['name'],
        pack: fields['pack'],
        description: fields['description'],
        enabled: fields['enabled'],
        resource_ref: fields['resource_ref'],
        policy_type: fields['policy_type'],
        parameters: unescaped(fields['parameters']),
      }),
    }
  },
  sensor(fields) {
    const named = isGiven(fields['name']) ? fields : { ...fields, name: fields['class_name'] }
    // Only packs have sensors.
    return { name: refOf(named), fromPack: true, desired: given({ enabled: fields['enabled'] }) }
  },
}

/** @throws nothing: what cannot be taken over is refused with the reason */
export function convertRecord(kind: RecordKind, fields: Fields, lookups: Lookups): Converted {
  const converted = converters[kind](fields, lookups)
  return converted.name === '' ? { name: '(without a name)', refused: 'it has no name' } : converted
}

function convertKey(fields: Fields, { decrypt, now }: Lookups): Converted {
  const rawName = text(fields['name'])
  const scopeGiven = text(fields['scope'])
  const isUser = /(?:^|\.)user$/.test(scopeGiven)
  // The database has the owner in the name, answers of the API beside it.
  const inName = isUser && !isGiven(fields['user']) ? rawName.indexOf(':') : -1
  const user = inName === -1 ? text(fields['user']) : rawName.slice(0, inName)
  const key = rawName.slice(inName + 1)
  const name = isUser ? `user:${user}:${key}` : `system:${key}`
  if (key === '') return { name: '', refused: '' }
  if (scopeGiven !== '' && !/^(?:st2kv\.|svckv\.)?(?:system|user)$/.test(scopeGiven)) {
    return { name, refused: 'its scope is neither system nor user' }
  }
  if (isUser && user === '') return { name, refused: 'it is of the user scope, and its user is missing' }
  const { value, secret, encrypted } = fields
  if (typeof value !== 'string') return { name, refused: 'its value is not text' }
  if (/^\*{8}$/.test(value) && secret === true)
    return { name, refused: 'its value is masked: export with --decrypt or as it is encrypted' }
  const expiry = timeOf(fields['expire_timestamp'])
  if (expiry !== undefined && microsOf(expiry) <= now) return { name, skipped: 'it has expired' }
  let plain = value
  // The database has no `encrypted`: there every secret is.
  if (encrypted === true || (secret === true && encrypted === undefined)) {
    const opened = decrypt(value)
    if ('problem' in opened) return { name, refused: `its value cannot be decrypted: ${opened.problem}` }
    plain = opened.plain
  }
  return {
    name,
    fromPack: false,
    desired: {
      ...given({
        name: key,
        scope: isUser ? 'user' : 'system',
        user: isUser ? user : undefined,
        description: fields['description'],
        secret: secret === true || encrypted === true,
        expires: expiry,
      }),
      // A key may be empty.
      value: plain,
    },
  }
}

function convertRule(fields: Fields, { triggers }: Lookups): Converted {
  const name = refOf(fields)
  const missing = absentOf(fields, ['trigger', 'action', 'name'])
  if (missing.length > 0) return incomplete(name, missing, wholeExport)
  const { trigger: written, action } = fields
  const trigger = isObject(written) ? written : (triggers.get(text(written)) ?? { type: text(written) })
  const type = ownTriggerType(text(trigger['type']) || text(trigger['ref']))
  if (/^core\.[0-9a-f]{8}-[0-9a-f-]{27}$/.test(type)) {
    return { name, refused: `its trigger ${type} is not in the export: dump the collection trigger_d_b too` }
  }
  if (!isObject(action) || !isGiven(action['ref'])) return { name, refused: 'its action has no ref' }
  const ruleType = isObject(fields['type']) ? text(fields['type']['ref']) : ''
  return {
    name,
    fromPack: isOfPack(fields),
    desired: given({
      name: fields['name'],
      pack: fields['pack'],
      description: fields['description'],
      enabled: fields['enabled'] === true,
      type: ruleType === '' || ruleType === 'standard' ? undefined : { ref: ruleType },
      trigger: { type, parameters: unescaped(trigger['parameters']) ?? {} },
      criteria: ownTexts(unescaped(fields['criteria'])) ?? {},
      action: { ref: text(action['ref']), parameters: ownTexts(unescaped(action['parameters'])) ?? {} },
      tags: tagsOf(fields),
    }),
  }
}

const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

function tagsOf(fields: Fields): unknown[] | undefined {
  const tags = list(fields['tags'])
    .filter(isObject)
    .map(({ name, value }) => ({ name, value }))
  return tags.length === 0 ? undefined : tags
}

/** Keys of the datastore are named by their scope in the ids of grants. */
const ownUid = (uid: string): string => uid.replace(/^key_value_pair:st2kv\./, 'key_value_pair:svckv.')

/** The database may not have dots and dollars in keys, and writes other characters for them. */
export function unescaped(value: unknown): unknown {
  if (Buffer.isBuffer(value)) return value
  if (Array.isArray(value)) return value.map(unescaped)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key.replaceAll('\uFF0E', '.').replaceAll('\uFF04', '$'),
      unescaped(inner),
    ]),
  )
}

/** Times are text, or whole microseconds in some collections. */
function timeOf(value: unknown): string | undefined {
  return typeof value === 'string' ? parseTimestamp(ownText(value)) : undefined
}
