import { describe, expect, test } from 'vitest'
import { readBashLine, toBashText } from './bash-line.ts'

/** As bash sets COMP_WORDBREAKS. */
const breaks = ' \t\n"\'@><=;|&(:'
const texts = [
  'plain',
  'two words',
  `a'b"c`,
  '$(x)`y`',
  'a\\b',
  'a!b*?[c]{d,e}~#^',
  'a;b|c&',
  'ü €',
  'k=v:w@x',
  '-',
  'end(',
]

describe('the line of bash', () => {
  test.each([
    ['svc run core.l', ['svc', 'run', 'core.l'], '', ''],
    ['svc run ', ['svc', 'run', ''], '', ''],
    ['svc key get web:u', ['svc', 'key', 'get', 'web:u'], 'web:', ''],
    ['svc run x cmd=da', ['svc', 'run', 'x', 'cmd=da'], 'cmd=', ''],
    ['svc run x @cmd', ['svc', 'run', 'x', '@cmd'], '@', ''],
    ["svc run 'a b' \"c d", ['svc', 'run', 'a b', 'c d'], '', '"'],
    ['svc run cmd="a:b', ['svc', 'run', 'cmd=a:b'], 'cmd=', '"'],
    ['svc get a\\ b\\', ['svc', 'get', 'a b'], '', ''],
    ["svc get '' x", ['svc', 'get', '', 'x'], '', ''],
    ['', [''], '', ''],
  ])('%s', (line, words, kept, quote) => {
    expect(readBashLine(line, breaks)).toEqual({ words, kept, quote })
  })

  test('what it is given for a text is read as that text again, whatever quote is open', () => {
    for (const quote of ['', "'", '"'] as const) {
      for (const text of texts) {
        const line = `svc get ${quote}${toBashText(text, { kept: '', quote })}${quote} `
        expect(readBashLine(line, breaks).words).toEqual(['svc', 'get', text, ''])
      }
    }
  })

  test('what is kept is not repeated', () => {
    expect(toBashText('web:url', { kept: 'web:', quote: '' })).toBe('url')
  })
})
