/** Numbers of JSON text that a JavaScript number would change. */

/** Python's limit for the digits of a whole number. Conversions take time that grows faster than the digits. */
export const MAX_NUMBER_CHARS = 4_300

declare global {
  interface JSON {
    /** Absent in old browsers. */
    rawJSON?: (text: string) => unknown
  }
}

/**
 * A number that `JSON.parse` would change: a whole one beyond 2^53, or one that JavaScript writes differently, such as
 * `21.0`, `1e3` or 30 decimals. `jsonNumber` makes it.
 *
 * `JSON.stringify` writes its text, and `String` returns it. `Number` returns the nearest JavaScript number.
 */
export class JsonNumber {
  /** The number as the JSON text has it. Public, so that functions which compare objects tell two numbers apart. */
  readonly text: string

  constructor(text: string) {
    this.text = text
  }

  /** Whether it is an integer to Python: digits only, unlike `21.0`. */
  get isWhole(): boolean {
    return isWholeText(this.text)
  }

  toString(): string {
    return this.text
  }

  toJSON(): unknown {
    return JSON.rawJSON === undefined ? Number(this.text) : JSON.rawJSON(this.text)
  }
}

/** A number that does not fit: longer than `MAX_NUMBER_CHARS`, or infinite as a float. The message says which. */
export class JsonNumberError extends Error {}

/**
 * The number of a JSON text, exactly.
 *
 * @param text matches the grammar of JSON numbers
 * @throws JsonNumberError
 */
export function jsonNumber(text: string): number | JsonNumber {
  const value = Number(text)
  if (isFaithful(value, text)) return value
  if (text.length > MAX_NUMBER_CHARS)
    throw new JsonNumberError(`a number has ${text.length} characters; the limit is ${MAX_NUMBER_CHARS}`)
  if (!Number.isFinite(value) && !isWholeText(text))
    throw new JsonNumberError('a number is too large: a float ends at 1.8e308')
  return new JsonNumber(text)
}

/** A whole number in the form that `jsonNumber` gives. @throws JsonNumberError */
export function wholeNumber(value: bigint): number | JsonNumber {
  return jsonNumber(String(value))
}

/**
 * The number in a text that people write, such as ` +1.`, `.5` or `007`, exactly; undefined: the text has none. Digits
 * without a point are a whole number.
 *
 * @throws JsonNumberError
 */
export function parseNumber(text: string): number | JsonNumber | undefined {
  // Longer texts hold no number of the allowed length. The engine may run out of memory for a pattern on megabytes.
  if (text.length > 2 * MAX_NUMBER_CHARS) return undefined
  const [match, sign, whole = '', point, fraction = '', exponent = ''] =
    /^\s*([+-]?)(\d*)(?:(\.)(\d*))?([eE][+-]?\d+)?\s*$/.exec(text) ?? []
  if (match === undefined || (whole === '' && fraction === '')) return undefined
  const digits = whole.replace(/^0+(?=\d)/, '') || '0'
  const decimals = point === undefined || (fraction === '' && exponent !== '') ? '' : `.${fraction || '0'}`
  return jsonNumber(`${sign === '-' ? '-' : ''}${digits}${decimals}${exponent}`)
}

/** The number without its fraction. */
export function truncated(value: number | JsonNumber): number | JsonNumber {
  const isExact = value instanceof JsonNumber && value.isWhole
  return wholeNumber(BigInt(isExact ? value.text : Math.trunc(Number(value))))
}

/** Whether the JavaScript number stands for the text without loss. */
export function isFaithful(value: number, text: string): boolean {
  return (Number.isSafeInteger(value) || !Number.isInteger(value)) && String(value) === text
}

function isWholeText(text: string): boolean {
  return /^-?\d+$/.test(text)
}

/** For code that computes: a bigint if the number is whole and large. JavaScript compares the two kinds exactly. */
export function toNumeric(value: number | JsonNumber): number | bigint {
  if (typeof value === 'number') return value
  if (!value.isWhole) return Number(value.text)
  const number = Number(value.text)
  return Number.isSafeInteger(number) ? number : BigInt(value.text)
}

/** For code that needs a JavaScript number, such as seconds: the nearest one. Returns everything else unchanged. */
export function nearestNumber(value: unknown): unknown {
  return value instanceof JsonNumber ? Number(value.text) : value
}

/** A float as Python prints it: shortest digits that read back the same, exponent below 1e-4 and from 1e16. */
export function floatText(value: number): string {
  if (Number.isNaN(value)) return 'nan'
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf'
  const sign = value < 0 || Object.is(value, -0) ? '-' : ''
  const [mantissa = '0', exponentText = '0'] = Math.abs(value).toExponential().split('e')
  const digits = mantissa.replace('.', '')
  const exponent = Number(exponentText)
  if (exponent < -4 || exponent >= 16) {
    const rest = digits.length > 1 ? `.${digits.slice(1)}` : ''
    return `${sign}${digits[0] ?? '0'}${rest}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`
  }
  if (exponent < 0) return `${sign}0.${'0'.repeat(-exponent - 1)}${digits}`
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, '0')
  return `${sign}${whole}.${digits.slice(exponent + 1) || '0'}`
}
