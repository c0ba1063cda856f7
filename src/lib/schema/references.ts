/** References within a schema: `{$ref: '#/properties/site'}`. */
import { isObject } from './types.ts'

/** References that lead to references. */
const MAX_HOPS = 20

/** Schemas that one value may be checked against, each as often as it counts. */
const MAX_VISITS = 50_000
/** Of schemas and values within each other. */
const MAX_DEPTH = 500

export function hasReference(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (Object.hasOwn(value, '$ref')) return true
  return Object.values(value).some(hasReference)
}

/** The schema that a reference stands for, or the schema itself; undefined: the reference leads nowhere, or in a circle. */
export function followReference(root: unknown, schema: unknown): unknown {
  let found = schema
  for (let hops = 0; isObject(found) && typeof found['$ref'] === 'string'; hops++) {
    if (hops >= MAX_HOPS) return undefined
    found = locate(root, found['$ref'])
  }
  return found
}

function locate(root: unknown, reference: string): unknown {
  if (reference !== '#' && !reference.startsWith('#/')) return undefined
  return reference
    .split('/')
    .slice(1)
    .map((part) => decoded(part).replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce<unknown>(
      (place, key) =>
        typeof place === 'object' && place !== null && Object.hasOwn(place, key)
          ? (place as Record<string, unknown>)[key]
          : undefined,
      root,
    )
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/**
 * Whether checking the value costs too much: references that are used twice and nest double the time on each level.
 *
 * @param root plain draft 4
 */
export function costsTooMuch(root: unknown, value: unknown): boolean {
  let visits = 0
  const walk = (given: unknown, inner: unknown, depth: number): boolean => {
    const schema = followReference(root, given)
    // A circle.
    if (schema === undefined && given !== undefined) return true
    visits += 1
    if (visits > MAX_VISITS || depth > MAX_DEPTH) return true
    if (!isObject(schema)) return false
    const { anyOf, allOf, oneOf, not, dependencies } = schema
    const inPlace = [anyOf, allOf, oneOf, not === undefined ? [] : [not]].flatMap((all) =>
      Array.isArray(all) ? all : [],
    )
    if (isObject(dependencies)) inPlace.push(...Object.values(dependencies))
    if (inPlace.some((one) => walk(one, inner, depth + 1))) return true
    if (Array.isArray(inner)) {
      const { items, additionalItems } = schema
      const schemaOf = (i: number): unknown => (Array.isArray(items) ? (items[i] ?? additionalItems) : items)
      return inner.some((item, i) => walk(schemaOf(i), item, depth + 1))
    }
    if (!isObject(inner)) return false
    const { properties, patternProperties, additionalProperties } = schema
    // Each pattern may fit each name.
    const others = [...Object.values(isObject(patternProperties) ? patternProperties : {}), additionalProperties]
    return Object.entries(inner).some(([key, each]) => {
      const own = isObject(properties) && Object.hasOwn(properties, key) ? [properties[key]] : []
      return [...own, ...others].some((one) => walk(one, each, depth + 1))
    })
  }
  return walk(root, value, 0)
}
