/** Overrides of packs (contract 02, 2.8) on a running server. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { makeFolder } from '../helpers/folders.ts'
import type { TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import type { ErrorAnswer } from './support.ts'

const folder = makeFolder()
const files: Readonly<Record<string, string>> = {
  'pack.yaml': 'name: web\ndescription: d\nversion: 1.0.0\nauthor: a\n',
  'actions/up.yaml': 'name: up\nrunner_type: noop\n',
  'actions/down.yaml': 'name: down\nrunner_type: noop\nenabled: false\n',
  'actions/broken.yaml': 'name: broken\nrunner_type: unheard-of\n',
  'rules/rule.yaml': `name: rule
enabled: true
trigger: {type: core.svc.generic.inquiry}
action: {ref: core.noop}
`,
  'aliases/alias.yaml': 'name: alias\naction_ref: core.noop\nformats: [do it]\n',
  'sensors/sensor.yaml': 'class_name: Watcher\nentry_point: sensor.py\ntrigger_types: []\n',
  'sensors/sensor.py': 'pass\n',
}
const write = (path: string, text: string): void => {
  mkdirSync(dirname(join(folder.path, path)), { recursive: true })
  writeFileSync(join(folder.path, path), text)
}
const override = (name: string, text: string): void => write(`overrides/${name}`, text)

let server: TestApp
beforeAll(async () => {
  for (const ref of ['web', 'shop'])
    for (const [path, text] of Object.entries(files))
      write(`packs/${ref}/${path}`, text.replace('name: web', `name: ${ref}`))
  server = await createTestApp({ basePath: folder.path })
})
afterAll(async () => {
  await server.stop()
  folder.remove()
})
beforeEach(() => rmSync(join(folder.path, 'overrides'), { recursive: true, force: true }))

const register = async (more: object = {}): Promise<Record<string, unknown>> => {
  const body = { packs: ['web', 'shop'], fail_on_failure: false, ...more }
  return (await server.call<Record<string, unknown>>('POST', '/v1/packs/register', body)).body
}
const enabled = async (path: string): Promise<unknown> =>
  (await server.call<{ enabled: unknown }>('GET', `/v1/${path}`)).body.enabled

async function states(ref: string): Promise<unknown[]> {
  const paths = [`actions/${ref}.up`, `actions/${ref}.down`, `rules/${ref}.rule`, `actionalias/${ref}.alias`]
  return Promise.all([...paths, `sensortypes/${ref}.Watcher`].map(enabled))
}
const asWritten = [true, false, true, true, true]

test('without overrides everything is as its pack says', async () => {
  const answer = await register()
  expect(Object.keys(answer).filter((key) => key.includes('overridden'))).toEqual([])
  expect([await states('web'), await states('shop')]).toEqual([asWritten, asWritten])
})

test('the exception of a pack counts, else its default, else that of all packs; they are counted', async () => {
  override(
    '_global.yaml',
    `actions: {defaults: {enabled: false}, exceptions: {up: {enabled: true}}}
rules: {defaults: {enabled: false}}
aliases: {defaults: {enabled: false}}
`,
  )
  override(
    'web.yaml',
    `actions:
  exceptions:
    down: {enabled: true}
    unheard_of: {enabled: true}
rules:
  defaults: {enabled: true}
sensors:
  defaults: {enabled: true}
  exceptions: {Watcher: {enabled: false}}
`,
  )
  expect(await register()).toMatchObject({
    actions: 4,
    'actions(overridden)': 3,
    'rules(overridden)': 1,
    'aliases(overridden)': 2,
    'sensors(overridden)': 1,
  })
  expect(await states('web')).toEqual([false, true, true, false, false])
  // Exceptions of the file for all packs do not count.
  expect(await states('shop')).toEqual([false, false, false, false, true])
  expect(await register({ types: ['rule'] })).toMatchObject({ rules: 2, 'rules(overridden)': 1 })
})

test('a change is noticed at the start, and while the server runs, for one pack and for all', async () => {
  await register()
  await server.stop()
  override('web.yaml', 'actions: {defaults: {enabled: false}}\n')
  server = await createTestApp({ basePath: folder.path, settings: { 'content.watch': 'True' } })
  expect([await enabled('actions/web.up'), await enabled('actions/shop.up')]).toEqual([false, true])
  // Written again until the server watches.
  await waitFor('the change of all packs', async () => {
    override('_global.yaml', 'actions: {defaults: {enabled: false}}\n')
    return (await enabled('actions/shop.up')) === false
  })
})

test.each([
  ['an unknown kind', 'policies: {}', /overrides\/web\.yaml:1.*policies/],
  ['an unknown key of a kind', 'actions: {default: {}}', /overrides\/web\.yaml:1.*default/],
  ['another attribute', 'actions:\n  defaults: {description: x}', /overrides\/web\.yaml:2.*description/],
  ['another attribute of an exception', 'rules: {exceptions: {rule: {pack: x}}}', /overrides\/web\.yaml:1.*pack/],
  ['no boolean', 'actions: {defaults: {enabled: 1}}', /overrides\/web\.yaml:1.*enabled/],
  ['no object', '[]', /overrides\/web\.yaml/],
  ['no YAML', 'actions: {', /overrides\/web\.yaml/],
])('a file with %s is an error, and nothing of the pack changes', async (_, text, message) => {
  override('web.yaml', 'actions: {defaults: {enabled: false}}')
  await register()
  override('web.yaml', text)
  const { status, body } = await server.call<ErrorAnswer>('POST', '/v1/packs/register', { packs: ['web'] })
  expect([status, body.faultstring]).toEqual([400, expect.stringMatching(message)])
  expect(body.faultstring).not.toContain(folder.path)
  expect(await enabled('actions/web.up')).toBe(false)
  expect(await register()).toMatchObject({ actions: 2, problems: expect.anything() as unknown })
})

test('a name that svc does not read is said; an empty file says nothing', async () => {
  override('web.yml', 'actions: {}')
  const { body } = await server.call<ErrorAnswer>('POST', '/v1/packs/register', { packs: ['web'] })
  expect(body.faultstring).toMatch(/rename the file to web\.yaml/)
  rmSync(join(folder.path, 'overrides/web.yml'))
  override('web.yaml', '# nothing\n')
  await register()
  expect(await states('web')).toEqual(asWritten)
})

test('a wrong file for all packs does not stop the start, and the packs of the program stay', async () => {
  override('_global.yaml', 'actions: {defaults: {enabled: false}}')
  await register({ packs: ['core', 'web'] })
  expect(await enabled('actions/core.noop')).toBe(false)
  await server.stop()
  override('_global.yaml', 'nonsense: {}')
  server = await createTestApp({ basePath: folder.path })
  expect(await enabled('actions/core.noop')).toBe(false)
  rmSync(join(folder.path, 'overrides/_global.yaml'))
  await register({ packs: ['core'] })
  expect(await enabled('actions/core.noop')).toBe(true)
})
