/** What becomes of content of packs that somebody has enabled or disabled, when its pack is registered again. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { makeFolder } from '../helpers/folders.ts'
import type { TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'

/** `down` is disabled by its file, `up` enabled. */
const definitions: Readonly<Record<string, (name: string) => string>> = {
  actions: (name) => `name: ${name}\nrunner_type: noop\n`,
  rules: (name) => `name: ${name}\ntrigger: {type: core.svc.generic.inquiry}\naction: {ref: core.noop}\n`,
  aliases: (name) => `name: ${name}\naction_ref: core.noop\nformats: ['${name}']\n`,
  policies: (name) =>
    `name: ${name}\nresource_ref: web.up\npolicy_type: action.concurrency\nparameters: {threshold: 1}\n`,
  sensors: (name) => `class_name: ${name}\nentry_point: sensor.py\ntrigger_types: []\n`,
}
const kinds = Object.keys(definitions)
const paths: Readonly<Record<string, string>> = {
  actions: 'actions',
  rules: 'rules',
  aliases: 'actionalias',
  policies: 'policies',
  sensors: 'sensortypes',
}

const folder = makeFolder()
const write = (path: string, text: string): void => {
  mkdirSync(dirname(join(folder.path, path)), { recursive: true })
  writeFileSync(join(folder.path, path), text)
}
function writeFiles(enabled: { up: boolean; down: boolean }): void {
  for (const kind of kinds) {
    for (const name of ['up', 'down'] as const)
      write(`packs/web/${kind}/${name}.yaml`, `${definitions[kind]?.(name)}enabled: ${enabled[name]}\n`)
  }
}

let server: TestApp
beforeAll(async () => {
  write('packs/web/pack.yaml', 'name: web\ndescription: d\nversion: 1.0.0\nauthor: a\n')
  write('packs/web/sensors/sensor.py', 'pass\n')
  // A problem that stays.
  write('packs/web/actions/broken.yaml', 'name: broken\nrunner_type: unheard-of\n')
  writeFiles({ up: true, down: false })
  server = await createTestApp({ basePath: folder.path, settings: { 'content.watch': 'True' } })
})
afterAll(async () => {
  await server.stop()
  folder.remove()
})

const register = async (more: object = {}): Promise<Record<string, unknown>> => {
  const answer = await server.call<Record<string, unknown>>('POST', '/v1/packs/register', {
    packs: ['web'],
    fail_on_failure: false,
    ...more,
  })
  expect(answer.status).toBe(200)
  return answer.body
}
const get = async (kind: string, name: string): Promise<Record<string, unknown>> =>
  (await server.call<Record<string, unknown>>('GET', `/v1/${paths[kind]}/web.${name}`)).body
/** Kind → whether `up` and `down` are enabled. */
const states = async (): Promise<Record<string, unknown[]>> =>
  Object.fromEntries(
    await Promise.all(
      kinds.map(async (kind) => [kind, [(await get(kind, 'up'))['enabled'], (await get(kind, 'down'))['enabled']]]),
    ),
  ) as Record<string, unknown[]>
const all = (up: boolean, down: boolean): Record<string, unknown[]> =>
  Object.fromEntries(kinds.map((kind) => [kind, [up, down]]))
const isRegistered = async (action: string): Promise<boolean> =>
  (await server.call('GET', `/v1/actions/web.${action}`)).status === 200

async function switchAll(): Promise<void> {
  for (const kind of kinds) {
    for (const [name, enabled] of [
      ['up', false],
      ['down', true],
    ] as const) {
      const { body, status } = await server.call('PUT', `/v1/${paths[kind]}/web.${name}`, {
        ...(await get(kind, name)),
        enabled,
      })
      expect([status, body]).toMatchObject([200, { enabled }])
    }
  }
}

beforeEach(async () => {
  writeFiles({ up: true, down: false })
  await register({ enabled: Object.fromEntries(kinds.map((kind) => [kind, { 'web.up': true, 'web.down': false }])) })
  await switchAll()
})

test('a request registers it as the files say; only sensors stay', async () => {
  await register()
  expect(await states()).toEqual({ ...all(true, false), sensors: [false, true] })
})

test('svc itself leaves it as it is when other files of the pack change', async () => {
  write('packs/web/actions/added.yaml', 'name: added\nrunner_type: noop\n')
  await waitFor('the added action', () => isRegistered('added'))
  expect(await states()).toEqual(all(false, true))
  // Only what says so changes.
  write('packs/web/rules/down.yaml', `${definitions['rules']?.('down')}enabled: true\n`)
  write('packs/web/rules/up.yaml', `${definitions['rules']?.('up')}`)
  write('packs/web/actions/second.yaml', 'name: second\nrunner_type: noop\n')
  await waitFor('the second action', () => isRegistered('second'))
  expect(await states()).toEqual({ ...all(false, true), rules: [false, true] })
  write('packs/web/rules/up.yaml', `${definitions['rules']?.('up')}enabled: true\n`)
  await waitFor('the rule', async () => (await get('rules', 'up'))['enabled'] === true)
})

test('svc itself leaves it as it is when the configuration changes, and when another pack brings what was missing', async () => {
  write('configs/web.yaml', 'a: 1\n')
  await waitFor('the configuration', async () => (await server.call('GET', '/v1/configs/web')).status === 200)
  expect(await states()).toEqual(all(false, true))
  write('packs/web/rules/needs.yaml', 'name: needs\ntrigger: {type: other.came}\naction: {ref: core.noop}\n')
  await register({ keep_enabled: true })
  expect((await server.call('GET', '/v1/rules/web.needs')).status).toBe(404)
  write('packs/other/triggers/came.yaml', 'name: came\npayload_schema: {type: object}\n')
  write('packs/other/pack.yaml', 'name: other\ndescription: d\nversion: 1.0.0\nauthor: a\n')
  await waitFor('the rule', async () => (await server.call('GET', '/v1/rules/web.needs')).status === 200)
  expect(await states()).toEqual(all(false, true))
})

test('a request may leave it as it is, and say what is to be enabled', async () => {
  await register({ keep_enabled: true })
  expect(await states()).toEqual(all(false, true))
  await register({ keep_enabled: true, types: ['rule'], enabled: { rules: { 'web.up': true, 'web.gone': true } } })
  expect(await states()).toEqual({ ...all(false, true), rules: [true, true] })
  writeFiles({ up: false, down: true })
  await register({ keep_enabled: true })
  expect(await states()).toEqual(all(false, true))
  writeFiles({ up: true, down: false })
  await register({ keep_enabled: true })
  expect(await states()).toEqual(all(true, false))
  // What was said in a request is no file that says so.
  const enabled = Object.fromEntries(kinds.map((kind) => [kind, { 'web.up': false, 'web.down': true }]))
  await register({ enabled })
  await register({ keep_enabled: true })
  expect(await states()).toEqual(all(false, true))
  expect((await server.call('POST', '/v1/packs/register', { enabled: { rules: { x: 'yes' } } })).status).toBe(400)
})
