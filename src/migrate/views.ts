/** Records of the server and of exports in one form, so that they can be compared. */
import { isObject } from '../lib/schema/index.ts'
import { ownTexts } from './names.ts'
import type { RecordKind } from './records.ts'
import type { Fields } from './read-records.ts'

const definition = ['name', 'pack', 'description'] as const

/** Attributes that an import sets. */
const attributes: Readonly<Record<RecordKind, readonly string[]>> = {
  user: ['name', 'is_service', 'nicknames'],
  key: ['name', 'description', 'secret', 'value', 'expires'],
  api_key: ['user', 'key_hash', 'metadata', 'enabled'],
  config: ['values'],
  role: ['name', 'description', 'permission_grants', 'enabled'],
  role_assignment: ['username', 'roles', 'description', 'enabled'],
  group_mapping: ['group', 'roles', 'description', 'enabled'],
  trigger_type: [...definition, 'payload_schema', 'parameters_schema', 'tags'],
  action: [...definition, 'enabled', 'runner_type', 'entry_point', 'parameters', 'output_schema', 'tags', 'notify'],
  rule: [...definition, 'enabled', 'type', 'trigger', 'criteria', 'action', 'tags'],
  action_alias: [...definition, 'enabled', 'action_ref', 'formats', 'ack', 'result', 'extra', 'immutable_parameters'],
  policy: [...definition, 'enabled', 'resource_ref', 'policy_type', 'parameters'],
  sensor: ['enabled'],
}

/** Kinds whose records are disabled unless they say otherwise. */
const offByDefault: ReadonlySet<RecordKind> = new Set(['rule'])
const hasEnabled = (kind: RecordKind): boolean => attributes[kind].includes('enabled')

/** Without what has no value, which is the same as absent. */
export function viewOf(kind: RecordKind, record: Fields): Fields {
  const view: Fields = {}
  for (const name of attributes[kind]) {
    const value = partOf(kind, name, record[name])
    if (!isEmpty(value)) view[name] = value
  }
  if (hasEnabled(kind))
    view['enabled'] = offByDefault.has(kind) ? record['enabled'] === true : record['enabled'] !== false
  return view
}

function partOf(kind: RecordKind, name: string, value: unknown): unknown {
  if (kind === 'rule' && isObject(value)) {
    if (name === 'type') return value['ref'] === 'standard' ? undefined : { ref: value['ref'] }
    if (name === 'trigger') return { type: value['type'], parameters: value['parameters'] ?? {} }
    if (name === 'action') return { ref: value['ref'], parameters: ownTexts(value['parameters'] ?? {}) }
  }
  return value
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === '' || value === false) return true
  if (Array.isArray(value)) return value.length === 0
  return isObject(value) && Object.keys(value).length === 0
}
