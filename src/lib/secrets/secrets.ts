/** Masks secret parameter values by their schema (contract 00, 0.15). */
import { compilePattern, followReference, isObject, MASK, type JsonSchema } from '../schema/index.ts'
import { JsonNumber, mapObject } from '../json/index.ts'

/** Returns the replacement of a secret. @param counterpart the value at the same place in another value */
export type Replace = (secret: unknown, counterpart: unknown) => unknown

/** Returns a copy of the value with every secret replaced. */
export type ReplaceSecrets = (value: unknown, replace: Replace, counterpart?: unknown) => unknown

const hide: Replace = () => MASK

const isSecret: ReplaceSecrets = (value, replace, counterpart) => replace(value, counterpart)

/** Finds the secrets that a schema marks. Undefined: none, the usual case, which costs nothing. */
export function compileSecrets(schema: JsonSchema): ReplaceSecrets | undefined {
  return secretsOf(schema, { root: schema, referred: new Map() })
}

interface Context {
  root: JsonSchema
  /** What references lead to; undefined while it is compiled, because a schema may refer to itself. */
  referred: Map<string, ReplaceSecrets | undefined>
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

function secretsOf(schema: unknown, context: Context): ReplaceSecrets | undefined {
  if (!isObject(schema)) return undefined
  const reference = schema['$ref']
  if (typeof reference === 'string') return secretsOfReference(reference, context)
  if (schema['secret'] === true) return isSecret
  const parts = [
    secretsOfProperties(schema, context),
    secretsOfItems(schema, context),
    ...['anyOf', 'allOf', 'oneOf'].flatMap((keyword) => {
      const branches = schema[keyword]
      return Array.isArray(branches) ? branches.map((branch) => secretsOf(branch, context)) : []
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

/** A schema that refers to itself is followed as deep as the value is. */
function secretsOfReference(reference: string, context: Context): ReplaceSecrets | undefined {
  const { root, referred } = context
  if (referred.has(reference)) {
    const known = referred.get(reference)
    if (known !== undefined) return known
    return (value, replace, counterpart) => {
      const secrets = referred.get(reference)
      return secrets === undefined ? value : secrets(value, replace, counterpart)
    }
  }
  referred.set(reference, undefined)
  const secrets = secretsOf(followReference(root, { $ref: reference }), context)
  referred.set(reference, secrets)
  return secrets
}

function secretsOfProperties(schema: Record<string, unknown>, context: Context): ReplaceSecrets | undefined {
  const { properties, patternProperties, additionalProperties } = schema
  const byName = new Map<string, ReplaceSecrets | undefined>()
  for (const [name, property] of Object.entries(isObject(properties) ? properties : {}))
    byName.set(name, secretsOf(property, context))
  const byPattern: [(name: string) => boolean, ReplaceSecrets | undefined][] = []
  for (const [pattern, property] of Object.entries(isObject(patternProperties) ? patternProperties : {})) {
    const matcher = compilePattern(pattern)
    byPattern.push([(name) => matcher.test(name), secretsOf(property, context)])
  }
  const others = secretsOf(additionalProperties, context)
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

function secretsOfItems(schema: Record<string, unknown>, context: Context): ReplaceSecrets | undefined {
  const { items, additionalItems } = schema
  const other = (counterpart: unknown, i: number): unknown => (Array.isArray(counterpart) ? counterpart[i] : undefined)
  if (!Array.isArray(items)) {
    const secrets = secretsOf(items, context)
    if (secrets === undefined) return undefined
    return (value, replace, counterpart) =>
      Array.isArray(value) ? value.map((item, i) => secrets(item, replace, other(counterpart, i))) : value
  }
  const parts = items.map((item) => secretsOf(item, context))
  const others = secretsOf(additionalItems, context)
  if (others === undefined && !parts.some((part) => part !== undefined)) return undefined
  return (value, replace, counterpart) => {
    if (!Array.isArray(value)) return value
    return value.map((item: unknown, i) => {
      const part = i < parts.length ? parts[i] : others
      return part === undefined ? item : part(item, replace, other(counterpart, i))
    })
  }
}
