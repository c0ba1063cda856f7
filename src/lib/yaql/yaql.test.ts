import { describe, expect, test } from 'vitest'
import { readJson } from '../json/index.ts'
import { Budget, defaultLimits, Float } from '../template/index.ts'
import {
  declarations,
  evaluate,
  FunctionTable,
  namedRest,
  optional,
  param,
  parse,
  partsOf,
  textOf,
  toData,
  types,
  YaqlError,
  type Value,
} from './index.ts'

const budget = (): Budget => new Budget(defaultLimits, 'the expression')
const value = (text: string, root?: unknown): Value => evaluate(parse(text), { root })

function failure(text: string): Pick<YaqlError, 'errorClass' | 'message' | 'position'> {
  try {
    value(text)
  } catch (error) {
    if (error instanceof YaqlError) return error
    throw error
  }
  throw new Error('the expression has a value')
}

describe('functions of a host', () => {
  interface Host {
    variables: Record<string, unknown>
    asked: string[]
  }
  const { fn, method } = declarations<Host>()
  const functions = new FunctionTable<Host>([
    fn('ctx', [optional('key', types.Any, null)], ([key], { host }) => {
      if (typeof key === 'string') host.asked.push(key)
      return typeof key === 'string' ? (host.variables[key] as Value) : (host.variables as Value)
    }),
    fn('find', [param('key', types.Text), namedRest('more', types.Any)], ([key, more]) => [key, ...more.keys()]),
    fn('len', [param('text', types.Text)], () => -1),
    method('shout', [param('text', types.Text)], ([text]) => `${text.toUpperCase()}!`),
    fn('twice', [param('body', types.Fn)], ([body], runtime) =>
      runtime.call('#operator_+', [body.call([1]), body.call([2])]),
    ),
  ])
  const run = (text: string): unknown => {
    const host = { variables: { x: 1, l: [1, 2] }, asked: [] }
    return toData(evaluate(parse(text), { functions, host }), budget())
  }

  test('are called with typed arguments', () => {
    expect(run('ctx().x + ctx(x)')).toBe(2)
    expect(run("find(a, b => 1, 'c' => 2)".replace("'c'", 'c'))).toEqual(['a', 'b', 'c'])
    expect(run('twice($ * 10)')).toBe(30)
    expect(run('a.shout()')).toBe('A!')
  })

  test('hide those of the library where they fit', () => {
    expect(run('len(abc)')).toBe(-1)
    expect(run('len([1, 2])')).toBe(2)
    expect(run('abc.len()')).toBe(3)
  })

  test('report arguments that do not fit', () => {
    expect(() => run('find(1)')).toThrow('No function "find" matches supplied arguments')
    expect(() => run('1.shout()')).toThrow('No method "shout" for receiver 1 matches supplied arguments')
  })
})

describe('errors', () => {
  test('say where the mistake is', () => {
    expect(failure('1 + + ]')).toMatchObject({ errorClass: 'YaqlGrammarException', position: 6 })
    expect(failure('f(')).toMatchObject({ message: 'Parse error: unexpected end of statement', position: 2 })
    expect(failure('1 + nope(2)')).toMatchObject({ errorClass: 'NoFunctionRegisteredException', position: 4 })
  })

  test('count characters, not units', () => {
    expect(failure("'🐎' ;").message).toBe("Lexical error: illegal character ';' at position 4")
  })

  test('the first mistake is the one that is reported', () => {
    expect(failure('1 2 ;').message).toMatch(/^Parse error: unexpected '2' at position 2/)
  })

  test('a missing key is told apart', () => {
    expect(failure('{a => 1}.b')).toMatchObject({ errorClass: 'KeyError', message: 'b' })
  })

  test('what is not data cannot be used', () => {
    expect(() => value('$', new Date())).toThrow('an object that is not plain data cannot be used in an expression')
  })
})

describe('values', () => {
  test('numbers keep their kind and their digits', () => {
    expect(value('1.0')).toEqual(new Float(1))
    expect(value('9007199254740993 + 0')).toBe(9007199254740993n)
    expect(textOf(value('[1, 1.0, 1e]'.replace(', 1e', '')), 'result', budget())).toBe('[1, 1.0]')
    const data = toData(value('[$.a, $.b, $.c]', readJson('{"a": 1.0, "b": 12345678901234567890, "c": 1}')), budget())
    expect((data as unknown[]).map(String)).toEqual(['1.0', '12345678901234567890', '1'])
  })

  test('data has the prototype of nothing', () => {
    expect(failure("{a => 1}.get('__proto__').x")).toMatchObject({ message: 'Unknown function "#property#x"' })
    expect(value("$.get('constructor')", {})).toBe(null)
    expect(Object.getPrototypeOf(toData(value('dict([[a, 1]])'), budget()))).toBe(null)
  })

  test('have a JSON form, or say that they have none', () => {
    expect(toData(value('[set(1), datetime(2024, 1, 2), {1 => null, true => 2}]'), budget())).toEqual([
      [1],
      '2024-01-02T00:00:00+00:00',
      { 1: 2 },
    ])
    expect(() => toData(value('timespan(hours => 1)'), budget())).toThrow('datetime.timedelta has no JSON form')
  })

  test('print as lists outside and as tuples inside', () => {
    const list = value("[str([1, 'a']), [1, [true]]]")
    expect(textOf(list, 'result', budget())).toBe(`["(1, 'a')", [1, [True]]]`)
  })

  test('keys of data keep their order', () => {
    expect(textOf(value('$', readJson('{"b": 1, "1": 2}')), 'result', budget())).toBe("{'b': 1, '1': 2}")
  })
})

describe('sequences', () => {
  test('are read once', () => {
    expect(toData(value('let(x => range(3)) -> [$x.len(), $x.len()]'), budget())).toEqual([3, 0])
    expect(toData(value('let(x => range(3).memorize()) -> [$x.sum(), $x.sum()]'), budget())).toEqual([3, 3])
  })

  test('are read as far as they are needed', () => {
    expect(value('[1, 0].select(1 / $).first()')).toBe(1)
    expect(value('sequence().where($ > 5).first()')).toBe(6)
  })
})

test('times are formatted and parsed', () => {
  expect(value("datetime(2024, 1, 2, 15, 4).format('%a %b %d %Y %j %U %W %V %I %p %z %q')")).toBe(
    'Tue Jan 02 2024 002 00 01 01 03 PM +0000 %q',
  )
  expect(textOf(value("datetime('1 Feb 2024, 3:04 PM +0130', '%d %b %Y, %I:%M %p %z')"), 'result', budget())).toBe(
    '2024-02-01 15:04:00+01:30',
  )
  expect(failure("datetime('x', '%Y')").message).toBe("time data 'x' does not match format '%Y'")
})

test('dates in numbers have the month first, unless it cannot be one', () => {
  const dates = value("['02/03/2024', '29/02/2024', '29.02.2024', '2-29-2024 10:30'].select(str(datetime($)))")
  expect(toData(dates, budget())).toEqual([
    '2024-02-03 00:00:00+00:00',
    '2024-02-29 00:00:00+00:00',
    '2024-02-29 00:00:00+00:00',
    '2024-02-29 10:30:00+00:00',
  ])
})

test('rules follow values, with one comma too many at most', () => {
  expect(value('let(1,, x => 2) -> $ + $x')).toBe(3)
  expect(failure('let(, x => 2)').message).toMatch(/^Parse error: unexpected '=>' at position 8/)
  expect(failure('let(1,,, x => 2)').message).toMatch(/^Parse error: unexpected '=>' at position 11/)
})

test('functions see the place of their definition', () => {
  expect(value('let(x => 4) -> def(f, $x) -> f()')).toBe(4)
  expect(value('def(f, $x) -> let(x => 4) -> f()')).toBe(null)
})

test('keys are compared only where they decide', () => {
  expect(toData(value('[[2, a], [1, b]].orderBy($[0]).thenBy($.nope).select($[1])'), budget())).toEqual(['b', 'a'])
})

test.each([
  // A call that nothing fits is no call: its arguments are not evaluated.
  ["[].first().'a'", 'NoMatchingFunctionException'],
  ['[].first().5', 'NoMatchingFunctionException'],
  ['[].first().(a)', 'NoMatchingFunctionException'],
  ['[].first().$', 'NoMatchingFunctionException'],
  ['true + [].first()', 'NoMatchingFunctionException'],
  ["[].first()?.'a'", 'StopIteration'],
  ['[].first().len()', 'StopIteration'],
  ['(true) + [].first()', 'StopIteration'],
])('the first mistake of %s is a %s', (text, errorClass) => {
  expect(failure(text).errorClass).toBe(errorClass)
})

test('merged lists keep the order of their items', () => {
  const json = (text: string): unknown => toData(value(text), budget())
  expect(json('{a => [3, 1, 3]}.mergeWith({a => [2, 1]})')).toEqual({ a: [3, 1, 2] })
  expect(json('{a => {b => [9, 0]}}.mergeWith({a => {b => [1, 0]}})')).toEqual({ a: { b: [9, 0, 1] } })
})

test('a splitted text can be split from the end', () => {
  expect(
    toData(value("['aaa'.rightSplit('aa', 1), '  a b'.rightSplit(null, 1), 'a b c'.rightSplit(' ', 1)]"), budget()),
  ).toEqual([
    ['a', ''],
    ['  a', 'b'],
    ['a b', 'c'],
  ])
})

test('an expression can be asked what it calls', () => {
  const names: string[] = []
  for (const part of partsOf(parse("ctx().a + ctx(b).where($.x = item(c)) -> {k => f('d')}"))) {
    if (part.kind === 'call' && !part.name.startsWith('#')) names.push(part.name)
  }
  expect(names).toEqual(['ctx', 'ctx', 'where', '*equal', 'item', 'f'])
})
