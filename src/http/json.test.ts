import { expect, test, vi } from 'vitest'
import { storedJson } from '../core/stored-json.ts'
import { readJson, writeJson } from '../lib/json/index.ts'
import { parseJsonBody, writeJsonInTurns, writeStoredJson } from './json.ts'

test.each(['1e999', '-1e999', '[1E+400]', '{"a":{"b":[1e0400]}}', '9'.repeat(299).concat('.0e+10')])(
  'a number that no JSON can give back is refused: %s',
  async (text) => {
    await expect(parseJsonBody(text)).rejects.toThrow('a number is too large')
  },
)

test.each(['9'.repeat(4301), `[-${'1'.repeat(1_000_000)}]`, '0.'.concat('3'.repeat(4300))])(
  'a number with too many digits is refused',
  async (text) => {
    await expect(parseJsonBody(text)).rejects.toThrow(/a number has \d+ characters; the limit is 4300/)
  },
)

test.each(['1e308', '"1e999"', '1e-999', '[0e999,1.5e100]', '0.'.concat('3'.repeat(400)), '9'.repeat(4300)])(
  '%s comes back as it was',
  async (text) => {
    expect(writeJson(await parseJsonBody(text))).toBe(text)
  },
)

test.each(['{"a\\n":', ''])('the limits also hold for text that JSON.parse would change: %j', async (key) => {
  const end = key === '' ? '' : '}'
  await expect(parseJsonBody(`${key}${'['.repeat(101)}1.0${']'.repeat(101)}${end}`)).rejects.toThrow(
    'more than 100 deep',
  )
  await expect(parseJsonBody(`${key}[${'1.0,'.repeat(100_000)}1]${end}`)).rejects.toThrow('more than 100000 items')
  await expect(parseJsonBody(`${key}{"n":1.0,"\\u005f_proto__":1}${end}`)).rejects.toThrow(
    'the key "__proto__" is not allowed',
  )
})

test('long digits are read in time that grows with their number', async () => {
  const digits = `${'1'.repeat(308)}x`.repeat(150_000)
  expect(await parseJsonBody(`"${digits}"`)).toBe(digits)
})

test('a long text is read as a short one is', async () => {
  const padding = `"${'x'.repeat(70_000)}"`
  expect(writeJson(await parseJsonBody(`{"2":1.0,"1":[],"p":${padding}}`))).toBe(`{"2":1.0,"1":[],"p":${padding}}`)
  await expect(parseJsonBody(`[${padding},{"\\u005f_proto__":1}]`)).rejects.toThrow(
    'the key "__proto__" is not allowed',
  )
  await expect(parseJsonBody(`[${padding},{"a":{"__proto__":1}}]`)).rejects.toThrow(
    'the key "__proto__" is not allowed',
  )
  await expect(parseJsonBody(`[${padding},nul]`)).rejects.toThrow('not JSON at position 70004')
  await expect(parseJsonBody(`[${padding},1`)).rejects.toThrow('not JSON at position 70006')
})

test.each([
  ['text', `{"a":"${'\\n'.repeat(500_000)}"}`],
  ['many keys', `{${Array.from({ length: 24_000 }, (_, n) => `"k${n}":{"2":21.0,"1":[]}`).join(',')}}`],
  ['long keys', `{${Array.from({ length: 50 }, (_, n) => `"${'k'.repeat(10_000)}${n}":1`).join(',')}}`],
])('a long value is written part by part, and no second time: %s', async (_, text) => {
  const value = readJson(text)
  const made = vi.spyOn(JSON, 'stringify')
  try {
    await writeStoredJson(value)
    const lengths = made.mock.results.map(({ value: part }) => String(part).length)
    expect(lengths.length).toBeGreaterThan(5)
    expect(Math.max(...lengths)).toBeLessThan(6 * 65_536 + 3)
    made.mockClear()
    expect(storedJson(value)).toBe(text)
    expect(made).not.toHaveBeenCalled()
  } finally {
    made.mockRestore()
  }
})

test('others work while a value of many short parts is written', async () => {
  let turns = 0
  let isOver = false
  const count = (): void => {
    turns += 1
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  const text = await writeJsonInTurns(Array.from({ length: 1_000_000 }, (_, n) => n))
  isOver = true
  expect(text.length).toBeGreaterThan(6_000_000)
  expect(turns).toBeGreaterThan(5)
})
