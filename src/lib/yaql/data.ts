import {
  floatText,
  jsonNumber,
  JsonNumber,
  JsonNumberError,
  rememberOrder,
  setOwn,
  wholeNumber,
} from '../json/index.ts'
import { Float, type Budget } from '../template/index.ts'
import { hashOf } from './equality.ts'
import { limitExceeded, typeError } from './error.ts'
import { DateTime } from './temporal.ts'
import { represent } from './text.ts'
import { adopt, entriesOfMapping, isInteger, isMapping, isTuple, SetValue, typeNameOf, type Value } from './values.ts'

/** The value as plain data; `toData` describes it. */
export function dataOf(value: Value, budget: Budget, depth = 0): unknown {
  budget.visit()
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (isInteger(value)) return wholeData(value)
  if (typeof value === 'number') return value
  if (value instanceof Float) {
    return Number.isFinite(value.value) ? jsonNumber(value.source ?? floatText(value.value)) : value.value
  }
  budget.depth(depth)
  if (isTuple(value)) return value.map((item) => dataOf(adopt(item), budget, depth + 1))
  if (value instanceof SetValue) return Array.from(value.items.values(), (item) => dataOf(item, budget, depth + 1))
  if (value instanceof DateTime) return value.text('T')
  if (!isMapping(value)) throw typeError(`a value of type ${typeNameOf(value)} has no JSON form; convert it with str()`)
  const result: Record<string, unknown> = Object.create(null)
  const keys: string[] = []
  for (const [key, item] of entriesOfMapping(value)) {
    const name = keyText(key, budget)
    if (!Object.hasOwn(result, name)) keys.push(name)
    setOwn(result, name, dataOf(item, budget, depth + 1))
  }
  rememberOrder(result, keys)
  return result
}

function wholeData(value: number | bigint): unknown {
  if (Object.is(value, -0)) return new JsonNumber('-0')
  if (typeof value === 'number') return value
  try {
    return wholeNumber(value)
  } catch (error) {
    if (error instanceof JsonNumberError) throw limitExceeded(error.message)
    throw error
  }
}

/** A key as JSON text writes it. */
function keyText(key: Value, budget: Budget): string {
  if (typeof key === 'string') return key
  if (key === null) return 'null'
  if (typeof key === 'boolean') return String(key)
  if (key instanceof DateTime) return key.text('T')
  hashOf(key, budget)
  return represent(key, 'result', budget)
}
