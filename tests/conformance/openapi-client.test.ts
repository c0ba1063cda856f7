/** The OpenAPI document as others use it: a linter finds no error, and a client generated from it compiles and works. */
import { execFile } from 'node:child_process'
import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { createTestApp } from '../helpers/app.ts'
import { projectRoot, type TestApp } from '../helpers/server.ts'
import { send } from './support.ts'

const run = promisify(execFile)
const fixture = join(projectRoot, 'tests', 'fixtures', 'openapi-client')

let server: TestApp
let folder: TemporaryFolder
let document: string

beforeAll(async () => {
  server = await createTestApp()
  folder = makeFolder()
  document = join(folder.path, 'openapi.json')
  writeFileSync(document, (await send(server.urls.api, { path: '/v1/openapi.json' })).text)
})
afterAll(async () => {
  await server.stop()
  folder.remove()
})

/** Runs a program of a package with our own Node. @returns what it prints */
async function node(...parts: string[]): Promise<string> {
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }
  const { stdout } = await run(process.execPath, parts, { cwd: folder.path, env })
  return stdout
}

const inPackage = (...parts: string[]): string => join(projectRoot, 'node_modules', ...parts)

test('openapi: the linter finds no error', async () => {
  const report = await node(inPackage('@redocly', 'cli', 'bin', 'cli.js'), 'lint', document, '--format=json')
  expect(JSON.parse(report)).toMatchObject({ totals: { errors: 0 } })
})

test('openapi: a generated client compiles, and does what it is for', async () => {
  // The generator works with TypeScript 5, which stands beside ours under another name.
  await node(
    '--import',
    join(fixture, 'typescript-5.mjs'),
    inPackage('openapi-typescript', 'bin', 'cli.js'),
    document,
    '-o',
    'schema.d.ts',
  )
  copyFileSync(join(fixture, 'program.ts'), join(folder.path, 'program.ts'))
  writeFileSync(join(folder.path, 'package.json'), '{"type": "module"}')
  writeFileSync(
    join(folder.path, 'tsconfig.json'),
    JSON.stringify({
      compilerOptions: {
        strict: true,
        noEmit: true,
        target: 'es2024',
        module: 'nodenext',
        allowImportingTsExtensions: true,
        types: ['node'],
        typeRoots: [inPackage('@types')],
      },
      files: ['program.ts'],
    }),
  )
  await node(inPackage('typescript', 'bin', 'tsc'), '-p', '.').catch((error: { stdout?: string }) => {
    throw new Error(error.stdout ?? 'the compiler could not be started')
  })

  const trigger = { type: 'core.svc.webhook', parameters: { url: 'generated-client' } }
  expect((await server.call('POST', '/v1/triggers', trigger)).status).toBe(201)
  const rule = { name: 'listed', trigger, action: { ref: 'core.noop' }, enabled: true }
  expect((await server.call('POST', '/v1/rules', rule)).status).toBe(201)
  const printed = await node('program.ts', server.urls.api, 'generated-client')
  expect(printed.split('\n')).toEqual([
    'output true',
    'execution core.local true',
    'rule default.listed true',
    expect.stringMatching(/^webhook \{.*"order":42/),
    '',
  ])
})
