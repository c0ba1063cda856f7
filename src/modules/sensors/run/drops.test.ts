/** What is said of wrong dispatches and lines, and when a sensor is held up. */
import { expect, it, vi } from 'vitest'
import { createSecretValues } from '../../../lib/secrets/index.ts'
import { createDrops, HOLD_EVERY, MAX_EXPLAINED, type Drops } from './drops.ts'

interface Recorded {
  drops: Drops
  said: string[]
  explained: string[]
  count: number
}

function record(secrets: readonly string[] = []): Recorded {
  const values = createSecretValues(secrets)
  const recorded = { said: [] as string[], explained: [] as string[], count: 0 }
  const drops = createDrops({
    secrets: () => values,
    say: (text) => recorded.said.push(text),
    dropped: () => (recorded.count += 1),
    explained: (text) => recorded.explained.push(text),
  })
  return Object.assign(recorded, { drops })
}

it('explains the first ones, counts the others, and explains again when the flood is over', () => {
  vi.useFakeTimers()
  try {
    const all = record()
    const { drops, said } = all
    for (let n = 0; n < 100; n++) void drops.addLine(`line ${n}`)
    expect(said).toHaveLength(MAX_EXPLAINED)
    expect(said[0]).toBe('A dispatch was dropped: a line is no JSON object: line 0.')
    expect(all.explained).toEqual(said)
    expect(all.count).toBe(100)
    vi.advanceTimersByTime(10_000)
    expect(said.slice(MAX_EXPLAINED)).toEqual(['80 more dispatches were dropped.'])
    // One of a flood that goes on.
    for (let n = 0; n < 100; n++) void drops.add(`wrong ${n}`)
    vi.advanceTimersByTime(10_000)
    expect(said.slice(MAX_EXPLAINED + 1)).toEqual([
      'A dispatch was dropped: wrong 0.',
      '99 more dispatches were dropped.',
    ])
    vi.advanceTimersByTime(10_000)
    for (let n = 0; n < MAX_EXPLAINED; n++) void drops.add('again')
    expect(said.filter((text) => text.includes('again'))).toHaveLength(MAX_EXPLAINED)
    void drops.addLine(undefined)
    drops.end()
    expect(said.at(-1)).toBe('1 more dispatches were dropped.')
    expect(vi.getTimerCount()).toBe(0)
  } finally {
    vi.useRealTimers()
  }
})

it('holds a sensor up that sends many, until it is released', async () => {
  const { drops } = record()
  for (let n = 1; n < HOLD_EVERY; n++) expect(drops.addLine('x')).toBeUndefined()
  const hold = drops.addLine('x')
  expect(hold).toBeInstanceOf(Promise)
  expect(drops.add('a problem')).toBe(hold)
  await hold
  expect(drops.addLine('x')).toBeUndefined()
  for (let n = 2; n < HOLD_EVERY - 1; n++) void drops.addLine('x')
  const last = drops.addLine('x')
  expect(last).toBeInstanceOf(Promise)
  drops.release()
  await last
  for (let n = 0; n < 2 * HOLD_EVERY; n++) expect(drops.addLine('x')).toBeUndefined()
  drops.end()
})

const secret = 'hunter22-Hunter33-hUnter44'

it('masks secrets: in lines, torn over lines, cut by a limit, in problems', () => {
  const encoded = Buffer.from(`${'~'.repeat(45)}${secret}`).toString('base64')
  const torn = [encoded.slice(0, 76), encoded.slice(76)]
  const { drops, said } = record([secret, 'first line\nsecond line'])
  const { addLine } = drops
  void addLine(undefined)
  void drops.addLine(`the password is ${secret}`)
  for (const line of torn) void drops.addLine(line)
  for (const line of ['first line', 'second line', 'third line']) void drops.addLine(line)
  void drops.addLine(`${'x'.repeat(190)}${secret}`)
  void drops.addLine(`${'y '.repeat(495)}${secret}`)
  void drops.add(`there is no trigger "${secret}"`)
  void drops.add(`'${secret.slice(0, 9)}… is not of type 'integer'`)
  drops.end()
  const text = said.join('\n')
  expect(text).toContain('a line is no JSON object: the password is ********.')
  expect(text).toContain('third line')
  expect(said[0]).toBe('A dispatch was dropped: a line has more than 1048576 bytes.')
  for (let at = 0; at + 6 <= secret.length; at++) expect(text).not.toContain(secret.slice(at, at + 6))
  expect(text).not.toMatch(/first line|second line/)
  const form = Buffer.from(secret).toString('base64').slice(0, -4)
  for (let at = 0; at + 8 <= form.length; at++) expect(text).not.toContain(form.slice(at, at + 8))
})

it('of a line whose end is not explained masks what may be the start of a secret', () => {
  const { drops, said } = record([`${secret}\n${secret}`])
  for (let n = 1; n < MAX_EXPLAINED; n++) void drops.add('a problem')
  void drops.addLine('h'.repeat(3) + secret)
  void drops.addLine('the rest')
  expect(said.at(-1)).toBe('A dispatch was dropped: a line is no JSON object: hhh********.')
  drops.end()
  expect(said.at(-1)).toBe('1 more dispatches were dropped.')
})

it('says a line that could begin a secret when no other follows', () => {
  vi.useFakeTimers()
  try {
    const { drops, said } = record(['half of it\nand the rest'])
    void drops.addLine('it ends in half of it')
    expect(said).toEqual([])
    vi.advanceTimersByTime(10_000)
    expect(said).toEqual([expect.stringContaining('a line is no JSON object: it ends in ')])
    expect(said[0]).not.toContain('half')
    expect(vi.getTimerCount()).toBe(0)
  } finally {
    vi.useRealTimers()
  }
})
