import { describe, expect, test } from 'vitest'
import { render, TemplateError } from './render.ts'

const store = {
  store: {
    book: [
      { title: 'A', price: 8.95, author: 'x', isbn: '1' },
      { title: 'B', price: 12.99, author: 'y' },
      { title: 'C', price: 8.99, author: 'z', isbn: '2' },
    ],
    bicycle: { color: 'red', price: 19.95 },
  },
}

describe('jsonpath_query', () => {
  test.each([
    ['$.store.book[*].title', ['A', 'B', 'C']],
    ['store.bicycle.color', ['red']],
    ['$.store.book[0].title', ['A']],
    ['$.store.book[-1].title', ['C']],
    ['$.store.book[1:].title', ['B', 'C']],
    ['$.store.book[:2].title', ['A', 'B']],
    ['$.store.book[::2].title', ['A', 'C']],
    ['$.store.book[0,2].title', ['A', 'C']],
    ["$.store['bicycle']['color']", ['red']],
    ['$["store"].bicycle["color","price"]', ['red', 19.95]],
    ['$..title', ['A', 'B', 'C']],
    ['$.store..price', [19.95, 8.95, 12.99, 8.99]],
    ['$.store.bicycle.*', ['red', 19.95]],
    ['$.store.book[?(@.price < 9)].title', ['A', 'C']],
    ['$.store.book[?(@.isbn)].title', ['A', 'C']],
    ['$.store.book[?(!@.isbn)].title', ['B']],
    ["$.store.book[?(@.author == 'y')].title", ['B']],
    ['$.store.book[?(@.price > 8.96 && @.isbn)].title', ['C']],
    ["$.store.book[?(@.author == 'x' || @.author == 'z')].title", ['A', 'C']],
    ['$.store.book[?(@.title >= "B")].title', ['B', 'C']],
    ['$.nothing', null],
    ['$.store.book.title', null],
    ['$.store.book[9]', null],
    ['$', [store]],
  ])('%s', (query, found) => {
    const result = render('{{ store|jsonpath_query(query) }}', { store, query })
    expect(sorted(result)).toEqual(sorted(found))
  })

  test.each(['$.', '$.a[', '$.a[?(', '$.a[?(@.b ==)]', '$.a]', '$ $', '$.a b', '$..'])('rejects %s', (query) => {
    expect(() => render('{{ {}|jsonpath_query(query) }}', { query })).toThrow(/JSONPath query cannot be understood/)
  })
})

/** Descendants come in no order that a query could rely on. */
function sorted(values: unknown): unknown {
  return Array.isArray(values) ? values.map((value) => JSON.stringify(value)).sort() : values
}

describe('versions', () => {
  test.each([
    ["{{ '1.2.3'|version_compare('1.2.4') }}", -1],
    ["{{ '1.10.0'|version_compare('1.9.0') }}", 1],
    ["{{ '1.0.0'|version_compare('1.0.0+build') }}", 0],
    ["{{ '1.0.0-alpha'|version_compare('1.0.0') }}", -1],
    ["{{ '1.0.0-alpha.1'|version_compare('1.0.0-alpha.beta') }}", -1],
    ["{{ '1.0.0-rc.2'|version_compare('1.0.0-rc.10') }}", -1],
    ["{{ '1.0.0-rc.1'|version_compare('1.0.0-rc') }}", 1],
    ["{{ '0.10.1'|version_more_than('0.10.0') }}", true],
    ["{{ '0.10.0'|version_less_than('0.10.1') }}", true],
    ["{{ '0.10.0'|version_equal('0.10.0') }}", true],
    ["{{ '0.10.0'|version_match('>=0.9.0') }}", true],
    ["{{ '0.10.0'|version_match('<0.9.0') }}", false],
    ["{{ '0.10.0'|version_match('!=0.9.0') }}", true],
    ["{{ '0.10.0'|version_match('==0.10.0') }}", true],
    ["{{ '0.10.0'|version_match('0.10.0') }}", true],
    ["{{ '0.10.1'|version_match('> 0.10.0') }}", true],
    ["{{ '0.9.0'|version_match('<=0.9.0') }}", true],
    ["{{ '0.10.1'|version_bump_major }}", '1.0.0'],
    ["{{ '0.10.1'|version_bump_minor }}", '0.11.0'],
    ["{{ '0.10.1'|version_bump_patch }}", '0.10.2'],
    ["{{ '0.10.1-rc.1'|version_strip_patch }}", '0.10'],
  ])('%s', (template, value) => {
    expect(render(template, {})).toBe(value)
  })

  test.each(['1.2', 'v1.2.3', '01.2.3', '1.2.3-', '1.2.3-01', '', 'x'])('%s is no version', (text) => {
    expect(() => render("{{ text|version_compare('1.0.0') }}", { text })).toThrow('not a semantic version')
  })
})

describe('YAML', () => {
  test.each([
    ['a: 1\nb: [x, 2.5, null, yes, off]', { a: 1, b: ['x', 2.5, null, true, false] }],
    ['- 010\n- 0x1f\n- 1_000\n- .inf', [8, 31, 1000, Infinity]],
    ['a: 2020-01-01\nb: "1"\nc: ~', { a: '2020-01-01', b: '1', c: null }],
    ['x: &x {a: 1}\ny: {<<: *x, b: 2}\nn: [y, n, Y]', { x: { a: 1 }, y: { a: 1, b: 2 }, n: ['y', 'n', 'Y'] }],
    ['1: a\ntrue: b', { '1': 'b' }],
    ['just text', 'just text'],
    ['', null],
    ['# nothing\n', null],
  ])('reads %j', (text, value) => {
    expect(render('{{ text|from_yaml_string }}', { text })).toEqual(value)
  })

  test('floats stay floats', () => {
    expect(render("v={{ 'a: 1.0'|from_yaml_string }}", {})).toBe("v={'a': 1.0}")
  })

  test('writes block style with sorted keys', () => {
    const value = { b: [1, { c: 'x' }], a: null, d: 'yes', e: 1.5, f: [], g: '2020-01-01', h: 'é' }
    expect(render('{{ value|to_yaml_string }}', { value })).toBe(
      ['a: null', 'b:', '- 1', '- c: x', "d: 'yes'", 'e: 1.5', 'f: []', "g: '2020-01-01'", 'h: é', ''].join('\n'),
    )
    expect(render('{{ [1.0]|to_yaml_string }}', {})).toBe('- 1.0\n')
    expect(render('{{ [1e-7, -1e20, 1.5e300]|to_yaml_string }}', {})).toBe('- 1.0e-07\n- -1.0e+20\n- 1.5e+300\n')
  })

  test.each([
    '{{ "a: [" |from_yaml_string }}',
    '{{ "!!binary aGk=" |from_yaml_string }}',
    '{{ "*x" |from_yaml_string }}',
    '{{ "a\\n---\\nb"|from_yaml_string }}',
  ])('refuses %s', (template) => {
    expect(() => render(template, {})).toThrow(TemplateError)
  })
})

describe('regular expressions', () => {
  const refused = [
    '(a)\\1',
    '(?P<n>a)(?P=n)',
    'a(?=b)',
    'a(?!b)',
    '(?<=a)b',
    'a++',
    '[',
    '(',
    'a{2000}',
    '[\\W]',
    '(?#x',
    'a)(b',
  ]

  test.each(refused)('%s is refused with a reason', (pattern) => {
    expect(() => render("{{ 'abc'|regex_search(pattern) }}", { pattern })).toThrow(/regular expression/)
  })

  test('a missing result is rejected', () => {
    expect(() => render("{{ 'abc'|regex_substring('x') }}", {})).toThrow('found 0 matches')
    expect(() => render("{{ 'abc'|regex_replace('b', '\\\\1') }}", {})).toThrow('group 1')
    expect(() => render("{{ 'abc'|regex_replace('b', '\\\\g<n>') }}", {})).toThrow('group that does not exist')
  })

  test('takes linear time', () => {
    expect(render('{{ text|regex_search("^(x+x+)+y$") }}', { text: 'x'.repeat(50_000) })).toBe(false)
    expect(render('{{ text|regex_match("(a*)*b") }}', { text: 'a'.repeat(50_000) })).toBe(false)
  })
})

describe('the rest', () => {
  test.each([
    [0, '0s'],
    [0.25, '250000μs'],
    [1, '1s'],
    [59.2, '1m0s'],
    [60, '1m0s'],
    [3725, '1h2m5s'],
    [123_456, '1d10h17m36s'],
    [365 * 86_400, '1y0d0h0m0s'],
  ])('%s seconds are %s', (seconds, text) => {
    expect(render('{{ seconds|to_human_time_from_seconds }}', { seconds })).toBe(text)
  })

  test('a negative time is rejected', () => {
    expect(() => render('{{ -1|to_human_time_from_seconds }}', {})).toThrow(TemplateError)
  })

  test('to_json_string separates items without a blank, as in workflows', () => {
    const value = { a: [1, 2], b: null }
    expect(render('{{ value|to_json_string }}', { value })).toBe('{"a": [1,2],"b": null}')
    expect(render('{{ value|to_json_string(separators=none) }}', { value })).toBe('{"a": [1, 2], "b": null}')
    expect(render('{{ value|to_json_string(2) }}', { value: [1, 2] })).toBe('[\n  1,\n  2\n]')
  })

  test('use_none keeps None as a value', () => {
    expect(render('{{ none_value|use_none }}', { none_value: null })).toBeNull()
  })

  test('random returns one of the items', () => {
    expect(['a', 'b']).toContain(render("{{ ['a', 'b']|random }}", {}))
    expect(render("{{ []|random|default('none') }}", {})).toBe('none')
  })

  test('JSON numbers keep their kind and their digits', () => {
    expect(render("v={{ '[1, 1.0, 12345678901234567890, 1e3]'|from_json_string }}", {})).toBe(
      'v=[1, 1.0, 12345678901234567890, 1000.0]',
    )
    expect(() => render("{{ '1e400'|from_json_string }}", {})).toThrow('a number is too large')
  })

  test('JSON keys are read as they were written, whatever keys were read before', () => {
    const read = (text: string): unknown => render('{{ text|from_json_string }}', { text })
    read('{"a": 1, "\\\\": 2}')
    expect(read('{"a": 1, "\\"": {"a": 1, "\\u00e9": 2}}')).toEqual({ a: 1, '"': { a: 1, é: 2 } })
  })

  test.each(['{', '[1,]', "{'a': 1}", '', 'NaN', '[1] x'])('%j is no JSON', (text) => {
    expect(() => render('{{ text|from_json_string }}', { text })).toThrow('the text is not valid JSON')
  })
})
