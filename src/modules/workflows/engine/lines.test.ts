import { expect, test } from 'vitest'
import { MASK } from '../../../lib/schema/index.ts'
import { createSecretValues } from '../../../lib/secrets/index.ts'
import { writeLines, type Line } from './lines.ts'

const lines = (count: number): Line[] => Array.from({ length: count }, (_, index) => ({ text: `line ${index}` }))

test('a line is one line, without what a terminal takes as a command', () => {
  const text = writeLines([{ text: 'a\n\u001b[31mb\r\t\u202ec\ud800' }, { text: 'd' }], {
    count: 0,
    secrets: undefined,
  })
  expect(text).toBe('a [31mb c \nd\n')
})

test('a long line is cut between characters, after its secrets are masked', () => {
  const secret = Array.from({ length: 300 }, (_, index) => index.toString(36)).join('.')
  const secrets = createSecretValues([secret])
  expect(writeLines([{ text: `a ${secret} b` }], { count: 0, secrets })).toMatch(/^a \*+ b\n$/)
  const cut = writeLines([{ text: `a${'😀'.repeat(400)}` }], { count: 0, secrets: undefined })
  expect(cut.isWellFormed()).toBe(true)
  expect(cut.endsWith('😀…\n')).toBe(true)
  expect(cut.length).toBeLessThan(510)
  expect(writeLines([{ text: 'x'.repeat(10_000_000) }], { count: 0, secrets: undefined }).length).toBeLessThan(510)
})

test('of a secret that the cut splits, nothing is shown, however short the masks before it are', () => {
  const secret = Array.from({ length: 1_000 }, (_, index) => index.toString(36)).join('-')
  for (const before of ['', 'x'.repeat(100)]) {
    const text = writeLines([{ text: before + secret.repeat(20) }], { count: 0, secrets: createSecretValues([secret]) })
    expect(text.startsWith(`${before}${MASK}${MASK}`)).toBe(true)
    expect(text).not.toContain(secret.slice(0, 12))
  }
})

test('beyond 10,000 lines only the end is told, and once that lines are left out', () => {
  const secrets = undefined
  const first = writeLines(lines(10_010), { count: 0, secrets }).split('\n').slice(0, -1)
  expect(first).toHaveLength(10_001)
  expect(first.at(-1)).toBe('Further lines are left out: there are 10000 already.')
  expect(writeLines(lines(5), { count: 10_001, secrets })).toBe('')
  expect(writeLines(lines(2), { count: 9_999, secrets })).toBe(
    'line 0\nFurther lines are left out: there are 10000 already.\n',
  )
  const end: Line = { text: 'failed', isEnd: true }
  expect(writeLines([...lines(3), end], { count: 10_001, secrets })).toBe('failed\n')
  expect(writeLines([end], { count: 10_000, secrets })).toBe('failed\n')
})
