import { expect, test } from 'vitest'
import { findExpressions } from './index.ts'

test('a text without expressions has none', () => {
  for (const text of ['', 'plain', '{# note #}', '{{ a\n}}', '<% a\n%>', '{{', '{% x', '{{ 1 }']) {
    expect(findExpressions(text)).toEqual({ expressions: [], mistakes: [] })
  }
})

test('Jinja: blocks, variables and calls', () => {
  expect(findExpressions("a {{ ctx().x | upper }} {{ zip(ctx('y'), ctx(z), xctx(no), ctx().get(no)) }}")).toEqual({
    expressions: [
      { language: 'jinja', text: '{{ ctx().x | upper }}', position: 2, variables: ['x'], functions: ['ctx', 'upper'] },
      {
        language: 'jinja',
        text: "{{ zip(ctx('y'), ctx(z), xctx(no), ctx().get(no)) }}",
        position: 24,
        variables: ['y', 'z'],
        functions: ['zip', 'ctx', 'xctx'],
      },
    ],
    mistakes: [],
  })
})

test('Jinja: statements', () => {
  const { expressions, mistakes } = findExpressions('{% for x in ctx().list %}{{ x }}{% endfor %}')
  expect(mistakes).toEqual([])
  expect(expressions.map(({ text, variables }) => [text, variables])).toEqual([
    ['{% for x in ctx().list %}', ['list']],
    ['{{ x }}', []],
    ['{% endfor %}', []],
  ])
})

test.each([
  ['{{ }}', '{{ }}', "Expected an expression, got 'end of print statement'"],
  ['{{ (1 }}', '{{ (1 }}', "unexpected '}', expected ')'"],
  ['{% if %}', '{% if %}', "Expected an expression, got 'end of statement block'"],
  ['{{ {"a": {"b": 1}} }}', '{{ {"a": {"b": 1}}', "unexpected end of template, expected ','."],
])('a mistake of %s', (text, expression, message) => {
  expect(findExpressions(text).mistakes).toEqual([{ language: 'jinja', expression, message }])
})

test('both languages in one text are a mistake', () => {
  expect(findExpressions('<% 1 %> {{ 2 }}')).toEqual({
    expressions: [],
    mistakes: [
      {
        language: undefined,
        expression: '<% 1 %> {{ 2 }}',
        message: 'Expression with multiple types is not supported.',
      },
    ],
  })
})

test('YAQL: blocks, variables, calls and mistakes', () => {
  expect(findExpressions("a <% ctx().x.select($ + ctx(y)) %> <% ctx('z').b[ %> <% 'a %>")).toEqual({
    expressions: [
      {
        language: 'yaql',
        text: '<% ctx().x.select($ + ctx(y)) %>',
        position: 2,
        variables: ['x', 'y'],
        functions: ['ctx', 'select'],
      },
      { language: 'yaql', text: "<% ctx('z').b[ %>", position: 35, variables: ['z'], functions: [] },
      { language: 'yaql', text: "<% 'a %>", position: 53, variables: [], functions: [] },
    ],
    mistakes: [
      { language: 'yaql', expression: "<% ctx('z').b[ %>", message: 'Parse error: unexpected end of statement' },
      { language: 'yaql', expression: "<% 'a %>", message: "Lexical error: illegal character ''' at position 0" },
    ],
  })
})

test('long texts are split in linear time', () => {
  const count = 20_000
  for (const text of [
    '{{'.repeat(count),
    '<%\n'.repeat(count),
    '{% raw %}'.repeat(count),
    `${'{{ a\n'.repeat(count)}}}`,
  ]) {
    expect(findExpressions(text).expressions.length).toBeLessThanOrEqual(count)
  }
  expect(findExpressions('<% 1 %>'.repeat(count)).expressions.length).toBe(count)
})
