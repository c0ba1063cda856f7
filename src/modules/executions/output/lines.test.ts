import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openDatabase } from '../../../../tests/helpers/database.ts'
import { makeFolder, type TemporaryFolder } from '../../../../tests/helpers/folders.ts'
import { linesIn, storeChunks, textOf, type Chunk } from '../../../../tests/helpers/output-rows.ts'
import { createRandom, seedOfRun } from '../../../../tests/helpers/random.ts'
import type { Database } from '../../../db/database.ts'
import { readLines, type LinesRequest } from './lines.ts'
import { createOutputStore, type OutputStore } from './store.ts'
import type { OutputLine } from '../types.ts'
import { rounds } from '../../../../tests/helpers/tiers.ts'

let folder: TemporaryFolder
let database: Database
let store: OutputStore

beforeAll(async () => {
  folder = makeFolder()
  database = (await openDatabase(folder.path)).database
  store = createOutputStore(database)
})

afterAll(async () => {
  await database.close()
  folder.remove()
})

const shown = ({ parts }: OutputLine): string => parts.map(({ data }) => data).join('')

const read = (id: string, wanted: Partial<LinesRequest> = {}) =>
  readLines(store, id, { type: undefined, from: 1, limit: 1000, offset: 0, ...wanted })

const types = [undefined, 'stdout', 'stderr', 'other'] as const

describe('lines are those of the text', () => {
  test.for<[string, Chunk[]]>([
    ['no output', []],
    ['one line', [['stdout', 'a\n']]],
    ['no line end', [['stdout', 'a']]],
    ['only line ends', [['stdout', '\n\n\n']]],
    [
      'a line in pieces',
      [
        ['stdout', 'a'],
        ['stdout', 'b'],
        ['stdout', '\nc'],
        ['stdout', '\n'],
        ['stdout', 'd'],
      ],
    ],
    [
      'carriage returns',
      [
        ['stdout', 'a\r\nb\rc\r'],
        ['stdout', '\n'],
      ],
    ],
    [
      'types in one line',
      [
        ['stdout', 'a'],
        ['stderr', 'E\nF'],
        ['stdout', 'b\n'],
        ['other', 'o'],
        ['stderr', '\n'],
      ],
    ],
    [
      'zero characters',
      [
        ['stdout', 'a\0b\n\0\n'],
        ['stdout', '\0'],
      ],
    ],
    [
      'characters of four bytes',
      [
        ['stdout', '😀\n😀'],
        ['stdout', '😀\n'],
        ['stderr', '€'.repeat(5000)],
      ],
    ],
  ])('%s', async ([, chunks]) => {
    const id = await storeChunks({ database, store }, chunks)
    const answers = types.map((type) => read(id, { type }))
    const expected = types.map((type) => linesIn(textOf(chunks, type)))
    expect(answers.map(({ lines }) => lines.map(shown))).toEqual(expected)
    expect(answers.map(({ total }) => total)).toEqual(expected.map(({ length }) => length))
    expect(answers.map(({ is_last_line_open: isOpen }) => isOpen)).toEqual(
      types.map((type) => /[^\n]$/.test(textOf(chunks, type))),
    )
    expect(answers[0]?.lines.map(({ number }) => number)).toEqual(expected[0]?.map((_, i) => i + 1))
  })

  const seed = seedOfRun()
  test(`whatever is written in whatever pieces, from any line on (seed ${seed})`, async () => {
    const random = createRandom(seed)
    const problems: string[] = []
    for (let round = 0; round < rounds({ daily: 10, full: 60 }); round++) {
      const alphabet = random.pick<readonly [string, ...string[]]>([
        ['\n'],
        ['a', '\n'],
        ['a', 'bcd', '\n', '\r\n', '😀', '€', '\0', '\u001b[31m'],
        ['x'.repeat(3000), 'y\n', 'z'.repeat(40_000)],
      ])
      const chunks = Array.from({ length: random.below(1 + random.below(200)) }, (): Chunk => {
        const data = Array.from({ length: 1 + random.below(12) }, () => random.pick(alphabet)).join('')
        return [random.once(20) ? 'other' : random.once(5) ? 'stderr' : 'stdout', data]
      })
      const firstSeq = 1 + (random.once(3) ? random.below(chunks.length) : 0)
      const id = await storeChunks({ database, store }, chunks, firstSeq)
      for (const type of types) {
        const expected = linesIn(textOf(chunks.slice(firstSeq - 1), type))
        for (let n = 0; n < 4; n++) {
          const wanted: LinesRequest = {
            type,
            from: random.below(expected.length + 2) + 1,
            limit: 1 + random.below(20),
            offset: random.once(5) ? random.below(4000) : 0,
          }
          problems.push(...problemsOf(id, wanted, expected))
        }
        const numbers = read(id, { type, from: -3 }).lines.map(({ number }) => number)
        const lastNumbers = expected.map((_, i) => i + 1).slice(-3)
        if (numbers.join() !== lastNumbers.slice(0, numbers.length).join())
          problems.push(`last ones: ${numbers.join()}`)
      }
    }
    expect(problems).toEqual([])
  })
})

/** What of an answer is not as the lines of the text are. */
function problemsOf(id: string, wanted: LinesRequest, expected: readonly string[]): string[] {
  const { total, lines } = readLines(store, id, wanted)
  const among = expected.slice(wanted.from - 1, wanted.from - 1 + wanted.limit)
  const isThere = among.length > 0 && wanted.offset <= Buffer.byteLength(among[0] ?? '')
  const problems = [
    ...(total === expected.length ? [] : ['total']),
    ...(lines.length > 0 === isThere ? [] : ['there or not']),
    ...lines.flatMap((line, i) => problemsOfLine(id, wanted, line, i, among[i] ?? '')),
  ]
  return problems.map((problem) => `${problem}: ${JSON.stringify(wanted)}`)
}

function problemsOfLine(id: string, wanted: LinesRequest, line: OutputLine, index: number, whole: string): string[] {
  const bytes = Buffer.from(whole)
  const begin = line.offset ?? 0
  const rest = bytes.subarray(begin).toString()
  const facts: Record<string, boolean> = {
    number: line.number === wanted.from + index,
    // At the character that the byte is in.
    offset: index > 0 ? begin === 0 : wanted.offset - begin >= 0 && wanted.offset - begin < 4,
    length: line.length === (begin > 0 || line.next_offset !== undefined ? bytes.length : undefined),
  }
  const { next_offset: next } = line
  if (next === undefined) facts['text'] = shown(line) === rest
  else {
    facts['cut text'] = rest.startsWith(shown(line)) && shown(line) !== ''
    facts['next offset'] = begin + Buffer.byteLength(shown(line)) === next
    const [further] = read(id, { type: wanted.type, from: line.number, limit: 1, offset: next }).lines
    facts['going on'] =
      further?.offset === next && further.parts.length > 0 && bytes.subarray(next).toString().startsWith(shown(further))
  }
  return Object.entries(facts).flatMap(([name, isRight]) => (isRight ? [] : [`${name} of line ${line.number}`]))
}
