/** Limits of the documents, and that the files they name exist. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { problemOf } from './helpers/command-parser.ts'
import { commandsOf, stepsOf } from './helpers/console-session.ts'
import { blocksOf } from './helpers/doc-blocks.ts'
import { projectRoot } from './helpers/server.ts'
import { splitCommands } from './helpers/shell-lines.ts'

/** Written by `npm run generate`, from texts that have no lines. */
const GENERATED = ['docs/cli.md', 'docs/errors.md']
const MAX_COLUMNS = 100
const MAX_LINES = { 'README.md': 180, 'docs/architecture.md': 300 }

const docs = ['docs', 'docs/recipes'].flatMap((folder) =>
  readdirSync(join(projectRoot, folder)).flatMap((name) => (name.endsWith('.md') ? [`${folder}/${name}`] : [])),
)
const pages = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', ...docs]
const read = (page: string): string => readFileSync(join(projectRoot, page), 'utf8')

/** Lines outside of code blocks, with their numbers. */
function proseOf(text: string): { line: string; number: number }[] {
  let isCode = false
  return text.split('\n').flatMap((line, index) => {
    const isFence = /^\s*```/.test(line)
    if (isFence) isCode = !isCode
    return isFence || isCode ? [] : [{ line, number: index + 1 }]
  })
}

test.each(Object.entries(MAX_LINES))('%s has at most %d lines', (page, limit) => {
  expect(read(page).trimEnd().split('\n').length).toBeLessThanOrEqual(limit)
})

test.each(pages.filter((page) => !GENERATED.includes(page)))('%s fits into 100 columns, tables aside', (page) => {
  const long = proseOf(read(page)).filter(({ line }) => !line.startsWith('|') && line.length > MAX_COLUMNS)
  expect(long.map(({ number }) => `${page}:${number}`)).toEqual([])
})

/** What follows `#` in a link to each heading, as GitHub makes it. */
function anchorsOf(page: string): string[] {
  return proseOf(read(page)).flatMap(({ line }) => {
    const title = /^#+ (.*)/.exec(line)?.[1]
    const words = title?.toLowerCase().replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    return words === undefined ? [] : [words.replaceAll(' ', '-')]
  })
}

test.each(pages)('%s links to files and headings that exist', (page) => {
  const links = proseOf(read(page)).flatMap(({ line }) =>
    [...line.replaceAll(/`[^`]*`/g, '').matchAll(/\]\((?!\w+:)([^)]*)/g)].map(([, target = '']) => target),
  )
  const missing = links.filter((link) => {
    const [file = '', anchor] = link.split('#')
    const target = file === '' ? page : join(dirname(page), file)
    if (!existsSync(join(projectRoot, target))) return true
    return anchor !== undefined && !anchorsOf(target).includes(anchor)
  })
  expect(missing).toEqual([])
})

const WITH_PATHS = ['CONTRIBUTING.md', 'docs/architecture.md', 'docs/decisions.md', 'tests/conformance/README.md']

test.each(WITH_PATHS)('%s names files that exist', (page) => {
  const paths = proseOf(read(page)).flatMap(({ line }) =>
    [...line.matchAll(/`((?:src|web|tests|docs|migrations|scripts)\/[^`\s]*)`/g)].map(([, path = '']) => path),
  )
  expect(paths.length).toBeGreaterThan(0)
  // `<name>` stands for any name: the folder before it has to exist. Names of tests go without their endings.
  const exists = (path: string): boolean =>
    [path, `${path}.test.ts`].some((name) => existsSync(join(projectRoot, name.replace(/[^/]*[<*].*/, ''))))
  expect(paths.filter((path) => !exists(path))).toEqual([])
})

test('tests/conformance/README.md names every file', () => {
  const text = readFileSync(join(projectRoot, 'tests/conformance/README.md'), 'utf8')
  const files = readdirSync(join(projectRoot, 'tests/conformance')).filter((name) => name.endsWith('.test.ts'))
  // `01-auth-ldap`, `-pam`: what follows the first of a row may leave its beginning out.
  const isNamed = (name: string): boolean => text.includes(`\`${name}\``) || text.includes(`\`${name}.test.ts\``)
  const isNamedInShort = (name: string): boolean => text.includes(`\`${name.slice(name.lastIndexOf('-'))}\``)
  const names = files.map((file) => file.replace('.test.ts', ''))
  expect(names.filter((name) => !isNamed(name) && !isNamedInShort(name))).toEqual([])
})

test('docs/architecture.md names every module, and files that exist in it', () => {
  const modules = readdirSync(join(projectRoot, 'src/modules'), { withFileTypes: true })
  const rows = [...read('docs/architecture.md').matchAll(/^\| `([a-z]+)` \| [^|`]*\| (.*) \|$/gm)]
  const named = rows.map(([, name = '']) => name)
  expect(named.toSorted()).toEqual(modules.flatMap((entry) => (entry.isDirectory() ? [entry.name] : [])).toSorted())
  const missing = rows.flatMap(([, name = '', files = '']) =>
    [...files.matchAll(/`([\w-]+(?:\.ts|\/))`/g)]
      .map(([, file = '']) => `src/modules/${name}/${file}`)
      .filter((path) => !existsSync(join(projectRoot, path))),
  )
  expect(missing).toEqual([])
})

/** Command lines of svc in the blocks of a page, and those in its text that nothing is left out of. */
function commandLinesOf(text: string): { words: string[]; isNamed: boolean }[] {
  const lines = [
    ...blocksOf(text).flatMap(({ language, text: block }) => {
      const isShell = ['sh', ''].includes(language) && /^(?:sudo )?(?:\.\/)?svc /m.test(block)
      const steps = language === 'console' ? stepsOf(block) : isShell ? commandsOf(block) : []
      return steps.map(({ command }) => ({ line: command.split('<<')[0] ?? '', isNamed: false }))
    }),
    ...proseOf(text).flatMap(({ line }) =>
      [...line.matchAll(/`(svc [^`<…]*)`/g)].map(([, command = '']) => ({ line: command, isNamed: true })),
    ),
  ]
  return lines.flatMap(({ line, isNamed }) =>
    splitCommands(line.replaceAll(/\\\n\s*/g, '').replaceAll(/<[\w ]+>|…/g, 'value')).flatMap(
      ([first = '', ...rest]) => {
        const words = first === 'sudo' ? rest : [first, ...rest]
        const program = words[0]?.replace(/^\.\//, '') ?? ''
        return /^svc(?:-[a-z-]+)?$/.test(program) ? [{ words: [program, ...words.slice(1)], isNamed }] : []
      },
    ),
  )
}

test.each(pages.filter((page) => page !== 'CHANGELOG.md' && !GENERATED.includes(page)))(
  '%s shows command lines that svc accepts',
  async (page) => {
    const problems: string[] = []
    for (const { words, isNamed } of commandLinesOf(read(page))) {
      const problem = await problemOf(words)
      if (problem === undefined || (isNamed && /missing required argument|required option|outputHelp/.test(problem)))
        continue
      problems.push(`${words.join(' ')}: ${problem}`)
    }
    expect(problems).toEqual([])
  },
)
