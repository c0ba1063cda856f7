/** StackStorm's names in requests and answers of the API: only where a record has a name, never in data. */
import { nameHere, ourName, theirName, type NameKind } from './names.ts'

/** Attributes of records that can hold a name: `name` of records of the pack `core` alone. */
const kinds: Readonly<Record<string, NameKind>> = {
  ref: 'triggerType',
  type: 'triggerType',
  trigger: 'triggerType',
  trigger_type: 'triggerType',
  trigger_types: 'triggerType',
  timer_type: 'triggerType',
  name: 'triggerName',
  scope: 'scope',
}

/** Attributes whose values are data of users, or schemas. */
const data: ReadonlySet<string> = new Set([
  'action',
  'body',
  'callback',
  'context',
  'criteria',
  'data',
  'entry_point',
  'liveaction',
  'metadata',
  'notify',
  'output',
  'output_schema',
  'parameters',
  'parameters_schema',
  'payload',
  'payload_schema',
  'result',
  'runner',
  'runner_parameters',
  'tags',
  'value',
  'vars',
])

/** `trigger_type:core:svc.webhook`, `trigger:core:svc.generic.inquiry:<md5>` */
const uid = /^(trigger_type|trigger):core:((?:st2|svc)\.[\w.]+)(:.*)?$/

type Rename = (kind: NameKind, name: string) => string | undefined

function renamedUid(text: string, rename: Rename): string {
  const [, type, name, rest = ''] = uid.exec(text) ?? []
  const other = name === undefined ? undefined : rename('triggerName', name)
  return type === undefined || other === undefined ? text : `${type}:core:${other}${rest}`
}

/** Attributes that have the name of a trigger type alone where executions are counted or looked for by it. */
const canBeNames: ReadonlySet<string> = new Set(['trigger', 'trigger_type'])

function renamedText(key: string, text: string, rename: Rename): string {
  if (key === 'uid') return renamedUid(text, rename)
  const kind = Object.hasOwn(kinds, key) ? kinds[key] : undefined
  const other = kind === undefined ? undefined : rename(kind, text)
  return other ?? (canBeNames.has(key) ? rename('triggerName', text) : undefined) ?? text
}

/** @returns the value itself, if it holds no such name */
function renamed(value: unknown, key: string, rename: Rename): unknown {
  if (typeof value === 'string') return renamedText(key, value, rename)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    const items: unknown[] = value.map((item: unknown) => renamed(item, key, rename))
    return items.some((item, i) => item !== value[i]) ? items : value
  }
  const prototype: unknown = Object.getPrototypeOf(value)
  // Numbers and written JSON are objects of classes.
  if (prototype !== Object.prototype && prototype !== null) return value
  let copy: Record<string, unknown> | undefined
  for (const [name, inner] of Object.entries(value)) {
    if (data.has(name) || (name === 'name' && (value as { pack?: unknown }).pack !== 'core')) continue
    const other = renamed(inner, name, rename)
    if (other !== inner) (copy ??= { ...value })[name] = other
  }
  return copy ?? value
}

/** A record with StackStorm's names. @returns the record itself, if it holds no name that differs */
export const withTheirNames = (record: unknown): unknown => renamed(record, '', theirName)

/** A body of a request with our names. @returns the body itself, if it holds none of StackStorm's */
export const withOurNames = (body: unknown): unknown => renamed(body, '', ourName)

/** In `filter` of executions: `trigger_type.ref:core.st2.webhook` */
const filterToken = /(?<=^|\s)((?:\w+\.)?(\w+):)(\S+)/g

function renamedToken(token: string, path: string, key: string, value: string): string {
  if (key === 'name' && !path.startsWith('trigger')) return token
  return `${path}${renamedText(key, value, ourName)}`
}

/**
 * The value of a query parameter or of a part of the path with our names.
 *
 * @param path of the route
 */
export function ourText(path: string, key: string, text: string): string {
  const isOfTriggers = path.startsWith('/trigger')
  if (key === 'name' && !isOfTriggers) return text
  if (key === 'filter') return text.replace(filterToken, renamedToken)
  return renamedText(isOfTriggers && (key === 'ref_or_id' || key === 'id') ? 'ref' : key, text, ourName)
}

/** About a query that is answered by our names alone: a sentence after a blank, or empty. As `ourText`. */
export function adviceOnQueryValue(path: string, key: string, text: string): string {
  for (const item of text.split(',')) {
    const name = item.trim()
    const own = ourText(path, key, name)
    if (own !== name) return ` ${nameHere(own)}`
  }
  return ''
}

const referenceInJson = /"(ref|trigger|trigger_type|type)":"(core\.svc\.[\w.]+)"/g

/** JSON text of records without data, with StackStorm's names. */
export function jsonWithTheirNames(json: string): string {
  if (!json.includes('core.svc.')) return json
  return json.replace(referenceInJson, (text, key: string, ref: string) => {
    const other = theirName('triggerType', ref)
    return other === undefined ? text : `"${key}":"${other}"`
  })
}
