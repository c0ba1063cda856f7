import { floatText } from '../json/index.ts'
import { exponentDigits, fixedDigits } from './decimal.ts'
import { limitError, quoted, typeError } from './error.ts'
import { getItem } from './access.ts'
import type { Budget } from './limits.ts'
import { isMapping, mappingGet, type Mapping } from './mapping.ts'
import { asciiText, characterCount, pythonRepr, sliceCharacters, textOf } from './text.ts'
import {
  Float,
  isFloatValue,
  isNumeric,
  isWhole,
  toNumber,
  Sequence,
  typeNameOf,
  Undefined,
  type Call,
  type Value,
} from './values.ts'

/** Widest padding and longest precision a format may ask for. */
const MAX_WIDTH = 10_000
const MAX_PRECISION = 1000

function bounded(digits: string | undefined, maximum: number): number | undefined {
  if (digits === undefined || digits === '') return undefined
  const number = Number(digits)
  if (number > maximum) throw limitError(`a format asks for more than ${maximum} characters`)
  return number
}

/** `left % right` for text: conversions as in C. */
export function formatPercent(pattern: string, right: Value, budget: Budget): string {
  const positional = right instanceof Sequence && right.typeName === 'tuple' ? right.items : [right]
  const mapping = isMapping(right) ? right : undefined
  return new PercentFormat(pattern, positional, mapping, budget).run()
}

/** `pattern % arguments` with the arguments of a call, for the filter `format`. */
export function formatPercentCall(pattern: string, call: Call, mapping: Mapping | undefined, budget: Budget): string {
  return new PercentFormat(pattern, call.positional, mapping, budget).run()
}

// The key is bounded: a text of nothing but `%(` would otherwise be scanned to its end for each of them.
const conversion = /%(?:\(([^)]{0,200})\))?([-+ #0]*)(\*|\d*)(?:\.(\*|\d*))?[hlL]?([\s\S])?/g

class PercentFormat {
  readonly #pattern: string
  readonly #positional: readonly Value[]
  readonly #mapping: Mapping | undefined
  readonly #budget: Budget
  #used = 0
  #length = 0

  constructor(pattern: string, positional: readonly Value[], mapping: Mapping | undefined, budget: Budget) {
    this.#pattern = pattern
    this.#positional = positional
    this.#mapping = mapping
    this.#budget = budget
  }

  run(): string {
    const parts: string[] = []
    let at = 0
    // One match at a time: `replace` would find them all before the first can be paid for or refused.
    for (const match of this.#pattern.matchAll(conversion)) {
      this.#budget.visit()
      parts.push(this.#pattern.slice(at, match.index), this.#expand(match))
      at = match.index + match[0].length
    }
    parts.push(this.#pattern.slice(at))
    const text = parts.join('')
    if (this.#mapping === undefined && this.#used < this.#positional.length) {
      throw typeError('not all arguments converted during string formatting')
    }
    this.#budget.text(text.length)
    return text
  }

  #expand([, key, flags = '', width = '', precision, type]: RegExpExecArray): string {
    if (type === undefined) throw typeError('incomplete format')
    if (type === '%') return '%'
    const wide = width === '*' ? String(this.#whole()) : width
    const exact = precision === '*' ? String(this.#whole()) : precision
    const value = key === undefined ? this.#take() : this.#named(key)
    return this.#paid(this.#convert(value, flags, bounded(wide, MAX_WIDTH) ?? 0, precisionOf(exact), type))
  }

  /** Pays for a piece at once: the whole is only seen when all pieces exist. */
  #paid(piece: string): string {
    this.#length += piece.length
    this.#budget.work(piece.length)
    if (this.#length > this.#budget.limits.maxTextLength) this.#budget.text(this.#length)
    return piece
  }

  #take(): Value {
    const value = this.#positional[this.#used]
    if (value === undefined) throw typeError('not enough arguments for format string')
    this.#used += 1
    return value
  }

  #whole(): number {
    const value = this.#take()
    if (!isNumeric(value) || !isWhole(value)) throw typeError('* wants int')
    return Math.abs(Number(value))
  }

  #named(key: string): Value {
    if (this.#mapping === undefined) throw typeError('format requires a mapping')
    const value = mappingGet(this.#mapping, key)
    if (value === undefined) throw typeError(`the format asks for ${quoted(key)}, which is missing`)
    return value
  }

  #convert(value: Value, flags: string, width: number, precision: number | undefined, type: string): string {
    this.#budget.step()
    if (value instanceof Undefined) value.raise()
    switch (type) {
      case 's':
      case 'r':
      case 'a': {
        let text = type === 's' ? textOf(value, this.#budget) : pythonRepr(value, this.#budget)
        if (type === 'a') text = asciiText(text)
        return padPercent('', precision === undefined ? text : sliceCharacters(text, 0, precision), flags, width, false)
      }
      case 'c': {
        if (typeof value === 'string' && characterCount(value) === 1) return padPercent('', value, flags, width, false)
        if (!isNumeric(value) || !isWhole(value) || Number(value) < 0 || Number(value) > 0x10ffff) {
          throw typeError('%c requires an int or one character')
        }
        return padPercent('', String.fromCodePoint(Number(value)), flags, width, false)
      }
      case 'd':
      case 'i':
      case 'u':
      case 'x':
      case 'X':
      case 'o':
        return this.#wholeNumber(value, flags, width, precision, type)
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G': {
        if (!isNumeric(value)) throw typeError(`must be real number, not ${typeNameOf(value)}`)
        const number = toNumber(value)
        const body = floatBody(number, type, precision ?? 6, flags.includes('#'))
        return padPercent(signOf(number, flags), body, flags, width, Number.isFinite(number))
      }
      default:
        throw typeError(`unsupported format character ${quoted(type)}`)
    }
  }

  #wholeNumber(value: Value, flags: string, width: number, precision: number | undefined, type: string): string {
    const decimal = type === 'd' || type === 'i' || type === 'u'
    if (!isNumeric(value) || (!decimal && !isWhole(value))) {
      throw typeError(
        `%${type} format: a ${decimal ? 'real number' : 'whole number'} is required, not ${typeNameOf(value)}`,
      )
    }
    const whole = isWhole(value) ? BigInt(value) : BigInt(truncated(toNumber(value)))
    const radix = decimal ? 10 : type === 'o' ? 8 : 16
    let digits = (whole < 0n ? -whole : whole).toString(radix).padStart(precision ?? 1, '0')
    if (type === 'X') digits = digits.toUpperCase()
    const prefix = flags.includes('#') && !decimal ? `0${type}` : ''
    return padPercent((whole < 0n ? '-' : plusOf(flags)) + prefix, digits, flags, width, true)
  }
}

function precisionOf(digits: string | undefined): number | undefined {
  return digits === '' ? 0 : bounded(digits, MAX_PRECISION)
}

function truncated(value: number): number {
  if (!Number.isFinite(value)) throw typeError('cannot convert float infinity or nan to integer')
  return Math.trunc(value)
}

function plusOf(flags: string): string {
  return flags.includes('+') ? '+' : flags.includes(' ') ? ' ' : ''
}

function signOf(value: number, flags: string): string {
  return value < 0 || Object.is(value, -0) ? '-' : plusOf(flags)
}

function padPercent(prefix: string, body: string, flags: string, width: number, zeros: boolean): string {
  const missing = Math.max(0, width - characterCount(prefix) - characterCount(body))
  if (flags.includes('-')) return prefix + body + ' '.repeat(missing)
  if (zeros && flags.includes('0')) return prefix + '0'.repeat(missing) + body
  return ' '.repeat(missing) + prefix + body
}

/** The digits of `|value|` in one of the notations e, f, g. */
function floatBody(value: number, type: string, precision: number, keepZeros: boolean): string {
  const lower = type.toLowerCase()
  if (!Number.isFinite(value)) {
    const text = Number.isNaN(value) ? 'nan' : 'inf'
    return type === lower ? text : text.toUpperCase()
  }
  if (lower === 'f') return fixedDigits(value, precision)
  if (lower === 'e') {
    const { digits, exponent } = exponentDigits(value, precision)
    return exponential(digits, exponent, type)
  }
  const significant = Math.max(1, precision)
  const { digits, exponent } = exponentDigits(value, significant - 1)
  if (exponent < -4 || exponent >= significant) {
    return exponential(keepZeros ? digits : dropZeros(digits), exponent, type === 'G' ? 'E' : 'e')
  }
  const fixed = fixedDigits(value, significant - 1 - exponent)
  return keepZeros || !fixed.includes('.') ? fixed : dropZeros(fixed).replace(/\.$/, '')
}

/** What a precision without a type gives: as `g`, but never without a digit after the point. */
function generalBody(value: number, significant: number, keepZeros: boolean): string {
  if (!Number.isFinite(value)) return floatBody(value, 'g', significant, keepZeros)
  const { digits, exponent } = exponentDigits(value, significant - 1)
  if (exponent < -4 || exponent >= significant - 1) {
    return exponential(keepZeros ? digits : dropZeros(digits), exponent, 'e')
  }
  const fixed = fixedDigits(value, significant - 1 - exponent)
  return keepZeros ? fixed : dropZeros(fixed).replace(/\.$/, '.0')
}

function dropZeros(digits: string): string {
  let end = digits.length
  while (end > 1 && digits[end - 1] === '0') end -= 1
  return digits.slice(0, end)
}

function exponential(digits: string, exponent: number, letter: string): string {
  const rest = digits.length > 1 ? `.${digits.slice(1)}` : ''
  const power = String(Math.abs(exponent)).padStart(2, '0')
  return `${digits.charAt(0)}${rest}${letter}${exponent < 0 ? '-' : '+'}${power}`
}

/** `pattern.format(…)` of Python. */
export function formatBraces(pattern: string, call: Call, budget: Budget): string {
  const text = new BraceFormat(call, budget).expand(pattern, 0)
  budget.text(text.length)
  return text
}

class BraceFormat {
  readonly #call: Call
  readonly #budget: Budget
  #automatic = 0

  constructor(call: Call, budget: Budget) {
    this.#call = call
    this.#budget = budget
  }

  expand(pattern: string, depth: number): string {
    if (depth > 2) throw typeError('Max string recursion exceeded')
    const parts: string[] = []
    const next = (brace: string, from: number): number => {
      const found = pattern.indexOf(brace, from)
      return found < 0 ? Infinity : found
    }
    let at = 0
    let open = -1
    let close = -1
    for (;;) {
      // Searched again only once passed: where one of the braces is missing, each search would read all the rest.
      if (open < at) open = next('{', at)
      if (close < at) close = next('}', at)
      if (open === close) break
      this.#budget.visit()
      if (close < open) {
        if (pattern[close + 1] !== '}') throw typeError("Single '}' encountered in format string")
        parts.push(pattern.slice(at, close + 1))
        at = close + 2
        continue
      }
      if (pattern[open + 1] === '{') {
        parts.push(pattern.slice(at, open + 1))
        at = open + 2
        continue
      }
      parts.push(pattern.slice(at, open))
      const end = closingBrace(pattern, open)
      const piece = this.#field(pattern.slice(open + 1, end), depth)
      this.#budget.text(piece.length)
      parts.push(piece)
      at = end + 1
    }
    parts.push(pattern.slice(at))
    return parts.join('')
  }

  #field(field: string, depth: number): string {
    this.#budget.step()
    const match = /^([^!:]*)(?:!([^:]*))?(?::([\s\S]*))?$/.exec(field)
    if (match === null) throw typeError('a replacement field of the format is malformed')
    const [, path = '', conversionName, rawSpec = ''] = match
    let value = this.#lookup(path)
    if (value instanceof Undefined) value.raise()
    if (conversionName === 's') value = textOf(value, this.#budget)
    else if (conversionName === 'r') value = pythonRepr(value, this.#budget)
    else if (conversionName === 'a') value = asciiText(pythonRepr(value, this.#budget))
    else if (conversionName !== undefined) throw typeError('the conversion of a replacement field must be !s, !r or !a')
    return formatValue(value, rawSpec.includes('{') ? this.expand(rawSpec, depth + 1) : rawSpec, this.#budget)
  }

  #lookup(path: string): Value {
    const match = /^([^.[]*)([\s\S]*)$/.exec(path)
    const first = match?.[1] ?? ''
    let value = this.#argument(first)
    let rest = match?.[2] ?? ''
    while (rest !== '') {
      const step = /^(?:\.([^.[]+)|\[([^\]]+)\])/.exec(rest)
      if (step === null) throw typeError('a replacement field of the format is malformed')
      this.#budget.step()
      const [whole, attribute, key = ''] = step
      value = getItem(value, attribute ?? (/^\d+$/.test(key) ? Number(key) : key), this.#budget)
      rest = rest.slice(whole.length)
    }
    return value
  }

  #argument(name: string): Value {
    if (name === '') {
      const value = this.#call.positional[this.#automatic]
      this.#automatic += 1
      if (value === undefined) throw typeError('the format has more fields than arguments')
      return value
    }
    const value = /^\d+$/.test(name) ? this.#call.positional[Number(name)] : this.#call.named.get(name)
    if (value === undefined) throw typeError(`the format asks for ${quoted(name)}, which is missing`)
    return value
  }
}

function closingBrace(pattern: string, open: number): number {
  let depth = 0
  for (let at = open; at < pattern.length; at += 1) {
    if (pattern[at] === '{') depth += 1
    else if (pattern[at] === '}') {
      depth -= 1
      if (depth === 0) return at
    }
  }
  throw typeError("expected '}' before end of string")
}

const specPattern = /^(?:([\s\S])?([<>=^]))?([-+ ])?(#)?(0)?(\d+)?([,_])?(?:\.(\d+))?([a-zA-Z%])?$/u

/** `format(value, spec)` of Python. */
function formatValue(value: Value, spec: string, budget: Budget): string {
  if (spec === '') return textOf(value, budget)
  const match = specPattern.exec(spec)
  if (match === null) throw typeError(`Invalid format specifier ${quoted(spec)}`)
  const [, fill, align, sign = '-', alternate, zero, widthDigits, grouping = '', precisionDigits, type = ''] = match
  const width = bounded(widthDigits, MAX_WIDTH) ?? 0
  const precision = bounded(precisionDigits, MAX_PRECISION)
  const pad = (prefix: string, body: string, usual: string): string =>
    padTo(prefix, body, fill ?? (zero === undefined ? ' ' : '0'), align ?? (zero === undefined ? usual : '='), width)

  if (isNumeric(value)) {
    const negative = toNumber(value) < 0
    const minusZero = Object.is(toNumber(value), -0) && isFloatValue(value)
    const prefix = negative || minusZero ? '-' : sign === '-' ? '' : sign
    const plain = numberBody(value, type, precision, alternate !== undefined)
    const group = type === 'x' || type === 'X' || type === 'o' || type === 'b' ? 4 : 3
    const isZeroPadded = (fill ?? (zero === undefined ? ' ' : '0')) === '0' && (align ?? '=') === '='
    const room = isZeroPadded ? width - prefix.length - plain.prefix.length : 0
    const body = grouping === '' ? plain.body : grouped(plain.body, grouping, group, room)
    return pad(prefix + plain.prefix, body, '>')
  }
  if (typeof value !== 'string') {
    throw typeError(`unsupported format string passed to ${typeNameOf(value)}.__format__`)
  }
  if (type !== '' && type !== 's') {
    throw typeError(`Unknown format code '${type}' for object of type '${typeNameOf(value)}'`)
  }
  if (match[3] !== undefined || grouping !== '' || align === '=') {
    throw typeError('a sign, a separator or the alignment = does not fit text in a format')
  }
  return pad('', precision === undefined ? value : sliceCharacters(value, 0, precision), '<')
}

function numberBody(
  value: boolean | number | bigint | Float,
  type: string,
  precision: number | undefined,
  alternate: boolean,
): { prefix: string; body: string } {
  const body = (text: string): { prefix: string; body: string } => ({ prefix: '', body: text })
  if (isWhole(value) && 'bcdoxXn'.includes(type)) {
    if (precision !== undefined) throw typeError('Precision not allowed in integer format specifier')
    const whole = BigInt(value)
    const digits = whole < 0n ? -whole : whole
    if (type === '' || type === 'd' || type === 'n') return body(digits.toString())
    if (type === 'c') return body(String.fromCodePoint(Math.min(Number(digits), 0x10ffff)))
    const text = digits.toString(type === 'b' ? 2 : type === 'o' ? 8 : 16)
    return { prefix: alternate ? `0${type}` : '', body: type === 'X' ? text.toUpperCase() : text }
  }
  const number = toNumber(value)
  if (type === '%') {
    const places = precision ?? 6
    const percent = Number.isFinite(number) ? fixedDigits(number * 100, places) : floatBody(number, 'f', 0, false)
    return body(`${percent}%`)
  }
  if (type === '') {
    if (precision === undefined) return body(floatText(Math.abs(number)))
    return body(generalBody(number, Math.max(1, precision), alternate))
  }
  if (!'eEfFgGn'.includes(type))
    throw typeError(`Unknown format code '${type}' for object of type '${typeNameOf(value)}'`)
  return body(floatBody(number, type === 'n' ? 'g' : type, precision ?? 6, alternate))
}

/** Digits in groups; zeros before them, which are grouped too, make it at least `room` characters. `inf` and `nan` stay. */
function grouped(body: string, separator: string, size: number, room: number): string {
  // The e of an exponent is no digit, that of a hexadecimal number is.
  const end = body.search(size === 3 ? /[^0-9]/ : /[^0-9a-fA-F]/)
  if (end === 0) return body
  let length = end < 0 ? body.length : end
  const rest = body.slice(length)
  const digits = body.slice(0, length)
  while (length + Math.floor((length - 1) / size) + rest.length < room) length += 1
  const whole = digits.padStart(length, '0')
  const parts: string[] = []
  for (let at = whole.length; at > 0; at -= size) parts.unshift(whole.slice(Math.max(0, at - size), at))
  return parts.join(separator) + rest
}

function padTo(prefix: string, body: string, fill: string, align: string, width: number): string {
  const missing = Math.max(0, width - characterCount(prefix) - characterCount(body))
  if (align === '<') return prefix + body + fill.repeat(missing)
  if (align === '=') return prefix + fill.repeat(missing) + body
  if (align === '>') return fill.repeat(missing) + prefix + body
  const left = Math.floor(missing / 2)
  return fill.repeat(left) + prefix + body + fill.repeat(missing - left)
}

/** The text in the middle of `width` characters, the odd one going where Python's `center` puts it. */
export function center(text: string, width: number, fill: string): string {
  const missing = Math.max(0, width - characterCount(text))
  const left = Math.floor(missing / 2) + (missing & width & 1)
  return fill.repeat(left) + text + fill.repeat(missing - left)
}
