import { float, integer, roundTo, toNumber, type Budget, type Float } from '../../template/index.ts'
import { limitExceeded, typeError, valueError, YaqlError } from '../error.ts'
import { fn, optional, param, type Overload } from '../signature.ts'
import { Any, Index, Int, Num, orNull, WholeOrBool } from '../types.ts'
import { isInteger, isNumber, typeNameOf, type Value } from '../values.ts'

type Whole = number | bigint

const whole = (value: bigint, budget: Budget): Whole => integer(value, budget)

/** Of two booleans it makes a boolean. */
const bitwise = (name: string, run: (left: bigint, right: bigint) => bigint): Overload =>
  fn(name, [param('left', WholeOrBool), param('right', WholeOrBool)], ([left, right], { budget }) => {
    const result = run(BigInt(left), BigInt(right))
    return typeof left === 'boolean' && typeof right === 'boolean' ? result === 1n : whole(result, budget)
  })

function power(base: Whole | Float, exponent: Whole | Float, budget: Budget): Value {
  if (!isInteger(base) || !isInteger(exponent) || exponent < 0) {
    const [a, b] = [toNumber(base), toNumber(exponent)]
    if (a === 0 && b < 0) throw new YaqlError('ZeroDivisionError', '0.0 cannot be raised to a negative power')
    const result = a ** b
    if (Number.isNaN(result) && !Number.isNaN(a) && !Number.isNaN(b)) {
      throw valueError('a negative number cannot be raised to a fractional power')
    }
    if (!Number.isFinite(result) && Number.isFinite(a) && Number.isFinite(b)) {
      throw new YaqlError('OverflowError', 'the result is too large for a float')
    }
    return float(result)
  }
  const [a, b] = [BigInt(base), BigInt(exponent)]
  if (a > 1n || a < -1n) {
    const bits = b * BigInt(a.toString(2).length - (a < 0n ? 2 : 1))
    if (bits > budget.limits.maxIntegerBits) throw tooBig(budget)
    budget.work(Number(bits) + 64)
  }
  return whole(a ** b, budget)
}

const tooBig = (budget: Budget): YaqlError =>
  limitExceeded(`a number would have more than ${budget.limits.maxIntegerBits} bits`)

/** `pow(base, exponent, modulus)`: by squaring, so that no step is larger than the square of the modulus. */
function powerModulo(base: Value, exponent: Value, modulus: Value, budget: Budget): Value {
  if (!isInteger(base) || !isInteger(exponent) || !isInteger(modulus)) {
    throw typeError('pow() 3rd argument not allowed unless all arguments are integers')
  }
  const m = BigInt(modulus)
  if (m === 0n) throw valueError('pow() 3rd argument cannot be 0')
  let result = 1n
  let square = exponent < 0 ? inverse(BigInt(base), m) : BigInt(base) % m
  for (let left = exponent < 0 ? -BigInt(exponent) : BigInt(exponent); left > 0n; left >>= 1n) {
    budget.step()
    if (left & 1n) result = (result * square) % m
    square = (square * square) % m
  }
  const rest = result % m
  return whole(rest !== 0n && rest < 0n !== m < 0n ? rest + m : rest, budget)
}

/** The number that gives 1 with another one, modulo a third (Euclid). */
function inverse(value: bigint, modulus: bigint): bigint {
  const size = modulus < 0n ? -modulus : modulus
  let [a, b] = [((value % size) + size) % size, size]
  let [x, y] = [1n, 0n]
  while (b !== 0n) {
    const quotient = a / b
    ;[a, b] = [b, a - quotient * b]
    ;[x, y] = [y, x - quotient * y]
  }
  if (a !== 1n) throw valueError('base is not invertible for the given modulus')
  return x
}

/** Rounds half to even, at a digit before the point where `digits` is negative. */
function round(value: Whole | Float, digits: number, budget: Budget): Value {
  if (!isInteger(value)) {
    const number = toNumber(value)
    return float(Number.isFinite(number) ? roundTo(number, digits) : number)
  }
  if (digits >= 0) return value
  const text = BigInt(value).toString()
  if (-digits > text.length + 1) return 0
  const unit = 10n ** BigInt(-digits)
  const number = BigInt(value)
  const size = number < 0n ? -number : number
  let quotient = size / unit
  const twice = (size % unit) * 2n
  if (twice > unit || (twice === unit && quotient % 2n === 1n)) quotient += 1n
  return whole((number < 0n ? -quotient : quotient) * unit, budget)
}

function hexOf(value: Value): string {
  if (!isInteger(value)) throw typeError(`'${typeNameOf(value)}' object cannot be interpreted as an integer`)
  const number = BigInt(value)
  return number < 0n ? `-0x${(-number).toString(16)}` : `0x${number.toString(16)}`
}

export const math: readonly Overload[] = [
  fn('abs', [param('op', Num)], ([value], { budget }) => {
    if (!isInteger(value)) return float(Math.abs(toNumber(value)))
    const number = BigInt(value)
    return whole(number < 0n ? -number : number, budget)
  }),
  fn('sign', [param('num', Num)], ([value]) => {
    const number = toNumber(value)
    return number > 0 ? 1 : number < 0 ? -1 : 0
  }),
  fn('pow', [param('a', Num), param('b', Num), optional('c', orNull(Num), null)], ([a, b, c], { budget }) =>
    c === null ? power(a, b, budget) : powerModulo(a, b, c, budget),
  ),
  fn('round', [param('number', Num), optional('ndigits', Index, 0)], ([value, digits], { budget }) =>
    round(value, digits, budget),
  ),
  fn('max', [param('a', Any), param('b', Any)], ([a, b], runtime) =>
    runtime.isTrue(runtime.call('#operator_>', [b, a])) ? b : a,
  ),
  fn('min', [param('a', Any), param('b', Any)], ([a, b], runtime) =>
    runtime.isTrue(runtime.call('#operator_>', [b, a])) ? a : b,
  ),
  fn('random', [], () => float(Math.random())),
  fn('random', [param('from', Any), param('to', Any)], ([from, to]) => {
    if (!isNumber(from) || !isNumber(to)) throw typeError(`random() takes two whole numbers, not ${typeNameOf(from)}`)
    const [low, high] = [Math.ceil(toNumber(from)), Math.floor(toNumber(to))]
    if (high < low) throw valueError(`empty range for randrange() (${low}, ${high + 1}, ${high + 1 - low})`)
    return low + Math.floor(Math.random() * (high - low + 1))
  }),
  fn('hex', [param('num', orNull(Num))], ([value]) => hexOf(value)),
  bitwise('bitwiseAnd', (a, b) => a & b),
  bitwise('bitwiseOr', (a, b) => a | b),
  bitwise('bitwiseXor', (a, b) => a ^ b),
  fn('bitwiseNot', [param('arg', Int)], ([value], { budget }) => whole(~BigInt(value), budget)),
  fn('shiftBitsLeft', [param('value', Int), param('bitsNumber', Index)], ([value, bits], { budget }) => {
    if (bits < 0) throw valueError('negative shift count')
    if (bits + BigInt(value).toString(16).length * 4 > budget.limits.maxIntegerBits) throw tooBig(budget)
    return whole(BigInt(value) << BigInt(bits), budget)
  }),
  fn('shiftBitsRight', [param('value', Int), param('bitsNumber', Index)], ([value, bits], { budget }) => {
    if (bits < 0) throw valueError('negative shift count')
    return whole(BigInt(value) >> BigInt(bits), budget)
  }),
]
