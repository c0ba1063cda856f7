/** Conversions, and questions about types. */
import { float, integer, quoteText, strip, toNumber, type Budget } from '../../template/index.ts'
import { typeError, valueError, YaqlError } from '../error.ts'
import { integerFromText, plainDigits } from '../number-text.ts'
import { RegexValue } from '../regex-value.ts'
import { fn, param, type Overload } from '../signature.ts'
import { DateTime, TimeSpan } from '../temporal.ts'
import { Any } from '../types.ts'
import { isInteger, isIterable, isMapping, isNumber, isSetLike, isTuple, typeNameOf, type Value } from '../values.ts'

const wholeText = /^[+-]?\p{Nd}+(?:_\p{Nd}+)*$/u
const decimalText =
  /^[+-]?(?:\p{Nd}+(?:_\p{Nd}+)*\.?(?:\p{Nd}+(?:_\p{Nd}+)*)?|\.\p{Nd}+(?:_\p{Nd}+)*)(?:[eE][+-]?\p{Nd}+(?:_\p{Nd}+)*)?$/u
const namedFloats: Readonly<Record<string, number>> = { inf: Infinity, infinity: Infinity, nan: Number.NaN }

function toWhole(value: Value, budget: Budget): Value {
  if (value === null) return 0
  if (typeof value === 'boolean') return Number(value)
  if (isInteger(value)) return value
  if (isNumber(value)) {
    const number = toNumber(value)
    if (Number.isNaN(number)) throw valueError('cannot convert float NaN to integer')
    if (!Number.isFinite(number)) throw new YaqlError('OverflowError', 'cannot convert float infinity to integer')
    return integer(BigInt(Math.trunc(number)), budget)
  }
  if (typeof value !== 'string') {
    throw typeError(`int() argument must be a string, a bytes-like object or a real number, not '${typeNameOf(value)}'`)
  }
  budget.work(value.length)
  const text = strip(value, undefined)
  if (!wholeText.test(text)) throw valueError(`invalid literal for int() with base 10: ${quoteText(value)}`)
  return integerFromText(text.replaceAll('_', ''))
}

function toFloat(value: Value, budget: Budget): Value {
  if (value === null) return float(0)
  if (typeof value === 'boolean' || isNumber(value)) {
    const number = typeof value === 'boolean' ? Number(value) : toNumber(value)
    if (!Number.isFinite(number) && isInteger(value))
      throw new YaqlError('OverflowError', 'int too large to convert to float')
    return float(number)
  }
  if (typeof value !== 'string') {
    throw typeError(`float() argument must be a string or a real number, not '${typeNameOf(value)}'`)
  }
  budget.work(value.length)
  const text = strip(value, undefined)
  if (decimalText.test(text)) return float(Number(plainDigits(text).replaceAll('_', '')))
  const [, sign = '', name = ''] = /^([+-]?)([a-z]{3,8})$/i.exec(text) ?? []
  const named = namedFloats[name.toLowerCase()]
  if (named === undefined) throw valueError(`could not convert string to float: ${quoteText(value)}`)
  return float(sign === '-' ? -named : named)
}

const isType = (name: string, holds: (value: Value) => boolean, parameter = 'value'): Overload =>
  fn(name, [param(parameter, Any)], ([value]) => holds(value))

export const conversion: readonly Overload[] = [
  fn('int', [param('value', Any)], ([value], { budget }) => toWhole(value, budget)),
  fn('float', [param('value', Any)], ([value], { budget }) => toFloat(value, budget)),
  fn('bool', [param('value', Any)], ([value], runtime) => runtime.isTrue(value)),
  isType('isBoolean', (value) => typeof value === 'boolean'),
  isType('isInteger', isInteger),
  isType('isNumber', isNumber),
  isType('isString', (value) => typeof value === 'string', 'arg'),
  isType('isList', isTuple, 'arg'),
  isType('isDict', isMapping, 'arg'),
  isType('isSet', isSetLike, 'arg'),
  isType('isIterable', isIterable),
  isType('isRegex', (value) => value instanceof RegexValue),
  isType('isDatetime', (value) => value instanceof DateTime),
  isType('isTimespan', (value) => value instanceof TimeSpan),
]
