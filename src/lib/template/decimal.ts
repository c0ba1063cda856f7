/** Exact decimal rounding of doubles, half to even on exact ties, as Python rounds and formats. */

const buffer = new DataView(new ArrayBuffer(8))

/** `|value| × 10^places`, rounded to a whole number. `value` is finite; `places` may be negative. */
function scaled(value: number, places: number): bigint {
  buffer.setFloat64(0, Math.abs(value))
  const bits = buffer.getBigUint64(0)
  const biased = Number(bits >> 52n)
  const fraction = bits & 0xfffffffffffffn
  const mantissa = biased === 0 ? fraction : fraction | 0x10000000000000n
  const exponent = (biased === 0 ? 1 : biased) - 1075
  let numerator = mantissa
  let denominator = 1n
  if (exponent >= 0) numerator <<= BigInt(exponent)
  else denominator <<= BigInt(-exponent)
  if (places >= 0) numerator *= 10n ** BigInt(places)
  else denominator *= 10n ** BigInt(-places)
  return divideHalfEven(numerator, denominator)
}

/** The quotient of two numbers ≥ 0, rounded half to even. */
export function divideHalfEven(numerator: bigint, denominator: bigint): bigint {
  const quotient = numerator / denominator
  const twice = (numerator % denominator) * 2n
  if (twice > denominator || (twice === denominator && quotient % 2n === 1n)) return quotient + 1n
  return quotient
}

/** `|value|` with exactly `places` digits after the point. */
export function fixedDigits(value: number, places: number): string {
  const digits = scaled(value, places)
    .toString()
    .padStart(places + 1, '0')
  return places === 0 ? digits : `${digits.slice(0, -places)}.${digits.slice(-places)}`
}

/** `|value|` as `precision` + 1 significant digits and a power of ten. */
export function exponentDigits(value: number, precision: number): { digits: string; exponent: number } {
  if (value === 0) return { digits: '0'.repeat(precision + 1), exponent: 0 }
  const exponent = Number(Math.abs(value).toExponential().split('e')[1])
  const digits = scaled(value, precision - exponent).toString()
  if (digits.length === precision + 1) return { digits, exponent }
  return { digits: digits.slice(0, precision + 1), exponent: exponent + 1 }
}

/** `round(value, places)` of Python for a finite float. */
export function roundTo(value: number, places: number): number {
  if (places > 323) return value
  if (places < -308) return 0
  const rounded = Number(`${scaled(value, places)}e${-places}`)
  return value < 0 || Object.is(value, -0) ? -rounded : rounded
}
