import { expect, test } from 'vitest'
import { render, TemplateError } from '../template.ts'

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

/** Names that lead from a value to the language around it. */
const ways = ['constructor', '__proto__', 'prototype', 'toString', 'valueOf', 'hasOwnProperty', '__class__', '__init__']

const attempts: string[] = [
  ...ways.flatMap((way) => [
    `{{ text.${way} }}`,
    `{{ object.${way} }}`,
    `{{ list['${way}'] }}`,
    `{{ object['${way}'] }}`,
    `{{ lazy.${way} }}`,
  ]),
  `{{ ''.constructor.constructor('return process.version')() }}`,
  `{{ ''['constructor']['constructor']('return process.version')() }}`,
  `{{ ''['con' ~ 'structor'] }}`,
  `{{ object['\\u0063onstructor'] }}`,
  `{{ object['_' * 2 ~ 'proto' ~ '_' * 2] }}`,
  `{{ range.constructor('return 1')() }}`,
  `{{ range(3).constructor }}`,
  `{{ range.call(1) }}`,
  `{{ range.apply }}`,
  `{{ dict.bind }}`,
  `{{ cycler('a').constructor }}`,
  `{{ cycler('a').next.constructor('return 1')() }}`,
  `{{ joiner(',').constructor }}`,
  `{{ namespace(a=1).constructor }}`,
  `{{ namespace(a=1).__proto__ }}`,
  `{% set ns = namespace() %}{% set ns.x = 1 %}{{ ns.constructor }}`,
  `{% set object.polluted = 1 %}`,
  `{% set list.length = 0 %}`,
  `{{ list.map }}`,
  `{{ list.push(4) }}`,
  `{{ list.append(4) }}`,
  `{{ list.length }}`,
  `{{ list.concat.constructor('return 1')() }}`,
  `{{ object.update({'a': 2}) }}`,
  `{{ object.nested.pop('b') }}`,
  `{{ text.upper.constructor }}`,
  `{{ text.upper.call }}`,
  `{{ text.at(0) }}`,
  `{{ text.matchAll }}`,
  `{{ text|attr('constructor') }}`,
  `{{ object|attr('__proto__') }}`,
  `{{ list|attr('map') }}`,
  `{{ [object]|map(attribute='constructor')|first }}`,
  `{{ [object]|map(attribute='__proto__.polluted')|first }}`,
  `{{ [text]|map('attr', 'constructor')|first }}`,
  `{{ [object]|sum(attribute='constructor') }}`,
  `{{ [object]|groupby('__proto__')|first }}`,
  `{{ [object]|sort(attribute='constructor.name')|map(attribute='constructor')|first }}`,
  `{{ [object]|join(',', attribute='constructor') }}`,
  `{{ [object]|selectattr('constructor')|list }}`,
  `{{ '{0.constructor}'.format(text) }}`,
  `{{ '{0.__class__.__init__.__globals__}'.format(object) }}`,
  `{{ '{0[constructor]}'.format(object) }}`,
  `{{ '{x.constructor.constructor}'.format(x=text) }}`,
  `{{ '%(constructor)s' % object }}`,
  `{{ '%(constructor)s'|format(**object) }}`,
  `{{ ''.__class__.__mro__[1].__subclasses__() }}`,
  `{{ self.__init__.__globals__ }}`,
  `{{ self }}`,
  `{{ this }}`,
  `{{ globalThis }}`,
  `{{ process.env }}`,
  `{{ require('fs') }}`,
  `{{ import('fs') }}`,
  `{{ config }}`,
  `{{ request.application }}`,
  `{{ lipsum.__globals__ }}`,
  `{{ url_for.__globals__ }}`,
  `{{ get_flashed_messages }}`,
  `{{ caller }}`,
  `{{ varargs }}`,
  `{{ loop }}`,
  `{% for i in [1] %}{{ loop.constructor }}{% endfor %}`,
  `{% for i in [1] %}{{ loop.cycle.constructor('return 1')() }}{% endfor %}`,
  `{% for i in [1] %}{{ loop.items }}{% endfor %}`,
  `{% macro m() %}{% endmacro %}{{ m.constructor }}`,
  `{% macro m() %}{{ caller.constructor }}{% endmacro %}{% call m() %}{% endcall %}`,
  `{% macro m() %}{{ varargs.constructor }}{{ kwargs.__proto__ }}{% endmacro %}{{ m(1) }}`,
  `{% include '/etc/passwd' %}`,
  `{% import 'os' as os %}`,
  `{% from 'os' import system %}`,
  `{% extends 'base' %}`,
  `{{ fn() }}`,
  `{{ fn }}`,
  `{{ holder.fn() }}`,
  `{{ holder.fn }}`,
  `{{ holder.symbol }}`,
  `{{ holder }}`,
  `{{ holder.instance.hidden }}`,
  `{{ instance.hidden }}`,
  `{{ date }}`,
  `{{ date.getTime() }}`,
  `{{ pattern.exec }}`,
  `{{ withGetter.computed }}`,
  `{{ withGetter['computed'] }}`,
  `{{ withGetter.unlisted }}`,
  `{{ withGetter|items|list|last|last }}`,
  `{{ map.set('k', 'x') }}`,
  `{{ map.size }}`,
  `{{ map.constructor }}`,
  `{{ lazy.key.constructor }}`,
  `{{ lazy }}`,
  `{{ lazy|list }}`,
  `{{ host.constructor }}`,
  `{{ host.name }}`,
  `{{ host.call() }}`,
  `{{ text|host }}`,
  `{{ '{"__proto__": {"polluted": 1}}'|from_json_string|attr('polluted') }}`,
  `{{ ('{"__proto__": {"polluted": 1}}'|from_json_string).polluted }}`,
  `{{ ('{"constructor": {"prototype": {"polluted": 1}}}'|from_json_string).toString }}`,
  `{{ '!!js/function "function(){}"'|from_yaml_string }}`,
  `{{ '!!python/object/apply:os.system ["id"]'|from_yaml_string }}`,
  `{{ ('__proto__: {polluted: 1}'|from_yaml_string).polluted }}`,
  `{{ object|jsonpath_query('$.constructor')|first }}`,
  `{{ object|jsonpath_query('$.__proto__')|first }}`,
  `{{ text|jsonpath_query('$.length')|first }}`,
  `{{ text|regex_replace('(?<a>b)', '\\\\g<constructor>') }}`,
  `{{ dict(__proto__={'polluted': 1}).polluted }}`,
  `{{ {'__proto__': {'polluted': 1}}.polluted }}`,
  `{{ text is constructor }}`,
  `{{ text|constructor }}`,
  `{{ text|__proto__ }}`,
  `{{ text is __proto__ }}`,
  `{{ [1]|map('constructor')|list }}`,
  `{{ [1]|select('__proto__')|list }}`,
]

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

test('names of the language are unknown rather than refused', () => {
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

test('what leaves a template is plain data without a prototype', () => {
  const result = render('{{ object }}', variables())
  expect(Object.getPrototypeOf(result)).toBeNull()
  expect(() => render('{{ range }}', {})).toThrow('cannot leave a template')
  expect(() => render('{{ namespace(a=1) }}', {})).toThrow('cannot leave a template')
  expect(() => render("{{ 'x'.upper }}", {})).toThrow('cannot leave a template')
})

test('a template cannot change what it is given', () => {
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
