import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { openDatabase } from '../../../../tests/helpers/database.ts'
import { makeFolder, type TemporaryFolder } from '../../../../tests/helpers/folders.ts'
import { storeChunks, textOf, type Chunk } from '../../../../tests/helpers/output-rows.ts'
import { createRandom, seedOfRun } from '../../../../tests/helpers/random.ts'
import { rounds } from '../../../../tests/helpers/tiers.ts'
import { withoutControlSequences } from '../../../lib/text/index.ts'
import type { Database } from '../../../db/database.ts'
import type { FoundLine } from '../types.ts'
import { createFindOutput, readCursor, writeCursor, type Cursor, type FindOutput } from './find.ts'
import { createOutputStore, type OutputStore } from './store.ts'

let folder: TemporaryFolder
let database: Database
let store: OutputStore
let find: FindOutput

beforeAll(async () => {
  folder = makeFolder()
  database = (await openDatabase(folder.path)).database
  store = createOutputStore(database)
  find = createFindOutput(store)
})

afterAll(async () => {
  await database.close()
  folder.remove()
})

const put = (...chunks: readonly Chunk[]): Promise<string> => storeChunks({ database, store }, chunks)

interface Wanted {
  text: string
  ignoreCase?: boolean
  lines?: number
  limit?: number
}

/** Continues until the end. @param ids of the executions there are, oldest first */
async function findAll(
  ids: readonly string[],
  { text, ignoreCase = false, lines = 1, limit = 100 }: Wanted,
): Promise<{ ids: string[]; lines: FoundLine[][]; searched: number; requests: number }> {
  const found = { ids: [] as string[], lines: [] as FoundLine[][], searched: 0, requests: 0 }
  const page = (before: string | undefined, count: number): Promise<string[]> =>
    Promise.resolve(
      ids
        .toReversed()
        .filter((id) => before === undefined || id < before)
        .slice(0, count),
    )
  let cursor: Cursor | undefined
  do {
    const part = await find({ text, ignoreCase, lines, limit, cursor, page })
    found.ids.push(...part.ids)
    found.lines.push(...part.lines.values())
    found.searched += part.searched
    found.requests += 1
    const written = part.cursor && writeCursor(part.cursor)
    if (cursor !== undefined && written === writeCursor(cursor)) throw new Error('it does not go on')
    cursor = written === undefined ? undefined : readCursor(written)
  } while (cursor !== undefined)
  return found
}

describe('executions are found by their output', () => {
  test('newest first, over the borders of records, with their first lines', async () => {
    const ids = [
      await put(['stdout', 'first\nneedle one\nneedle two\n']),
      await put(['stdout', 'nothing\n']),
      await put(['stdout', 'a ne'], ['stdout', 'e'], ['stderr', 'dle b\n'], ['stdout', 'needle\n']),
      await put(['stderr', '\u001b[31mnee\u001b[0mdle\n']),
    ]
    const found = await findAll(ids, { text: 'needle', lines: 2 })
    expect(found).toMatchObject({ ids: [ids[3], ids[2], ids[0]], searched: 4 })
    expect(found.lines).toEqual([
      [{ seq: 1, output_type: 'stderr', line: 1, before: '', match: 'needle', after: '' }],
      [
        { seq: 1, output_type: 'stdout', line: 1, before: 'a ', match: 'needle', after: ' b' },
        { seq: 4, output_type: 'stdout', line: 2, before: '', match: 'needle', after: '' },
      ],
      [
        { seq: 1, output_type: 'stdout', line: 2, before: '', match: 'needle', after: ' one' },
        { seq: 1, output_type: 'stdout', line: 3, before: '', match: 'needle', after: ' two' },
      ],
    ])
    expect((await findAll(ids, { text: 'needle', limit: 1 })).ids).toEqual(found.ids)
  })

  test.for<[about: string, text: string, ignoreCase: boolean, output: string]>([
    ['signs of SQL patterns', '100%_\\', false, 'at 100%_\\ now'],
    ['quotes', `'"; drop`, false, `x'"; drop`],
    ['NUL', 'a\0b', false, 'xa\0by'],
    ['what comes after NUL', 'after', false, 'x\0 after'],
    ['upper case', 'Error', true, 'an eRROR'],
    ['letters beyond ASCII', 'GRÖSSE', true, 'die grösse'],
    ['nothing but those', 'ÄÖ', true, 'äö'],
    ['signs of two units', '😀x', true, 'a😀X'],
  ])('by %s', async ([, text, ignoreCase, output]) => {
    const id = await put(['stdout', output])
    const other = await put(['stdout', 'AO 100 error? no\n'.replace('error', 'eror')])
    expect((await findAll([id, other], { text, ignoreCase })).ids).toEqual([id])
    const signs = Array.from(output)
    const split = await put(...signs.map((sign): Chunk => ['stdout', sign]))
    expect((await findAll([split], { text, ignoreCase })).ids).toEqual([split])
  })

  test('as a search of every output finds them', async () => {
    const random = createRandom(seedOfRun())
    const pick = <T>(values: readonly T[]): T => values[random.below(values.length)] as T
    const parts = ['ab', 'a', 'b', 'AB', 'ä', 'Ä', '\n', ' ', '\u001b[1m', '\0', 'abc']
    for (let round = 0; round < rounds({ daily: 3, full: 60 }); round += 1) {
      const texts = new Map<string, string>()
      for (let n = 0; n < 30; n += 1) {
        const chunks = Array.from({ length: 1 + random.below(6) }, (): Chunk => [
          pick(['stdout', 'stderr']),
          Array.from({ length: 1 + random.below(5) }, () => pick(parts)).join(''),
        ])
        texts.set(await put(...chunks), withoutControlSequences(textOf(chunks, undefined)))
      }
      const text = Array.from({ length: 1 + random.below(4) }, () => pick(['ab', 'a', 'b', 'ä', '\0', 'Ab'])).join('')
      const ignoreCase = random.below(2) === 0
      const fold = (value: string): string => (ignoreCase ? value.toLowerCase() : value)
      const expected = [...texts].filter(([, output]) => fold(output).includes(fold(text))).map(([id]) => id)
      const { ids } = await findAll([...texts.keys()], { text, ignoreCase, limit: 7 })
      expect([text, ignoreCase, ids]).toEqual([text, ignoreCase, expected.toReversed()])
    }
  })
})

describe('a request', () => {
  test('ends when its time is over, within a long output too, and the next one continues there', async () => {
    const block = `${'x'.repeat(999)}\n`.repeat(16)
    const long = await put(...Array.from({ length: 100 }, (): Chunk => ['stdout', block]), ['stdout', 'needle'])
    const ids = [await put(['stdout', 'needle']), long, await put(['stdout', 'nothing'])].toSorted()
    let at = 0
    const now = vi.spyOn(performance, 'now').mockImplementation(() => (at += 300))
    try {
      const found = await findAll(ids, { text: 'needle' })
      expect(found.ids.toSorted()).toEqual(ids.filter((id) => id !== ids.at(-1)).toSorted())
      expect(found.requests).toBeGreaterThan(10)
      expect(found.lines.find(([line]) => line?.seq === 101)?.[0]).toMatchObject({ line: 1601 })
    } finally {
      now.mockRestore()
    }
  })

  test('waits for others, and is refused when many wait', async () => {
    let release: () => void = () => undefined
    const held = new Promise<void>((resolve) => (release = resolve))
    const page = async (): Promise<string[]> => {
      await held
      return []
    }
    const request = { text: 'x', ignoreCase: false, lines: 0, limit: 1, cursor: undefined, page }
    const running = Array.from({ length: 18 }, () => find(request))
    await expect(find(request)).rejects.toMatchObject({ code: 'QUEUE_FULL' })
    release()
    expect((await Promise.all(running)).map(({ searched }) => searched)).toEqual(Array.from({ length: 18 }, () => 0))
    expect(await find(request)).toMatchObject({ ids: [] })
  })

  test.for(['', 'x', '0'.repeat(24) + '.1', `${'0'.repeat(24)}.x.1`, `${'0'.repeat(24)}.1.-1`])(
    'refuses the cursor %j',
    (text) => {
      expect(() => readCursor(text)).toThrow(/X-Output-Cursor/)
    },
  )
})
