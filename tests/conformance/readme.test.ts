/** Every example of the README, run as it stands there. */
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ensureDebianPackage } from '../helpers/apt.ts'
import { commandsOf, openConsole, stepsOf, type ConsoleSession } from '../helpers/console-session.ts'
import { blocksOf } from '../helpers/doc-blocks.ts'
import { makeFolder } from '../helpers/folders.ts'
import { createTestApp } from '../helpers/app.ts'
import { executable, projectRoot, type TestApp } from '../helpers/server.ts'

/** Commands that act on a whole clone or machine: the test that runs each on a copy, and by which words it is found. */
const ELSEWHERE: Record<string, { test: string; words: string }> = {
  'npm start': { test: 'scripts.test.ts', words: "'start.mjs'" },
  'npm ci && npm run build:binary': { test: 'binary.test.ts', words: 'build-binary.mjs' },
  'sudo dist/bin/svc service install': { test: 'binary.test.ts', words: "service('install')" },
}

const blocks = blocksOf(readFileSync(join(projectRoot, 'README.md'), 'utf8'))
const steps = blocks.flatMap(({ language, text }) => (language === 'console' ? stepsOf(text) : commandsOf(text)))
const folder = makeFolder()
let server: TestApp
let session: ConsoleSession

beforeAll(async () => {
  await ensureDebianPackage('curl', '/usr/bin/curl')
  const basePath = join(folder.path, 'svc_data')
  mkdirSync(join(folder.path, 'dist'))
  mkdirSync(basePath)
  symlinkSync(executable, join(folder.path, 'dist', 'cli.js'))
  server = await createTestApp({ basePath })
  session = openConsole({
    folder: folder.path,
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: folder.path,
      LANG: 'C.UTF-8',
      SVC_API_URL: server.urls.api,
      SVC_AUTH_URL: server.urls.auth,
      SVC_STREAM_URL: server.urls.stream,
    },
    replacements: {
      'http://127.0.0.1:9100': server.urls.auth,
      'http://127.0.0.1:9101': server.urls.api,
      'http://127.0.0.1:9102': server.urls.stream,
    },
  })
}, 120_000)
afterAll(async () => {
  await server.stop()
  folder.remove()
})

test('every example is a block of a language that this file runs', () => {
  expect(new Set(blocks.map(({ language }) => language))).toEqual(new Set(['sh', 'console']))
})

test.each(Object.entries(ELSEWHERE))('%s is run by another test', (command, other) => {
  expect(steps.map((step) => step.command)).toContain(command)
  expect(readFileSync(join(projectRoot, 'tests/packaging', other.test), 'utf8')).toContain(other.words)
})

test.each(steps.filter(({ command }) => !Object.hasOwn(ELSEWHERE, command)))('$command', async (step) => {
  const { printed, expected } = await session.play(step)
  expect(printed).toBe(expected)
})
