import { PassThrough } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { CliFailure, Interrupted } from '../failures.ts'
import { openSecretInput, type SecretInput } from './prompt.ts'

interface Fixture {
  input: SecretInput
  stream: PassThrough
  abort: AbortController
  readonly asked: () => string
  /** What the terminal was told about raw mode. */
  modes: boolean[]
}

function open(isTerminal: boolean): Fixture {
  const stream = new PassThrough()
  const modes: boolean[] = []
  const abort = new AbortController()
  let asked = ''
  if (isTerminal) Object.assign(stream, { isTTY: true, setRawMode: (mode: boolean) => modes.push(mode) })
  const input = openSecretInput({
    open: () => stream,
    interrupted: abort.signal,
    note: (text) => (asked += text),
  })
  return { input, stream, abort, asked: () => asked, modes }
}

describe('standard input that is no terminal', () => {
  test('a line for each question, and no question is shown', async () => {
    const { input, stream, asked } = open(false)
    stream.end('  first one \r\nsec\u00fcnd\nlast')
    expect(await input.ask('Password')).toBe('  first one ')
    expect(await input.askTwice('New password')).toBe('sec\u00fcnd')
    expect(await input.ask('Password')).toBe('last')
    await expect(input.ask('Password')).rejects.toThrow(/Password: .*has no more lines/)
    expect(asked()).toBe('')
  })

  test('characters that arrive in halves are whole', async () => {
    const { input, stream } = open(false)
    const asking = input.ask('Password')
    for (const byte of Buffer.from('p\u00fc\u{1f600}\n')) stream.write(Buffer.from([byte]))
    expect(await asking).toBe('p\u00fc\u{1f600}')
  })

  test.each([
    ['bytes', 'p\xfcss\nnext\n'],
    ['a beginning at the end', 'pass\xc3'],
  ])('%s that are not UTF-8 are refused, for they would not be what is kept', async (_what, bytes) => {
    const { input, stream } = open(false)
    stream.end(Buffer.from(bytes, 'latin1'))
    await expect(input.ask('Password')).rejects.toThrow('Standard input is not UTF-8.')
  })

  test('an empty line, an endless one, and a signal', async () => {
    const { input, stream, abort } = open(false)
    stream.write('\n')
    await expect(input.ask('Password')).rejects.toThrow(CliFailure)
    const waiting = input.ask('Password')
    abort.abort()
    await expect(waiting).rejects.toThrow(Interrupted)
    const endless = open(false)
    endless.stream.write('x'.repeat(100_000))
    await expect(endless.input.ask('Password')).rejects.toThrow(/too long/)
  })
})

describe('a terminal', () => {
  test.each([
    ['abc\r', 'abc'],
    ['abc\n', 'abc'],
    ['abx\u007fc\r', 'abc'],
    ['\u007fa\u00fc\u{1f600}\bb\r', 'a\u00fcb'],
    ['wrong\u0015right\r', 'right'],
    ['a\u001b[Ab\u001b[1;5Cc\u001bOP\u0007\r', 'abc'],
    ['a\u0004b\r', 'ab'],
    ['  \r', '  '],
  ])('the keys %j are %j', async (keys, secret) => {
    const { input, stream, modes, asked } = open(true)
    const asking = input.ask('Password')
    stream.write(keys)
    expect(await asking).toBe(secret)
    expect(modes).toEqual([true, false])
    expect(asked()).toBe('Password: \n')
  })

  test.each([
    ['\u0003', Interrupted],
    ['ab\u0003', Interrupted],
    ['\u0004', CliFailure],
    ['\r', CliFailure],
  ])('the keys %j end it, and the terminal is as before', async (keys, failure) => {
    const { input, stream, modes } = open(true)
    const asking = input.ask('Password')
    stream.write(keys)
    await expect(asking).rejects.toThrow(failure)
    expect(modes).toEqual([true, false])
  })

  test('a new password is typed twice', async () => {
    const { input, stream, asked } = open(true)
    stream.write('one\rone\rone\rtwo\r')
    expect(await input.askTwice('Password of alice')).toBe('one')
    expect(asked()).toBe('Password of alice: \nPassword of alice again: \n')
    await expect(input.askTwice('Password of alice')).rejects.toThrow(/do not match; nothing was changed/)
  })
})

describe('one key', () => {
  test('of those that mean something, in either case; Enter and the end of the input are empty', async () => {
    for (const [typed, key] of [
      ['xC', 'c'],
      ['\u001b[Aw', 'w'],
      ['\r', ''],
      ['\u0004', ''],
    ] as const) {
      const { input, stream, asked, modes } = open(true)
      stream.write(typed)
      expect(await input.askKey('Which?', 'cw')).toBe(key)
      expect([asked(), modes]).toEqual(['Which? ', [true, false]])
    }
    const ended = open(true)
    ended.stream.end()
    expect(await ended.input.askKey('Which?', 'cw')).toBe('')
  })

  test('Ctrl-C, as a key or as a signal', async () => {
    const typed = open(true)
    typed.stream.write('\u0003')
    await expect(typed.input.askKey('Which?', 'cw')).rejects.toThrow(Interrupted)
    const signaled = open(true)
    const asking = signaled.input.askKey('Which?', 'cw')
    signaled.abort.abort()
    await expect(asking).rejects.toThrow(Interrupted)
    expect(signaled.modes).toEqual([true, false])
  })
})
