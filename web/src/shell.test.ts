import { execFileSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { isPlain, plainJson, quote } from './shell.ts'

test.each(['', 'a b', "'", "'''", '$HOME `id` "x" \\ !', 'line\nbreak', '-n', '~', '#x', 'ä😀', '{"a": [1]}', '*?[a]'])(
  'a shell reads %j as it is written',
  (word) => {
    expect(execFileSync('sh', ['-c', `printf %s ${quote(word)}`]).toString()).toBe(word)
  },
)

describe('what is pasted into a terminal', () => {
  test.each(['plain', "it's", 'ä😀', '{"a":"\\u001b"}'])('may hold %j', (text) => {
    expect(isPlain(text)).toBe(true)
  })

  test.each(['\u001b[201~', '\u0003', 'a\nb', '\u007f', '\u009b', '\u202e', '\u2066', '\ufeff', '\u2028', '\ud800'])(
    'must not hold %j, and JSON of it does not',
    (text) => {
      expect(isPlain(text)).toBe(false)
      const json = plainJson({ [text]: [text] })
      expect(isPlain(json)).toBe(true)
      expect(JSON.parse(json)).toEqual({ [text]: [text] })
    },
  )

  test('has characters beyond the first plane escaped by halves', () => {
    const tag = '\u{e0041}'
    expect(plainJson(tag)).toBe('"\\udb40\\udc41"')
    expect(JSON.parse(plainJson(tag))).toBe(tag)
  })
})
