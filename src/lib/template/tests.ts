import { bind, numberArgument, signature } from './arguments.ts'
import { compare, contains, equals } from './compare.ts'
import { operate } from './arithmetic.ts'
import type { Runtime } from './filters/filter.ts'
import { isIterable } from './iteration.ts'
import type { Budget } from './limits.ts'
import { isMapping } from './mapping.ts'
import { isLower, isUpper } from './methods.ts'
import { textOf } from './text.ts'
import {
  Callable,
  isFloatValue,
  isIntegerValue,
  isList,
  isNumeric,
  Members,
  RangeValue,
  Sequence,
  Undefined,
  type Call,
  type Value,
} from './values.ts'

/** A test of `x is name`. */
export type TemplateTest = (value: Value, call: Call, runtime: Runtime) => boolean

function test(
  name: string,
  parameters: string,
  run: (value: Value, args: readonly (Value | undefined)[], runtime: Runtime) => boolean,
): [string, TemplateTest] {
  const expected = signature(parameters)
  const what = `the test '${name}'`
  return [name, (value, call, runtime) => run(value, bind(what, expected, call), runtime)]
}

function comparison(
  names: readonly string[],
  operator: string,
  holds: (order: number) => boolean,
): [string, TemplateTest][] {
  return names.map((name) =>
    test(name, 'other', (value, [other = null], { budget }) => holds(compare(value, other, operator, budget))),
  )
}

function equality(names: readonly string[], wanted: boolean): [string, TemplateTest][] {
  return names.map((name) =>
    test(name, 'other', (value, [other = null], { budget }) => equals(value, other, budget) === wanted),
  )
}

function chargedText(value: Value, budget: Budget): string {
  const text = textOf(value, budget)
  budget.work(text.length)
  return text
}

function leavesRest(what: string, value: Value, by: Value, rest: number, { budget }: Runtime): boolean {
  numberArgument(`the test '${what}'`, value)
  return equals(operate('%', value, by, budget), rest, budget)
}

/** Every test by name; `filter` and `test` are answered by the evaluator, which knows the names. */
export const tests: ReadonlyMap<string, TemplateTest> = new Map([
  test('defined', '', (value) => !(value instanceof Undefined)),
  test('undefined', '', (value) => value instanceof Undefined),
  test('none', '', (value) => value === null),
  test('boolean', '', (value) => typeof value === 'boolean'),
  test('true', '', (value) => value === true),
  test('false', '', (value) => value === false),
  test('integer', '', (value) => isIntegerValue(value)),
  test('float', '', (value) => isFloatValue(value)),
  test('number', '', (value) => isNumeric(value)),
  test('string', '', (value) => typeof value === 'string'),
  test('mapping', '', (value) => isMapping(value)),
  test('iterable', '', (value) => {
    if (value instanceof Undefined) value.raise()
    return isIterable(value)
  }),
  test('sequence', '', (value) => {
    const isTuple = value instanceof Sequence && value.typeName === 'tuple'
    return typeof value === 'string' || isList(value) || isTuple || value instanceof RangeValue || isMapping(value)
  }),
  test('callable', '', (value) => value instanceof Callable || (value instanceof Members && value.callable)),
  test('sameas', 'other', (value, [other = null]) => value === other),
  test('escaped', '', () => false),
  test('lower', '', (value, _args, { budget }) => isLower(chargedText(value, budget))),
  test('upper', '', (value, _args, { budget }) => isUpper(chargedText(value, budget))),
  test('odd', '', (value, _args, runtime) => leavesRest('odd', value, 2, 1, runtime)),
  test('even', '', (value, _args, runtime) => leavesRest('even', value, 2, 0, runtime)),
  test('divisibleby', 'num', (value, [by = null], runtime) => leavesRest('divisibleby', value, by, 0, runtime)),
  test('in', 'seq', (value, [container = null], { budget }) => contains(container, value, budget)),
  ...equality(['eq', '==', 'equalto'], true),
  ...equality(['ne', '!='], false),
  ...comparison(['lt', '<', 'lessthan'], '<', (order) => order < 0),
  ...comparison(['le', '<='], '<=', (order) => order <= 0),
  ...comparison(['gt', '>', 'greaterthan'], '>', (order) => order > 0),
  ...comparison(['ge', '>='], '>=', (order) => order >= 0),
])
