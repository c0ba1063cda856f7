/** Every page of docs/recipes: listed, played by a test, and with blocks that their readers accept. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadAll } from 'js-yaml'
import { expect, test } from 'vitest'
import { loadConfig } from '../../src/config/index.ts'
import { blocksOf } from '../helpers/doc-blocks.ts'
import { makeFolder } from '../helpers/folders.ts'
import { projectRoot } from '../helpers/server.ts'
import { recipe, recipesFolder } from './support.ts'

const pages = readdirSync(recipesFolder).filter((name) => name !== 'README.md')
const tests = ['recipes', 'packaging'].flatMap((folder) =>
  readdirSync(join(projectRoot, 'tests', folder)).flatMap((name) =>
    name.endsWith('.test.ts') ? [join(projectRoot, 'tests', folder, name)] : [],
  ),
)

test.each(pages)('%s is in the index, and a test plays it', (page) => {
  expect(recipe('README.md')).toContain(`](${page})`)
  const playing = tests.filter((file) => readFileSync(file, 'utf8').includes(`'${page}'`))
  expect(playing).not.toEqual([])
})

test.each(pages)('%s: svc accepts its settings without a warning', (page) => {
  const folder = makeFolder()
  try {
    const blocks = blocksOf(recipe(page)).filter(({ text }) => text.startsWith('# /etc/svc/svc.conf\n'))
    for (const [index, { text }] of blocks.entries()) {
      const file = join(folder.path, `${index}.conf`)
      writeFileSync(file, text)
      const { warnings } = loadConfig({ files: [file], env: {}, flags: {}, cwd: folder.path })
      // That a proxy can name anybody is what its page is about.
      expect(warnings.filter((warning) => !warning.startsWith('auth.mode: '))).toEqual([])
    }
  } finally {
    folder.remove()
  }
})

/** YAML contains JSON. */
test.each(pages)('%s: its YAML and JSON can be read', (page) => {
  const blocks = blocksOf(recipe(page)).filter(({ language }) => ['yaml', 'json'].includes(language))
  const wrong = blocks.filter(({ text }) => loadAll(text).some((part) => typeof part !== 'object'))
  expect(wrong).toEqual([])
})
