import { Matcher } from 're2js'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { openDatabase } from '../../../../tests/helpers/database.ts'
import { makeFolder, type TemporaryFolder } from '../../../../tests/helpers/folders.ts'
import { linesIn, storeChunks, textOf, type Chunk } from '../../../../tests/helpers/output-rows.ts'
import { createRandom, seedOfRun } from '../../../../tests/helpers/random.ts'
import { rounds } from '../../../../tests/helpers/tiers.ts'
import { withoutControlSequences } from '../../../lib/text/index.ts'
import type { Database } from '../../../db/database.ts'
import { createFairQueue, searchOutput, type SearchRequest } from './search.ts'
import { createOutputStore, type OutputStore } from './store.ts'
import type { OutputMatch } from '../types.ts'

let folder: TemporaryFolder
let database: Database
let store: OutputStore
const nextTurn = createFairQueue()

beforeAll(async () => {
  folder = makeFolder()
  database = (await openDatabase(folder.path)).database
  store = createOutputStore(database)
})

afterAll(async () => {
  await database.close()
  folder.remove()
})

const put = (chunks: readonly Chunk[], firstSeq?: number): Promise<string> =>
  storeChunks({ database, store }, chunks, firstSeq)

/** Goes on until the end. */
async function search(
  id: string,
  wanted: Partial<SearchRequest>,
): Promise<{ matches: OutputMatch[]; requests: number }> {
  const request = {
    type: undefined,
    query: '',
    ignoreCase: false,
    isPattern: false,
    from: 1,
    offset: 0,
    limit: 1000,
    ...wanted,
  }
  const matches: OutputMatch[] = []
  for (let requests = 1; ; requests++) {
    const found = await searchOutput(store, id, request, nextTurn)
    matches.push(...found.matches)
    if (found.is_at_end) return { matches, requests }
    if (found.next.from === request.from && found.next.offset <= request.offset) throw new Error('it does not go on')
    Object.assign(request, found.next)
  }
}

const linesOf = async (id: string, wanted: Partial<SearchRequest>): Promise<number[]> =>
  (await search(id, wanted)).matches.map(({ line }) => line)

describe('lines are found', () => {
  test.for<[string, Chunk[], Partial<SearchRequest>, number[]]>([
    ['nowhere in nothing', [], { query: 'a' }, []],
    ['once each', [['stdout', 'aa a\nb\na']], { query: 'a' }, [1, 3]],
    [
      'over the border of records',
      [
        ['stdout', 'x\nne'],
        ['stdout', 'ed'],
        ['stdout', 'le\n'],
      ],
      { query: 'needle' },
      [2],
    ],
    [
      'over the border of types',
      [
        ['stdout', 'nee'],
        ['stderr', 'dle\n'],
      ],
      { query: 'needle' },
      [1],
    ],
    [
      'in one type',
      [
        ['stdout', 'nee'],
        ['stderr', 'E\n'],
        ['stdout', 'dle\n'],
      ],
      { query: 'needle', type: 'stdout' },
      [1],
    ],
    ['in a type that there is none of', [['stdout', 'a']], { query: 'a', type: 'none' }, []],
    ['not over a line end', [['stdout', 'nee\ndle\n']], { query: 'needle' }, []],
    [
      'with colours in it',
      [
        ['stdout', '\u001b[31mnee\u001b[0'],
        ['stdout', 'mdle\n'],
      ],
      { query: 'needle' },
      [1],
    ],
    ['not in a title', [['stdout', '\u001b]0;needle\u0007x\n']], { query: 'needle' }, []],
    ['in a title that has no end', [['stdout', '\u001b]0;needle\n']], { query: 'needle' }, [1]],
    ['as it is written', [['stdout', 'A.C\nabc\n']], { query: 'a.c' }, []],
    ['whatever the case', [['stdout', 'A.C\nabc\nÄÉß\n']], { query: 'a.c', ignoreCase: true }, [1]],
    [
      'whatever the case, with signs in it',
      [['stdout', 'x (A)[b]{c}\\D/e-F.*+?|^$ x\n']],
      { query: '(a)[b]{c}\\d/e-f.*+?|^$', ignoreCase: true },
      [1],
    ],
    ['whatever the case of other letters', [['stdout', 'a\nÄÉß\n']], { query: 'äé', ignoreCase: true }, [2]],
    [
      'with characters of four bytes',
      [
        ['stdout', 'a\n😀'],
        ['stdout', '😁\n'],
      ],
      { query: '😀😁' },
      [2],
    ],
    [
      'by a pattern',
      [
        ['stdout', 'a1\nb2\na'],
        ['stdout', '3\n'],
      ],
      { query: 'a\\d', isPattern: true },
      [1, 3],
    ],
    [
      'by a pattern that looks at ends',
      [
        ['stdout', 'ab\nb'],
        ['stdout', 'a\na'],
      ],
      { query: '^a|a$', isPattern: true },
      [1, 2, 3],
    ],
    ['by a pattern that could go on', [['stdout', 'a\nb\n']], { query: 'a[^x]b', isPattern: true }, []],
    [
      'by a pattern for nothing',
      [
        ['stdout', 'a\n\n'],
        ['stdout', '\nb'],
      ],
      { query: '^$', isPattern: true },
      [2, 3],
    ],
    ['by a pattern whatever the case', [['stdout', 'AB\n']], { query: 'a.', isPattern: true, ignoreCase: true }, [1]],
  ])('%s', async ([, chunks, wanted, expected]) => {
    const id = await put(chunks)
    expect(await linesOf(id, wanted)).toEqual(expected)
    expect(await linesOf(id, { ...wanted, limit: 1 })).toEqual(expected)
  })

  const seed = seedOfRun()
  test(`as in the lines of the text, whatever pieces it came in (seed ${seed})`, async () => {
    const random = createRandom(seed)
    const problems: string[] = []
    for (let round = 0; round < rounds({ daily: 40, full: 150 }); round++) {
      const alphabet = random.pick<readonly [string, ...string[]]>([
        ['a', 'b', '\n'],
        ['a', 'A', 'b', '\n', '\u001b[1m', '\u001b[0m', 'ä', '😀'],
        ['a', 'b'.repeat(3000), 'a'.repeat(5000), '\n'],
      ])
      const chunks = Array.from({ length: random.below(60) }, (): Chunk => {
        const data = Array.from({ length: 1 + random.below(9) }, () => random.pick(alphabet)).join('')
        return [random.once(4) ? 'stderr' : 'stdout', data]
      })
      const firstSeq = 1 + (random.once(4) ? random.below(chunks.length + 1) : 0)
      const id = await put(chunks, firstSeq)
      const type = random.pick([undefined, 'stdout', 'stderr'] as const)
      const query = random.pick(['a', 'ab', 'aba', 'bb', 'ä', 'ba'])
      const isPattern = random.once(3)
      const ignoreCase = random.once(3)
      const lines = linesIn(textOf(chunks.slice(firstSeq - 1), type)).map(withoutControlSequences)
      const pattern = new RegExp(isPattern ? `${query}+$` : query, ignoreCase ? 'iu' : 'u')
      const from = 1 + random.below(3)
      const expected = lines.flatMap((line, i) => (i + 1 >= from && pattern.test(line) ? [i + 1] : []))
      const wanted = { query: isPattern ? `${query}+$` : query, isPattern, ignoreCase, type, from }
      const found = await linesOf(id, { ...wanted, limit: 1 + random.below(4) })
      if (found.join() !== expected.join())
        problems.push(`${JSON.stringify(wanted)}: ${found.join()} not ${expected.join()}`)
    }
    expect(problems).toEqual([])
  })

  test('in a line of many megabytes, and behind it, a part for each request', async () => {
    const piece = 'x'.repeat(16_384)
    // A request reads 16 MiB, 1024 pieces.
    const [count, at, parts] = [
      rounds({ daily: 1300, full: 2600 }),
      rounds({ daily: 1200, full: 2400 }),
      rounds({ daily: 1, full: 2 }),
    ]
    const chunks = Array.from({ length: count }, (_, i): Chunk => ['stdout', i === at ? `${piece}nee` : piece])
    chunks[at + 1] = ['stdout', `dle${piece}`]
    chunks.push(['stdout', '\nneedle\n'])
    const id = await put(chunks)
    const literal = await search(id, { query: 'needle' })
    expect(literal.matches.map(({ line }) => line)).toEqual([1, 2])
    expect(literal.matches[0]).toEqual({ line: 1, before: 'x'.repeat(80), match: 'needle', after: 'x'.repeat(120) })
    expect(literal.requests).toBeGreaterThan(parts)
    const pattern = await search(id, { query: 'ne+dle', isPattern: true })
    expect(pattern.matches.map(({ line }) => line)).toEqual([1, 2])
  })

  test('by what stands at the beginning of a line, however long that is', async () => {
    const id = await put([
      ['stdout', `x${'a'.repeat(16_383)}`],
      ...Array.from({ length: 30 }, (): Chunk => ['stdout', 'a'.repeat(16_384)]),
      ['stdout', '\naa'],
    ])
    const pattern = (query: string): Promise<number[]> => linesOf(id, { query, isPattern: true })
    expect(await pattern('^a')).toEqual([2])
    expect(await pattern('^x')).toEqual([1])
    expect(await pattern('\\ba')).toEqual([2])
    expect(await pattern('a$')).toEqual([1, 2])
    // As a request that goes on within the line.
    expect(await linesOf(id, { query: '^a', isPattern: true, offset: 100_000 })).toEqual([2])
    expect(await linesOf(id, { query: 'aa', isPattern: true, offset: 100_000 })).toEqual([1, 2])
  })

  test('lines that come later, from where the last search ended', async () => {
    const before: Chunk[] = [['stdout', 'needle 1\nnee']]
    const id = await put(before)
    const { matches, next } = await searchOutput(
      store,
      id,
      { type: undefined, query: 'needle', ignoreCase: false, isPattern: false, from: 1, offset: 0, limit: 10 },
      nextTurn,
    )
    expect(matches.map(({ line }) => line)).toEqual([1])
    expect(next.from).toBe(2)
    const more = await put([...before, ['stdout', 'dle 2\nneedle 3']])
    expect(await linesOf(more, { query: 'needle', ...next })).toEqual([2, 3])
    expect(await linesOf(more, { query: 'needle', from: 4 })).toEqual([])
  })
})

describe('a search is refused', () => {
  test.for<[string, Partial<SearchRequest>, RegExp]>([
    ['for nothing', { query: '' }, /is empty/],
    ['for two lines', { query: 'a\nb' }, /line end/],
    ['for a text without end', { query: 'a'.repeat(1001) }, /longer than 1000/],
    ['for what is no pattern', { query: '(', isPattern: true }, /is invalid: missing closing/],
    ['for what cannot be matched in linear time', { query: '(a)\\1', isPattern: true }, /is invalid/],
    ['for a huge pattern', { query: '(a{100}){100}', isPattern: true }, /too large/],
  ])('%s', async ([, wanted, message]) => {
    await expect(search(await put([['stdout', 'a']]), wanted)).rejects.toThrow(message)
  })
})

test('other things go on meanwhile', async () => {
  const piece = 'a'.repeat(16_384)
  const id = await put(Array.from({ length: 400 }, (): Chunk => ['stdout', piece]))
  let turns = 0
  const timer = setInterval(() => (turns += 1), 1)
  await search(id, { query: '(a*)*b|(a|aa)*c|[a-z]{20}d', isPattern: true })
  clearInterval(timer)
  expect(turns).toBeGreaterThan(10)
})

test.for<[string, string, string]>([
  ['begins in every line and ends in none of them', 'x[^y]*y', `${'x\n'.repeat(8000)}y\n`],
  ['may begin with any line end', '\\n\\s*y', `${'\n'.repeat(16_000)}y\n`],
  ['is in every line, and could have gone on', 'x([^y]*z)?', 'x\n'.repeat(8000)],
])('a text is looked through a few times, not for each line, for what %s', async ([, query, text]) => {
  const id = await put([['stdout', text]])
  const find = vi.spyOn(Matcher.prototype, 'find')
  await searchOutput(
    store,
    id,
    { type: undefined, query, ignoreCase: false, isPattern: true, from: 1, offset: 0, limit: 1000 },
    nextTurn,
  )
  const matchers = find.mock.contexts as Matcher[] // it is a method of theirs
  const seen = matchers.map((matcher, i) => matcher.inputLength() - (find.mock.calls[i]?.[0] ?? 0))
  find.mockRestore()
  const total = seen.reduce((sum, length) => sum + length, 0)
  expect(total).toBeGreaterThan(0)
  expect(total).toBeLessThan(10 * text.length)
})

test('many searches share the turns of the event loop: each turn has a piece of one of them', async () => {
  let turn = 0
  let next = setImmediate(function count() {
    turn += 1
    next = setImmediate(count)
  })
  const turns: number[] = []
  await Promise.all(
    Array.from({ length: 20 }, async () => {
      for (let piece = 0; piece < 3; piece++) {
        await nextTurn()
        turns.push(turn)
      }
    }),
  )
  clearImmediate(next)
  expect(turns).toHaveLength(60)
  expect(new Set(turns).size).toBe(60)
})
