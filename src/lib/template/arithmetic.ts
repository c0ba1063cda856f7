import type { BinaryOperator } from './ast.ts'
import { limitError, typeError } from './error.ts'
import { formatPercent } from './format.ts'
import type { Budget } from './limits.ts'
import {
  adopt,
  float,
  isList,
  isNumeric,
  isWhole,
  toNumber,
  Sequence,
  typeNameOf,
  Undefined,
  type Value,
} from './values.ts'

/** Throws LIMIT for a whole number beyond the budget; a safe one becomes a plain number. */
export function integer(value: bigint, budget: Budget): number | bigint {
  if (value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(value)
  if (value.toString(16).length * 4 > budget.limits.maxIntegerBits) throw tooBig(budget)
  return value
}

const tooBig = (budget: Budget): Error =>
  limitError(`a number would have more than ${budget.limits.maxIntegerBits} bits`)

const zeroDivision = (message: string): Error => typeError(message, 'ZeroDivisionError')

/** `left operator right` of Python. */
export function operate(operator: BinaryOperator, left: Value, right: Value, budget: Budget): Value {
  if (typeof left === 'number' && typeof right === 'number' && Number.isInteger(left) && Number.isInteger(right)) {
    const quick =
      operator === '+' ? left + right : operator === '-' ? left - right : operator === '*' ? left * right : NaN
    // Adding zero turns -0 into 0: only data holds a whole -0.
    if (Number.isSafeInteger(quick)) return quick + 0
  }
  if (left instanceof Undefined) left.raise()
  if (right instanceof Undefined) right.raise()
  if (operator === '%' && typeof left === 'string') return formatPercent(left, right, budget)
  if (isNumeric(left) && isNumeric(right)) {
    if (isWhole(left) && isWhole(right)) return operateWhole(operator, BigInt(left), BigInt(right), budget)
    return operateFloat(operator, toNumber(left), toNumber(right))
  }
  if (operator === '+') return join(left, right, budget)
  if (operator === '*') return repeat(left, right, budget)
  throw unsupported(operator, left, right)
}

function unsupported(operator: BinaryOperator, left: Value, right: Value): Error {
  return typeError(`unsupported operand type(s) for ${operator}: '${typeNameOf(left)}' and '${typeNameOf(right)}'`)
}

function operateWhole(operator: BinaryOperator, a: bigint, b: bigint, budget: Budget): Value {
  switch (operator) {
    case '+':
      return integer(a + b, budget)
    case '-':
      return integer(a - b, budget)
    case '*':
      return integer(a * b, budget)
    case '/':
      if (b === 0n) throw zeroDivision('division by zero')
      return float(divideWhole(a, b))
    case '//':
      return integer(floorDivide(a, b), budget)
    case '%':
      if (b === 0n) throw zeroDivision('integer modulo by zero')
      return integer(a - floorDivide(a, b) * b, budget)
    case '**':
      if (b < 0n) return operateFloat('**', Number(a), Number(b))
      if ((a > 1n || a < -1n) && b * BigInt(a.toString(2).length - (a < 0n ? 2 : 1)) > budget.limits.maxIntegerBits) {
        throw tooBig(budget)
      }
      // Making and printing a large number takes as long as a text of many characters.
      if (a > 1n || a < -1n) budget.work(Number(b) * a.toString(2).length)
      return integer(a ** b, budget)
  }
}

function finite(value: number): number {
  if (!Number.isFinite(value)) throw typeError('the number is too large for a float')
  return value
}

/** The double nearest to `a / b`, also where neither of them is one. */
function divideWhole(a: bigint, b: bigint): number {
  const [x, y] = [Number(a), Number(b)]
  if (Number.isSafeInteger(x) && Number.isSafeInteger(y)) return x / y
  const [top, bottom] = [a < 0n ? -a : a, b < 0n ? -b : b]
  // At least 61 bits of the quotient, the lowest of which stands for all that follow.
  const shift = 66 - 4 * (top.toString(16).length - bottom.toString(16).length)
  const [dividend, divisor] = shift > 0 ? [top << BigInt(shift), bottom] : [top, bottom << BigInt(-shift)]
  const quotient = (dividend / divisor) | (dividend % divisor === 0n ? 0n : 1n)
  // In two steps, as the smallest numbers need a power of two that is none of them.
  const result = finite(Number(quotient) * 2 ** -(shift >> 1) * 2 ** ((shift >> 1) - shift))
  return a < 0n === b < 0n ? result : -result
}

function floorDivide(a: bigint, b: bigint): bigint {
  if (b === 0n) throw zeroDivision('integer division or modulo by zero')
  const quotient = a / b
  return a % b !== 0n && a < 0n !== b < 0n ? quotient - 1n : quotient
}

function operateFloat(operator: BinaryOperator, a: number, b: number): Value {
  switch (operator) {
    case '+':
      return float(a + b)
    case '-':
      return float(a - b)
    case '*':
      return float(a * b)
    case '/':
      if (b === 0) throw zeroDivision('float division by zero')
      return float(a / b)
    case '//': {
      if (b === 0) throw zeroDivision('float floor division by zero')
      // Step by step as Python, since each step rounds.
      const rest = a % b
      const near = (a - rest) / b - (rest !== 0 && rest < 0 !== b < 0 ? 1 : 0)
      const quotient = Math.floor(near) + (near - Math.floor(near) > 0.5 ? 1 : 0)
      if (quotient !== 0) return float(quotient)
      return float(a / b < 0 || Object.is(a / b, -0) ? -0 : 0)
    }
    case '%':
      if (b === 0) throw zeroDivision('float modulo')
      return float(floorRest(a, b))
    case '**': {
      if (a === 0 && b < 0) throw zeroDivision('0.0 cannot be raised to a negative power')
      const power = a ** b
      if (Number.isNaN(power) && !Number.isNaN(a) && !Number.isNaN(b)) {
        throw typeError('a negative number cannot be raised to a fractional power')
      }
      if (!Number.isFinite(power) && Number.isFinite(a) && Number.isFinite(b)) {
        throw typeError('the result of ** is too large for a float', 'OverflowError')
      }
      return float(power)
    }
  }
}

/** The rest of a division that has the sign of the divisor. */
function floorRest(a: number, b: number): number {
  const rest = a % b
  if (rest === 0) return b < 0 ? -0 : 0
  return rest < 0 !== b < 0 ? rest + b : rest
}

function join(left: Value, right: Value, budget: Budget): Value {
  if (typeof left === 'string' && typeof right === 'string') {
    budget.text(left.length + right.length)
    return left + right
  }
  if (isList(left) && isList(right)) {
    budget.items(left.length + right.length)
    return [...left, ...right]
  }
  if (isTuple(left) && isTuple(right)) {
    budget.items(left.items.length + right.items.length)
    return new Sequence([...left.items, ...right.items])
  }
  if (typeof left === 'string') throw typeError(`can only concatenate str (not "${typeNameOf(right)}") to str; use ~`)
  throw unsupported('+', left, right)
}

function isTuple(value: Value): value is Sequence {
  return value instanceof Sequence && value.typeName === 'tuple'
}

function repeat(left: Value, right: Value, budget: Budget): Value {
  const [what, times] = isNumeric(left) ? [right, left] : [left, right]
  if (!isNumeric(times) || !isWhole(times)) throw unsupported('*', left, right)
  const count = Math.max(0, Number(times))
  if (typeof what === 'string') {
    budget.text(what.length * count)
    return what.repeat(what === '' ? 0 : count)
  }
  if (!isList(what) && !isTuple(what)) throw unsupported('*', left, right)
  const items = isList(what) ? what : what.items
  budget.items(items.length * count)
  const result: Value[] = []
  if (items.length > 0) for (let at = 0; at < count; at += 1) for (const item of items) result.push(adopt(item))
  return isList(what) ? result : new Sequence(result)
}

/** `-value` or `+value`. */
export function sign(value: Value, negative: boolean, budget: Budget): Value {
  if (value instanceof Undefined) value.raise()
  if (!isNumeric(value)) {
    throw typeError(`bad operand type for unary ${negative ? '-' : '+'}: '${typeNameOf(value)}'`)
  }
  if (isWhole(value)) return integer(negative ? -BigInt(value) : BigInt(value), budget)
  return negative ? float(-toNumber(value)) : value
}
