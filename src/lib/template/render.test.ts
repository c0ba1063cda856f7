import { describe, expect, test } from 'vitest'
import { isTemplate, references, render, TemplateError } from './render.ts'
import { JsonNumber } from '../json/index.ts'

describe('isTemplate', () => {
  test.each(['{{ a }}', 'x {{a}} y', '{% if a %}b{% endif %}', '{{ 1 }}', "{{ '' }}", '{% include "x" %}'])(
    '%s is one',
    (text) => {
      expect(isTemplate(text)).toBe(true)
    },
  )

  test.each([
    '',
    'plain',
    '{ a }',
    '{# only a comment #}',
    '}} %}',
    '{{',
    '{{ }}',
    '{{ a',
    'awk "{{ print $1 }"',
    '{{ $labels.instance }}',
    '{{.Names}}',
    '{% unknown %}',
    '{% if a %}',
    "docker ps --format '{{.ID}}'",
  ])('%s is literal text', (text) => {
    expect(isTemplate(text)).toBe(false)
  })
})

describe('native values', () => {
  const variables = {
    text: 'abc',
    int: 5,
    float: 1.5,
    yes: true,
    none: null,
    list: [1, 'a', null],
    object: { a: { b: [1] } },
    empty: '',
  }

  test.each([
    ['{{ int }}', 5],
    ['{{int}}', 5],
    ['{{ float }}', 1.5],
    ['{{ yes }}', true],
    ['{{ none }}', null],
    ['{{ list }}', [1, 'a', null]],
    ['{{ object }}', { a: { b: [1] } }],
    ['{{ object.a.b[0] }}', 1],
    ['{{ text }}', 'abc'],
    ['{{ empty }}', ''],
    ['{{ int + 1 }}', 6],
    ['{{ 4 / 2 }}', new JsonNumber('2.0')],
    ['{{ int > 3 }}', true],
    ['{{ (1, 2) }}', [1, 2]],
    ['{{ 1, 2 }}', [1, 2]],
    ['{{ range(3) }}', [0, 1, 2]],
    ['{{ object.keys() }}', ['a']],
    ['{{ {1: 2, none: 3, true: 4, 2.0: 5} }}', { '1': 4, null: 3, '2.0': 5 }],
    ['{{ missing|default([]) }}', []],
    ["{{ '5'|int }}", 5],
    ["{{ 'x' if false }}", ''],
    ['{{ list|map("string")|list }}', ['1', 'a', 'None']],
    ['{{- int -}}', 5],
    ['{{ int }}{# note #}', 5],
    ['{{ int }}\n', 5],
  ])('%j is the value itself', (template, value) => {
    expect(render(template, variables)).toEqual(value)
  })

  test.each([
    [' {{ int }}', ' 5'],
    ['{{ int }} ', '5 '],
    ['{{ int }}{{ int }}', '55'],
    ['{{ none }}{{ empty }}', 'None'],
    ['{{ list }}!', "[1, 'a', None]!"],
    ['{{ object }} ', "{'a': {'b': [1]}} "],
    ['{{ yes }}/{{ float }}', 'True/1.5'],
    ['{% if yes %}{{ int }}{% endif %}', '5'],
    ['{{ int }}\n\n', '5\n'],
  ])('%j is text', (template, text) => {
    expect(render(template, variables)).toBe(text)
  })

  test('a copy leaves the template, not the data it was given', () => {
    const result = render('{{ object }}', variables)
    expect(result).not.toBe(variables.object)
    expect(result).toEqual(variables.object)
  })
})

describe('variables', () => {
  test('and their values can be maps', () => {
    const variables = new Map<string, unknown>([
      ['a', 1],
      ['m', new Map([['k', 'v']])],
      ['none', null],
    ])
    expect(render('{{ a }} {{ m.k }} {{ m }} {{ none }}', variables)).toBe("1 v {'k': 'v'} None")
  })

  test('can be namespaces, which are read lazily', () => {
    const asked: string[] = []
    const system = {
      get(name: string) {
        asked.push(name)
        return name === 'missing' ? '' : `<${name}>`
      },
    }
    const variables = { svckv: { system } }
    expect(render('{{ svckv.system.a }}{{ svckv.system["b.c"] }}{{ svckv.system.missing }}', variables)).toBe(
      '<a><b.c>',
    )
    expect(asked).toEqual(['a', 'b.c', 'missing'])
  })

  test('a namespace class can describe missing names', () => {
    class Keys {
      get(name: string): unknown {
        return name === 'a' ? { deep: [1, 2] } : undefined
      }
      has(name: string): boolean {
        return name === 'a'
      }
    }
    const variables = { keys: new Keys() }
    expect(render("{{ keys.a.deep[1] }} {{ 'a' in keys }} {{ 'b' in keys }} {{ keys.b is defined }}", variables)).toBe(
      '2 True False False',
    )
    expect(() => render('{{ keys.b }}', variables)).toThrow("'namespace object' has no attribute 'b'")
  })

  test('set shadows a variable, and a variable shadows a global', () => {
    expect(render('{% set a = 2 %}{{ a }}{{ range }}', { a: 1, range: 'mine' })).toBe('2mine')
  })

  test('a key named like a method is data unless it is called', () => {
    const variables = { body: { items: [1], get: 'got', count: 2 } }
    expect(render("{{ body.items }} {{ body.get }} {{ body.count }} {{ body.get('count') }}", variables)).toBe(
      '[1] got 2 2',
    )
    expect(render('{{ body.items()|list|length }}', variables)).toBe(3)
  })
})

describe('filters and functions of svc', () => {
  const filters = {
    decrypt_kv: (positional: readonly unknown[], named: Readonly<Record<string, unknown>>) =>
      `${String(positional[0])}/${String(positional[1])}/${String(named['mode'])}`,
    explode: () => {
      throw new Error('no key')
    },
    later: () => Promise.resolve(1),
    upper: () => 'replaced',
  }
  const functions = { ctx: (positional: readonly unknown[]) => ({ asked: positional }) }

  test('get and return plain values', () => {
    expect(render("{{ 'c'|decrypt_kv('k', mode=[1]) }}", {}, { filters })).toBe('c/k/1')
    expect(render("{{ ctx('a', {'b': (1, 2)}).asked }}", {}, { functions })).toEqual(['a', { b: [1, 2] }])
    expect(render("{{ ['a']|map('decrypt_kv', 1)|list }}", {}, { filters })).toEqual(['a/1/undefined'])
  })

  test('can replace a built-in filter', () => {
    expect(render("{{ 'a'|upper }}", {}, { filters })).toBe('replaced')
    expect(render("{{ 'a'|upper }}", {})).toBe('A')
  })

  test('failures are template errors', () => {
    expect(() => render("{{ 'a'|explode }}", {}, { filters })).toThrow("the filter 'explode' failed: no key")
    expect(() => render("{{ 'a'|later }}", {}, { filters })).toThrow(TemplateError)
    expect(() => render('{{ missing|decrypt_kv }}', {}, { filters })).toThrow("'missing' is undefined")
  })
})

describe('references', () => {
  test.each([
    ['plain', [], []],
    ['{{ a }}', ['a'], ['a']],
    ['{{ a.b.c }}', ['a'], ['a.b.c']],
    ["{{ a['b'].c }}", ['a'], ['a.b.c']],
    ['{{ svckv.system.x ~ svckv.user.y }}', ['svckv'], ['svckv.system.x', 'svckv.user.y']],
    ['{{ svckv.system.x.upper() }}', ['svckv'], ['svckv.system.x']],
    ['{{ a.b[0].c }}', ['a'], ['a.b']],
    ['{{ a[b.c].d }}', ['a', 'b'], ['a', 'b.c']],
    ['{{ a|default(b)|join(c.d) }}', ['a', 'b', 'c'], ['a', 'b', 'c.d']],
    ['{{ a is in b }}', ['a', 'b'], ['a', 'b']],
    ['{{ x if y else z }}', ['y', 'x', 'z'], ['y', 'x', 'z']],
    ['{{ f(a, *b, k=c, **d) }}', ['f', 'a', 'c', 'b', 'd'], ['f', 'a', 'c', 'b', 'd']],
    ['{{ [a, (b,), {c: d}] }}{{ e[f:g] }}{{ -h }}', 'abcdefgh'.split(''), 'abcdefgh'.split('')],
    ['{{ range(3) }}{{ dict(a=1) }}{{ namespace() }}', [], []],
    ['{% set a = b %}{{ a }}', ['b'], ['b']],
    ['{{ a }}{% set a = 1 %}{{ a }}', ['a'], ['a']],
    ['{% if c %}{% set a = 1 %}{% endif %}{{ a }}', ['c', 'a'], ['c', 'a']],
    ['{% if c %}{% set a = 1 %}{% else %}{% set a = 2 %}{% endif %}{{ a }}', ['c'], ['c']],
    [
      '{% for a in b.c %}{{ a.d }}{{ loop.index }}{% else %}{{ e }}{% endfor %}{{ a }}',
      ['b', 'e', 'a'],
      ['b.c', 'e', 'a'],
    ],
    ['{% for a in b if a > c %}{% endfor %}', ['b', 'c'], ['b', 'c']],
    ['{% macro m(a, b=c) %}{{ a }}{{ d }}{{ varargs }}{% endmacro %}{{ m(e) }}', ['c', 'd', 'e'], ['c', 'd', 'e']],
    ['{% call(x) m() %}{{ x }}{{ y }}{% endcall %}', ['m', 'y'], ['m', 'y']],
    ['{% with a = b %}{{ a }}{% endwith %}{{ a }}', ['b', 'a'], ['b', 'a']],
    ['{% filter replace(a, b) %}{{ c }}{% endfilter %}', ['a', 'b', 'c'], ['a', 'b', 'c']],
    ['{% set x %}{{ a }}{% endset %}{{ x }}', ['a'], ['a']],
    ['{% set ns = namespace() %}{% set ns.a = b %}{{ ns.a }}', ['b'], ['b']],
    ['{% raw %}{{ a }}{% endraw %}{# {{ b }} #}', [], []],
  ])('of %s', (template, names, paths) => {
    expect(references(template)).toEqual({ names, paths })
  })

  test('of an invalid template is an error', () => {
    expect(() => references('{{ a')).toThrow(TemplateError)
  })
})

describe('errors', () => {
  test.each([
    ['{{ a b }}', 'SYNTAX', "expected token 'end of print statement', got 'b'", 5],
    ['x{% if a %}', 'SYNTAX', 'Unexpected end of template. Jinja was looking for', 11],
    ['{{ (1 }}', 'SYNTAX', "unexpected '}', expected ')'", 6],
    ['{{ 1', 'SYNTAX', "unexpected end of template, expected 'end of print statement'.", 4],
    ['{{ }}', 'SYNTAX', "Expected an expression, got 'end of print statement'", 3],
    ['{{ a $ "', 'SYNTAX', "unexpected char '$' at 5", 5],
    ['{{ a\\b }}', 'SYNTAX', "unexpected char '\\\\' at 4", 4],
    // The first mistake counts: what the lexer cannot read comes after what the parser does not expect.
    ["{{ a'b') }}", 'SYNTAX', "expected token 'end of print statement', got 'string'", 4],
    ["{{ {'a: 1}['b'] }}", 'SYNTAX', "expected token ':', got 'b'", 12],
    ['{{ a(}}', 'SYNTAX', "unexpected '}', expected ')'", 5],
    ['{{ a.] }}', 'SYNTAX', "unexpected ']'", 5],
    ['{{ a.=` }}', 'SYNTAX', "unexpected char '`' at 6", 6],
    ['{{ a.= }}', 'SYNTAX', 'expected name or number', 5],
    ['{{ a[1 2] }}', 'SYNTAX', "expected token ',', got 'integer'", 7],
    ['{{ a[1:2 b] }}', 'SYNTAX', "expected token ',', got 'b'", 9],
    ['{% for a b in c %}{% endfor %}', 'SYNTAX', "expected token 'in', got 'b'", 9],
    ['{% set a b = 1 %}', 'SYNTAX', "expected token 'end of statement block', got 'b'", 9],
    ['{% for %}', 'SYNTAX', "Expected an expression, got 'end of statement block'", 7],
    ['{{ 1 // 0 }}', 'TYPE', 'integer division or modulo by zero', undefined],
    ['{{ 1 % 0 }}', 'TYPE', 'integer modulo by zero', undefined],
    ['{{ 1.0 / 0 }}', 'TYPE', 'float division by zero', undefined],
    ['{% endif %}', 'SYNTAX', "Encountered unknown tag 'endif'.", 0],
    [
      '{% if a %}{% for b in c %}{% endif %}',
      'SYNTAX',
      "Encountered unknown tag 'endif'. You probably made a nesting mistake. Jinja is expecting this tag, but currently " +
        "looking for 'endfor' or 'else'. The innermost block that needs to be closed is 'for'.",
      26,
    ],
    ['{{ missing }}', 'UNDEFINED', "'missing' is undefined", undefined],
    ['{{ 1 + [] }}', 'TYPE', "unsupported operand type(s) for +: 'int' and 'list'", undefined],
    ['{{ 1|nope }}', 'FILTER', "No filter named 'nope'.", undefined],
    ['{{ 1 is nope }}', 'FILTER', "No test named 'nope'.", undefined],
    ['{% include "a" %}', 'UNSUPPORTED', 'the statement {% include %} cannot be used here', 0],
    ['{{ [].append(1) }}', 'UNSUPPORTED', 'append() would change a list, which a template cannot do', undefined],
  ] as const)('%s', (template, code, message, position) => {
    const error = errorOf(template)
    expect(error).toMatchObject({ name: 'TemplateError', code, position })
    expect(error.message).toContain(message)
  })

  test('of a cached failure are new objects', () => {
    expect(errorOf('{{ a b c }}')).not.toBe(errorOf('{{ a b c }}'))
  })
})

function errorOf(template: string): TemplateError {
  try {
    render(template, {})
  } catch (error) {
    if (error instanceof TemplateError) return error
    throw error
  }
  throw new Error('nothing was thrown')
}
