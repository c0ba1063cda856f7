import { describe, expect, test } from 'vitest'
import { readJsonText, sentenceOf } from './json-text.ts'

describe('what is JSON is read as it is', () => {
  test.each([
    '{}',
    '[]',
    'null',
    ' true ',
    '-0.5e3',
    '1e300',
    '9007199254740991',
    '"a\\n\\u00e4\\ud83d\\ude00\\/"',
    '{"a": [1, {"b": null}], "": "x"}',
    '\n\t{\r\n"k" : false }\n',
    '"\u2028 and \u007f and \u009f are allowed"',
  ])('%j', (text) => {
    expect(readJsonText(text)).toEqual({ value: JSON.parse(text) })
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
    ['', 1, 1, 'there is nothing yet.'],
    ['{"a": 1,}', 1, 8, 'a comma stands before the closing "}": remove it.'],
    ['[1, 2,]', 1, 6, 'a comma stands before the closing "]": remove it.'],
    ['[1 2]', 1, 4, 'a comma or "]" is missing before "2".'],
    ['{"a": 1\n "b": 2}', 2, 2, 'a comma or "}" is missing before "\\"".'],
    ['{a: 1}', 1, 2, 'a name in double quotes is missing before "a".'],
    ["{'a': 1}", 1, 2, 'a name in double quotes is missing before "\'".'],
    ["['a']", 1, 2, 'texts stand in double quotes: "…".'],
    ['{"a" 1}', 1, 6, 'a colon is missing after the name.'],
    ['{"a": }', 1, 7, 'a value is missing before "}".'],
    ['{"a":', 1, 6, 'a value is missing at the end.'],
    ['{\n  "a": [1, 2\n', 2, 8, '"]" is missing for the "[" that begins here.'],
    ['{"a": 1', 1, 1, '"}" is missing for the "{" that begins here.'],
    ['{"a": 1, "a": 2}', 1, 10, 'the name "a" is here for the second time.'],
    ['{"__proto__": 1}', 1, 2, 'the name "__proto__" is not allowed.'],
    ['[True]', 1, 2, 'write true, in small letters.'],
    ['[None]', 1, 2, 'write null.'],
    ['[web1]', 1, 2, '"web1" needs double quotes to be a text.'],
    ['{} // x', 1, 4, '"/" is more than one value.'],
    ['[// x', 1, 2, 'JSON has no comments.'],
    ['1 2', 1, 3, '"2" is more than one value.'],
    ['"a', 1, 1, 'the closing quote of this text is missing.'],
    ['["a\nb"]', 1, 2, 'this text does not end on its line: close it, or write \\n for a line break.'],
    ['"\t"', 1, 2, 'a control character has to be written as an escape, such as \\t.'],
    ['"\\x"', 1, 2, 'after a backslash comes one of " \\ / b f n r t, or u and four hexadecimal digits.'],
    ['01', 1, 1, '"01" is no number.'],
    ['1.', 1, 1, '"1." is no number.'],
    ['-', 1, 1, 'digits are missing after the minus sign.'],
    ['1e999', 1, 1, 'the number is too large.'],
  ])('%j', (text, line, column, message) => {
    expect(readJsonText(text).mistake).toMatchObject({ line, column, message })
  })

  test.each(['9007199254740993', '-9007199254740993', '[9007199254740992]', '123456789012345678901.5'])(
    'of a number that would be changed: %s',
    (text) => {
      expect(readJsonText(text).mistake?.message).toContain('too large to be kept exactly')
    },
  )

  test('of values nested without end, without a stack that overflows', () => {
    expect(readJsonText('['.repeat(100_000)).mistake).toMatchObject({ offset: 100 })
  })

  test('in a sentence', () => {
    const { mistake } = readJsonText('{\n  "a": 1,\n}')
    expect(mistake && sentenceOf(mistake)).toBe('Line 2, column 9: a comma stands before the closing "}": remove it.')
  })
})
