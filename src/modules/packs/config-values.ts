/** Values of a configuration and its schema (contract 02, 2.9): defaults, validation and templates. */
import {
  checkParameterSchema,
  compileDraft4,
  compilePattern,
  createSchemaRoom,
  followReference,
  hasReference,
  isObject,
  type JsonSchema,
  type SchemaProblem,
} from '../../lib/schema/index.ts'
import type { ConfigAttributes } from './types.ts'
import { mapObject } from '../../lib/json/index.ts'

/** A template, valid or not: text with its marks cannot be written in another way. */
export const isDynamic = (value: unknown): value is string =>
  typeof value === 'string' && (value.includes('{{') || value.includes('{%'))

const MAX_ATTRIBUTES = 500

/** Problems of the schema of a configuration. @param given as its author wrote it */
export function problemsOfAttributes(given: unknown): SchemaProblem[] {
  if (!isObject(given)) return [{ path: [], message: 'a mapping of names to schemas is needed' }]
  const names = Object.keys(given)
  if (names.length > MAX_ATTRIBUTES) {
    return [{ path: [], message: `there are more than ${MAX_ATTRIBUTES} attributes` }]
  }
  const problems = names.flatMap((name) => {
    const problem = checkParameterSchema(given[name], createSchemaRoom(), !hasReference(given[name]))
    return problem === undefined ? [] : [{ path: [name, ...problem.path], message: `${name}: ${problem.message}` }]
  })
  if (problems.length > 0 || !hasReference(given)) return problems
  try {
    compileDraft4(asSchema(given as ConfigAttributes)) // each is a schema
    return []
  } catch (error) {
    return [{ path: [], message: error instanceof Error ? error.message : 'it cannot be compiled' }]
  }
}

/** What of a schema is about one part of a value; undefined: nothing is known of that part. */
function schemaBelow(root: unknown, given: unknown, key: string): unknown {
  const schema = followReference(root, given)
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

function schemaOfItem(root: unknown, given: unknown, index: number): unknown {
  const schema = followReference(root, given)
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
  const root = asSchema(attributes)
  const fill = (given: unknown, value: unknown): unknown => {
    const schema = followReference(root, given)
    if (Array.isArray(value)) return value.map((item, i) => fill(schemaOfItem(root, schema, i), item))
    if (!isObject(value) || !isObject(schema)) return value
    const filled = Object.fromEntries(
      Object.entries(value).map(([key, inner]) => [key, fill(schemaBelow(root, schema, key), inner)]),
    )
    for (const [key, below] of Object.entries(isObject(schema['properties']) ? schema['properties'] : {})) {
      if (Object.hasOwn(filled, key) || !isObject(below)) continue
      if (Object.hasOwn(below, 'default')) filled[key] = fill(below, below['default'])
      // As the incumbent: an object whose parts are described is there, be it empty.
      else if (makesObjects && isDescribedObject(below)) filled[key] = fill(below, {})
    }
    return filled
  }
  return fill(root, values) as Record<string, unknown> // of an object it makes one
}

const isDescribedObject = (schema: Record<string, unknown>): boolean =>
  isObject(schema['properties']) ||
  (schema['type'] === 'object' && ['patternProperties', 'additionalProperties'].some((key) => isObject(schema[key])))

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
  const root = asSchema(attributes)
  const schema = relax(root, root, filled)
  const problem = compileDraft4(schema as JsonSchema).find(filled)
  if (problem === undefined) return undefined
  return { path: attributeOf(root, schema, filled, problem), message: problem.message }
}

/** Where something is missing, the path to that and not to what it is missing in. */
function attributeOf(root: unknown, schema: unknown, values: unknown, { path, message }: SchemaProblem): string[] {
  if (!message.endsWith(' is a required property')) return path
  let [below, value] = [schema, values]
  for (const key of path) {
    below = Array.isArray(value) ? schemaOfItem(root, below, Number(key)) : schemaBelow(root, below, key)
    value = isObject(value) || Array.isArray(value) ? (value as Record<string, unknown>)[key] : undefined
  }
  below = followReference(root, below)
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
function relax(root: unknown, given: unknown, value: unknown): unknown {
  if (!hasDynamic(value)) return given
  const schema = followReference(root, given)
  if (!isObject(schema)) return given
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
  if (Array.isArray(value)) {
    if (schema['items'] === undefined) return schema
    return { ...schema, items: value.map((item, i) => relax(root, schemaOfItem(root, schema, i) ?? {}, item)) }
  }
  if (!isObject(value)) return schema
  // Every name that is there gets its own schema, so that none is found by a pattern and checked as it was.
  const { patternProperties: _, properties, ...others } = schema
  const known: Record<string, unknown> = isObject(properties) ? { ...properties } : {}
  for (const [key, inner] of Object.entries(value)) {
    const below = schemaBelow(root, schema, key)
    if (isObject(below)) known[key] = relax(root, below, inner)
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
  const root = asSchema(attributes)
  const walk = (given: unknown, value: unknown, path: string[], isSecret: boolean): unknown => {
    const schema = followReference(root, given)
    const hidden = isSecret || (isObject(schema) && schema['secret'] === true)
    if (Array.isArray(value)) {
      return value.map((item, i) => walk(schemaOfItem(root, schema, i), item, [...path, String(i)], hidden))
    }
    if (isObject(value)) {
      return mapObject(value, (inner, key) => walk(schemaBelow(root, schema, key), inner, [...path, key], hidden))
    }
    return replace({ path, value, isSecret: hidden })
  }
  return walk(root, values, [], false) as Record<string, unknown> // of an object it makes one
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
