import { keysOf } from '../json/index.ts'
import { quoted, typeError } from './error.ts'
import type { Budget } from './limits.ts'
import {
  adopt,
  Dict,
  isList,
  requireHashable,
  TemplateObject,
  Undefined,
  type PlainObject,
  type Value,
} from './values.ts'

/** What templates see as a dictionary. */
export type Mapping = PlainObject | Dict

export function isMapping(value: Value): value is Mapping {
  if (typeof value !== 'object' || value === null || isList(value)) return false
  return value instanceof Dict || !(value instanceof TemplateObject)
}

/** The value of an own, enumerable data property; undefined for anything inherited, hidden or computed. */
export function ownValue(object: PlainObject, name: string): Value | undefined {
  const property = Object.getOwnPropertyDescriptor(object, name)
  if (property === undefined || property.enumerable !== true || property.value === undefined) return undefined
  return adopt(property.value)
}

export function mappingGet(mapping: Mapping, key: Value): Value | undefined {
  if (mapping instanceof Dict) return mapping.get(key)
  if (typeof key === 'string') return ownValue(mapping, key)
  requireHashable(key)
  return undefined
}

export function mappingHas(mapping: Mapping, key: Value): boolean {
  return mapping instanceof Dict ? mapping.has(key) : mappingGet(mapping, key) !== undefined
}

/** The work that listing one key counts as. */
const KEY_WORK = 32

const free = (): void => undefined

/** The number of keys; those of data from outside are listed for it, which is paid for. */
export function mappingSize(mapping: Mapping, budget: Budget): number {
  if (mapping instanceof Dict) return mapping.size
  const { length } = Object.keys(mapping)
  budget.work(length * KEY_WORK)
  return length
}

export function mappingKeys(mapping: Mapping): Value[] {
  return mapping instanceof Dict ? Array.from(mapping.entries(), ([key]) => key) : [...keysOf(mapping)]
}

/** @param pay called with the number of keys, before anything is made of them */
export function mappingEntries(mapping: Value, pay: (count: number) => void = free): (readonly [Value, Value])[] {
  if (!isMapping(mapping)) throw typeError('the value is not a dictionary')
  if (mapping instanceof Dict) {
    pay(mapping.size)
    return [...mapping.entries()]
  }
  const keys = keysOf(mapping)
  pay(keys.length)
  return keys.map((key) => {
    const value = ownValue(mapping, key)
    return [key, value === undefined ? new Undefined(`${quoted(key)} is undefined`) : value]
  })
}
