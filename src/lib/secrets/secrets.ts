/** Hiding secret parameter values from whoever may see the rest (contract 00, 0.15). */
import { compilePattern, isObject, MASK, type JsonSchema } from '../schema/index.ts'

/** What is put in the place of a secret. @param counterpart what another value has there */
export type Replace = (secret: unknown, counterpart: unknown) => unknown

/** A copy of the value with every secret in it replaced. */
export type ReplaceSecrets = (value: unknown, replace: Replace, counterpart?: unknown) => unknown

const hide: Replace = () => MASK

const isSecret: ReplaceSecrets = (value, replace, counterpart) => replace(value, counterpart)

/** Finds what a schema marks as secret. Undefined when that is nothing, which is the usual case and then costs nothing. */
export function compileSecrets(schema: JsonSchema): ReplaceSecrets | undefined {
  return secretsOf(schema)
}

/** For `Replace`: what a client has not seen stays as it is stored. */
export const keepMasked: Replace = (secret, stored) => (secret === MASK && stored !== undefined ? stored : secret)

/** A copy of an object with a mask in the place of every secret, or the object itself. */
export function maskSecrets(
  object: Record<string, unknown>,
  secrets: ReplaceSecrets | undefined,
): Record<string, unknown> {
  if (secrets === undefined) return object
  const masked = secrets(object, hide)
  return isObject(masked) ? masked : {}
}

/** The secrets themselves; what is null is not there. */
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
    // Text where a container belongs is the container not yet parsed, secrets and all.
    if (typeof value !== 'object') return replace(value, counterpart)
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
    return Object.fromEntries(
      Object.entries(value).map(([name, inner]) => {
        const other = isObject(counterpart) && Object.hasOwn(counterpart, name) ? counterpart[name] : undefined
        return [name, partsOf(name).reduce((replaced, part) => part(replaced, replace, other), inner)]
      }),
    )
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
