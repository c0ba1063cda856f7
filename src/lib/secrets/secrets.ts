/** Masks secret parameter values by their schema (contract 00, 0.15). */
import { compilePattern, isObject, MASK, type JsonSchema } from '../schema/index.ts'
import { JsonNumber, mapObject } from '../json/index.ts'

/** Returns the replacement of a secret. @param counterpart the value at the same place in another value */
export type Replace = (secret: unknown, counterpart: unknown) => unknown

/** Returns a copy of the value with every secret replaced. */
export type ReplaceSecrets = (value: unknown, replace: Replace, counterpart?: unknown) => unknown

const hide: Replace = () => MASK

const isSecret: ReplaceSecrets = (value, replace, counterpart) => replace(value, counterpart)

/** Finds the secrets that a schema marks. Undefined: none, the usual case, which costs nothing. */
export function compileSecrets(schema: JsonSchema): ReplaceSecrets | undefined {
  return secretsOf(schema)
}

/** For `Replace`: a mask keeps the stored value. */
export const keepMasked: Replace = (secret, stored) => (secret === MASK && stored !== undefined ? stored : secret)

/** A copy of an object with every secret masked, or the object itself. */
export function maskSecrets(
  object: Record<string, unknown>,
  secrets: ReplaceSecrets | undefined,
): Record<string, unknown> {
  if (secrets === undefined) return object
  const masked = secrets(object, hide)
  return isObject(masked) ? masked : {}
}

/** The secret values that are not null. */
export function secretsIn(value: unknown, secrets: ReplaceSecrets | undefined): unknown[] {
  const found: unknown[] = []
  secrets?.(value, (secret) => {
    if (secret !== null && secret !== undefined) found.push(secret)
    return secret
  })
  return found
}

function secretsOf(schema: unknown): ReplaceSecrets | undefined {
  if (!isObject(schema)) return undefined
  if (schema['secret'] === true) return isSecret
  const parts = [
    secretsOfProperties(schema),
    secretsOfItems(schema),
    ...['anyOf', 'allOf', 'oneOf'].flatMap((keyword) => {
      const branches = schema[keyword]
      return Array.isArray(branches) ? branches.map(secretsOf) : []
    }),
  ].filter((part) => part !== undefined)
  if (parts.length === 0) return undefined
  return (value, replace, counterpart) => {
    if (value === null || value === undefined) return value
    // A text in place of a container is the unparsed container with its secrets.
    if (typeof value !== 'object' || value instanceof JsonNumber) return replace(value, counterpart)
    return parts.reduce<unknown>((replaced, part) => part(replaced, replace, counterpart), value)
  }
}

function secretsOfProperties(schema: Record<string, unknown>): ReplaceSecrets | undefined {
  const { properties, patternProperties, additionalProperties } = schema
  const byName = new Map<string, ReplaceSecrets | undefined>()
  for (const [name, property] of Object.entries(isObject(properties) ? properties : {}))
    byName.set(name, secretsOf(property))
  const byPattern: [(name: string) => boolean, ReplaceSecrets | undefined][] = []
  for (const [pattern, property] of Object.entries(isObject(patternProperties) ? patternProperties : {})) {
    const matcher = compilePattern(pattern)
    byPattern.push([(name) => matcher.test(name), secretsOf(property)])
  }
  const others = secretsOf(additionalProperties)
  const has = (secrets: ReplaceSecrets | undefined): boolean => secrets !== undefined
  if (![...byName.values()].some(has) && !byPattern.some(([, secrets]) => has(secrets)) && !has(others))
    return undefined

  const partsOf = (name: string): ReplaceSecrets[] => {
    const parts = byPattern.filter(([matches]) => matches(name)).map(([, secrets]) => secrets)
    if (byName.has(name)) parts.push(byName.get(name))
    else if (parts.length === 0) parts.push(others)
    return parts.filter((part) => part !== undefined)
  }
  return (value, replace, counterpart) => {
    if (!isObject(value)) return value
    return mapObject(value, (inner, name) => {
      const other = isObject(counterpart) && Object.hasOwn(counterpart, name) ? counterpart[name] : undefined
      return partsOf(name).reduce((replaced, part) => part(replaced, replace, other), inner)
    })
  }
}

function secretsOfItems(schema: Record<string, unknown>): ReplaceSecrets | undefined {
  const { items, additionalItems } = schema
  const other = (counterpart: unknown, i: number): unknown => (Array.isArray(counterpart) ? counterpart[i] : undefined)
  if (!Array.isArray(items)) {
    const secrets = secretsOf(items)
    if (secrets === undefined) return undefined
    return (value, replace, counterpart) =>
      Array.isArray(value) ? value.map((item, i) => secrets(item, replace, other(counterpart, i))) : value
  }
  const parts = items.map(secretsOf)
  const others = secretsOf(additionalItems)
  if (others === undefined && !parts.some((part) => part !== undefined)) return undefined
  return (value, replace, counterpart) => {
    if (!Array.isArray(value)) return value
    return value.map((item: unknown, i) => {
      const part = i < parts.length ? parts[i] : others
      return part === undefined ? item : part(item, replace, other(counterpart, i))
    })
  }
}
