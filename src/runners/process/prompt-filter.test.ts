import { expect, it } from 'vitest'
import { PromptFilter } from './prompt-filter.ts'

const PROMPT = '[sudo 42]'

it('takes prompts out, however the text is cut', () => {
  const text = `lecture\n${PROMPT}Sorry\n${PROMPT}[sudo [sudo 4 rest [`
  for (let cut = 0; cut <= text.length; cut++) {
    const filter = new PromptFilter(PROMPT)
    const filtered = filter.filter(text.slice(0, cut)) + filter.filter(text.slice(cut)) + filter.end()
    expect(filtered).toBe('lecture\nSorry\n[sudo [sudo 4 rest [')
    expect(filter.wasRefused('')).toBe(true)
  }
})

it('lets other text pass at once', () => {
  const filter = new PromptFilter(PROMPT)
  expect(filter.filter('warning: 1\n')).toBe('warning: 1\n')
  expect(filter.wasRefused('')).toBe(false)
})

it('knows a single refused attempt by its text', () => {
  const filter = new PromptFilter(PROMPT)
  filter.filter(PROMPT)
  expect(filter.wasRefused('no such file')).toBe(false)
  expect(filter.wasRefused('\nsudo: 1 incorrect password attempt\n')).toBe(true)
})
