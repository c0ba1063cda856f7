import { expect, test } from 'vitest'
import { writeLines, type Line } from './lines.ts'

const asItIs = (text: string): string => text
const lines = (count: number): Line[] => Array.from({ length: count }, (_, index) => ({ text: `line ${index}` }))

test('a line is one line, without what a terminal takes as a command', () => {
  const text = writeLines([{ text: 'a\n\u001b[31mb\r\t\u202ec\ud800' }, { text: 'd' }], { count: 0, mask: asItIs })
  expect(text).toBe('a [31mb c \nd\n')
})

test('a long line is cut between characters, after its secrets are masked', () => {
  const secret = 'hush'.repeat(200)
  const mask = (text: string): string => text.replaceAll(secret, '********')
  expect(writeLines([{ text: `a ${secret} b` }], { count: 0, mask })).toBe('a ******** b\n')
  const cut = writeLines([{ text: `a${'😀'.repeat(400)}` }], { count: 0, mask: asItIs })
  expect(cut.isWellFormed()).toBe(true)
  expect(cut.endsWith('😀…\n')).toBe(true)
  expect(cut.length).toBeLessThan(510)
  expect(writeLines([{ text: 'x'.repeat(10_000_000) }], { count: 0, mask: asItIs }).length).toBeLessThan(510)
})

test('beyond 10,000 lines only the end is told, and once that lines are left out', () => {
  const mask = asItIs
  const first = writeLines(lines(10_010), { count: 0, mask }).split('\n').slice(0, -1)
  expect(first).toHaveLength(10_001)
  expect(first.at(-1)).toBe('Further lines are left out: there are 10000 already.')
  expect(writeLines(lines(5), { count: 10_001, mask })).toBe('')
  expect(writeLines(lines(2), { count: 9_999, mask })).toBe(
    'line 0\nFurther lines are left out: there are 10000 already.\n',
  )
  const end: Line = { text: 'failed', isEnd: true }
  expect(writeLines([...lines(3), end], { count: 10_001, mask })).toBe('failed\n')
  expect(writeLines([end], { count: 10_000, mask })).toBe('failed\n')
})
