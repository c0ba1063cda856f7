/** A screen is complete: its folder, its entry in `app.tsx` and its test. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const SOURCE = import.meta.dirname
const TESTS = join(SOURCE, '..', '..', 'tests', 'web')
const ENTRY =
  /\{ name: '(\w+)', title: '(\w+)', component: lazy\(\(\) => import\('\.\/screens\/(\w+)\/index\.tsx'\)\) \}/g

const entries = [...readFileSync(join(SOURCE, 'app.tsx'), 'utf8').matchAll(ENTRY)].map(
  ([, name = '', title = '', folder = '']) => ({ name, title, folder }),
)
const folders = readdirSync(join(SOURCE, 'screens')).filter((name) =>
  existsSync(join(SOURCE, 'screens', name, 'index.tsx')),
)
const tests = new Set(readdirSync(TESTS, { recursive: true, encoding: 'utf8' }).map((file) => file.split('/').at(-1)))

test('every folder with a screen has its entry, and the other way round', () => {
  expect(entries.map(({ name }) => name).toSorted()).toEqual(folders.toSorted())
})

test.each(entries)('$name has its own folder, title and test', ({ name, title, folder }) => {
  expect(folder).toBe(name)
  expect(title.toLowerCase()).toBe(name)
  expect([...tests]).toContain(`${name}.test.ts`)
})
