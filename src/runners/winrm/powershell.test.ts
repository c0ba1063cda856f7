import { expect, it } from 'vitest'
import { powershellText as readText, readCall, readWords } from '../../../tests/helpers/fake-powershell.ts'
import { createRandom, seedOfRun } from '../../../tests/helpers/random.ts'
import { parseNumber } from '../../lib/json/index.ts'
import type { ParameterSchema } from '../../lib/schema/index.ts'
import { powershellArguments, powershellCommand, powershellValue, scriptCall } from './powershell.ts'
import { MAX_LINE_CHARACTERS } from './run.ts'

it.each([
  ['', "''"],
  ["it's", "'it''s'"],
  ['‘a’ ‚b‛', "'‘‘a’’ ‚‚b‛‛'"],
  ['"$(rm)" `n $x', '\'"$(rm)" `n $x\''],
  ['a\r\nb\tc', "'a\r\nb\tc'"],
  ["'\0'", "(''''+ [char]0 + '''')".replace('+', ' +')],
  ['😀', "'😀'"],
  [null, '$null'],
  [true, '$true'],
  [-1.5, '-1.5'],
  [parseNumber('12345678901234567890'), '12345678901234567890'],
  [parseNumber('1'.repeat(400)), `'${'1'.repeat(400)}'`],
  [[], '@()'],
  [['a', 1, null], "@('a', 1, $null)"],
  [[[1]], '@(,@(1))'],
  [[[1], [2]], '@(@(1), @(2))'],
  [{}, '@{}'],
  [{ "a'b": [true], c: { d: 'e' } }, "@{'a''b' = @($true); 'c' = @{'d' = 'e'}}"],
])('writes %j', (value, text) => {
  expect(powershellValue(value)).toBe(text)
})

const PIECES: readonly [string, ...string[]] = [
  "'",
  '‘',
  '’',
  '‚',
  '‛',
  '"',
  '“',
  '$(x)',
  '`',
  '`n',
  '\n',
  '\r',
  '\0',
  ' ',
  '-',
  '--%',
  '#',
  '}',
  '@{',
  ';',
  '|',
  '&',
  ',',
  '😀',
  '\ud800',
  'a',
  '1',
]

const seed = seedOfRun()

it(`writes values that are read as they were (seed ${seed})`, () => {
  const random = createRandom(seed)
  const text = (): string => Array.from({ length: random.below(7) }, () => random.pick(PIECES)).join('')
  const value = (depth: number): unknown => {
    const kind = random.below(depth > 2 ? 4 : 6)
    if (kind === 0) return random.pick([null, true, false])
    if (kind === 1) return (random.below(2000) - 1000) / 4
    if (kind <= 3) return text()
    const items = Array.from({ length: random.below(4) }, () => value(depth + 1))
    return kind === 4 ? items : Object.fromEntries(items.map((item) => [`k${text()}`, item]))
  }
  for (let round = 0; round < 500; round++) {
    const given = Array.from({ length: 1 + random.below(4) }, () => value(0))
    expect(readWords(given.map(powershellValue).join(' '))).toEqual(given)
  }
})

const argumentsOf = (
  actionParameters: Record<string, unknown>,
  parameterSchemas: Record<string, ParameterSchema> = {},
  runnerParameters: Record<string, unknown> = {},
): ReturnType<typeof powershellArguments> =>
  powershellArguments({ runnerParameters, actionParameters, parameterSchemas })

it('names parameters, then adds those with a position', () => {
  const positions = { second: { position: 1 }, first: { position: 0 }, third: { position: 2 }, last: { position: 9 } }
  expect(
    argumentsOf(
      {
        second: null,
        Name: 'a b',
        Force: true,
        Quiet: false,
        none: null,
        empty: '',
        Größe: 1,
        first: '-x',
        third: [1],
        last: null,
      },
      positions,
    ),
  ).toEqual({
    words: ["-Name 'a b'", '-Force:$true', '-Quiet:$false', "-empty ''", '-Größe 1', "'-x'", '$null', '@(1)'],
    isSecret: false,
  })
})

it('quotes names behind another operator, so that nobody makes commands of it', () => {
  expect(argumentsOf({ Name: 'a', 'b;c': true }, {}, { kwarg_op: '; rm ' })).toEqual({
    words: ["'; rm Name' 'a'", "'; rm b;c' $true"],
    isSecret: false,
  })
  for (const name of ['a;b', 'a b', '1', '-x', 'a:b', 'a$(b)', 'a\nb', '']) {
    expect(argumentsOf({ [name]: 1 })).toEqual({ problem: expect.stringContaining('Rename it') })
  }
})

it('knows secrets that are too short to be masked', () => {
  const schemas = { pin: { type: 'string', secret: true } } as const
  expect(argumentsOf({ pin: '1' }, schemas)).toMatchObject({ isSecret: true })
  expect(argumentsOf({ pin: null, a: 1 }, schemas)).toMatchObject({ isSecret: false })
})

it('puts short texts on the command line, others and secrets into the input', async () => {
  const text = 'Write-Output "grüße 😀 \ud800 ‘x’"\r\n\0'
  const short = powershellCommand(text, false)
  expect(short.input).toBeUndefined()
  expect(
    await readText(
      short.line,
      Promise.reject(new Error('not read')).catch(() => Buffer.alloc(0)),
    ),
  ).toBe(text)
  const length = (characters: number): number => powershellCommand('x'.repeat(characters), false).line.length
  const most = 3055
  expect([length(most) <= MAX_LINE_CHARACTERS, length(most + 3) < 1500]).toEqual([true, true])
  for (const [given, isSecret] of [
    [text, true],
    [`${text}${'x'.repeat(100_000)}`, false],
  ] as const) {
    const { line, input } = powershellCommand(given, isSecret)
    expect(line.length).toBeLessThan(1500)
    expect(line).not.toContain(Buffer.from(text, 'utf16le').toString('base64').slice(0, 40))
    expect(await readText(line, Promise.resolve(input ?? Buffer.alloc(0)))).toBe(given)
  }
})

it('runs a script without parameters as it is', () => {
  expect(scriptCall('param($a)\n$a # x', [])).toBe('param($a)\n$a # x')
  expect(readCall(scriptCall('param($a)\n$a # x', ["-a 'b'"]))).toEqual({
    script: 'param($a)\n$a # x',
    words: ['-a', 'b'],
  })
})
