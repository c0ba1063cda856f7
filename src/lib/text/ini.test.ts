import { describe, expect, it } from 'vitest'
import { parseIni, parseIniBytes, type IniFile } from './ini.ts'

/** Sections, keys and texts as plain objects. */
const plain = (file: IniFile): Record<string, Record<string, string>> =>
  Object.fromEntries(
    [...file.sections].map(([name, values]) => [
      name,
      Object.fromEntries([...values].map(([key, value]) => [key, value.text])),
    ]),
  )

const clean = (text: string): Record<string, Record<string, string>> => {
  const file = parseIni(text)
  expect(file.problems).toEqual([])
  return plain(file)
}

describe('what ConfigParser reads', () => {
  it.each([
    ['equals sign and colon', '[a]\nx = 1\ny: 2\nz=3\n', { a: { x: '1', y: '2', z: '3' } }],
    ['the first delimiter decides', '[a]\nurl = http://h:1/?q=1\nk: a=b', { a: { url: 'http://h:1/?q=1', k: 'a=b' } }],
    ['comment lines, also indented', '# c\n[a]\n; c\nx = 1\n  # c\n', { a: { x: '1' } }],
    ['no comments behind a value', '[a]\nx = 1 ; two # three', { a: { x: '1 ; two # three' } }],
    ['a comment behind a section', '[a] ; c\nx = 1', { a: { x: '1' } }],
    ['percent signs are literal', '[a]\nx = %(y)s 100%', { a: { x: '%(y)s 100%' } }],
    ['JSON with ; = : and #', '[a]\nk = {"p": "x;y=z:#1"}', { a: { k: '{"p": "x;y=z:#1"}' } }],
    [
      'continuation lines',
      '[a]\nk = {\n  "p": 1,\n\n\t"q": 2 }\nl = 1',
      { a: { k: '{\n"p": 1,\n\n"q": 2 }', l: '1' } },
    ],
    ['a comment between continuation lines', '[a]\nk = 1,\n# c\n  2', { a: { k: '1,\n2' } }],
    ['continuation of an empty value', '[a]\nk =\n  1\n  2\n\n\n[b]', { a: { k: '1\n2' }, b: {} }],
    ['options indented alike are options', '[a]\n  x = 1\n  y = 2', { a: { x: '1', y: '2' } }],
    ['dotted sections', '[a.b]\nx = 1', { 'a.b': { x: '1' } }],
    ['keys in any case, sections as written', '[A]\nXy = 1', { A: { xy: '1' } }],
    ['a section twice', '[a]\nx = 1\n[b]\n[a]\ny = 2', { a: { x: '1', y: '2' }, b: {} }],
    ['empty values', '[a]\nx =\ny:', { a: { x: '', y: '' } }],
    ['quotes are literal', '[a]\nx = "1"', { a: { x: '"1"' } }],
    ['CRLF, CR and a byte order mark', '\uFEFF[a]\r\nx = 1\r\n  2\ry = 3', { a: { x: '1\n2', y: '3' } }],
    [
      'names of Object.prototype',
      '[a]\n__proto__ = 1\nconstructor = 2',
      { a: { ['__proto__']: '1', constructor: '2' } },
    ],
    ['nothing at all', '', {}],
  ])('%s', (_name, text, expected) => {
    expect(Object.entries(clean(text))).toEqual(Object.entries(expected))
  })

  it('knows the line of every key', () => {
    const values = parseIni('\n[a]\n# c\nx = 1\n  2\n\ny = 3').sections.get('a')
    expect([values?.get('x')?.line, values?.get('y')?.line]).toEqual([4, 7])
  })
})

describe('faults', () => {
  it.each([
    ['a line without delimiter', '[a]\nnonsense\nx = 1', [[2, 'neither a [section] nor']]],
    ['an option before any section', 'x = 1\n[a]', [[1, 'before the first [section]']]],
    ['an unclosed section', '[a\nx = 1', [[1, '[a is not a section']]],
    ['an empty section', '[]', [[1, '[] is not a section']]],
    ['text behind a section', '[a] b', [[1, 'is not a section']]],
    [
      'no name',
      '[a]\n = 1\n: 2',
      [
        [2, 'no option name before the ='],
        [3, 'no option name before the :'],
      ],
    ],
    ['the same key twice', '[a]\nx = 1\n[b]\nx = 1\n[a]\nX: 2', [[6, '"x" was set on line 2 already']]],
    [
      'control characters',
      '[a]\nx = 1\0\ny = \u001b[31m\n',
      [
        [2, 'control character'],
        [3, 'control character'],
      ],
    ],
  ])('%s', (_name, text, expected) => {
    const { problems } = parseIni(text)
    expect(problems.map((problem) => problem.line)).toEqual(expected.map(([line]) => line))
    for (const [index, [, words]] of expected.entries()) expect(problems[index]?.message).toContain(words)
  })

  it('does not let options of a broken section fall into the one before it', () => {
    expect(plain(parseIni('[a]\n[b\nx = 1'))).toEqual({ a: {} })
  })

  it('reports invalid UTF-8 with its line', () => {
    const bytes = Buffer.concat([Buffer.from('[a]\nx = ü\ny = '), Buffer.from([0xff, 0xfe]), Buffer.from('\n')])
    expect(parseIniBytes(bytes)).toEqual({
      sections: new Map(),
      problems: [{ line: 3, message: 'is not valid UTF-8' }],
    })
    expect(parseIniBytes(Buffer.from([0xc3])).problems).toEqual([{ line: 1, message: 'is not valid UTF-8' }])
  })

  it('lists a bounded number of faults in bounded words', () => {
    const { problems } = parseIni(`[a]\n${`${'y'.repeat(5000)}\n`.repeat(1000)}`)
    expect(problems).toHaveLength(51)
    expect(problems.at(-1)?.message).toContain('and more')
    expect(Math.max(...problems.map((problem) => problem.message.length))).toBeLessThan(300)
  })

  it.each([
    ['blanks behind a section', `[a]${' '.repeat(1_000_000)}x`],
    ['open brackets', '['.repeat(1_000_000)],
    ['blank lines in a value', `[a]\nx = 1${'\n'.repeat(1_000_000)}`],
    ['delimiters', `[a]\n${'='.repeat(1_000_000)}`],
    ['many keys', `[a]\n${Array.from({ length: 100_000 }, (_, index) => `k${index} = 1`).join('\n')}`],
  ])('reads a megabyte of %s before the time of a test is over: in steps squared it would not', (_name, text) => {
    expect(parseIniBytes(Buffer.from(text)).problems.length).toBeLessThan(60)
  })
})
