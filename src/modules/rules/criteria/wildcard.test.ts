import { describe, expect, it } from 'vitest'
import { computedMs } from '../../../../tests/helpers/work.ts'
import { Budget, defaultLimits } from '../../../lib/template/limits.ts'
import { compileWildcard, matchesWildcard } from './wildcard.ts'

const matches = (text: string, pattern: string): boolean =>
  matchesWildcard(text, compileWildcard(pattern), new Budget(defaultLimits, 'the comparison'))

describe('wildcards', () => {
  it.for<[pattern: string, fits: string[], doesNot: string[]]>([
    ['', [''], ['a']],
    ['*', ['', 'a', 'a\nb'], []],
    ['a*', ['a', 'abc', 'a\n'], ['', 'ba', 'A']],
    ['*.log', ['.log', 'a.log', 'a.log.log'], ['a.log.gz', 'alog']],
    ['a*b*c', ['abc', 'aXbYc', 'abbcc', 'abcbc'], ['ac', 'abcd', 'acb']],
    ['**a**', ['a', 'xay'], ['', 'b']],
    ['?', ['a', '\n', '😀'], ['', 'ab']],
    ['a?c', ['abc', 'a😀c'], ['ac', 'abbc']],
    ['*?', ['a', 'ab'], ['']],
    ['web[0-9]', ['web0', 'web9'], ['web', 'weba', 'web10']],
    ['[!0-9]*', ['a', '-1'], ['', '1a']],
    ['[]]', [']'], ['[', '']],
    ['[!]]', ['a', '['], [']']],
    ['[a-]', ['a', '-'], ['b']],
    ['[-a]', ['a', '-'], ['b']],
    ['[a-c-e]', ['b', '-', 'e'], ['d']],
    ['[z-a]', [], ['z', 'a', 'm', '-']],
    ['[^a]', ['^', 'a'], ['b']],
    ['[', ['['], ['', 'a']],
    ['[]', ['[]'], ['[', ']', '']],
    ['[!]', ['[!]'], ['a', '']],
    ['a[b', ['a[b'], ['ab']],
    ['\\*', ['\\', '\\a'], ['*']],
    ['[*]', ['*'], ['a', '']],
    ['[😀-😂]', ['😁'], ['a', '😃']],
    ['.+(a|b)$', ['.+(a|b)$'], ['xa']],
  ])('%s', ([pattern, fits, doesNot]) => {
    expect(fits.filter((text) => !matches(text, pattern))).toEqual([])
    expect(doesNot.filter((text) => matches(text, pattern))).toEqual([])
  })

  it('does not backtrack to earlier stars', () => {
    const startedAt = computedMs()
    expect(matches('a'.repeat(2_000), `${'a*'.repeat(50)}b`)).toBe(false)
    expect(computedMs() - startedAt).toBeLessThan(5_000)
  })

  it('rejects long patterns and matches that need too much work', () => {
    expect(() => matches('a'.repeat(1_000_000), `*${'a'.repeat(4_000)}b`)).toThrow(
      /^the comparison handles more than \d+ characters of text$/,
    )
    expect(() => matches('a', 'a'.repeat(5_000))).toThrow('the wildcard pattern is longer than 4096 characters')
  })
})
