import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { commands } from '../commands/index.ts'
import { settingRows } from '../connection/setting-rows.ts'
import { loadSettings } from '../connection/settings.ts'
import { problemOf } from '../../../tests/helpers/command-parser.ts'
import { splitCommands } from '../../../tests/helpers/shell-lines.ts'
import { spansOf, type Block } from './text.ts'
import { topics } from './topics.ts'
import { leavesOf, readReference, type CommandPage } from './tree.ts'

const reference = await readReference()
const leaves = leavesOf(reference.pages)

function allPages(pages: readonly CommandPage[]): CommandPage[] {
  return pages.flatMap((page) => [page, ...allPages(page.children)])
}

function texts(block: Block): string[] {
  if (typeof block === 'string') return [block]
  if ('list' in block) return [...block.list]
  return 'lines' in block ? [] : block.rows.flat()
}

/** Every command line of the client that anything shows, and where; in running text a command is often only named. */
function shownCommandLines(): { where: string; words: string[]; isNamed: boolean }[] {
  const pages = allPages(reference.pages)
  const shown = [
    ...pages.flatMap(({ name, examples }) => examples.map((line) => ({ where: `svc ${name}`, line, isNamed: false }))),
    ...topics.flatMap(({ name, blocks }) =>
      blocks.flatMap((block) =>
        typeof block === 'object' && 'lines' in block
          ? joinLines(block.lines).map((line) => ({ where: name, line: line.replace(/^\$ /, ''), isNamed: false }))
          : [],
      ),
    ),
    // Those in running text, unless something in them is yet to be filled in.
    ...[
      ...pages.flatMap(({ name, description, notes, options }) =>
        [description, ...notes, ...options.map((option) => option.description)].map((text) => ({ where: name, text })),
      ),
      ...topics.flatMap(({ name, blocks }) => blocks.flatMap(texts).map((text) => ({ where: name, text }))),
    ].flatMap(({ where, text }) =>
      spansOf(text).flatMap((span) =>
        span.isCode && !/[<…]/.test(span.text) ? [{ where, line: span.text, isNamed: true }] : [],
      ),
    ),
  ]
  return shown.flatMap(({ where, line, isNamed }) =>
    splitCommands(line).flatMap((words) =>
      /^svc(?:-[a-z-]+)?$/.test(words[0] ?? '') ? [{ where, words, isNamed }] : [],
    ),
  )
}

function joinLines(text: string): string[] {
  return text.replaceAll(/\\\n\s*/g, '').split('\n')
}

describe('commands', () => {
  test.each(allPages(reference.pages).map((page) => [page.name, page] as const))('%s says what it does', (_, page) => {
    const { description, summary } = page
    for (const text of [description, summary]) {
      expect(text).toMatch(/^[A-Z"].*[.]$/)
      expect(text).not.toMatch(/ {2}|\t|\n/)
    }
  })

  test.each(leaves.map((page) => [page.name, page] as const))(
    '%s explains its options and shows examples',
    (_, page) => {
      expect(page.examples).not.toEqual([])
      for (const { term, description } of [...page.options, ...page.arguments]) {
        // They follow a term, so they are no sentences of their own.
        expect([term, description]).toEqual([term, expect.stringMatching(/^(?![A-Z][a-z]+ ).*[^.\s](?:\.\.\.)?$/)])
      }
      for (const note of page.notes) expect(note).toMatch(/^[^\n]*[^\s][.:)]$/)
      // What takes a file shows one, or says what is in it.
      for (const { name, text } of page.samples) {
        expect(page.examples.join('\n')).toContain(name)
        expect(text).toMatch(/\S$/)
      }
    },
  )

  test('what svc --help says of a command is what its own help begins with, and an example of it', () => {
    for (const { name, summary, example } of commands) {
      const pages = reference.pages.filter((page) => page.name === name)
      expect(pages[0]?.description.slice(0, summary.length)).toBe(summary)
      expect(leavesOf(pages).flatMap((page) => page.examples)).toContain(example)
    }
  })

  test('the same option means the same wherever it has the same words', () => {
    const descriptions = new Map<string, Set<string>>()
    for (const { options } of leaves) {
      for (const { term, description } of options) {
        const set = descriptions.get(term) ?? new Set()
        descriptions.set(term, set.add(description))
      }
    }
    for (const term of ['-n, --last <count>', '-w, --width <columns...>', '-p, --pack <pack>', '-s, --sort <order>']) {
      expect([term, [...(descriptions.get(term) ?? [])]]).toEqual([term, [expect.any(String)]])
    }
  })
})

describe('command lines that are shown', () => {
  const shown = shownCommandLines()

  test('are found in examples, topics and running text', () => {
    expect(shown.length).toBeGreaterThan(leaves.length)
    for (const { name } of leaves) {
      const isShown = shown.some(
        ({ words }) => `${words.join(' ')} `.includes(` ${name} `) || words[0]?.startsWith('svc-'),
      )
      expect([name, isShown]).toEqual([name, true])
    }
  })

  test.each(shown.map((line) => [line.words.join(' '), line.where, line] as const))(
    '%s (%s)',
    async (...[, , line]) => {
      const problem = await problemOf(line.words)
      expect(
        line.isNamed ? problem?.replace(/^error: missing required argument .*/, '') || undefined : problem,
      ).toBeUndefined()
    },
  )

  test('would be found wrong', async () => {
    expect(await problemOf(['svc', 'execution', 'list', '--last-one'])).toMatch(/unknown option/)
    expect(await problemOf(['svc', 'rule', 'get'])).toMatch(/missing required argument/)
    expect(await problemOf(['svc', 'whoami', 'alice'])).toMatch(/too many arguments/)
    expect(await problemOf(['svc', 'rule', 'gett'])).toMatch(/unknown command/)
  })
})

function problemIn(block: Block): unknown {
  if (typeof block === 'string') return /^\S.*[.:]$/.test(block) ? undefined : block
  return 'header' in block ? block.rows.find((row) => row.length !== block.header.length) : undefined
}

describe('topics', () => {
  test.each(topics.map((topic) => [topic.name, topic] as const))('%s', (name, { title, summary, blocks }) => {
    expect(name).toMatch(/^[a-z]+(?:-[a-z]+)*$/)
    expect(title).toMatch(/^[A-Z]/)
    expect(summary).toMatch(/^[A-Z].{10,100}\.$/)
    // A command of the same name would hide it.
    expect(commands.map((entry) => entry.name)).not.toContain(name)
    for (const block of blocks) {
      expect(problemIn(block)).toBeUndefined()
    }
  })

  test('commands and topics that are spoken of exist', () => {
    const names = [...topics.map(({ name }) => name), ...allPages(reference.pages).map(({ name }) => name)]
    for (const { where, words } of shownCommandLines()) {
      if (words[0] !== 'svc' || words[1] !== 'help' || words.length === 2) continue
      expect([where, names]).toEqual([where, expect.arrayContaining([words.slice(2).join(' ')])])
    }
  })
})

test('every setting is told of where it is read', () => {
  const { text } = loadSettings({ skipConfig: true }, {})
  const printed = [...text.matchAll(/^(?:# )?([a-z_]+) (?:=|is not set)/gm)].map(([, name]) => name)
  expect(printed).toEqual(settingRows.map(({ name }) => name))
  for (const { about } of settingRows) expect(about).toMatch(/^\S.*[^.]$/)
})

test('docs/cli.md and docs/svc.1 have been generated from what is here', async () => {
  const { renderMarkdown } = await import('./markdown.ts')
  const { renderManual } = await import('./manual.ts')
  const read = (path: string): string => readFileSync(new URL(`../../../docs/${path}`, import.meta.url), 'utf8')
  // As a whole, so that a difference is not printed at length: npm run generate removes it.
  expect({
    'cli.md': read('cli.md') === renderMarkdown(reference),
    'svc.1': read('svc.1') === renderManual(reference),
  }).toEqual({ 'cli.md': true, 'svc.1': true })
})
