import { expect, it } from 'vitest'
import { createClixmlFilter } from './clixml.ts'

const NAMESPACE = 'xmlns="http://schemas.microsoft.com/powershell/2004/04"'
const objs = (content: string): string => `<Objs Version="1.1.0.1" ${NAMESPACE}>${content}</Objs>`
const message = (stream: string, text: string): string => `<S S="${stream}">${text}</S>`
const PROGRESS =
  '<Obj S="progress" RefId="0"><TN RefId="0"><T>System.Object</T></TN><MS><I64 N="SourceId">1</I64><PR N="Record">' +
  '<AV>Preparing modules for first use.</AV><AI>0</AI><Nil /><PI>-1</PI><T>Completed</T><SD> </SD></PR></MS></Obj>'

function filterPieces(pieces: Iterable<string>): string {
  const filter = createClixmlFilter()
  let shown = ''
  for (const piece of pieces) shown += filter.filter(piece)
  return shown + filter.end()
}

/** The same in one piece, and character by character. */
function filtered(text: string): string {
  const shown = filterPieces([text])
  expect(filterPieces(text)).toBe(shown)
  return shown
}

it.each([
  ['progress', `#< CLIXML\r\n${objs(PROGRESS)}`, ''],
  ['nothing', `#< CLIXML\r\n${objs('')}`, ''],
  [
    'an error',
    `#< CLIXML\r\n${objs(`${PROGRESS}${message('Error', 'a &lt;b&gt; : not found_x000D__x000A_')}${message('Error', '    + at line 1_x000D__x000A_')}`)}`,
    'a <b> : not found\n    + at line 1\n',
  ],
  [
    'other streams',
    `#< CLIXML\r\n${objs(message('warning', 'low') + message('Verbose', 'v') + message('debug', 'd') + message('information', 'i'))}`,
    'WARNING: low\nVERBOSE: v\nDEBUG: d\n',
  ],
  [
    'an error as an object',
    `#< CLIXML\r\n${objs('<Obj S="Error" RefId="0"><ToString>boom</ToString><Props><S N="a">hidden</S></Props></Obj>')}`,
    'boom',
  ],
  [
    'several documents',
    `#< CLIXML\r\n${objs(PROGRESS)}${objs(message('Error', 'one_x000A_'))}\r\n${objs(message('Error', 'two'))}#< CLIXML\n${objs(message('Error', ' three'))}`,
    'one\n\r\ntwo three',
  ],
  ['text around', `before\r\n#< CLIXML\r\n${objs(message('Error', 'x'))}after\n`, 'before\r\nxafter\n'],
  ['escapes', `#< CLIXML\r\n${objs(message('Error', '_xD83D__xDE00_ _x005F_x000A_ _x12_ é'))}`, '😀 _x000A_ _x12_ é'],
  ['no documents', 'plain #< CLIXML\n#< CLI\n<Objs x>\n#', 'plain #< CLIXML\n#< CLI\n<Objs x>\n#'],
])('shows %s', (_, text, shown) => {
  expect(filtered(text)).toBe(shown)
})

it.each([
  ['half a message', `#< CLIXML\r\n<Objs ${NAMESPACE}>${message('Error', 'whole ')}<S S="Error">half`, 'whole half'],
  ['progress that was cut', `#< CLIXML\r\n<Objs ${NAMESPACE}>${PROGRESS}`, ''],
  ['a head alone', '#< CLIXML', '#< CLIXML'],
  ['text after a head', '#< CLIXML\nhello\nyou', '#< CLIXML\nhello\nyou'],
  ['another document', '#< CLIXML\n<html>\nx', '#< CLIXML\n<html>\nx'],
  ['a document type', '#< CLIXML\n<!DOCTYPE x>\ny', '#< CLIXML\n<!DOCTYPE x>\ny'],
  ['what is not XML', `#< CLIXML\n<Objs ${NAMESPACE}>${message('Error', 'x ')}</wrong>\ny`, 'x </wrong>\ny'],
  ['an entity of its own', `#< CLIXML\n<Objs ${NAMESPACE}><S S="Error">&secret;</S></Objs>`, '&secret;'],
])('loses nothing of %s', (_, text, shown) => {
  const seen = filtered(text)
  expect(seen).toContain(shown)
})

it('shows each message when it is there', () => {
  const filter = createClixmlFilter()
  expect(filter.filter(`#< CLIXML\r\n<Objs ${NAMESPACE}>${message('Error', 'first')}<S S="Er`)).toBe('first')
  expect(filter.filter('ror">second</S>')).toBe('second')
})

it('holds a bounded part of a message without end, and of nesting', () => {
  const filter = createClixmlFilter()
  filter.filter(`#< CLIXML\r\n<Objs ${NAMESPACE}><S S="Error">`)
  let shown = 0
  for (let piece = 0; piece < 40; piece++) shown += filter.filter('x'.repeat(65_536)).length
  expect(shown).toBeGreaterThan(39 * 65_536 - 1_100_000)
  expect(shown + filter.end().length).toBe(40 * 65_536)
  expect(filtered(`#< CLIXML\r\n<Objs ${NAMESPACE}>${'<a>'.repeat(70)}`)).toContain('<a>'.repeat(7))
})
