/** Values of a configuration and its schema (contract 02, 2.9): defaults, validation and templates. */
import {
  checkParameterSchema,
  compileDraft4,
  compilePattern,
  isObject,
  type JsonSchema,
  type SchemaProblem,
} from '../../lib/schema/index.ts'
import { isTemplate } from '../../lib/template/index.ts'
import type { ConfigAttributes } from './types.ts'
import { mapObject } from '../../lib/json/index.ts'

/** A template that reads the datastore. */
export const isDynamic = (value: unknown): value is string => typeof value === 'string' && isTemplate(value)

const MAX_ATTRIBUTES = 500

/** Problems of the schema of a configuration. @param given as its author wrote it */
export function problemsOfAttributes(given: unknown): SchemaProblem[] {
  if (!isObject(given)) return [{ path: [], message: 'a mapping of names to schemas is needed' }]
  const names = Object.keys(given)
  if (names.length > MAX_ATTRIBUTES) {
    return [{ path: [], message: `there are more than ${MAX_ATTRIBUTES} attributes` }]
  }
  return names.flatMap((name) => {
    const problem = checkParameterSchema(given[name])
    return problem === undefined ? [] : [{ path: [name, ...problem.path], message: `${name}: ${problem.message}` }]
  })
}

/** What of a schema is about one part of a value; undefined: nothing is known of that part. */
function schemaBelow(schema: unknown, key: string): unknown {
  if (!isObject(schema)) return undefined
  const { properties, patternProperties, additionalProperties } = schema
  if (isObject(properties) && Object.hasOwn(properties, key)) return properties[key]
  if (isObject(patternProperties)) {
    for (const [pattern, below] of Object.entries(patternProperties)) {
      if (compilePattern(pattern).test(key)) return below
    }
  }
  return additionalProperties
}

function schemaOfItem(schema: unknown, index: number): unknown {
  if (!isObject(schema)) return undefined
  const { items, additionalItems } = schema
  if (!Array.isArray(items)) return items
  return index < items.length ? items[index] : additionalItems
}

const asSchema = (attributes: ConfigAttributes): JsonSchema => ({ type: 'object', properties: attributes })

/**
 * The values with the defaults of the schema where there are none.
 *
 * @param makesObjects also where the whole object around a default is missing
 */
export function fillDefaults(
  attributes: ConfigAttributes,
  values: Record<string, unknown>,
  makesObjects: boolean,
): Record<string, unknown> {
  const fill = (schema: unknown, value: unknown): unknown => {
    if (Array.isArray(value)) return value.map((item, i) => fill(schemaOfItem(schema, i), item))
    if (!isObject(value) || !isObject(schema)) return value
    const filled = Object.fromEntries(
      Object.entries(value).map(([key, inner]) => [key, fill(schemaBelow(schema, key), inner)]),
    )
    for (const [key, below] of Object.entries(isObject(schema['properties']) ? schema['properties'] : {})) {
      if (Object.hasOwn(filled, key) || !isObject(below)) continue
      if (Object.hasOwn(below, 'default')) filled[key] = fill(below, below['default'])
      else if (makesObjects && isObject(below['properties'])) {
        const made = fill(below, {})
        if (isObject(made) && Object.keys(made).length > 0) filled[key] = made
      }
    }
    return filled
  }
  return fill(asSchema(attributes), values) as Record<string, unknown> // of an object it makes one
}

/**
 * What is wrong with values, or undefined. A template passes for any text: what it stands for is known when it is
 * needed. Names that the schema does not have are allowed.
 */
export function problemOfValues(
  attributes: ConfigAttributes,
  values: Record<string, unknown>,
): SchemaProblem | undefined {
  const filled = fillDefaults(attributes, values, false)
  const decrypting = findDecryption(attributes, filled)
  if (decrypting !== undefined) {
    const message =
      'values of secret attributes are decrypted anyway; write {{ svckv.system.<key> }} without decrypt_kv'
    return { path: decrypting, message }
  }
  const schema = relax(asSchema(attributes), filled)
  const problem = compileDraft4(schema as JsonSchema).find(filled)
  if (problem === undefined) return undefined
  return { path: attributeOf(schema, filled, problem), message: problem.message }
}

/** Where something is missing, the path to that and not to what it is missing in. */
function attributeOf(schema: unknown, values: unknown, { path, message }: SchemaProblem): string[] {
  if (!message.endsWith(' is a required property')) return path
  let [below, value] = [schema, values]
  for (const key of path) {
    below = Array.isArray(value) ? schemaOfItem(below, Number(key)) : schemaBelow(below, key)
    value = isObject(value) || Array.isArray(value) ? (value as Record<string, unknown>)[key] : undefined
  }
  if (!isObject(below) || !isObject(below['properties']) || !isObject(value)) return path
  const [present, listed] = [value, below['required']]
  const missing = Object.entries(below['properties']).find(
    ([key, property]) =>
      !Object.hasOwn(present, key) &&
      ((isObject(property) && property['required'] === true) || (Array.isArray(listed) && listed.includes(key))),
  )
  return missing === undefined ? path : [...path, missing[0]]
}

/** The schema for these values, in which a template may stand wherever text may. */
function relax(schema: unknown, value: unknown): unknown {
  if (!isObject(schema)) return schema
  if (isDynamic(value)) {
    const types = [schema['type'] ?? 'string'].flat()
    if (!types.includes('string')) return schema
    const { required, secret } = schema
    return {
      type: 'string',
      ...(required === undefined ? {} : { required }),
      ...(secret === undefined ? {} : { secret }),
    }
  }
  if (!hasDynamic(value)) return schema
  if (Array.isArray(value)) {
    if (schema['items'] === undefined) return schema
    return { ...schema, items: value.map((item, i) => relax(schemaOfItem(schema, i) ?? {}, item)) }
  }
  if (!isObject(value)) return schema
  // Every name that is there gets its own schema, so that none is found by a pattern and checked as it was.
  const { patternProperties: _, properties, ...others } = schema
  const known: Record<string, unknown> = isObject(properties) ? { ...properties } : {}
  for (const [key, inner] of Object.entries(value)) {
    const below = schemaBelow(schema, key)
    if (isObject(below)) known[key] = relax(below, inner)
  }
  return { ...others, properties: known }
}

function hasDynamic(value: unknown): boolean {
  if (typeof value === 'string') return isDynamic(value)
  if (typeof value !== 'object' || value === null) return false
  return Object.values(value).some(hasDynamic)
}

/** A copy of the values with every leaf replaced. @param replace gets values that are no lists or mappings */
export function mapLeaves(
  attributes: ConfigAttributes,
  values: Record<string, unknown>,
  replace: (leaf: { path: string[]; value: unknown; isSecret: boolean }) => unknown,
): Record<string, unknown> {
  const walk = (schema: unknown, value: unknown, path: string[], isSecret: boolean): unknown => {
    const hidden = isSecret || (isObject(schema) && schema['secret'] === true)
    if (Array.isArray(value)) {
      return value.map((item, i) => walk(schemaOfItem(schema, i), item, [...path, String(i)], hidden))
    }
    if (isObject(value)) {
      return mapObject(value, (inner, key) => walk(schemaBelow(schema, key), inner, [...path, key], hidden))
    }
    return replace({ path, value, isSecret: hidden })
  }
  return walk(asSchema(attributes), values, [], false) as Record<string, unknown> // of an object it makes one
}

/** The path of a secret value that says itself how it is decrypted. */
function findDecryption(attributes: ConfigAttributes, values: Record<string, unknown>): string[] | undefined {
  let found: string[] | undefined
  mapLeaves(attributes, values, ({ path, value, isSecret }) => {
    if (isSecret && isDynamic(value) && /\bdecrypt_kv\b/.test(value)) found ??= path
    return value
  })
  return found
}
