import { describe, expect, it } from 'vitest'
import type { Session } from '../session.ts'
import { createPieceOutput, LinePrinter, type Piece } from './tail-output.ts'

/** Keeps what is printed; the printing of each piece takes a while. */
function terminal(isColored = false): { session: Session; printed: () => string } {
  let printed = ''
  const print = async (text: string): Promise<void> => {
    await new Promise(setImmediate)
    printed += text
  }
  return { session: { print, isColored, form: 'human' } as unknown as Session, printed: () => printed } // nothing else of it is used
}

const piece = (text: string, type = 'stdout'): Piece => ({ text, type, timestamp: 'T' })

describe('output of one execution', () => {
  it('is printed as it is, metadata before each piece', async () => {
    const { session, printed } = terminal()
    const output = createPieceOutput(session, 'x', { includeMetadata: true })
    await output.print(piece('a\nb'))
    await output.print(piece('c\n', 'stderr'))
    expect(printed()).toBe('[T][stdout] a\nb[T][stderr] c\n')
  })

  it('what the server says about it is no command to the terminal', async () => {
    const { session, printed } = terminal()
    const output = createPieceOutput(session, 'x', { includeMetadata: true })
    await output.print({ text: '\u001b[1mthe text is\n', type: '\u001b[2J', timestamp: '\u009b' })
    const [metadata = '', text] = printed().split('\u001b')
    expect([metadata, text]).toEqual([expect.stringMatching(/^\[[\x20-\x7e]+\]\[[\x20-\x7e]+\] $/), '[1mthe text is\n'])
  })

  it('what is said begins a line', async () => {
    const { session, printed } = terminal()
    const output = createPieceOutput(session, 'x', { includeMetadata: false })
    await output.print(piece('open'))
    await output.say('one', true)
    await output.say('two')
    await output.say('three', true)
    expect(printed()).toBe('open\n\none\ntwo\n\nthree\n')
  })

  it('errors are red up to the end of each line, where there are colours', async () => {
    const { session, printed } = terminal(true)
    const output = createPieceOutput(session, 'x', { includeMetadata: false })
    await output.print(piece('out\n'))
    await output.print(piece('one\r\n\ntwo\nopen', 'stderr'))
    expect(printed()).toBe('out\n\u001b[31mone\u001b[39m\r\n\n\u001b[31mtwo\u001b[39m\n\u001b[31mopen\u001b[39m')
  })
})

describe('output of several executions', () => {
  it('lines stay whole, whoever writes in between', async () => {
    const { session, printed } = terminal()
    const printer = new LinePrinter(session, { includeMetadata: false })
    const [a, b] = [printer.outputOf('id', 'a'), printer.outputOf('id', 'b')]
    await Promise.all([a.print(piece('a1 ')), b.print(piece('b1 '))])
    await Promise.all([a.print(piece('a2\na3\na4 ')), b.print(piece('b2\n')), a.print(piece('error\n', 'stderr'))])
    await a.print(piece('a5'))
    await a.say('a is over')
    await b.say('b is over')
    const lines = printed().split('\n')
    expect(lines.toSorted()).toEqual(['', 'a is over', 'a1 a2', 'a3', 'a4 a5', 'b is over', 'b1 b2', 'error'])
    expect(printed().endsWith('a4 a5\na is over\nb is over\n')).toBe(true)
  })

  it('a line of any length is printed in pieces; others begin a line of their own', async () => {
    const { session, printed } = terminal()
    const printer = new LinePrinter(session, { includeMetadata: false })
    const [a, b] = [printer.outputOf('id', 'a'), printer.outputOf('id', 'b')]
    const long = 'x'.repeat(70_000)
    await a.print(piece(long))
    expect(printed()).toBe(long)
    await b.print(piece('b\n'))
    await a.print(piece('end\n'))
    expect(printed()).toBe(`${long}\nb\nend\n`)
  })

  it('metadata stands before each line, and says whose it is', async () => {
    const { session, printed } = terminal()
    const printer = new LinePrinter(session, { includeMetadata: true })
    const [root, child] = [printer.outputOf('id', ''), printer.outputOf('id', 'child')]
    await root.print(piece('one\ntw'))
    await child.print(piece('its\n'))
    await root.print(piece('o\n\nthree\n'))
    expect(printed()).toBe(
      '[T][stdout] one\n[T][stdout][child] its\n[T][stdout] two\n[T][stdout] \n[T][stdout] three\n',
    )
  })
})
