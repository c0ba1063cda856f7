import { describe, expect, test } from 'vitest'
import {
  attributeOf,
  cellText,
  colorStatus,
  displayWidth,
  formatTime,
  pickAttributes,
  renderBox,
  renderTable,
  toJson,
  truncationNote,
  wrapText,
} from './print.ts'

describe('tables', () => {
  test('columns are as wide as their widest cell, left aligned', () => {
    expect(
      renderTable(
        ['id', 'name'],
        [
          ['1', 'long name'],
          ['22', ''],
        ],
      ),
    ).toBe(
      [
        '+----+-----------+',
        '| id | name      |',
        '+----+-----------+',
        '| 1  | long name |',
        '| 22 |           |',
        '+----+-----------+',
        '',
      ].join('\n'),
    )
  })

  test('cells of several lines, and wide characters, keep the box straight', () => {
    const lines = renderTable(['a'], [['x\nlonger'], ['日本'], ['e\u0301'], ['😀']])
      .trimEnd()
      .split('\n')
    expect(new Set(lines.map(displayWidth))).toEqual(new Set([10]))
  })

  test.each([
    ['e\u0301', 1],
    ['日本', 4],
    ['ｱｲ', 2],
    ['ㄅ㈱', 4],
    ['\u1112\u1161\u11ab', 2],
    ['का', 2],
    ['😀👍', 4],
    ['🇩🇪', 2],
    ['Ａ', 2],
    ['ﬁ→…', 3],
  ])('%s takes as many columns as terminals give it', (text, columns) => {
    expect(displayWidth(text)).toBe(columns)
  })

  test('given widths wrap cells, one width counts for all columns', () => {
    const table = renderTable(['a', 'b'], [['one two', 'abcdefgh']], { widths: [5] })
    expect(table.split('\n')[0]).toBe('+-------+-------+')
    expect(table).toContain('| one   | abcde |\n| two   | fgh   |')
  })

  test('a table fits into the terminal by narrowing its widest columns', () => {
    const table = renderTable(['id', 'text'], [['1', 'word '.repeat(50)]], { terminalWidth: 40 })
    for (const line of table.trimEnd().split('\n')) expect(displayWidth(line)).toBe(40)
    const id = '6b01aef89ced91c48c2e9dbe'
    const narrow = renderTable(['id', 'b'], [[id, 'one two '.repeat(9)]], { terminalWidth: 5 })
    expect(narrow).toContain(`| ${id} | one |\n`)
    const ref = 'core.4a1bd6c0-7b9e-4b6e-9d2f-0a1b2c3d4e5f'
    expect(renderTable(['ref'], [[ref]], { terminalWidth: 5 })).toContain(`| ${ref} |\n`)
    const nested = renderTable(['a'], [['{\n    "unit": "m"\n}']], { terminalWidth: 5 })
    expect(nested).toContain('|     "unit": |\n|     "m"     |\n')
    const endless = renderTable(['a'], [['x'.repeat(100)]], { terminalWidth: 5 })
    expect(endless.split('\n')[0]).toBe(`+${'-'.repeat(43)}+`)
  })

  test('one endless cell does not widen every line without a bound', () => {
    const table = renderTable(['a'], [['x'.repeat(5000)], ['y']])
    expect(table.split('\n').map(displayWidth)).toEqual([...Array.from({ length: 15 }, () => 504), 0])
  })

  test('paint colours what is inside, after the width is known', () => {
    const paint = (column: number, row: number, text: string): string =>
      column === 0 && row === 0 ? `<${text}>` : text
    expect(renderTable(['a'], [['b'], ['cc']], { paint })).toContain('| <b>  |\n| cc |')
  })

  test('wrapping breaks at blanks, and inside words where it must', () => {
    expect(wrapText('the quick brown', 9)).toEqual(['the quick', 'brown'])
    expect(wrapText('abcdefghij', 4)).toEqual(['abcd', 'efgh', 'ij'])
    expect(wrapText('    "cmd": "x"', 8)).toEqual(['    "cmd', '": "x"'])
    expect(wrapText('a\n\nb', 4)).toEqual(['a', '', 'b'])
    expect(wrapText('  one two three', 8)).toEqual(['  one', '  two', '  three'])
    expect(wrapText('  abcdefgh  i', 6)).toEqual(['  abcd', '  efgh', '   i'])
  })

  test('cells escape whatever a terminal would obey, and keep line breaks', () => {
    expect(cellText('\u001b[31mred\u009b\u202e\nnext')).toBe('\\u001b[31mred\\u009b\\u202e\nnext')
    expect(cellText({ a: '\u001b' })).toBe('{\n    "a": "\\u001b"\n}')
    expect([cellText(null), cellText(undefined), cellText(false), cellText(0)]).toEqual(['', '', 'false', '0'])
  })
})

describe('values', () => {
  test('a dotted path leads into objects; a name with dots is tried as a whole', () => {
    const record = { action: { ref: 'core.local' }, 'a.b': 1, a: { b: 2, 'c.d': { e: 3 } }, list: [{ x: 4 }] }
    expect(attributeOf(record, 'action.ref')).toBe('core.local')
    expect(attributeOf(record, 'a.b')).toBe(1)
    expect(attributeOf(record, 'a.c.d.e')).toBe(3)
    expect(attributeOf(record, 'list.0.x')).toBe(4)
    expect(attributeOf(record, 'constructor.name')).toBeUndefined()
    expect(attributeOf(record, 'action.ref.length')).toBeUndefined()
  })

  test('picked attributes keep their structure, whatever their names', () => {
    const record: unknown = JSON.parse('{"a": {"b": 1, "c": 2}, "__proto__": {"polluted": true}}')
    expect(pickAttributes(record, ['a.c', 'a.b', 'x.y'])).toEqual({ a: { c: 2, b: 1 }, x: { y: null } })
    pickAttributes(record, ['__proto__.polluted'])
    expect('polluted' in {}).toBe(false)
  })

  test('JSON has four blanks of indentation and sorted names', () => {
    expect(toJson({ b: [{ d: 1, c: 2 }], a: null })).toBe(
      '{\n    "a": null,\n    "b": [\n        {\n            "c": 2,\n            "d": 1\n        }\n    ]\n}',
    )
  })

  test('JSON keeps its meaning, and carries nothing that a terminal obeys', () => {
    const record = { 'a\u009b31m': '\u001b]0;x\u0007\u007f\u0090\u202e\u{e0041}\ud800', b: 'ü宽\t\n' }
    expect(toJson(record)).toMatch(/^[\x20-\x7eü宽\n]*$/)
    expect(JSON.parse(toJson(record))).toEqual(record)
  })

  test('times read in words, in the configured zone', () => {
    expect(formatTime('2015-02-17T17:28:28.000001Z', 'UTC')).toBe('Tue, 17 Feb 2015 17:28:28 UTC')
    expect(formatTime('2015-02-17T17:28:28.000001Z', 'Asia/Tokyo')).toBe('Wed, 18 Feb 2015 02:28:28 GMT+9')
    expect(formatTime('2015-13-17T17:28:28Z', 'UTC')).toBe('2015-13-17T17:28:28Z')
    expect(formatTime(undefined, 'UTC')).toBe('')
  })

  test('statuses are green, red or yellow', () => {
    expect(colorStatus('succeeded (1s elapsed)')).toBe('\u001b[32msucceeded (1s elapsed)\u001b[39m')
    expect(colorStatus('timeout')).toBe('\u001b[31mtimeout\u001b[39m')
    expect(colorStatus('elapsed)')).toBe('elapsed)')
    expect(colorStatus('processed')).toBe('\u001b[32mprocessed\u001b[39m')
    expect(colorStatus('processing_failed')).toBe('\u001b[31mprocessing_failed\u001b[39m')
    expect(colorStatus('running')).toBe('\u001b[33mrunning\u001b[39m')
  })

  test('the note of a truncated list counts', () => {
    const text = 'Note: Only first 2 Actions are displayed. Use -n/--last flag for more results.'
    expect(truncationNote(2, 'Actions', 'Action')).toBe(renderBox(text))
    expect(truncationNote(1, 'Actions', 'Action')).toContain('Only one Action is displayed')
    expect(renderBox('ab')).toBe('+----+\n| ab |\n+----+\n')
  })
})
