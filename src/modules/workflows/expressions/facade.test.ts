import { describe, expect, test } from 'vitest'
import { JsonNumber } from '../../../lib/json/index.ts'
import { Budget, BudgetExhausted, defaultLimits } from '../../../lib/template/index.ts'
import { evaluate, evaluateNative, ExpressionError, ExpressionExhausted, type Readings, type Scope } from './index.ts'

/** A scope that notes which variables it was asked for. */
function scopeWith(
  variables: Readonly<Record<string, unknown>>,
  more: Partial<Scope> = {},
): Scope & { asked: string[] } {
  const asked: string[] = []
  return {
    asked,
    variable(name) {
      asked.push(name)
      return variables[name]
    },
    variables() {
      asked.push('*')
      return variables
    },
    task: undefined,
    item: undefined,
    taskStatus: () => undefined,
    taskRecord: () => undefined,
    readKey: () => undefined,
    ...more,
  }
}

const budget = (limits: Partial<typeof defaultLimits> = {}): Budget => new Budget({ ...defaultLimits, ...limits })

function errorOf(run: () => unknown): unknown {
  try {
    run()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}

describe('a key that is no text', () => {
  const scope = scopeWith({ 1: 'one' }, { item: { a: 1 } })
  const messageOf = (text: string): unknown => errorOf(() => evaluate(text, scope, { budget: budget() }))

  test.each([
    ['<% ctx({a => 1}) %>', `The variable "{'a': 1}" is undefined.`],
    ['<% ctx([1, null]) %>', 'The variable "[1, None]" is undefined.'],
    ["{{ ctx(['a']) }}", `The variable "['a']" is undefined.`],
    ['<% ctx(1) %>', 'The variable "1" is undefined.'],
    ['<% item({a => 1}) %>', `Item does not have key "{'a': 1}".`],
    ['<% task([1]) %>', 'Unable to find task execution for "[1]".'],
  ])('names nothing: %s', (text, message) => {
    expect(messageOf(text)).toMatchObject({ message: expect.stringContaining(message) as string })
  })

  test.each(['<% ctx([]) %>', '<% ctx({}) %>', '<% ctx(0.0) %>', '{{ ctx([]) }}'])('is none if empty: %s', (text) => {
    expect(evaluate(text, scopeWith({ n: 1 }), { budget: budget() })).toEqual({ n: 1 })
  })
})

describe('texts that are read as YAML', () => {
  test.each([
    ['<% from_yaml_string(5) %>', 5],
    ['<% yaml_parse(null) %>', 'None'],
    ['{{ from_yaml_string([1, 2]) }}', [1, 2]],
  ])('may be other values: %s', (text, value) => {
    expect(evaluate(text, scopeWith({}), { budget: budget() })).toEqual(value)
  })

  test.each([
    ['a: [', 'ParserError'],
    ['- a\nb: 1', 'ParserError'],
    ['}', 'ParserError'],
    ['a: b: c', 'ScannerError'],
    ['a:\n\t- b', 'ScannerError'],
    ['"abc', 'ScannerError'],
    ['*x', 'ComposerError'],
    ['--- a\n--- b', 'ComposerError'],
    ['!!python/object:x {}', 'ConstructorError'],
    ['!foo a', 'ConstructorError'],
  ])('fail as under Python: %s', (yaml, className) => {
    const error = errorOf(() =>
      evaluate('<% from_yaml_string(ctx().y) %>', scopeWith({ y: yaml }), { budget: budget() }),
    )
    expect(error).toMatchObject({ message: expect.stringContaining(`'. ${className}: `) as string })
  })
})

describe('a value', () => {
  test('without expressions is returned as it is', () => {
    const value = { a: [1, { b: new JsonNumber('1.0') }], c: 'text', d: null }
    expect(evaluate(value, scopeWith({}), { budget: budget() })).toBe(value)
  })

  test('is evaluated in depth, keys too, and the parts without expressions are shared', () => {
    const value = { same: [1, 2], '{{ ctx().name }}': ['x{{ ctx().n }}', '{{ ctx().n }}'] }
    const result = evaluate(value, scopeWith({ name: 'key', n: 3 }), { budget: budget() }) as Record<string, unknown>
    expect(result).toEqual({ same: [1, 2], key: ['x3', 3] })
    expect(result['same']).toBe(value.same)
  })

  test('keeps numbers exact', () => {
    const big = new JsonNumber('9007199254740993')
    const scope = scopeWith({ big, f: new JsonNumber('1.0') })
    expect(evaluate('{{ ctx().big }}', scope, { budget: budget() })).toEqual(big)
    expect(evaluate('{{ ctx().f }}', scope, { budget: budget() })).toEqual(new JsonNumber('1.0'))
    expect(evaluate('{{ ctx().f }}!', scope, { budget: budget() })).toBe('1.0!')
  })

  test('that an expression reads is never evaluated itself', () => {
    const data = { jinja: '{{ 1 + 1 }}', block: '{% if true %}y{% endif %}', yaql: '<% 1 + 1 %>' }
    for (const [name, text] of Object.entries(data)) {
      expect(evaluate(`{{ ctx().${name} }}`, scopeWith(data), { budget: budget() })).toBe(text)
      expect(evaluate(`<% ctx().${name} %>`, scopeWith(data), { budget: budget() })).toBe(text)
      expect(evaluate(`<% ctx(${name}) %>.`, scopeWith(data), { budget: budget() })).toBe(`${text}.`)
      expect(evaluate(`{{ ctx('${name}') }}.`, scopeWith(data), { budget: budget() })).toBe(`${text}.`)
      expect(evaluate(`{% if true %}{{ ctx().${name} }}{% endif %}`, scopeWith(data), { budget: budget() })).toBe(text)
    }
  })
})

test('zip takes lists, texts, dictionaries and null', () => {
  const text = "{{ zip([1, 2], 'abc', {'k': 1}, none, pad='-') }}"
  const rows = [
    [1, 'a', 'k', '-'],
    [2, 'b', '-', '-'],
    ['-', 'c', '-', '-'],
  ]
  expect(evaluate(text, scopeWith({}), { budget: budget() })).toEqual(rows)
  expect(evaluate("<% zip([1, 2], 'abc', {k => 1}, null, pad => '-') %>", scopeWith({}), { budget: budget() })).toEqual(
    rows,
  )
  expect(evaluate('{{ zip([1], [2]) }}.', scopeWith({}), { budget: budget() })).toBe('[(1, 2)].')
  expect(evaluate(['{{ zip([1]) }}', '{{ [1] | zip([2]) }}'], scopeWith({}), { budget: budget() })).toEqual([
    [1],
    [[1, 2]],
  ])
})

test.each([
  ['{% raw %}{{ x }}{% endraw %}', '{{ x }}'],
  ['{{ 1 }} {% raw %}{{ x }}{% endraw %} {{ 2 }}', '1 {{ x }} 2'],
  ['{% raw %}{% endraw %}{{ 1 }}', '1'],
  ['{% if true %}{% raw %}{{ x }}{% endraw %}{{ 1 }}{% endif %}', '{{ x }}1'],
])('text within raw tags is no expression: %s', (text, value) => {
  expect(evaluate(text, scopeWith({}), { budget: budget() })).toBe(value)
})

test('around raw tags, each expression is evaluated by itself', () => {
  const text = '{{ a }} {% raw %}{{ x }}{% endraw %} {{ b }}'
  const message = 'There are unresolved variables: a, b'
  expect(errorOf(() => evaluate(text, scopeWith({}), { budget: budget() }))).toMatchObject({ message })
})

test('a block of a template stands where it is, and lines of statements leave no trace', () => {
  const text = '{% block a %}\n  {% if true %}\n{{ ctx().x }}\n  {% endif %}\n{% endblock %}'
  expect(evaluate(text, scopeWith({ x: 1 }), { budget: budget() })).toBe('1\n')
})

test('results of YAQL become JSON data', () => {
  const texts = ['<% set(1) %>', '<% {a => 1}.keys() %>', '<% datetime(2024, 2, 29) %>', '<% {1 => range(2)} %>']
  expect(evaluate(texts, scopeWith({}), { budget: budget() })).toEqual([
    [1],
    ['a'],
    '2024-02-29T00:00:00+00:00',
    { 1: [0, 1] },
  ])
})

describe('the scope', () => {
  test.each([
    ['{{ ctx().a.b }}', ['a']],
    ["{{ ctx()['a'] }}", ['a']],
    ["{{ ctx('a') }}", ['a']],
    ["{{ ctx().get('a') }}", ['a']],
    ['{{ ctx() | length }}', ['*']],
    ['{{ 1 }}', []],
    ['<% ctx().a.b %>', ['a']],
    ['<% ctx(a) %>', ['a']],
    ['<% ctx().get(a) %>', ['a']],
    ['<% ctx().len() %>', ['*']],
    ['<% 1 %>', []],
  ])('%s asks for no more than it reads', (text, asked) => {
    const scope = scopeWith({ a: { b: 1 }, other: 2 })
    evaluate(text, scope, { budget: budget() })
    expect([...new Set(scope.asked)].filter((name) => name !== 'get')).toEqual(asked)
  })

  test('is noted as it is read', () => {
    const readings: Readings = []
    const task = { name: 't', route: 0, status: 'failed', result: () => ({ code: 2 }) }
    const text = '<% failed() and result().code = ctx().limit and ctx(limit) = 2 and ctx().len() = 1 %>'
    evaluate(text, scopeWith({ limit: 2 }, { task }), { budget: budget(), readings })
    expect(readings).toEqual([
      { name: 'failed', args: [], value: true },
      { name: 'result', args: [], value: { code: 2 } },
      { name: 'ctx', args: ['limit'], value: 2 },
      { name: 'ctx', args: ['limit'], value: 2 },
      { name: 'ctx', args: [], value: { limit: 2 } },
    ])
  })

  test.each([
    ["{{ task_status('a', '1') }}", 'a:1'],
    ["{{ task_status('a', route=2) }}", 'a:2'],
    ["{{ task_status('a') }}", 'a:undefined'],
    ["{{ task_status('a', []) }}", 'a:-1'],
    ['{{ task_status(none) }}', 'null'],
    ['<% task_status(a, 3) %>', 'a:3'],
    ['<% task_status(taskId => a, route => null) %>', 'a:undefined'],
  ])('is asked for a task: %s', (text, value) => {
    const scope = scopeWith({}, { taskStatus: (name, route) => `${name}:${String(route)}` })
    expect(evaluate(text, scope, { budget: budget() })).toBe(value)
  })

  test('cannot be changed by an expression', () => {
    const variables = { list: [1, 2], map: { a: 1 } }
    const value = ['{{ ctx().list.pop() }}', '{{ ctx().list.append(3) }}', "{{ ctx().map.pop('a') }}"]
    expect(evaluate(value, scopeWith(variables), { budget: budget() })).toEqual([2, null, 1])
    expect(variables).toEqual({ list: [1, 2], map: { a: 1 } })
  })
})

describe('an error', () => {
  test('has a class and a message with the expression', () => {
    const error = errorOf(() => evaluate('a {{ 1 / 0 }}', scopeWith({}), { budget: budget() }))
    expect(error).toBeInstanceOf(ExpressionError)
    expect(error).toMatchObject({
      text: "JinjaEvaluationException: Unable to evaluate expression '{{ 1 / 0 }}'. ZeroDivisionError: division by zero",
    })
  })

  test.each([
    ['<% 1 / 0 %>', 'YaqlEvaluationException', 'ZeroDivisionError: integer division or modulo by zero'],
    ['<% ctx(nope) %>', 'YaqlEvaluationException', 'VariableUndefinedError: The variable "nope" is undefined.'],
    [
      '<% ctx(st2).user %>',
      'YaqlEvaluationException',
      'VariableUndefinedError: The variable "st2" is undefined. Its name here is "svc".',
    ],
    [
      "<% st2kv('system.a') %>",
      'YaqlEvaluationException',
      'NoFunctionRegisteredException: Unknown function "st2kv". Its name here is "svckv".',
    ],
    [
      "{{ st2kv('system.a') }}",
      'JinjaEvaluationException',
      `UndefinedError: 'st2kv' is undefined. Its name here is "svckv".`,
    ],
    ['<% json(5) %>', 'YaqlEvaluationException', 'TypeError: Given object is not typeof string.'],
    ['{{ json(5) }}', 'JinjaEvaluationException', 'TypeError: Given object is not typeof string.'],
    [
      '{{ succeeded(1) }}',
      'JinjaEvaluationException',
      'TypeError: succeeded() takes 0 positional arguments but 1 were given',
    ],
    ["{{ svckv('a', b=1) }}", 'JinjaEvaluationException', "TypeError: svckv() got an unexpected keyword argument 'b'"],
    ["{{ svckv('a') }}", 'JinjaEvaluationException', "KeyError: 'Could not get user from context.'"],
    ['{{ task() }}', 'JinjaEvaluationException', "KeyError: 'id'"],
  ])('of %s', (text, className, detail) => {
    const error = errorOf(() => evaluate(text, scopeWith({}), { budget: budget() }))
    expect(error).toMatchObject({ className, message: `Unable to evaluate expression '${text}'. ${detail}` })
  })

  test('of a value without a JSON form', () => {
    const text = '<% timespan(hours => 1) %>'
    expect(errorOf(() => evaluate(text, scopeWith({}), { budget: budget() }))).toMatchObject({ className: 'TypeError' })
    expect(evaluateNative(text, scopeWith({}), { budget: budget() })).toMatchObject({ micros: 3_600_000_000n })
  })

  test.each(['{{ range(5000) | sum }}', '<% range(5000).sum() %>'])(
    'of the budget: a larger one repairs %s',
    (text) => {
      const run = (maxSteps: number): unknown => evaluate(text, scopeWith({}), { budget: budget({ maxSteps }) })
      const error = errorOf(() => run(1000))
      expect(error).toBeInstanceOf(BudgetExhausted)
      expect(error).toBeInstanceOf(ExpressionExhausted)
      expect(error).toMatchObject({
        text: expect.stringContaining(`Unable to evaluate expression '${text}'.`) as string,
      })
      expect(run(100_000)).toBe(12_497_500)
    },
  )
})
