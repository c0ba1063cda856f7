import { describe, expect, test } from 'vitest'
import { readJsonText, mistakeText } from './json-text.ts'
import { readJson } from '../../json.ts'

describe('what is JSON is read as it is', () => {
  test.each([
    '{}',
    '[]',
    'null',
    ' true ',
    '-0.5e3',
    '9007199254740993',
    '[-9007199254740993, 21.0, 123456789012345678901.5]',
    '{"2": 1, "1": 2}',
    '1e300',
    '9007199254740991',
    '"a\\n\\u00e4\\ud83d\\ude00\\/"',
    '{"a": [1, {"b": null}], "": "x"}',
    '\n\t{\r\n"k" : false }\n',
    '"\u2028 and \u007f and \u009f are allowed"',
  ])('%j', (text) => {
    expect(readJsonText(text)).toEqual({ value: readJson(text) })
  })

  test('also names that an engine mistakes for others', () => {
    expect(readJsonText('{"\\\\n": 1, "\\n": 2}').value).toEqual({ '\\n': 1, '\n': 2 })
  })

  test('also when it is large', () => {
    const value = Array.from({ length: 20_000 }, (_, i) => ({ name: `n${i}`, size: i / 8, tags: ['ä', '"', '\\'] }))
    expect(readJsonText(JSON.stringify(value, null, 2)).value).toEqual(value)
  })
})

describe('a mistake is told with its place', () => {
  test.each([
    ['', 1, 1, 'enter a value.'],
    ['{"a": 1,}', 1, 8, 'remove the comma before the closing "}".'],
    ['[1, 2,]', 1, 6, 'remove the comma before the closing "]".'],
    ['[1 2]', 1, 4, 'a comma or "]" is missing before "2".'],
    ['{"a": 1\n "b": 2}', 2, 2, 'a comma or "}" is missing before "\\"".'],
    ['{a: 1}', 1, 2, 'a name in double quotes is missing before "a".'],
    ["{'a': 1}", 1, 2, 'a name in double quotes is missing before "\'".'],
    ["['a']", 1, 2, 'write strings in double quotes: "…".'],
    ['{"a" 1}', 1, 6, 'a colon is missing after the name.'],
    ['{"a": }', 1, 7, 'a value is missing before "}".'],
    ['{"a":', 1, 6, 'a value is missing at the end.'],
    ['{\n  "a": [1, 2\n', 2, 8, 'this "[" has no closing "]".'],
    ['{"a": 1', 1, 1, 'this "{" has no closing "}".'],
    ['{"a": 1, "a": 2}', 1, 10, 'the name "a" is repeated.'],
    ['{"__proto__": 1}', 1, 2, 'the name "__proto__" is not allowed.'],
    ['[True]', 1, 2, 'write true in lower case.'],
    ['[None]', 1, 2, 'write null.'],
    ['[web1]', 1, 2, '"web1" needs double quotes to be a string.'],
    ['{} // x', 1, 4, '"/" is more than one value.'],
    ['[// x', 1, 2, 'JSON allows no comments: remove it.'],
    ['1 2', 1, 3, '"2" is more than one value.'],
    ['"a', 1, 1, 'this string has no closing quote.'],
    ['["a\nb"]', 1, 2, 'this string does not end on its line: close it, or write \\n for a line break.'],
    ['"\t"', 1, 2, 'write a control character as an escape, such as \\t.'],
    ['"\\x"', 1, 2, 'write one of " \\ / b f n r t after a backslash, or u and four hexadecimal digits.'],
    ['01', 1, 1, '"01" is not a number.'],
    ['1.', 1, 1, '"1." is not a number.'],
    ['-', 1, 1, 'digits are missing after the minus sign.'],
    ['1e999', 1, 1, 'a number is too large: a float ends at 1.8e308.'],
  ])('%j', (text, line, column, message) => {
    expect(readJsonText(text).mistake).toMatchObject({ line, column, message })
  })

  test('of a number with more digits than any reader takes', () => {
    expect(readJsonText('9'.repeat(4301)).mistake?.message).toContain('the limit is 4300')
  })

  test('of values nested without end, without a stack that overflows', () => {
    expect(readJsonText('['.repeat(100_000)).mistake).toMatchObject({ offset: 100 })
  })

  test('in a sentence', () => {
    const { mistake } = readJsonText('{\n  "a": 1,\n}')
    expect(mistake && mistakeText(mistake)).toBe('Line 2, column 9: remove the comma before the closing "}".')
  })
})
