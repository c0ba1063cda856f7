/** Hiding secret parameter values from whoever may see the rest (contract 00, 0.15). */
import { compilePattern, isObject, MASK, type ParameterSchema } from '../../schema.ts'

/** Returns the value itself when nothing in it is secret, else a copy with masks in it. */
export type Mask = (value: unknown) => unknown

const hidden: Mask = () => MASK

/**
 * Makes the mask of a set of parameters. Undefined when no schema hides anything, which is the usual case and then
 * costs nothing.
 */
export function compileMask(parameters: Readonly<Record<string, ParameterSchema>>): Mask | undefined {
  return maskOfProperties({ properties: parameters })
}

/** A copy of the parameters with every secret value replaced, or the parameters themselves. */
export function maskParameters(parameters: Record<string, unknown>, mask: Mask | undefined): Record<string, unknown> {
  if (mask === undefined) return parameters
  const masked = mask(parameters)
  return isObject(masked) ? masked : {}
}

function maskOf(schema: unknown): Mask | undefined {
  if (!isObject(schema)) return undefined
  if (schema['secret'] === true) return hidden
  const masks = [
    maskOfProperties(schema),
    maskOfItems(schema),
    ...['anyOf', 'allOf', 'oneOf'].flatMap((keyword) => {
      const branches = schema[keyword]
      return Array.isArray(branches) ? branches.map(maskOf) : []
    }),
  ].filter((mask) => mask !== undefined)
  if (masks.length === 0) return undefined
  return (value) => {
    if (value === null || value === undefined) return value
    // Text where a container belongs is the container not yet parsed, secrets and all.
    if (typeof value !== 'object') return MASK
    return masks.reduce<unknown>((masked, mask) => mask(masked), value)
  }
}

function maskOfProperties(schema: Record<string, unknown>): Mask | undefined {
  const { properties, patternProperties, additionalProperties } = schema
  const byName = new Map<string, Mask | undefined>()
  for (const [name, property] of Object.entries(isObject(properties) ? properties : {}))
    byName.set(name, maskOf(property))
  const byPattern: [(name: string) => boolean, Mask | undefined][] = []
  for (const [pattern, property] of Object.entries(isObject(patternProperties) ? patternProperties : {})) {
    const matcher = compilePattern(pattern)
    byPattern.push([(name) => matcher.test(name), maskOf(property)])
  }
  const others = maskOf(additionalProperties)
  const hides = (mask: Mask | undefined): boolean => mask !== undefined
  if (![...byName.values()].some(hides) && !byPattern.some(([, mask]) => hides(mask)) && !hides(others))
    return undefined

  const masksOf = (name: string): Mask[] => {
    const masks = byPattern.filter(([matches]) => matches(name)).map(([, mask]) => mask)
    if (byName.has(name)) masks.push(byName.get(name))
    else if (masks.length === 0) masks.push(others)
    return masks.filter((mask) => mask !== undefined)
  }
  return (value) => {
    if (!isObject(value)) return value
    return Object.fromEntries(
      Object.entries(value).map(([name, inner]) => [name, masksOf(name).reduce((masked, mask) => mask(masked), inner)]),
    )
  }
}

function maskOfItems(schema: Record<string, unknown>): Mask | undefined {
  const { items, additionalItems } = schema
  if (!Array.isArray(items)) {
    const mask = maskOf(items)
    return mask === undefined ? undefined : (value) => (Array.isArray(value) ? value.map(mask) : value)
  }
  const masks = items.map(maskOf)
  const others = maskOf(additionalItems)
  if (others === undefined && !masks.some((mask) => mask !== undefined)) return undefined
  return (value) => {
    if (!Array.isArray(value)) return value
    return value.map((item: unknown, i) => ((i < masks.length ? masks[i] : others) ?? identity)(item))
  }
}

const identity: Mask = (value) => value
