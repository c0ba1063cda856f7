import { getItem, getMember, missingMember } from './access.ts'
import { methodOf } from './methods.ts'
import { Callable, Undefined, type Value } from './values.ts'
import type { Budget } from './limits.ts'

/** A method as a value of its own. */
export function boundMethod(object: Value, name: string): Callable | undefined {
  const method = methodOf(object, name)
  return method === undefined ? undefined : new Callable(name, (call, budget) => method(object, call, budget))
}

/** `object.name`: data of that name, else a method, else undefined. */
export function getAttribute(object: Value, name: string): Value {
  const member = getMember(object, name)
  return member === undefined ? (boundMethod(object, name) ?? missingMember(object, name)) : member
}

/** `object[key]`: an item, else for a text key the attribute of that name. */
export function getSubscript(object: Value, key: Value, budget: Budget): Value {
  const item = getItem(object, key, budget)
  if (!(item instanceof Undefined) || typeof key !== 'string') return item
  return boundMethod(object, key) ?? item
}
