/**
 * Checks of numbers that a JavaScript number does not carry. The library knows JavaScript numbers only: it gets a copy
 * with the nearest ones, and the keywords that compare values look up the exact ones.
 */
import type { Ajv, SchemaValidateFunction } from 'ajv'
import { JsonNumber, nearestNumber, toNumeric } from '../json/index.ts'
import { isObject } from './types.ts'

/** Copy of a list or an object → its original. */
const originals = new WeakMap<object, object>()

/** The value if every number in it is a JavaScript number, else a copy with the nearest ones. */
export function nearestCopy(value: unknown): unknown {
  if (value instanceof JsonNumber) return nearest(value)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    let list: unknown[] | undefined
    for (let index = 0; index < value.length; index++) {
      const item: unknown = value[index]
      // Once per item: a second look on each level doubles the time with the depth.
      const replaced = nearestCopy(item)
      if (replaced === item) continue
      list ??= [...(value as unknown[])]
      list[index] = replaced
    }
    if (list === undefined) return value
    originals.set(list, value)
    return list
  }
  let copy: Record<string, unknown> | undefined
  for (const name of Object.keys(value)) {
    const inner = (value as Record<string, unknown>)[name]
    const replaced = nearestCopy(inner)
    if (replaced === inner) continue
    copy ??= { ...value }
    copy[name] = replaced
  }
  if (copy === undefined) return value
  originals.set(copy, value)
  return copy
}

/** Whole numbers have no largest one; the library refuses infinity. */
function nearest(value: JsonNumber): number {
  const number = Number(value.text)
  return Math.max(-Number.MAX_VALUE, Math.min(Number.MAX_VALUE, number))
}

/**
 * JavaScript numbers for the properties that a schema declares as numbers, such as `ttl: 60.0`, for code that computes
 * with them.
 *
 * @param object fits the schema
 */
export function nearestDeclared(object: Record<string, unknown>, schema: object): Record<string, unknown> {
  let copy: Record<string, unknown> | undefined
  const properties = 'properties' in schema && isObject(schema.properties) ? schema.properties : {}
  for (const [name, declared] of Object.entries(properties)) {
    if (!Object.hasOwn(object, name) || !(object[name] instanceof JsonNumber) || !declaresNumber(declared)) continue
    copy ??= { ...object }
    copy[name] = nearestNumber(object[name])
  }
  return copy ?? object
}

function declaresNumber(schema: unknown): boolean {
  if (!isObject(schema)) return false
  const { type, anyOf } = schema
  const isNamed = [type].flat().some((name) => name === 'integer' || name === 'number')
  return isNamed || (Array.isArray(anyOf) && anyOf.some(declaresNumber))
}

export type DataContext = Parameters<SchemaValidateFunction>[3]

/** The original of a value that the library passes to a keyword. */
export function exactOf(data: unknown, context: DataContext): unknown {
  if (typeof data === 'object' && data !== null) return originals.get(data) ?? data
  if (typeof data !== 'number' || context === undefined) return data
  const container: unknown = context.parentData
  const original = typeof container === 'object' && container !== null ? originals.get(container) : undefined
  if (original === undefined) return data
  return (original as Record<string | number, unknown>)[context.parentDataProperty]
}

/** Bounds of the schema language and what they forbid. `exclusive` in draft 4: a boolean beside the bound. */
const bounds: Readonly<
  Record<string, (value: number | bigint, bound: number | bigint, isExclusive: boolean) => boolean>
> = {
  minimum: (value, bound, isExclusive) => (isExclusive ? value > bound : value >= bound),
  maximum: (value, bound, isExclusive) => (isExclusive ? value < bound : value <= bound),
  exclusiveMinimum: (value, bound) => value > bound,
  exclusiveMaximum: (value, bound) => value < bound,
  multipleOf: (value, unit) =>
    typeof value === 'bigint' || typeof unit === 'bigint' ? isWholeMultiple(value, unit) : isMultiple(value, unit),
}

/** Replaces the keywords that compare numbers. Compiling a schema throws for a bound that is no number. */
export function useExactNumbers(ajv: Ajv): void {
  for (const [keyword, fits] of Object.entries(bounds)) {
    ajv.removeKeyword(keyword)
    ajv.addKeyword({
      keyword,
      type: 'number',
      compile(bound: unknown, parentSchema: unknown) {
        // Draft 4: a boolean beside the bound.
        if (keyword.startsWith('exclusive') && typeof bound === 'boolean') return () => true
        if (!isNumber(bound)) throw new Error(`${keyword} must be a number`)
        const limit = toNumeric(bound)
        const isStrict = isExclusive(keyword, parentSchema)
        return (data: unknown, context?: DataContext) => {
          const value = exactOf(data, context)
          return !isNumber(value) || fits(toNumeric(value), limit, isStrict)
        }
      },
    })
  }
}

/** Whether a value equal to the bound is refused. */
export function isExclusive(keyword: string, schema: unknown): boolean {
  if (keyword.startsWith('exclusive')) return true
  return isObject(schema) && schema[keyword === 'minimum' ? 'exclusiveMinimum' : 'exclusiveMaximum'] === true
}

export function isNumber(value: unknown): value is number | JsonNumber {
  return typeof value === 'number' || value instanceof JsonNumber
}

function isWholeMultiple(value: number | bigint, unit: number | bigint): boolean {
  if (!isWhole(value) || !isWhole(unit)) return isMultiple(Number(value), Number(unit))
  return BigInt(value) % BigInt(unit) === 0n
}

function isMultiple(value: number, unit: number): boolean {
  return Number.isInteger(value / unit)
}

function isWhole(value: number | bigint): boolean {
  return typeof value === 'bigint' || Number.isInteger(value)
}
