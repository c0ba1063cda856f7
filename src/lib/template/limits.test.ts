import { expect, test } from 'vitest'
import { isTemplate, render, TemplateError, type RenderOptions, type TemplateErrorCode } from './render.ts'
import { rounds, variants } from '../../../tests/helpers/tiers.ts'

const longText = 'x'.repeat(1_000_000)
const numbers = Array.from({ length: 50_000 }, (_, index) => index)

function nested(depth: number): unknown {
  return JSON.parse('['.repeat(depth) + ']'.repeat(depth))
}

const bomb = ['a: &a [x,x,x,x,x,x,x,x,x]']
for (const [index, name] of 'bcdefghi'.split('').entries()) {
  const before = 'abcdefgh'.charAt(index)
  bomb.push(`${name}: &${name} [${Array.from({ length: 9 }, () => `*${before}`).join(',')}]`)
}

const manyKeys = Object.fromEntries(numbers.map((number) => [`k${number}`, number]))

const variables = {
  manyKeys,
  longText,
  numbers,
  deep: nested(5000),
  bomb: bomb.join('\n'),
  manyArrays: `[${'[],'.repeat(1_000_000)}1]`,
}

function codeOf(template: string, options: RenderOptions = {}): TemplateErrorCode | 'none' {
  try {
    render(template, variables, options)
    return 'none'
  } catch (error) {
    if (error instanceof TemplateError) return error.code
    throw error
  }
}

/** What stops a rendering is what it does, not how fast the machine is. */
const unhurried: RenderOptions = { limits: { maxMilliseconds: Infinity } }

const deepText = [
  `{{ ${'('.repeat(20_000)} }}`,
  `{{ ${'('.repeat(20_000)}1${')'.repeat(20_000)} }}`,
  `{{ ${'['.repeat(20_000)}${']'.repeat(20_000)} }}`,
  `{{ ${'{1:'.repeat(20_000)}1${'}'.repeat(20_000)} }}`,
  `{{ ${'f('.repeat(20_000)}${')'.repeat(20_000)} }}`,
  `{{ ${'a['.repeat(20_000)}1${']'.repeat(20_000)} }}`,
  `{{ ${'not '.repeat(20_000)}1 }}`,
  `{{ ${'-'.repeat(20_000)}1 }}`,
  `{{ ${'1 if 1 else '.repeat(20_000)}1 }}`,
  `{{ ${'1+'.repeat(20_000)}1 }}`,
  `{{ ${'1**'.repeat(20_000)}1 }}`,
  `{{ a${'.a'.repeat(20_000)} }}`,
  `{{ a${'|upper'.repeat(20_000)} }}`,
  `{{ a${'()'.repeat(20_000)} }}`,
  `{{ a${'[0]'.repeat(20_000)} }}`,
  '{% if 1 %}'.repeat(20_000) + '{% endif %}'.repeat(20_000),
  '{% for a in b %}'.repeat(20_000) + '{% endfor %}'.repeat(20_000),
  `{% set ${'('.repeat(20_000)}a${')'.repeat(20_000)} = 1 %}`,
  `${'x'.repeat(1024 * 1024)}{{ a }}`,
  `{{ ${'9'.repeat(5000)} }}`,
  '{{ a }}'.repeat(34_000),
  `{{ [${'a,'.repeat(400_000)}] }}`,
  `{{ f(${'a,'.repeat(400_000)}) }}`,
]

test.each(deepText)('a text too deep or too long is refused: %.40s', (template) => {
  expect(codeOf(template)).toBe('LIMIT')
  expect(isTemplate(template)).toBe(true)
})

const wide = [
  `{{ 1${' ~ 1'.repeat(5000)} }}`,
  `{{ 0${' or 0'.repeat(5000)} }}`,
  `{{ [${'1,'.repeat(24_000)}] }}`,
  `{% if 0 %}${'{% elif 0 %}'.repeat(5000)}{% endif %}`,
  `{{ ${'['.repeat(190)}${']'.repeat(190)} }}`,
  `{{ ${'1+'.repeat(390)}1 }}`,
  '{% macro m(n) %}{% if n %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(150) }}',
]

test.each(wide)('a long but flat text renders: %.40s', (template) => {
  expect(codeOf(template)).toBe('none')
})

const costly = [
  '{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}',
  '{{ range(100001) }}',
  '{{ range(10 ** 15) }}',
  '{{ range(100000000)|list }}',
  "{{ 'x' * 10 ** 9 }}",
  "{{ ('x' * 10 ** 6) * 10 ** 6 }}",
  '{{ [1] * 10 ** 9 }}',
  '{{ (1, 2) * 10 ** 9 }}',
  '{{ numbers + numbers + numbers }}',
  '{{ 10 ** 100000 }}',
  '{{ 2 ** 8000 ** 1000 }}',
  '{% set ns = namespace(n=3) %}{% for i in range(100) %}{% set ns.n = ns.n * ns.n %}{% endfor %}',
  "{% set ns = namespace(t='x') %}{% for i in range(100) %}{% set ns.t = ns.t ~ ns.t %}{% endfor %}",
  "{% set ns = namespace(t='x') %}{% for i in range(100) %}{% set ns.t = ns.t + ns.t %}{% endfor %}",
  '{% set ns = namespace(l=[1]) %}{% for i in range(100) %}{% set ns.l = ns.l + ns.l %}{% endfor %}',
  '{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}x',
  '{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l|tojson }}',
  '{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l|to_yaml_string }}',
  '{% set ns = namespace(l=1) %}{% for i in range(300) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l }}x',
  '{% set ns = namespace(l=1, m=1) %}{% for i in range(300) %}{% set ns.l = [ns.l] %}{% set ns.m = [ns.m] %}{% endfor %}{{ ns.l == ns.m }}',
  '{% set ns = namespace(t=(1,)) %}{% for i in range(60) %}{% set ns.t = (ns.t, ns.t) %}{% endfor %}{{ {ns.t: 1} }}',
  '{% set ns = namespace(t=(1,)) %}{% for i in range(60) %}{% set ns.t = (ns.t, ns.t) %}{% endfor %}{{ ns.t in {} }}',
  '{{ {(longText,): 1} }}',
  '{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}',
  '{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}',
  '{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}',
  "{{ 'x'.center(10 ** 9) }}",
  "{{ 'x'.zfill(10 ** 9) }}",
  "{{ 'x'.ljust(10 ** 9) }}",
  "{{ 'x'|center(10 ** 9) }}",
  "{{ 'x'|indent(10 ** 9, true) }}",
  "{{ 'a\\nb'|indent('x' * 9000000) }}",
  "{{ '%1000000000d' % 1 }}",
  "{{ '%.1000000000f' % 1 }}",
  "{{ ('%(a)9999d' * 20000) % {'a': 1} }}",
  "{{ '{:1000000000}'.format(1) }}",
  "{{ '{:.1000000000f}'.format(1.5) }}",
  "{{ ('{0:9999}' * 20000).format(1) }}",
  "{{ longText.replace('x', 'x' * 1000) }}",
  "{{ longText|replace('', 'x' * 1000) }}",
  "{{ ('x' * 1000).join(longText) }}",
  '{{ longText|list }}',
  "{{ longText.split('x') }}",
  "{{ ('a' * 9000000)|title|length }}",
  "{{ ('a-' * 2000000)|wordwrap(5)|length }}",
  "{{ ('%%' * 4000000) % () }}",
  "{{ ('a' * 9000000).swapcase()|length }}",
  "{{ ('a' * 9000000).isalpha() }}",
  "{{ ('a' * 9000000).splitlines()|length }}",
  '{{ [1]|batch(10 ** 9, 0)|list }}',
  '{% for i in range(2000) %}{{ manyKeys|length }}{% endfor %}',
  '{% for i in range(2000) %}{{ manyKeys == {} }}{% endfor %}',
  "{% for i in range(2000) %}{{ ''.format(**manyKeys) }}{% endfor %}",
  '{{ [1]|slice(10 ** 9)|list }}',
  '{% for i in range(1000) %}{{ longText|length }}{% endfor %}',
  '{% for i in range(1000) %}{% if longText == longText %}{% endif %}{% endfor %}',
  '{% for i in range(1000) %}{% if longText < longText %}{% endif %}{% endfor %}',
  "{% for i in range(1000) %}{% if 'y' in longText %}{% endif %}{% endfor %}",
  '{% for i in range(1000) %}{{ longText[i] }}{% endfor %}',
  '{% for i in range(1000) %}{% if longText is lower %}{% endif %}{% endfor %}',
  '{% for i in range(20) %}{{ longText }}{% endfor %}',
  '{{ deep }}',
  'x{{ deep }}',
  '{{ deep|tojson }}',
  '{{ deep|pprint }}',
  '{{ deep|to_yaml_string }}',
  "{{ deep|jsonpath_query('$..x') }}",
  '{{ manyArrays|from_json_string }}',
  '{{ bomb|from_yaml_string|to_json_string }}',
  "{{ ('x' * 2000000)|from_yaml_string }}",
  "{{ longText|regex_match('(x|xx|xxx)*(x|y){90}c') }}",
  "{{ longText|regex_search('((x|y){20}){20}c') }}",
  "{{ longText|regex_match('x' * 5000) }}",
  "{{ 'a'|regex_match('x{1000}' * 580) }}",
  "{{ 'a'|regex_match('(' ~ 'x' * 1000 ~ '){1000}') }}",
  "{% for i in range(1000) %}{{ 'a'|regex_match('x{1000}' * 15 ~ i) }}{% endfor %}",
]

// The daily run takes every third.
test.each(costly.filter((_, i) => i % rounds({ daily: 3, full: 1 }) === 0))('%s costs too much', (template) => {
  expect(codeOf(template, unhurried)).toBe('LIMIT')
})

const quick = [
  '{% for i in range(9000) %}{% if manyKeys %}{% endif %}{% endfor %}',
  '{% set r = range(100000) %}{% for i in range(6000) %}{{ -1 in r }}{{ r == r }}{% endfor %}',
  "{{ ('{{' * 1500000).format()|length }}",
  "{{ ('}}' * 1500000).format()|length }}",
  "{{ ('a' * 50000 ~ 'b' ~ 'a' * 50000) in 'a' * 2000000 }}",
  "{{ ('a' * 1000000).rfind('a' * 100000 ~ 'b') }}",
  "{{ ('ab' * 1000000).split('ab' * 50000 ~ 'c' ~ 'ab' * 50000)|length }}",
]

// Each takes longer than a test may where the work grows with the product of two lengths.
test.each(variants(quick, 2))('%s takes time that grows with the texts only', (template) => {
  expect(codeOf(template, { limits: { maxMilliseconds: Infinity, maxWork: Infinity } })).toBe('none')
})

test('every limit can be set', () => {
  expect(codeOf('{% for i in range(10) %}{{ i }}{% endfor %}', { limits: { maxSteps: 20 } })).toBe('LIMIT')
  expect(codeOf("{{ 'x' * 11 }}", { limits: { maxTextLength: 10 } })).toBe('LIMIT')
  expect(codeOf("{{ 'x' * 10 }}", { limits: { maxTextLength: 10 } })).toBe('none')
  expect(codeOf("aaaaaa{{ 'bbbbb' }}", { limits: { maxTextLength: 10 } })).toBe('LIMIT')
  expect(codeOf('{{ [1] * 11 }}', { limits: { maxItems: 10 } })).toBe('LIMIT')
  expect(codeOf('{{ 2 ** 100 }}', { limits: { maxIntegerBits: 64 } })).toBe('LIMIT')
  expect(codeOf("{{ 'x' * 1000 }}", { limits: { maxWork: 500 } })).toBe('LIMIT')
  expect(codeOf('{{ numbers|sort|length }}', { limits: { maxMilliseconds: -1, maxSteps: 10 ** 9 } })).toBe('LIMIT')
})

test('a stack overflow becomes a limit error', () => {
  const body = `${'{% if n %}'.repeat(150)}{{ [m(n - 1)] }}${'{% endif %}'.repeat(150)}`
  expect(codeOf(`{% macro m(n) %}${body}{% endmacro %}{{ m(190) }}`)).toBe('LIMIT')
})

test('a large payload can be passed on, printed and serialized', () => {
  const payload = Array.from({ length: 20_000 }, (_, id) => ({ id, name: `item ${id}` }))
  expect(render('{{ payload }}', { payload })).toEqual(payload)
  expect(JSON.parse(String(render('{{ payload|to_json_string }}', { payload })))).toEqual(payload)
  expect(render(' {{ payload }}', { payload })).toContain("{'id': 19999, 'name': 'item 19999'}]")
})
