import { expect, test } from 'vitest'
import { Budget, BudgetExhausted, defaultLimits } from '../../../lib/template/index.ts'
import { renderValue } from './template.ts'

const render = (value: unknown, variables: Record<string, unknown> = {}, limits = defaultLimits): unknown =>
  renderValue(value, { variable: (name) => variables[name], filters: {} }, new Budget(limits))

test('a template gives text, at any depth and in keys; other values stay', () => {
  expect(render('{{ n }}', { n: 3 })).toBe('3')
  expect(render('{{ n }}', { n: null })).toBe('None')
  expect(render({ a: ['{{ n }}', 3, true, null], '{{ n }}': { b: '{{ l }}' } }, { n: 3, l: [1, 'x'] })).toEqual({
    a: ['3', 3, true, null],
    3: { b: "[1, 'x']" },
  })
})

test('a text loses the line end after it, but not within a list', () => {
  expect(render('echo {{ n }}\n', { n: 3 })).toBe('echo 3')
  expect(render('echo\n')).toBe('echo')
  expect(render(['echo {{ n }}\n', 'echo\n'], { n: 3 })).toEqual(['echo 3\n', 'echo\n'])
})

test('data is never rendered, and cannot break the value around it', () => {
  const data = '"] {{ 1 + 1 }} \\ \n{% if x %}'
  expect(render('{{ a }}', { a: data })).toBe(data)
  expect(render([{ k: '{{ a }}' }], { a: data })).toEqual([{ k: data }])
})

test('a name that is missing, and a key that must not be, are refused', () => {
  expect(() => render('{{ x }}')).toThrow("'x' is undefined")
  expect(() => render({ '{{ k }}': 1 }, { k: '__proto__' })).toThrow('"__proto__"')
})

test('all texts of a value share the budget', () => {
  const value = Array.from({ length: 50 }, () => '{{ 1 + 1 }}')
  expect(() => render(value, {}, { ...defaultLimits, maxSteps: 60 })).toThrow(BudgetExhausted)
  expect(render(value)).toHaveLength(50)
})
