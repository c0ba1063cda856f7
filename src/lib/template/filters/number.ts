import { numberArgument, wholeArgument } from '../arguments.ts'
import { sign, integer } from '../arithmetic.ts'
import { roundTo, divideHalfEven } from '../decimal.ts'
import { typeError } from '../error.ts'
import { strip } from '../text.ts'
import { float, isNumeric, isWhole, toNumber, type Value } from '../values.ts'
import { filter, type TemplateFilter } from './filter.ts'
import type { Budget } from '../limits.ts'

/** Longest text that is read as a number. */
const MAX_DIGITS = 2000
const radixPrefixes: Readonly<Record<number, string>> = { 2: '0b', 8: '0o', 16: '0x' }

/** `int(text, base)` of Python, undefined where it refuses. */
function parseWhole(text: string, base: number, budget: Budget): Value | undefined {
  const trimmed = strip(text, undefined).toLowerCase()
  if (trimmed.length > MAX_DIGITS) return undefined
  const match = /^([-+]?)(0[box])?((?:_?[0-9a-z])+)$/.exec(trimmed)
  if (match === null) return undefined
  const [, minus = '', prefix, body = ''] = match
  let radix = base
  let digits = body
  if (prefix !== undefined) {
    const named = Object.keys(radixPrefixes).find((key) => radixPrefixes[Number(key)] === prefix)
    if (base === 0) radix = Number(named)
    else if (Number(named) !== base) digits = prefix + body
  } else if (body.startsWith('_')) {
    return undefined
  }
  if (radix === 0) radix = 10
  if (radix < 2 || radix > 36) throw typeError('the base must be 0 or from 2 to 36')
  let value = 0n
  for (const digit of digits.replaceAll('_', '')) {
    const number = Number.parseInt(digit, 36)
    if (!(number < radix)) return undefined
    value = value * BigInt(radix) + BigInt(number)
  }
  return integer(minus === '-' ? -value : value, budget)
}

/** `float(text)` of Python, undefined where it refuses. */
function parseFloatText(text: string): number | undefined {
  const trimmed = strip(text, undefined)
  if (trimmed.length > MAX_DIGITS) return undefined
  const special = /^([-+]?)(?:(inf|infinity)|(nan))$/i.exec(trimmed)
  if (special !== null) return special[3] === undefined ? (special[1] === '-' ? -Infinity : Infinity) : NaN
  const number = /^[-+]?(?:\d+(?:_\d+)*(?:\.(?:\d+(?:_\d+)*)?)?|\.\d+(?:_\d+)*)(?:[eE][-+]?\d+(?:_\d+)*)?$/.test(
    trimmed,
  )
  return number ? Number(trimmed.replaceAll('_', '')) : undefined
}

function truncate(value: number, budget: Budget): Value | undefined {
  return Number.isFinite(value) ? integer(BigInt(Math.trunc(value)), budget) : undefined
}

function toWhole(value: Value, fallback: Value, base: number, budget: Budget): Value {
  if (typeof value === 'string') {
    const whole = parseWhole(value, base, budget)
    if (whole !== undefined) return whole
    const number = parseFloatText(value)
    return (number === undefined ? undefined : truncate(number, budget)) ?? fallback
  }
  if (!isNumeric(value)) return fallback
  if (isWhole(value)) return typeof value === 'boolean' ? Number(value) : value
  return truncate(toNumber(value), budget) ?? fallback
}

function toFloat(value: Value, fallback: Value): Value {
  const number = typeof value === 'string' ? parseFloatText(value) : isNumeric(value) ? toNumber(value) : undefined
  return number === undefined ? fallback : float(number)
}

function round(value: Value, places: number, method: string, budget: Budget): Value {
  if (!isNumeric(value)) return float(numberArgument('round', value))
  if (method === 'common') {
    if (!isWhole(value)) {
      const number = toNumber(value)
      return float(Number.isFinite(number) ? roundTo(number, places) : number)
    }
    if (places >= 0) return integer(BigInt(value), budget)
    const unit = 10n ** BigInt(Math.min(-places, MAX_DIGITS))
    const whole = BigInt(value)
    const rounded = divideHalfEven(whole < 0n ? -whole : whole, unit) * unit
    return integer(whole < 0n ? -rounded : rounded, budget)
  }
  if (method !== 'ceil' && method !== 'floor') throw typeError("round needs the method 'common', 'ceil' or 'floor'")
  const power = 10 ** places
  // Adding zero turns -0 into 0, as rounding in Python goes by way of a whole number.
  return float(Math[method](toNumber(value) * power) / power + 0)
}

/** Filters over numbers. */
export const numberFilters: readonly [string, TemplateFilter][] = [
  filter('int', 'default? base?', (value, [fallback = 0, base], { budget }) =>
    toWhole(value, fallback, wholeArgument('int', base, 10), budget),
  ),
  filter('float', 'default?', (value, [fallback = float(0)]) => toFloat(value, fallback)),
  filter('abs', '', (value, _args, { budget }) => {
    if (!isNumeric(value)) throw typeError('abs needs a number')
    return isWhole(value) ? sign(value, Number(value) < 0, budget) : float(Math.abs(toNumber(value)))
  }),
  filter('round', 'precision? method?', (value, [places, method = 'common'], { budget }) =>
    round(value, wholeArgument('round', places, 0), typeof method === 'string' ? method : '', budget),
  ),
]
