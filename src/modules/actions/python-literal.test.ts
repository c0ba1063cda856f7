import { describe, expect, test } from 'vitest'
import { parsePythonLiteral } from './python-literal.ts'
import { JsonNumber } from '../../lib/json/index.ts'

describe('Python literals', () => {
  test.each<[string, unknown]>([
    [`{'a': [1, 2.5, None, True, False], "b": {}}`, { a: [1, 2.5, null, true, false], b: {} }],
    [`['a', 'b',]`, ['a', 'b']],
    ['[ ]', []],
    ['()', []],
    ['(1,)', [1]],
    ['(1)', 1],
    ['(1, 2)', [1, 2]],
    ['{1, 2}', [1, 2]],
    ['{}', {}],
    [`{'a': 1,}`, { a: 1 }],
    [`u'x'`, 'x'],
    [`'it\\'s \\n\\t\\x41\\u00e9\\U0001F600\\q'`, `it's \n\tAé😀\\q`],
    ["'\\101\\0128\\0\\\nb'", 'A\n8\0b'],
    ['-1.5e3', new JsonNumber('-1.5e3')],
    ['((1 , ))', [1]],
    ['.5', 0.5],
    [' None ', null],
  ])('%s', (text, value) => {
    expect(parsePythonLiteral(text)).toEqual({ value })
  })

  test.each([
    '',
    'a',
    '[1',
    '[1 2]',
    '[,]',
    "{'a' 1}",
    "{'a': 1, 2}",
    '{1: 2}',
    "'a",
    "'a\nb'",
    "'\\x4'",
    '[1] x',
    '__import__("os")',
    '1 + 1',
    '['.repeat(5_000) + ']'.repeat(5_000),
  ])('%j is none', (text) => {
    expect(parsePythonLiteral(text)).toBeUndefined()
  })

  test('the key __proto__ makes a property, not a prototype', () => {
    const parsed = parsePythonLiteral(`{'__proto__': {'x': 1}}`)?.value
    expect(Object.hasOwn(parsed ?? {}, '__proto__')).toBe(true)
  })
})
