/** The types of parameters: what they accept decides which overload of a function is called. */
import type { Float } from '../template/index.ts'
import { RegexValue } from './regex-value.ts'
import type { Lambda, Rule } from './scope.ts'
import { DateTime, TimeSpan } from './temporal.ts'
import {
  isInteger,
  isIterable,
  isMapping,
  isNumber,
  isSetLike,
  isTuple,
  Iteration,
  Ordered,
  Repeatable,
  type Mapping,
  type SetValue,
  type DictView,
  type Value,
} from './values.ts'

export interface ParameterType<T> {
  readonly name: string
  /** How the argument is handed over: evaluated, as a function of it, or as the two sides of `key => value`. */
  readonly form: 'value' | 'lambda' | 'rule'
  readonly isNullable: boolean
  accepts(value: Value): boolean
  /** From an accepted value. */
  convert(value: Value): T
  /** Names of the types that accept everything that this one does, and more. */
  readonly wider: readonly string[]
}

function type<T>(
  name: string,
  accepts: (value: Value) => boolean,
  convert: (value: Value) => T,
  wider: readonly string[] = [],
): ParameterType<T> {
  return {
    name,
    form: 'value',
    isNullable: false,
    accepts: (value) => value !== null && accepts(value),
    convert,
    wider: [...wider, 'object'],
  }
}

/** For types whose check says that the value already is what the parameter needs. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters
const as = <T>(value: Value): T => value as T

/** The same type, with null. */
export function orNull<T>(base: ParameterType<T>): ParameterType<T | null> {
  return {
    ...base,
    isNullable: true,
    accepts: (value) => value === null || base.accepts(value),
    convert: (value) => (value === null ? null : base.convert(value)),
  }
}

type Whole = number | bigint

const wholeOf = (value: Value): Whole => (typeof value === 'boolean' ? Number(value) : as<Whole>(value))

const accepted = (): boolean => true

/** Everything but null. */
export const NotNull = type<Exclude<Value, null>>('object', accepted, as)
/** Everything. */
export const Any: ParameterType<Value> = orNull(NotNull)
export const Null: ParameterType<null> = {
  ...type<null>('NoneType', accepted, () => null),
  isNullable: true,
  accepts: (value) => value === null,
}
export const Text = type<string>('String', (value) => typeof value === 'string', as)
export const Bool = type<boolean>('bool', (value) => typeof value === 'boolean', as, ['int'])
/** A number; booleans are none. */
export const Num = type<number | bigint | Float>('Number', isNumber, as)
/** A whole number; booleans are none. */
export const Integer = type<Whole>('Integer', isInteger, as)
/** A whole number; booleans are 0 and 1. */
export const Int = type<Whole>('int', (value) => isInteger(value) || typeof value === 'boolean', wholeOf)
/** As `Int`, with booleans as they are. */
export const WholeOrBool = type<Whole | boolean>('int', (value) => Int.accepts(value), as)
/** As `Int`, for positions and counts. */
export const Index = type<number>(
  'int',
  (value) => Int.accepts(value),
  (value) => {
    const whole = Number(wholeOf(value))
    return Math.max(Number.MIN_SAFE_INTEGER, Math.min(Number.MAX_SAFE_INTEGER, whole))
  },
)
export const Items = type<Value>('Iterable', isIterable, as)
/** A collection whose items have an order. */
export const Ordinal = type<Value>('Iterable', (value) => isIterable(value) && !isSetLike(value), as)
export const List = type<readonly unknown[]>('Sequence', isTuple, as, ['Iterable'])
export const IteratorValue = type<Value>(
  'Iterator',
  (value) => value instanceof Iteration || (value instanceof Repeatable && !(value instanceof Ordered)),
  as,
  ['Iterable'],
)
/** What `orderBy` gives. */
export const Ordering = type<Ordered>('OrderingIterable', (value) => value instanceof Ordered, as, ['Iterable'])
export const Dictionary = type<Mapping>('Mapping', isMapping, as)
export const SetLike = type<SetValue | DictView>('Set', isSetLike, as, ['Iterable'])
export const Regex = type<RegexValue>('Pattern', (value) => value instanceof RegexValue, as)
export const Span = type<TimeSpan>('timedelta', (value) => value instanceof TimeSpan, as)
export const Time = type<DateTime>('datetime', (value) => value instanceof DateTime, as)

/** The expression itself, to be called with values. */
export const Fn: ParameterType<Lambda> = {
  name: 'Lambda',
  form: 'lambda',
  isNullable: true,
  accepts: accepted,
  // What was evaluated already is wrapped before it gets here.
  convert: (value) => value as unknown as Lambda,
  wider: [],
}

/** `key => value`. */
export const KeyValue: ParameterType<Rule> = {
  name: 'MappingRule',
  form: 'rule',
  isNullable: false,
  accepts: () => false,
  convert: (value) => value as unknown as Rule,
  wider: [],
}

/** Whether the first type is the more special of two that accept the same value. */
export function isSpecial(first: ParameterType<unknown>, second: ParameterType<unknown>): boolean {
  return first.wider.includes(second.name) && !second.wider.includes(first.name)
}
