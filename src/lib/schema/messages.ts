/** The one sentence about a value that does not fit its schema (contract 00, 0.6). */
import type { ErrorObject } from 'ajv'
import { shown } from '../text/index.ts'
import { isExclusive, isNumber } from './exact.ts'
import { compileAnyPattern } from './pattern.ts'
import type { Schema } from './record.ts'
import { isObject, type SchemaProblem } from './types.ts'
import { keysOf, writeJson } from '../json/index.ts'

/** Replaces a secret value (contract 00, 0.15). */
export const MASK = '********'

const MAX_SHOWN_CHARS = 200
const MAX_SHOWN_NAMES = 10

export interface Root {
  schema: Schema
  hasSecrets: boolean
}

type AjvError = ErrorObject<string, Record<string, unknown>>

/** @param value what was checked, with exact numbers */
export function explain(errors: readonly ErrorObject[], root: Root, value: unknown): SchemaProblem {
  // The last one is the outermost: branches of a failed `anyOf` come before it. A bad property name is the exception.
  const last = errors.at(-1)
  if (last === undefined) return { path: [], message: 'the value does not fit its schema' }
  const inner = last.keyword === 'propertyNames' ? errors.at(-2) : undefined
  const error = (inner ?? last) as AjvError // params is an object for every keyword
  const path = pathOf(error.instancePath)
  const isSecret = inner === undefined && root.hasSecrets && isSecretAt(root.schema, path)
  const sentence = sentenceOf(
    error,
    isSecret ? MASK : represent(inner === undefined ? valueAt(value, path) : error.data),
  )
  const unexpected = error.keyword === 'additionalProperties' ? [String(error.params['additionalProperty'])] : []
  const missing = error.keyword === 'required' ? { missing: String(error.params['missingProperty']) } : {}
  return {
    path: [...path, ...unexpected],
    ...missing,
    message: path.length === 0 ? sentence : `${printPath(path)}: ${sentence}`,
  }
}

function sentenceOf(error: AjvError, value: string): string {
  const { keyword, params, data, schema, parentSchema } = error
  switch (keyword) {
    case 'required':
      return `${represent(params['missingProperty'])} is a required property`
    case 'additionalProperties':
      return sentenceOfUnexpected(error)
    case 'type': {
      const types = Array.isArray(params['type']) ? params['type'] : String(params['type']).split(',')
      return `${value} is not of type ${types.map((type) => `'${String(type)}'`).join(', ')}`
    }
    case 'enum':
      return `${value} is not one of ${represent(withoutAddedNull(schema))}`
    case 'const':
      return `${value} is not ${represent(schema)}, the only value allowed`
    case 'pattern': {
      const pattern = String(params['pattern'])
      const { maxChars, problem } = compileAnyPattern(pattern)
      if (problem !== undefined) return `${value} cannot be checked: ${problem}`
      const isLong = typeof data === 'string' && data.length > maxChars
      return `${value} does not match '${shown(pattern)}'${isLong ? ': it is too long to be matched' : ''}`
    }
    case 'minimum':
    case 'exclusiveMinimum':
      return isExclusive(keyword, parentSchema)
        ? `${value} is less than or equal to the minimum of ${String(schema)}`
        : `${value} is less than the minimum of ${String(schema)}`
    case 'maximum':
    case 'exclusiveMaximum':
      return isExclusive(keyword, parentSchema)
        ? `${value} is greater than or equal to the maximum of ${String(schema)}`
        : `${value} is greater than the maximum of ${String(schema)}`
    case 'minLength':
    case 'minItems':
      return schema === 1
        ? `${value} should be non-empty`
        : `${value} is too short; at least ${String(schema)} ${unitOf(keyword)} are needed`
    case 'maxLength':
    case 'maxItems':
      return `${value} is too long; at most ${String(schema)} ${unitOf(keyword)} are allowed`
    case 'minProperties':
      return `${value} does not have enough properties; at least ${String(params['limit'])} are needed`
    case 'maxProperties':
      return `${value} has too many properties; at most ${String(params['limit'])} are allowed`
    case 'uniqueItems':
      return `${value} has non-unique elements`
    case 'multipleOf':
      return `${value} is not a multiple of ${String(schema)}`
    case 'format':
      return `${value} is not a '${String(params['format'])}'`
    case 'anyOf':
      return `${value} is not valid under any of the given schemas`
    case 'oneOf':
      return Array.isArray(params['passingSchemas'])
        ? `${value} is valid under more than one of the given schemas`
        : `${value} is not valid under any of the given schemas`
    case 'not':
      return `${value} is what the schema excludes`
    case 'dependencies':
      return `${represent(params['missingProperty'])} is a dependency of ${represent(params['property'])}`
    case 'contains':
      return `${value} contains no element that fits the given schema`
    case 'false schema':
      return `${value} is not allowed here`
    default:
      return `${value} ${error.message ?? 'does not fit its schema'}`
  }
}

/** `lift` also allows null for everything optional; the message lists only the author's values. */
function withoutAddedNull(allowed: unknown): unknown {
  return Array.isArray(allowed) && allowed.length > 1 && allowed.at(-1) === null ? allowed.slice(0, -1) : allowed
}

function unitOf(keyword: string): string {
  return keyword.endsWith('Length') ? 'characters' : 'items'
}

function sentenceOfUnexpected(error: AjvError): string {
  const schema = isObject(error.parentSchema) ? error.parentSchema : {}
  const known = isObject(schema['properties']) ? schema['properties'] : {}
  const allowed = isObject(schema['patternProperties']) ? Object.keys(schema['patternProperties']) : []
  const unexpected: string[] = []
  for (const name of Object.keys(isObject(error.data) ? error.data : {})) {
    if (Object.hasOwn(known, name) || allowed.some((pattern) => compileAnyPattern(pattern).test(name))) continue
    unexpected.push(name)
    if (unexpected.length > MAX_SHOWN_NAMES) break
  }
  const names = unexpected.slice(0, MAX_SHOWN_NAMES).map((name) => represent(name))
  const list = names.join(', ') + (unexpected.length > MAX_SHOWN_NAMES ? ', …' : '')
  if (allowed.length > 0) {
    const regexes = allowed.map((pattern) => `'${shown(pattern)}'`).join(', ')
    return `${list} ${names.length === 1 ? 'does' : 'do'} not match any of the regexes: ${regexes}`
  }
  return `Additional properties are not allowed (${list} ${names.length === 1 ? 'was' : 'were'} unexpected)`
}

function pathOf(pointer: string): string[] {
  if (pointer === '') return []
  return pointer
    .slice(1)
    .split('/')
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'))
}

function valueAt(root: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((value, segment) => (value as Record<string, unknown>)[segment], root)
}

function printPath(path: readonly string[]): string {
  return shown(
    path.map((segment, i) => (/^\d+$/.test(segment) ? `[${segment}]` : `${i === 0 ? '' : '.'}${segment}`)).join(''),
  )
}

/** Whether a value lies at or below a schema marked `secret`; true in doubt. */
function isSecretAt(root: Schema, path: readonly string[]): boolean {
  let schema: unknown = root
  for (const segment of path) {
    if (!isObject(schema)) return true
    if (schema['secret'] === true) return true
    schema = subschemaOf(schema, segment)
  }
  return !isObject(schema) || writeJson(schema).includes('"secret":true')
}

function subschemaOf(schema: Record<string, unknown>, segment: string): unknown {
  const { properties, patternProperties, additionalProperties, items } = schema
  if (isObject(properties) && Object.hasOwn(properties, segment)) return properties[segment]
  if (isObject(patternProperties)) {
    for (const [pattern, subschema] of Object.entries(patternProperties)) {
      if (compileAnyPattern(pattern).test(segment)) return subschema
    }
  }
  if (isObject(additionalProperties)) return additionalProperties
  return Array.isArray(items) ? items[Number(segment)] : items
}

/**
 * A value as Python prints it (`'text'`, `None`, `['a', 1]`, `{'k': True}`), cut after `maxChars` characters. It does
 * not walk the part that is cut.
 */
export function represent(value: unknown, maxChars: number = MAX_SHOWN_CHARS): string {
  const parts: string[] = []
  let room = maxChars
  const add = (text: string): boolean => {
    parts.push(text)
    room -= text.length
    return room > 0
  }
  const walk = (inner: unknown): boolean => {
    if (inner === null || inner === undefined) return add('None')
    if (typeof inner === 'boolean') return add(inner ? 'True' : 'False')
    if (typeof inner === 'string') return add(quote(inner.slice(0, room + 1)))
    if (Array.isArray(inner)) {
      if (!add('[')) return false
      for (let i = 0; i < inner.length; i++) {
        if ((i > 0 && !add(', ')) || !walk(inner[i])) return false
      }
      return add(']')
    }
    if (isNumber(inner) || typeof inner === 'bigint') return add(String(inner))
    if (!isObject(inner)) return add(`<${typeof inner}>`)
    if (!add('{')) return false
    let isFirst = true
    for (const name of keysOf(inner)) {
      if (!isFirst && !add(', ')) return false
      isFirst = false
      if (!add(`${quote(name.slice(0, room + 1))}: `) || !walk(inner[name])) return false
    }
    return add('}')
  }
  walk(value)
  const text = parts.join('')
  return text.length <= maxChars ? text : `${text.slice(0, maxChars)}…`
}

const escapes: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t', '\\': '\\\\' }

function quote(text: string): string {
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'"
  const inner = text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\\]/gu, (character) => {
    const known = escapes[character]
    if (known !== undefined) return known
    const code = character.codePointAt(0) ?? 0
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`
  })
  return mark + (mark === "'" ? inner.replaceAll("'", "\\'") : inner) + mark
}
