/** Arithmetic, comparison, and what else operators do. */
import { compareText, Float, float, indexOfText, operate, sign, toNumber, type Budget } from '../../template/index.ts'
import { asSet, isSubset, makeDict, mappingGet } from '../equality.ts'
import { valueError, YaqlError } from '../error.ts'
import { isFound, searchPattern } from '../patterns.ts'
import { fn, param, rest, type Overload } from '../signature.ts'
import { TimeSpan } from '../temporal.ts'
import { keyError } from '../text.ts'
import {
  Any,
  Dictionary,
  Index,
  Items,
  List,
  NotNull,
  Null,
  Num,
  Regex,
  SetLike,
  Span,
  Text,
  Time,
  type ParameterType,
} from '../types.ts'
import { adopt, entriesOfMapping, isInteger, isTuple, ListValue, SetValue, type Value } from '../values.ts'
import { concatenate, contains } from './sequences.ts'
import { ownSet } from './sets.ts'

type Numeric = number | bigint | Float

const zeroDivision = (detail: string): YaqlError => new YaqlError('ZeroDivisionError', detail)

/** `left operator right` for numbers; two whole ones divide to a whole one. */
function arithmetic(operator: '+' | '-' | '*' | '/' | '%', left: Numeric, right: Numeric, budget: Budget): Value {
  const isWhole = isInteger(left) && isInteger(right)
  if ((operator === '/' || operator === '%') && toNumber(right) === 0) {
    if (operator === '/') throw zeroDivision(isWhole ? 'integer division or modulo by zero' : 'float division by zero')
    throw zeroDivision(isWhole ? 'integer modulo by zero' : 'float modulo')
  }
  // The values of numbers are the same in both languages.
  return operate(operator === '/' && isWhole ? '//' : operator, left, right, budget) as Value
}

const binary = (operator: '+' | '-' | '*' | '/' | '%', name: string = operator): Overload =>
  fn(`#operator_${name}`, [param('left', Num), param('right', Num)], ([left, right], { budget }) =>
    arithmetic(operator, left, right, budget),
  )

function repeatText(text: string, count: number, budget: Budget): string {
  const times = Math.max(0, count)
  budget.text(text.length * times)
  return text === '' ? '' : text.repeat(times)
}

function repeatItems(items: readonly unknown[], count: number, budget: Budget): Value {
  const times = Math.max(0, count)
  budget.items(items.length * times)
  const result: Value[] = items instanceof ListValue ? new ListValue() : []
  if (items.length > 0) for (let at = 0; at < times; at += 1) for (const item of items) result.push(adopt(item))
  return result
}

/** A duration of so many microseconds, rounded half to even. */
export function spanOf(micros: number): TimeSpan {
  if (!Number.isFinite(micros)) throw valueError('a duration must be finite')
  const near = Math.round(micros)
  const even = Math.abs(micros % 1) === 0.5 && near % 2 !== 0 ? near - 1 : near
  return new TimeSpan(BigInt(even))
}

function scale(span: TimeSpan, factor: Numeric): TimeSpan {
  if (isInteger(factor)) return new TimeSpan(span.micros * BigInt(factor))
  return spanOf(Number(span.micros) * toNumber(factor))
}

function divideSpan(span: TimeSpan, by: Numeric): TimeSpan {
  if (toNumber(by) === 0) throw zeroDivision(isInteger(by) ? 'division by zero' : 'float division by zero')
  return spanOf(Number(span.micros) / toNumber(by))
}

const plus: readonly Overload[] = [
  binary('+'),
  fn('#operator_+', [param('left', Items), param('right', Items)], ([left, right], runtime) => {
    const { budget } = runtime
    if (isTuple(left) && isTuple(right) && !(left instanceof ListValue) && !(right instanceof ListValue)) {
      budget.items(left.length + right.length)
      return [...left, ...right]
    }
    if (left instanceof SetValue && right instanceof SetValue) {
      budget.step(left.items.size + right.items.size)
      return new SetValue(new Map([...left.items, ...right.items]))
    }
    return runtime.lazy(concatenate([left, right], runtime))
  }),
  fn('#operator_+', [rest('args', Text)], ([texts], { budget }) => {
    budget.text(texts.reduce((length, text) => length + text.length, 0))
    return texts.join('')
  }),
  fn('#operator_+', [param('left', Dictionary), param('right', Dictionary)], ([left, right], { budget }) => {
    const entries = function* (): Generator<readonly [Value, Value]> {
      yield* entriesOfMapping(left)
      yield* entriesOfMapping(right)
    }
    return makeDict(entries(), budget)
  }),
  fn('#operator_+', [param('ts1', Span), param('ts2', Span)], ([a, b]) => new TimeSpan(a.micros + b.micros)),
  fn('#operator_+', [param('dt', Time), param('ts', Span)], ([time, span]) => time.plus(span.micros)),
  fn('#operator_+', [param('ts', Span), param('dt', Time)], ([span, time]) => time.plus(span.micros)),
]

const minus: readonly Overload[] = [
  binary('-'),
  fn('#operator_-', [param('left', SetLike), param('right', SetLike)], ([left, right], { budget }) => {
    const without = asSet(right, budget).items
    budget.step(without.size)
    return new SetValue(new Map([...ownSet(left, 'difference').items].filter(([hash]) => !without.has(hash))))
  }),
  fn('#operator_-', [param('dt1', Time), param('dt2', Time)], ([a, b]) => new TimeSpan(a.instant - b.instant)),
  fn('#operator_-', [param('ts1', Span), param('ts2', Span)], ([a, b]) => new TimeSpan(a.micros - b.micros)),
  fn('#operator_-', [param('dt', Time), param('ts', Span)], ([time, span]) => time.plus(-span.micros)),
]

const times: readonly Overload[] = [
  binary('*'),
  fn('#operator_*', [param('left', Text), param('right', Index)], ([text, count], { budget }) =>
    repeatText(text, count, budget),
  ),
  fn('#operator_*', [param('left', Index), param('right', Text)], ([count, text], { budget }) =>
    repeatText(text, count, budget),
  ),
  fn('#operator_*', [param('left', List), param('right', Index)], ([items, count], { budget }) =>
    repeatItems(items, count, budget),
  ),
  fn('#operator_*', [param('left', Index), param('right', List)], ([count, items], { budget }) =>
    repeatItems(items, count, budget),
  ),
  fn('#operator_*', [param('ts', Span), param('n', Num)], ([span, factor]) => scale(span, factor)),
  fn('#operator_*', [param('n', Num), param('ts', Span)], ([factor, span]) => scale(span, factor)),
]

const over: readonly Overload[] = [
  binary('/'),
  binary('%', 'mod'),
  fn('#operator_/', [param('ts', Span), param('n', Num)], ([span, by]) => divideSpan(span, by)),
  fn('#operator_/', [param('ts1', Span), param('ts2', Span)], ([a, b]) => {
    if (b.micros === 0n) throw zeroDivision('float division by zero')
    return float(Number(a.micros) / Number(b.micros))
  }),
]

const unary: readonly Overload[] = [
  fn('#unary_operator_-', [param('op', Num)], ([value], { budget }) => sign(value, true, budget) as Value),
  fn('#unary_operator_+', [param('op', Num)], ([value]) => value),
  fn('#unary_operator_-', [param('ts', Span)], ([span]) => new TimeSpan(-span.micros)),
  fn('#unary_operator_+', [param('ts', Span)], ([span]) => span),
  fn('#unary_operator_not', [param('arg', Any)], ([value], runtime) => !runtime.isTrue(value)),
]

type Order = '<' | '<=' | '>' | '>='
const orders: readonly Order[] = ['<', '<=', '>', '>=']

function holds(operator: Order, difference: number): boolean {
  switch (operator) {
    case '<':
      return difference < 0
    case '<=':
      return difference <= 0
    case '>':
      return difference > 0
    case '>=':
      return difference >= 0
  }
}

/** Below zero, zero, above; NaN where a number is none. */
export function compareNumbers(left: Numeric, right: Numeric): number {
  const [a, b] = [left instanceof Float ? left.value : left, right instanceof Float ? right.value : right]
  if (a < b) return -1
  if (a > b) return 1
  return a == b ? 0 : Number.NaN
}

const sizeOf = (value: bigint): number => (value < 0n ? -1 : value > 0n ? 1 : 0)

function comparison(operator: Order): readonly Overload[] {
  const compare = <A, B>(
    left: ParameterType<A>,
    right: ParameterType<B>,
    order: (left: A, right: B, budget: Budget) => number,
  ): Overload =>
    fn(`#operator_${operator}`, [param('left', left), param('right', right)], ([a, b], { budget }) =>
      holds(operator, order(a, b, budget)),
    )
  return [
    compare(Num, Num, compareNumbers),
    compare(Text, Text, (a, b, budget) => {
      budget.work(Math.min(a.length, b.length))
      return compareText(a, b)
    }),
    compare(Time, Time, (a, b) => sizeOf(a.instant - b.instant)),
    compare(Span, Span, (a, b) => sizeOf(a.micros - b.micros)),
    // Null comes before everything else.
    compare(Null, Null, () => 0),
    compare(Null, NotNull, () => -1),
    compare(NotNull, Null, () => 1),
    fn(`#operator_${operator}`, [param('left', SetLike), param('right', SetLike)], ([a, b], { budget }) => {
      const [left, right] = [asSet(a, budget), asSet(b, budget)]
      const [small, large] = operator.startsWith('<') ? [left, right] : [right, left]
      const isProper = operator.length === 1 ? small.items.size < large.items.size : true
      return isProper && isSubset(small, large, budget)
    }),
  ]
}

const equality: readonly Overload[] = [
  fn('*equal', [param('left', Any), param('right', Any)], ([a, b], runtime) => runtime.equals(a, b)),
  fn('*not_equal', [param('left', Any), param('right', Any)], ([a, b], runtime) => !runtime.equals(a, b)),
]

const membership: readonly Overload[] = [
  fn('#operator_in', [param('left', Text), param('right', Text)], ([part, whole], { budget }) => {
    budget.work(whole.length)
    return indexOfText(whole, part) >= 0
  }),
  fn('#operator_in', [param('value', Any), param('collection', Items)], ([value, items], runtime) =>
    contains(items, value, runtime),
  ),
]

const matching: readonly Overload[] = (['=~', '!~'] as const).flatMap((operator) => [
  fn(
    `#operator_${operator}`,
    [param('string', Text), param('pattern', Text)],
    ([text, pattern], { budget }) => isFound(searchPattern(pattern, {}, budget), text, budget) === (operator === '=~'),
  ),
  fn(
    `#operator_${operator}`,
    [param('string', Text), param('regexp', Regex)],
    ([text, regex], { budget }) => isFound(regex.compiled, text, budget) === (operator === '=~'),
  ),
])

const indexing: readonly Overload[] = [
  fn('#indexer', [param('list', List), param('index', Index)], ([items, index]) => {
    const item: unknown = items.at(index)
    if (index >= items.length || index < -items.length) {
      const name = items instanceof ListValue ? 'list' : 'tuple'
      throw new YaqlError('IndexError', `${name} index out of range`)
    }
    return adopt(item)
  }),
  fn('#indexer', [param('dict', Dictionary), param('key', Any)], ([mapping, key], { budget }) => {
    const value = mappingGet(mapping, key, budget)
    if (value === undefined) throw keyError(key, budget)
    return value
  }),
  fn(
    '#indexer',
    [param('dict', Dictionary), param('key', Any), param('default', Any)],
    ([mapping, key, fallback], { budget }) => {
      const value = mappingGet(mapping, key, budget)
      return value === undefined ? fallback : value
    },
  ),
]

export const operators: readonly Overload[] = [
  ...plus,
  ...minus,
  ...times,
  ...over,
  ...unary,
  ...orders.flatMap(comparison),
  ...equality,
  ...membership,
  ...matching,
  ...indexing,
]
