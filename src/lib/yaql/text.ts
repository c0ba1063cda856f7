import { floatText } from '../json/index.ts'
import { Float, isIntegerValue, quoteText, type Budget } from '../template/index.ts'
import { membersOf } from './equality.ts'
import { YaqlError } from './error.ts'
import { RegexValue } from './regex-value.ts'
import { DateTime, TimeSpan } from './temporal.ts'
import {
  adopt,
  Dict,
  DictView,
  entriesOfMapping,
  isMapping,
  isTuple,
  ListValue,
  SetValue,
  type Value,
} from './values.ts'

/**
 * How Python prints values. Inside an expression (`inner`) arrays are tuples and sets are frozen; in what an expression
 * gives (`result`), they are lists and sets.
 */
export type Form = 'inner' | 'result'

/** `str(value)` of Python. */
export function printed(value: Value, form: Form, budget: Budget): string {
  if (typeof value === 'string') return value
  if (value instanceof DateTime) return value.text(' ')
  if (value instanceof TimeSpan) return value.text()
  return represent(value, form, budget)
}

/** `repr(value)` of Python. */
export function represent(value: Value, form: Form, budget: Budget): string {
  const parts: string[] = []
  write(value, form, parts, budget, 0)
  const text = parts.join('')
  budget.text(text.length)
  return text
}

function write(value: Value, form: Form, parts: string[], budget: Budget, depth: number): void {
  budget.visit()
  if (value === null) {
    parts.push('None')
    return
  }
  switch (typeof value) {
    case 'string':
      budget.work(value.length)
      parts.push(quoteText(value))
      return
    case 'boolean':
      parts.push(value ? 'True' : 'False')
      return
    case 'number':
      parts.push(isIntegerValue(value) ? String(value + 0) : floatText(value))
      return
    case 'bigint':
      parts.push(String(value))
      return
    default:
  }
  budget.depth(depth)
  const writeAll = (open: string, items: Iterable<unknown>, close: string): void => {
    parts.push(open)
    let separator = ''
    for (const item of items) {
      parts.push(separator)
      write(adopt(item), form, parts, budget, depth + 1)
      separator = ', '
    }
    parts.push(close)
  }
  if (value instanceof Float) parts.push(floatText(value.value))
  else if (isTuple(value)) {
    if (form === 'result' || value instanceof ListValue) writeAll('[', value, ']')
    else writeAll('(', value, value.length === 1 ? ',)' : ')')
  } else if (value instanceof SetValue) {
    const name = form === 'inner' ? 'frozenset' : 'set'
    if (value.items.size === 0) parts.push(`${name}()`)
    else if (form === 'inner') writeAll('frozenset({', value.items.values(), '})')
    else writeAll('{', value.items.values(), '}')
  } else if (value instanceof DictView) {
    const isPlain = value.mapping instanceof Dict && value.mapping.typeName === 'dict'
    if (isPlain) writeAll(`dict_${value.typeName.replace('View', '').toLowerCase()}([`, membersOf(value), '])')
    else {
      parts.push(`${value.typeName}(`)
      write(value.mapping, form, parts, budget, depth + 1)
      parts.push(')')
    }
  } else if (value instanceof DateTime || value instanceof TimeSpan) parts.push(value.representation())
  else if (value instanceof RegexValue) {
    parts.push(`re.compile(${quoteText(value.source)}${value.flags === '' ? '' : `, ${value.flags}`})`)
  } else if (!isMapping(value)) parts.push(`<${value.typeName} object>`)
  else {
    parts.push('{')
    let separator = ''
    for (const [key, item] of entriesOfMapping(value)) {
      parts.push(separator)
      write(key, form, parts, budget, depth + 1)
      parts.push(': ')
      write(item, form, parts, budget, depth + 1)
      separator = ', '
    }
    parts.push('}')
  }
}

/** Longest text of a value in a message, in UTF-16 units. */
const MAX_SHOWN = 400

/** The receiver of a method as messages print it, shortened. */
export function shownReceiver(value: Value, budget: Budget): string {
  const text = printed(value, 'inner', budget)
  return text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN)}…`
}

/** A key that a dictionary does not have; the detail is the key. */
export function keyError(key: Value, budget: Budget): YaqlError {
  return new YaqlError('KeyError', shownReceiver(key, budget))
}
