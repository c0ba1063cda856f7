import { expect, test } from 'vitest'
import { escapes as attempts } from '../../../tests/helpers/escapes.ts'
import { render, TemplateError } from './render.ts'

class Secretive {
  readonly hidden = 'class instances are no data'
}

let getterRuns = 0

function variables(): Record<string, unknown> {
  const withGetter = { plain: 1 }
  Object.defineProperty(withGetter, 'computed', {
    enumerable: true,
    get() {
      getterRuns += 1
      return 'computed'
    },
  })
  Object.defineProperty(withGetter, 'unlisted', { enumerable: false, value: 'unlisted' })
  return {
    text: 'abc',
    list: [1, 2, 3],
    object: { a: 1, nested: { b: 2 } },
    number: 5,
    map: new Map([['k', 'v']]),
    lazy: { get: (name: string) => (name === 'key' ? 'value' : undefined) },
    withGetter,
    fn: () => 'called',
    instance: new Secretive(),
    date: new Date(0),
    pattern: /x/,
    holder: { fn: () => 'called', instance: new Secretive(), symbol: Symbol('s') },
  }
}

const functions = { host: () => 'from the program' }

test('there are enough attempts', () => {
  expect(new Set(attempts).size).toBe(attempts.length)
  expect(attempts.length).toBeGreaterThan(100)
})

test.each(attempts)('%s reaches nothing', (template) => {
  const given = variables()
  expect(() => render(template, given, { functions })).toThrow(TemplateError)
  expect(given['list']).toEqual([1, 2, 3])
  expect(given['object']).toEqual({ a: 1, nested: { b: 2 } })
  expect(getterRuns).toBe(0)
  expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false)
})

test('names of JavaScript are unknown', () => {
  expect(render(`{{ text.constructor is defined }}`, variables())).toBe(false)
  expect(render(`{{ 'constructor' in object }}`, variables())).toBe(false)
  expect(render(`{{ '__proto__' in {} }}`, {})).toBe(false)
  expect(render(`{{ object.get('constructor', 'none') }}`, variables())).toBe('none')
  expect(render(`{{ '__proto__' is filter }}`, {})).toBe(false)
})

test('data under such names is only data', () => {
  const data: unknown = JSON.parse('{"__proto__": {"x": 1}, "constructor": "plain"}')
  expect(render('{{ data.constructor }}', { data })).toBe('plain')
  expect(render("{{ data['__proto__'].x }}", { data })).toBe(1)
  const copy = render("{{ {'__proto__': {'polluted': 1}, 'a': 1} }}", {})
  expect(Object.getPrototypeOf(copy)).toBeNull()
  expect(Object.keys(Object(copy))).toEqual(['__proto__', 'a'])
})

test('results are plain data without a prototype', () => {
  const result = render('{{ object }}', variables())
  expect(Object.getPrototypeOf(result)).toBeNull()
  expect(() => render('{{ range }}', {})).toThrow('cannot leave a template')
  expect(() => render('{{ namespace(a=1) }}', {})).toThrow('cannot leave a template')
  expect(() => render("{{ 'x'.upper }}", {})).toThrow('cannot leave a template')
})

test('a template cannot change its input', () => {
  const given = Object.freeze({ list: Object.freeze([3, 1, 2]), object: Object.freeze({ b: 1, a: 2 }) })
  const template = '{{ list|sort }}{{ list|reverse|list }}{{ object|dictsort }}{% set list = list + [4] %}{{ list }}'
  expect(render(template, given)).toBe("[1, 2, 3][2, 1, 3][('a', 2), ('b', 1)][3, 1, 2, 4]")
})

const revealing = [
  '{{ s + 1 }}',
  '{{ s|from_json_string }}',
  "{{ (s ~ ': [')|from_yaml_string }}",
  "{{ ('*' ~ s)|from_yaml_string }}",
  '{{ s.x }}',
  '{{ [s]|sum }}',
  '{{ {s: 1}|abs }}',
  "{{ s|version_compare('1.0.0') }}",
  "{{ s|regex_substring('zzz') }}",
  '{{ s() }}',
  '{{ s in 5 }}',
  "{{ '%d' % s }}",
  '{{ s|int + s }}',
  '{{ [s, 1]|sort }}',
]

test.each(revealing)('%s fails without showing the value', (template) => {
  const run = (): unknown => render(template, { s: 'hunter2-secret' })
  expect(run).toThrow(TemplateError)
  expect(run).not.toThrow(/hunter2/)
})
