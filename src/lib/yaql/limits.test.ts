import { describe, expect, test } from 'vitest'
import { Budget, BudgetExhausted, defaultLimits } from '../template/index.ts'
import { evaluate, parse, textOf, YaqlError, type YaqlErrorClass } from './index.ts'

function outcome(text: string): YaqlErrorClass | 'value' {
  try {
    evaluate(parse(text))
    return 'value'
  } catch (error) {
    if (error instanceof BudgetExhausted) return limit
    if (error instanceof YaqlError) return error.errorClass
    throw error
  }
}

const limit = 'LimitExceededException'
const recursion = 'RecursionError'

describe('text that is too long or too deep is refused while it is parsed', () => {
  test.each([
    ['a chain of operators', Array.from({ length: 100_000 }, () => '1').join(' + ')],
    ['a chain within the limit of parts', Array.from({ length: 20_000 }, () => '1').join(' + ')],
    ['a chain of members', `a${'.b()'.repeat(9_000)}`],
    ['brackets', '['.repeat(40_000)],
    ['parentheses', `${'('.repeat(400)}1${')'.repeat(400)}`],
    ['prefixes', `${'not '.repeat(40_000)}true`],
    ['arrows', `${'let(1) -> '.repeat(9_000)}1`],
    ['text', `'${'x'.repeat(2_000_000)}'`],
  ])('%s', (_name, text) => {
    expect(outcome(text)).toBe(limit)
  })

  test('a number of too many digits', () => {
    expect(outcome('9'.repeat(10_000))).toBe('ValueError')
  })

  test('what is just within the bounds is evaluated', () => {
    expect(evaluate(parse(Array.from({ length: 390 }, () => '1').join(' + ')))).toBe(390)
    expect(evaluate(parse(`${'('.repeat(150)}1${')'.repeat(150)}`))).toBe(1)
  })
})

describe('work is bounded', () => {
  test.each([
    ['a sequence without end', 'sequence()'],
    ['the sum of one', 'sequence().sum()'],
    ['a search in one', 'sequence().where($ < 0).first()'],
    ['a repeated value', '1.repeat().toList()'],
    ['a cycle', '[1].cycle().len()'],
    ['a generator', 'generate(1, true, $ + 1)'],
    ['a generator that grows', 'generateMany(1, [$, $])'],
    ['a generator that grows in depth', 'generateMany(1, [$, $], depthFirst => true)'],
    ['a million items', 'range(1000000)'],
    ['a join of large collections', 'range(50000).join(range(50000), $1 = $2, $1)'],
    ['a list that doubles', 'range(40).aggregate([$1, $1], [1])'],
    ['a list that doubles, as text', 'str(range(40).aggregate([$1, $1], [1]))'],
    [
      'lists that double, compared',
      'let(x => range(150).aggregate([$1, $1], [1])) -> $x = range(150).aggregate([$1, $1], [1])',
    ],
    ['a list that doubles, as a key', 'range(150).aggregate([$1, $1], [1]).toSet()'],
    ['a list that doubles, flattened', 'range(150).aggregate([$1, $1], [1]).flatten().len()'],
    ['a text that doubles', "range(60).aggregate($1 + $1, 'xx')"],
    ['a text that doubles by replacement', "range(30).aggregate($1.replace('a', 'aa'), 'a')"],
    ['a repeated text', "'a' * 100000000000"],
    ['a repeated list', '[1] * 100000000000'],
    ['a list within lists', 'str(range(1000).aggregate([$1], [1]))'],
    ['a large power', 'pow(9, pow(9, 9))'],
    ['a large shift', 'shiftBitsLeft(1, 100000000000)'],
    ['a large product', "int('9' * 4000) * int('9' * 4000)"],
    ['many parts of a text', "('a ' * 500000).split(' ')"],
    ['many characters', "('ab' * 1000000).toCharArray()"],
    ['a long format', "now().format('%Y' * 2000000)"],
    ['a large pattern', "'x' =~ '((a{100}){100}){100}'"],
  ])('%s', (_name, text) => {
    expect(outcome(text)).toBe(limit)
  })

  test.each([
    ['nested repetition', "('a' * 40) =~ '(a+)+b'", false],
    ['nested alternatives', "(('a' * 40) + 'b') =~ '^(a|a)*$'", false],
    ['a long text', "('a' * 100000) =~ '(a|aa)+$'", true],
  ])('a regular expression that would run away has its answer: %s', (_name, text, answer) => {
    expect(evaluate(parse(text))).toBe(answer)
  })

  test('a budget can be shared and is used up', () => {
    const budget = new Budget({ ...defaultLimits, maxSteps: 100 }, 'the expression')
    const expression = parse('range(60).len()')
    expect(evaluate(expression, { budget })).toBe(60)
    expect(() => evaluate(expression, { budget })).toThrow(
      new BudgetExhausted('the expression needs more than 100 steps'),
    )
  })
})

describe('recursion is bounded', () => {
  test.each([
    ['a function that calls itself', 'def(f, f()) -> f()'],
    ['twice', 'def(f, f($ + 1) + f($)) -> f(1)'],
    ['by way of another one', 'def(a, def(b, a()) -> b()) -> a()'],
    ['deep recursion', 'def(f, switch($ = 0 => 0, true => f($ - 1))) -> f(500)'],
    ['sequences that read each other', 'range(390).aggregate($1.select($ + 1).where($ > 0), [1]).first()'],
    ['orders of orders', 'range(390).aggregate($1.select($).orderBy($), [1]).first()'],
  ])('%s', (_name, text) => {
    expect(outcome(text)).toBe(recursion)
  })

  test('a function may call itself', () => {
    expect(evaluate(parse('def(f, switch($ <= 1 => 1, true => $ * f($ - 1))) -> f(25)'))).toBe(
      15511210043330985984000000n,
    )
  })
})

test('a receiver is shortened in messages', () => {
  expect(() => evaluate(parse("('x' * 100000).nope()"))).toThrow(/^Unknown method "nope" for receiver x{400}…$/)
})

test('the text of a value is paid for', () => {
  const budget = new Budget({ ...defaultLimits, maxWork: 1000 }, 'the expression')
  const value = evaluate(parse('range(100)'))
  expect(() => textOf(value, 'result', budget)).toThrow('the expression handles more than 1000 characters of text')
})
