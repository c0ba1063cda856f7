/** Namespaces that stand for a value where no name of theirs is asked for. */
import { describe, expect, test } from 'vitest'
import { render, TemplateError, type Namespace } from './render.ts'

const values: Record<string, string> = { a: 'text', 'a.b': 'inner', n: '7', 'a.upper': 'key', list: '[1, 2]' }

/** `kv.<key>`, where a key has dots like the path to it; a missing one is an empty text. */
function keys(path = '', read: string[] = []): Namespace {
  return {
    get: (name) => keys(path === '' ? name : `${path}.${name}`, read),
    ...(path === ''
      ? {}
      : {
          value() {
            read.push(path)
            return values[path] ?? ''
          },
        }),
  }
}

const run = (text: string, more: Record<string, unknown> = {}): unknown => render(text, { kv: keys(), ...more })

describe('a namespace with a value is used like its value', () => {
  test.for<[string, unknown]>([
    ['{{ kv.a }}', 'text'],
    ['<{{ kv.a }}>', '<text>'],
    ['{{ kv.a.b }}', 'inner'],
    ["{{ kv['a'] }}", 'text'],
    ["{{ kv['a']['b'] }}{{ kv.a['b'] }}{{ kv['a.b'] }}", 'innerinnerinner'],
    ['<{{ kv.missing }}>', '<>'],
    ['{{ kv.missing }}', ''],
    ["{{ kv.missing | default('d', true) }}", 'd'],
    ['{{ kv.missing is defined }}', true],
    ["{{ kv.a ~ '!' }}", 'text!'],
    ["{{ kv.a + '!' }}", 'text!'],
    ["{{ 'x' + kv.a }}", 'xtext'],
    ["{{ '%s' % kv.a }}", 'text'],
    ['{{ kv.a * 2 }}', 'texttext'],
    ["{{ kv.a == 'text' }}", true],
    ["{{ kv.a != 'text' }}", false],
    ["{{ kv.a < 'u' }}", true],
    ["{{ 'ex' in kv.a }}", true],
    ["{{ kv.a in ['text'] }}", true],
    ['{{ kv.a | upper }}', 'TEXT'],
    ['{{ kv.n | int + 1 }}', 8],
    ['{{ kv.list | from_json_string }}', [1, 2]],
    ['{{ kv.a | length }}', 4],
    ['{{ kv.a is string }}', true],
    ['{{ kv.a[0] }}', 't'],
    ['{{ kv.a[1:] }}', 'ext'],
    ['{{ kv.a.replace("t", "T") }}', 'TexT'],
    ['{{ kv.a.upper }}', 'key'],
    ['{{ kv.a.upper() }}', 'TEXT'],
    ["{{ 'yes' if kv.a else 'no' }}{{ 'yes' if kv.missing else 'no' }}", 'yesno'],
    ['{% if kv.a %}yes{% endif %}', 'yes'],
    ['{{ not kv.a }}', false],
    ['{{ kv.missing or kv.a }}', 'text'],
    ['{{ kv.a and kv.n }}', '7'],
    ['{{ [kv.a, (kv.n,), {"k": kv.a}] }}', ['text', ['7'], { k: 'text' }]],
    ['{{ {kv.a: 1} }}', { text: 1 }],
    ['{% for c in kv.n %}<{{ c }}>{% endfor %}', '<7>'],
    ['{{ "-".join([kv.a, kv.n]) }}', 'text-7'],
    ['{% set x = kv.a %}{{ x }}{{ x.b }}{{ x ~ x }}', 'textinnertexttext'],
    ['{% with x = kv.a %}{{ x }}{{ x.b }}{% endwith %}', 'textinner'],
    ['{% set x = kv %}{{ x.a }}', 'text'],
    ['{% set x, y = kv.list[1::3] %}{{ x }}{{ y }}', '12'],
    ['{% macro m(x) %}<{{ x }}>{% endmacro %}{{ m(kv.a) }}', '<text>'],
    ['{% set ns = namespace(x=kv.a) %}{% set ns.x = kv.n %}{{ ns.x }}', '7'],
    ["{{ kv | attr('a') }}", 'text'],
    ["{{ [kv] | map(attribute='a') | list }}", ['text']],
    ['{{ kv.a | replace(kv.a, kv.n) }}', '7'],
  ])('%s', ([text, expected]) => {
    expect(run(text)).toEqual(expected)
  })

  test('reads only used names', () => {
    const read: string[] = []
    expect(render('{{ kv.a.b }}{% set x = kv.a %}{% if false %}{{ kv.n }}{% endif %}', { kv: keys('', read) })).toBe(
      'inner',
    )
    expect(read).toEqual(['a.b'])
  })

  test('a filter of svc gets the value', () => {
    const filters = { shout: ([value]: readonly unknown[]) => `${String(value)}!` }
    expect(render('{{ kv.a | shout }}', { kv: keys() }, { filters })).toBe('text!')
  })
})

describe('a namespace without a value', () => {
  test.for(['{{ kv }}', '<{{ kv }}>', '{{ kv ~ "" }}', '{% for x in kv %}{% endfor %}', '{{ kv | upper }}'])(
    '%s is an error',
    (text) => {
      expect(() => run(text)).toThrow(TemplateError)
    },
  )
})

test('rejects invalid values', () => {
  const kv = { get: () => ({ get: () => undefined, value: () => () => 'code' }) }
  expect(() => render('{{ kv.a }}', { kv })).toThrow('a function cannot be used in a template')
})

test('an error while reading fails the rendering', () => {
  const kv = {
    get: () => ({
      get: () => undefined,
      value() {
        throw new TemplateError('FILTER', 'not allowed')
      },
    }),
  }
  expect(() => render('{{ kv.a }}', { kv })).toThrow('not allowed')
})
