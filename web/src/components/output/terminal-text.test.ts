import { describe, expect, test } from 'vitest'
import { withoutControlSequences } from '../../../../src/lib/text/control-sequences.ts'
import { computedMs } from '../../../../tests/helpers/work.ts'
import { beginningOf, plainText, RGB, spansOf, widthOf, type TextStyle } from './terminal-text.ts'

/** Text and style of each span of what came on standard output. */
const shown = (data: string): [string, TextStyle | undefined][] =>
  spansOf([{ output_type: 'stdout', data }]).map(({ text, style }) => [text, style])

const textOf = (data: string): string => plainText(spansOf([{ output_type: 'stdout', data }]))

describe('colours', () => {
  test.for<[string, TextStyle]>([
    ['31', { foreground: 1 }],
    ['97', { foreground: 15 }],
    ['44', { background: 4 }],
    ['103', { background: 11 }],
    ['1;31', { isBold: true, foreground: 1 }],
    ['01;31', { isBold: true, foreground: 1 }],
    ['2', { isDim: true }],
    ['3;4;7;9', { isItalic: true, isUnderlined: true, isInverse: true, isStruck: true }],
    ['38;5;208', { foreground: 208 }],
    ['48;5;0', { background: 0 }],
    ['38;2;1;2;3', { foreground: RGB + 0x01_02_03 }],
    ['38:2::1:2:3', { foreground: RGB + 0x01_02_03 }],
    ['38:2:1:2:3', { foreground: RGB + 0x01_02_03 }],
    ['38:5:208', { foreground: 208 }],
    ['38;5;208;1', { foreground: 208, isBold: true }],
    ['48;2;255;255;255;31', { background: RGB + 0xff_ff_ff, foreground: 1 }],
    ['31;0;32', { foreground: 2 }],
    ['31;;32', { foreground: 2 }],
    ['4:3', { isUnderlined: true }],
    ['1;22;31', { foreground: 1 }],
    ['31;41;39;49;4', { isUnderlined: true }],
  ])('%s', ([codes, style]) => {
    expect(shown(`a\u001b[${codes}mb\u001b[0mc`)).toEqual([
      ['a', undefined],
      ['b', style],
      ['c', undefined],
    ])
  })

  test.each(['', '0', '8', '999', '38;5', '38;5;256', '38;2;1;2', '38;2;1;2;999', '38;7;1', '38', '99999999999'])(
    '%s is none',
    (codes) => {
      expect(shown(`a\u001b[${codes}mb`)).toEqual([['ab', undefined]])
    },
  )

  test('of both streams in one line', () => {
    const spans = spansOf([
      { output_type: 'stdout', data: 'a\u001b[1m' },
      { output_type: 'stderr', data: 'b' },
    ])
    expect(spans).toEqual([
      { text: 'a', type: 'stdout', style: undefined },
      { text: 'b', type: 'stderr', style: { isBold: true } },
    ])
  })

  test('equal ones are one object', () => {
    const [[, one] = [], [, other] = []] = [shown('\u001b[1;31ma'), shown('\u001b[31m\u001b[1mb')].flat()
    expect(one).toBe(other)
  })
})

describe('what is no text is left out', () => {
  test.for<[string, string]>([
    ['a\u001b]0;title\u0007b', 'ab'],
    ['a\u001b]0;title\u001b\\b', 'ab'],
    ['a\u001b]8;;javascript:alert(1)\u001b\\link\u001b]8;;\u001b\\b', 'alinkb'],
    ['a\u001b]52;c;c2VjcmV0\u0007b', 'ab'],
    ['a\u001bPq#0;2;0;0;0\u001b\\b', 'ab'],
    ['a\u001b_command\u001b\\b', 'ab'],
    ['a\u009b31mb\u009d0;title\u009cc', 'abc'],
    ['a\u001b[2J\u001b[1;1H\u001b[?25l\u001b[5A\u001b[6nb', 'ab'],
    ['a\u001b(B\u001b)0\u001b#8\u001bc\u001b=\u001b>b', 'ab'],
    ['a\u0000\u0001\u0007\u000b\u000c\u000e\u007f\u0085b', 'ab'],
    ['a\u001b', 'a'],
    ['a\u001b[', 'a'],
    ['a\u001b[31', 'a'],
    ['a\u001b[31 q b', 'a b'],
    ['tab\tstays', 'tab\tstays'],
    // Who does not end a title must not hide what comes.
    ['a\u001b]0;title', 'a0;title'],
    ['a\u001b]8;;javascript:alert(1)', 'a8;;javascript:alert(1)'],
  ])('%j', ([data, text]) => {
    expect(textOf(data)).toBe(text)
    // The same is searched.
    // eslint-disable-next-line no-control-regex
    expect(withoutControlSequences(data).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '')).toBe(text)
  })

  test.each(['\u001b[', '\u001b]', '\u009d', '\u001b[31m', '\u001b]0;', '\u001bP', '1;', '\u001b(', '\r', '\b'])(
    'however much there is of %j',
    (piece) => {
      const many = piece.repeat(16_384 / piece.length)
      const startedAt = computedMs()
      for (const text of [many, `\u001b[${many}m`, `\u001b]${many}`]) textOf(text)
      // Some milliseconds; a bound that grows with the square of the length takes seconds.
      expect(computedMs() - startedAt).toBeLessThan(1000)
    },
  )
})

describe('what writes over the line', () => {
  test.for<[string, string]>([
    ['10%\r20%\r100%', '100%'],
    ['abcdef\rxy', 'xycdef'],
    ['abc\r\u001b[Kxy', 'xy'],
    ['abc\u001b[2K\rxy', 'xy'],
    ['abc\r', 'abc'],
    ['abc\rx\u001b[K', 'x'],
    ['abc\b\bX', 'aXc'],
    ['\b\bX', 'X'],
    ['abc\u001b[2KX', '   X'],
    ['abc\b\u001b[1KX', '  X'],
    ['😀😀\r😁', '😁😀'],
    ['abc\u001b[K', 'abc'],
  ])('%j', ([data, text]) => {
    expect(textOf(data)).toBe(text)
  })

  test('has its own colour', () => {
    expect(shown('\u001b[31mabc\r\u001b[32mX')).toEqual([
      ['X', { foreground: 2 }],
      ['bc', { foreground: 1 }],
    ])
  })
})

describe('a long line', () => {
  test('is cut between characters', () => {
    const spans = spansOf([{ output_type: 'stdout', data: `ab\u001b[1mcd😀ef` }])
    expect(plainText(beginningOf(spans, 5).spans)).toBe('abcd')
    expect(plainText(beginningOf(spans, 6).spans)).toBe('abcd😀')
    expect(beginningOf(spans, 6).isCut).toBe(true)
    expect(beginningOf(spans, 8)).toEqual({ spans, isCut: false })
    expect(beginningOf(spans, 2)).toEqual({ spans: spans.slice(0, 1), isCut: true })
  })

  test('takes columns', () => {
    expect(widthOf(spansOf([{ output_type: 'stdout', data: 'ab\tä' }]))).toBe(11)
    expect(widthOf(spansOf([{ output_type: 'stdout', data: '漢字' }]))).toBe(4)
  })
})
