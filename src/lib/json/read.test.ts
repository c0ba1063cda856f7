import { expect, test } from 'vitest'
import { createRandom, seedOfRun } from '../../../tests/helpers/random.ts'
import { readJson, readLargeJson } from './index.ts'

const seed = seedOfRun()

test('keys are read as they were written, whatever keys were read before', () => {
  readJson('{"a":1,"\\\\":2}')
  expect(readJson('{"a":1,"\\u00e9":2}')).toEqual({ a: 1, é: 2 })
  expect(readJson('{"a":1,"\\n":2}')).toEqual({ a: 1, '\n': 2 })
  expect(readJson('[{"a":1,"x\\\\":2},{"a":1,"x\\"":3},{"a":1,"x\\u0041" : "\\ud83d\\ude00"}]')).toEqual([
    { a: 1, 'x\\': 2 },
    { a: 1, 'x"': 3 },
    { a: 1, xA: '😀' },
  ])
})

test(`random values come back as they were (SVC_TEST_SEED=${seed})`, () => {
  const random = createRandom(seed)
  const alphabet = 'a b \\ " / \n \u0000 \u001f \ue000 \ue001 \ue05d \u2028 é \ud83d \ude00 __proto_ 😀'.split(' ')
  const pick = <T>(list: readonly T[]): T => list[random.below(list.length)] as T // below its length
  const text = (): string => Array.from({ length: random.below(4) }, () => pick(alphabet)).join('')
  const make = (depth: number): unknown => {
    if (depth === 0 || random.below(3) === 0) return pick([text(), 1, null, true])
    const length = random.below(4)
    if (random.below(2) === 0) return Array.from({ length }, () => make(depth - 1))
    return Object.fromEntries(Array.from({ length }, () => [text(), make(depth - 1)]))
  }
  /** JSON with any character escaped that may be, and blanks where they may stand. */
  const write = (value: unknown): string => {
    const blank = pick(['', '', ' ', '\n\t'])
    if (Array.isArray(value)) return `[${value.map(write).join(`,${blank}`)}${blank}]`
    if (typeof value === 'object' && value !== null) {
      return `{${blank}${Object.entries(value)
        .map(([key, inner]) => `${write(key)}${blank}:${write(inner)}`)
        .join(',')}}`
    }
    if (typeof value !== 'string') return JSON.stringify(value)
    const characters = Array.from({ length: value.length }, (_, i) => {
      const character = value.charAt(i)
      const code = value.charCodeAt(i)
      if (random.below(3) === 0) return `\\u${code.toString(16).padStart(4, '0')}`
      return code < 0x20 || code === 0x22 || code === 0x5c ? JSON.stringify(character).slice(1, -1) : character
    })
    return `"${characters.join('')}"`
  }
  for (let n = 0; n < 5000; n++) {
    const value = make(3)
    const json = write(value)
    expect(readJson(json)).toEqual(value)
  }
})

test('a large text is read in turns', async () => {
  const value = Array.from({ length: 3000 }, (_, i) => ({ [`k${i}`]: [i, `\n${i}`] }))
  let turns = 0
  let ms = 0
  const rest = (): Promise<void> => {
    turns += 1
    return Promise.resolve()
  }
  const limits = { maxDepth: 10, maxValues: 20_000 }
  expect(await readLargeJson(JSON.stringify(value), limits, rest, () => (ms += 1))).toEqual(value)
  // The clock goes on by a millisecond with every look, so that a turn has at most some thousand values.
  expect(turns).toBeGreaterThan(1)
  await expect(readLargeJson('[[[]]]', { ...limits, maxDepth: 2 }, rest)).rejects.toThrow('nested more than 2 deep')
  await expect(readLargeJson('[1,2,3]', { ...limits, maxValues: 2 }, rest)).rejects.toThrow('more than 2 items')
})

test('after the first 100 properties of an object, each counts as four', async () => {
  const rest = (): Promise<void> => Promise.resolve()
  const object = (names: number): string => `{${Array.from({ length: names }, (_, i) => `"k${i}":1`).join(',')}}`
  const readers = [
    (text: string, maxValues: number) => Promise.resolve().then(() => readJson(text, { maxDepth: 9, maxValues })),
    (text: string, maxValues: number) => readLargeJson(text, { maxDepth: 9, maxValues }, rest),
  ]
  for (const read of readers) {
    for (const end of ['1', '1.0']) {
      // Objects within and after another one do not count as its continuation.
      const cheap = `[${object(100)},${object(100)},{"a":${object(99)}},${end}]`
      await expect(read(cheap, 320)).resolves.toBeDefined()
      const costly = `[${object(300)},${end}]`
      await expect(read(costly, 910)).resolves.toBeDefined()
      await expect(read(costly, 890)).rejects.toThrow('each counts as 4')
    }
  }
})

test.each(['{"a":1,"b":{"c":2}}', '{"a":1.0,"b":{"c":2}}', '{"\\u0061":1,"b":{"c":2}}'])(
  'a caller may refuse a key: %s',
  (text) => {
    const limits = { maxDepth: 10, maxValues: 10 }
    expect(() => readJson(text, { ...limits, refusedKey: 'a' })).toThrow('the key "a" is not allowed')
    expect(() => readJson(text, { ...limits, refusedKey: 'c' })).toThrow('the key "c" is not allowed')
    expect(readJson(text, { ...limits, refusedKey: 'aa' })).toHaveProperty('b.c', 2)
  },
)
