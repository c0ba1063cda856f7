import { describe, expect, test } from 'vitest'
import type { OutputLine } from '../../api/records.ts'
import { findJson } from './find-json.ts'
import { piecesOf, shownLine, timeOfDay } from './shown-line.ts'

const line = (parts: OutputLine['parts'], more: Partial<OutputLine> = {}): OutputLine => ({
  number: 1,
  timestamp: '2030-01-01T10:11:12.345678Z',
  parts,
  ...more,
})

describe('a line', () => {
  test('is drawn anew when more was written to it', () => {
    const written = line([{ output_type: 'stdout', data: 'a' }])
    const before = shownLine(written)
    expect(shownLine(written)).toBe(before)
    const [part] = written.parts
    if (part !== undefined) part.data += 'b'
    expect(shownLine(written).text).toBe('ab')
    written.parts.push({ output_type: 'stderr', data: '', host: 'h' })
    expect(shownLine(written)).toMatchObject({ mark: 'err', hosts: ['h'] })
  })

  test('says what of it is not drawn, and where it was written to', () => {
    expect(shownLine(line([{ output_type: 'stdout', data: 'a' }]))).toMatchObject({ isCut: false, mark: undefined })
    expect(shownLine(line([{ output_type: 'other', data: 'x'.repeat(2001) }]))).toMatchObject({
      isCut: true,
      mark: 'oth',
      width: 2000,
    })
    expect(shownLine(line([{ output_type: 'stdout', data: 'a' }], { next_offset: 1 })).isCut).toBe(true)
  })
})

describe('marks', () => {
  const pieces = (text: string, start: number, ...marks: [number, number][]): string =>
    piecesOf(
      text,
      start,
      marks.map(([from, end]) => ({ start: from, end })),
    )
      .map(({ piece, isMarked }) => (isMarked ? `[${piece}]` : piece))
      .join('|')

  test('part a text', () => {
    expect(pieces('abcdef', 0)).toBe('abcdef')
    expect(pieces('abcdef', 0, [1, 3], [4, 5])).toBe('a|[bc]|d|[e]|f')
    expect(pieces('abcdef', 0, [0, 6])).toBe('[abcdef]')
    expect(pieces('', 0, [0, 6])).toBe('')
  })

  test('may begin before it and end behind it', () => {
    expect(pieces('def', 3, [1, 4], [5, 9])).toBe('[d]|e|[f]')
    expect(pieces('def', 3, [0, 3], [6, 9])).toBe('def')
  })
})

test('times are of the day', () => {
  expect(timeOfDay('2030-01-01T10:11:12.345678Z')).toMatch(/^\d\d:11:12\.345$/)
  expect(timeOfDay('never')).toBe('')
})

test.each([
  ['{"a":1}', { a: 1 }],
  ['  [1, 2] ', [1, 2]],
  ['{}', {}],
])('%j is JSON', (text, value) => {
  expect(findJson(text)?.value).toEqual(value)
})

test.each(['', '1', '"a"', 'null', '{', '{a:1}', 'text {"a":1}', '[1] more'])('%j is none', (text) => {
  expect(findJson(text)).toBeUndefined()
})
