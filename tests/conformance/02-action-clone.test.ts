/** Copies of actions (contract 02, 2.2, "Clone detail") on a running server. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { load } from 'js-yaml'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { makeFolder } from '../helpers/folders.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import { createRbacFiles } from '../helpers/rbac.ts'
import { waitForStatus, type Answer, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { auditRecords, type ErrorAnswer } from './support.ts'

interface ActionAnswer {
  id: string
  ref: string
  entry_point: string
  [attribute: string]: unknown
}
type Call = Answer<ActionAnswer & ErrorAnswer>

const files: Readonly<Record<string, string>> = {
  'from/pack.yaml': 'name: from\ndescription: d\nversion: 1.0.0\nauthor: a\n',
  'from/actions/greet.yaml': `# A comment.
name: greet
description: Greets.
runner_type: local-shell-script
enabled: true
entry_point: ./bin/greet.sh
tags: [{name: kind, value: polite}]
notify: {on-complete: {routes: [chat]}}
parameters:
  who: {type: string, position: 0, default: "08:30"}
`,
  'from/actions/bin/greet.sh': '#!/bin/sh\necho "hello $1"\n',
  'from/actions/nothing.yaml': 'name: nothing\nrunner_type: noop\nenabled: false\n',
  'from/actions/gone.yaml': 'name: gone\nrunner_type: python-script\nentry_point: gone.py\n',
  'from/actions/gone.py': 'pass\n',
  'from/actions/flow.yaml': 'name: flow\nrunner_type: orquesta\nentry_point: workflows/deep/flow.yaml\n',
  'from/actions/workflows/deep/flow.yaml': 'version: 1.0\ntasks:\n  a: {action: core.noop}\n',
  'from/actions/chain.yaml': 'name: chain\nrunner_type: action-chain\nentry_point: chains/c.yaml\n',
  'from/actions/chains/c.yaml': 'chain:\n  - {name: a, ref: core.noop}\n',
  'to/pack.yaml': 'name: to\ndescription: d\nversion: 1.0.0\nauthor: a\n',
  'to/actions/other.yaml': 'name: other\nrunner_type: local-shell-script\nentry_point: shared.sh\n',
  'to/actions/shared.sh': '#!/bin/sh\necho shared\n',
  'bare/pack.yaml': 'name: bare\ndescription: d\nversion: 1.0.0\nauthor: a\n',
}

const folder = makeFolder()
const inPacks = (path: string): string => join(folder.path, 'packs', path)
const read = (path: string): string => readFileSync(inPacks(path), 'utf8')
const listing = (pack: string): string[] => readdirSync(inPacks(pack), { recursive: true, encoding: 'utf8' }).toSorted()

let server: TestApp
beforeAll(async () => {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(inPacks(path)), { recursive: true })
    writeFileSync(inPacks(path), text)
  }
  server = await createTestApp({ basePath: folder.path })
  rmSync(inPacks('from/actions/gone.py'))
})
afterAll(async () => {
  await server.stop()
  folder.remove()
})

let count = 0
let name: string
beforeEach(() => {
  count += 1
  name = `copy_${count}`
})

const clone = (source: string, body: Record<string, unknown>): Promise<Call> =>
  server.call('POST', `/v1/actions/${source}/clone`, { dest_pack: 'to', dest_action: name, ...body })
const get = (ref: string): Promise<Call> => server.call('GET', `/v1/actions/${ref}`)

test('a copy has the record and the files of its source, under its own name, and runs', async () => {
  const { body: source } = await get('from.greet')
  const { status, body: copy } = await clone('from.greet', {})
  expect(status).toBe(201)
  expect(copy).toEqual({
    ...source,
    id: expect.not.stringMatching(source.id) as unknown,
    uid: `action:to:${name}`,
    ref: `to.${name}`,
    name,
    pack: 'to',
    entry_point: `${name}.sh`,
    metadata_file: `actions/${name}.yaml`,
  })
  expect((await get(`to.${name}`)).body).toEqual(copy)
  expect((await get('from.greet')).body).toEqual(source)
  expect(read(`to/actions/${name}.sh`)).toBe(files['from/actions/bin/greet.sh'])
  expect(statSync(inPacks(`to/actions/${name}.sh`)).mode & 0o111).toBe(0o111)
  expect(load(read(`to/actions/${name}.yaml`))).toEqual({
    name,
    pack: 'to',
    description: 'Greets.',
    enabled: true,
    runner_type: 'local-shell-script',
    entry_point: `${name}.sh`,
    tags: [{ name: 'kind', value: 'polite' }],
    notify: { 'on-complete': { routes: ['chat'] } },
    parameters: { who: { type: 'string', position: 0, default: '08:30' } },
  })
  const { body } = await server.call<ExecutionAnswer>('POST', '/v1/executions', { action: `to.${name}` })
  expect(await waitForStatus(server, body.id)).toMatchObject({ result: { stdout: 'hello 08:30' } })

  // Registration finds the copy as it is.
  expect((await server.call('POST', '/v1/packs/register', { packs: ['to'] })).status).toBe(200)
  expect((await get(`to.${name}`)).body).toEqual(copy)
  await waitFor('the audit record', () =>
    auditRecords(server, 'action.cloned').some(
      (record) => record['_action_id'] === copy.id && record['_source_action'] === 'from.greet',
    ),
  )
})

test('an action without files, by id, into a pack without actions: the folder is made', async () => {
  const { body: source } = await get('from.nothing')
  const { status, body } = await clone(source.id, { dest_pack: 'bare' })
  expect([status, body['enabled'], body.entry_point]).toEqual([201, false, ''])
  expect(listing('bare')).toEqual(['actions', `actions/${name}.yaml`, 'pack.yaml'])
})

test('an action that was made without a metadata file gets one', async () => {
  const parameters = { n: { type: 'number', default: 1.5 } }
  await server.call('POST', '/v1/actions', { name: `made_${name}`, pack: 'to', runner_type: 'noop', parameters })
  expect((await clone(`to.made_${name}`, {})).status).toBe(201)
  expect(load(read(`to/actions/${name}.yaml`))).toMatchObject({ name, pack: 'to', runner_type: 'noop' })
})

test.each([
  ['from.flow', 'from/actions/workflows/deep/flow.yaml'],
  ['from.chain', 'from/actions/chains/c.yaml'],
])('the definition of %s goes into the folder of workflows', async (source, file) => {
  const { status, body } = await clone(source, {})
  expect([status, body.entry_point]).toEqual([201, `workflows/${name}.yaml`])
  expect(read(`to/actions/workflows/${name}.yaml`)).toBe(files[file])
})

test('an existing action is replaced only when asked to, with a new id, and its own files go', async () => {
  const data_files = [
    { file_path: `old-${name}.sh`, content: '#!/bin/sh\n' },
    { file_path: `${name}.yaml`, content: `name: ${name}\nrunner_type: noop\n` },
  ]
  const old = { name, pack: 'to', runner_type: 'local-shell-script', metadata_file: `${name}.yaml`, data_files }
  const { body: before } = await server.call<ActionAnswer>('POST', '/v1/actions', {
    ...old,
    entry_point: `old-${name}.sh`,
  })
  const listed = listing('to')
  const refused = await clone('from.greet', {})
  expect([refused.status, refused.body.code]).toEqual([400, 'ACTION_EXISTS'])
  expect(refused.body.faultstring).toBe(`The requested destination action "to.${name}" already exists.`)
  expect(listing('to')).toEqual(listed)
  expect((await get(`to.${name}`)).body).toEqual(before)

  const { status, body } = await clone('from.greet', { overwrite: true })
  expect(status).toBe(201)
  expect(body.id).not.toBe(before.id)
  expect((await get(before.id)).status).toBe(404)
  expect((await get(`to.${name}`)).body).toEqual(body)
  expect(existsSync(inPacks(`to/actions/old-${name}.sh`))).toBe(false)
  expect(load(read(`to/actions/${name}.yaml`))).toMatchObject({ runner_type: 'local-shell-script' })

  // Again, and the file that another action uses as well stays.
  await server.call('PUT', `/v1/actions/${body.id}`, { ...body, entry_point: 'shared.sh' })
  expect((await clone('from.nothing', { overwrite: true })).status).toBe(201)
  expect(read('to/actions/shared.sh')).toBe(files['to/actions/shared.sh'])
})

test.each<[string, string, Record<string, unknown>, number, string, string]>([
  ['an unknown source', 'from.none', {}, 404, 'CONTENT_NOT_FOUND', 'from.none'],
  ['an unknown pack', 'from.greet', { dest_pack: 'nope' }, 400, 'PACK_NOT_INSTALLED', 'Destination pack "nope"'],
  ['the pack core', 'from.greet', { dest_pack: 'core' }, 400, 'SYSTEM_PACK_FIXED', 'the pack "core"'],
  ['the pack packs', 'from.greet', { dest_pack: 'packs' }, 400, 'SYSTEM_PACK_FIXED', 'the pack "packs"'],
  ['the pack linux', 'from.greet', { dest_pack: 'linux' }, 400, 'SYSTEM_PACK_FIXED', 'the pack "linux"'],
  ['the pack chatops', 'from.greet', { dest_pack: 'chatops' }, 400, 'SYSTEM_PACK_FIXED', 'the pack "chatops"'],
  ['a path as pack', 'from.greet', { dest_pack: '../to' }, 400, 'BODY_INVALID', 'dest_pack'],
  ['a path as name', 'from.greet', { dest_action: '../x' }, 400, 'BODY_INVALID', 'dest_action'],
  ['no name', 'from.greet', { dest_action: undefined }, 400, 'BODY_INVALID', 'dest_action'],
  ['an unknown property', 'from.greet', { force: true }, 400, 'BODY_INVALID', 'force'],
  ['itself', 'from.greet', { dest_pack: 'from', dest_action: 'greet', overwrite: true }, 400, 'BODY_INVALID', 'itself'],
  ['a source whose file is missing', 'from.gone', {}, 404, 'ENTRY_POINT_NOT_FOUND', 'from.gone'],
  ['a file of another action', 'from.greet', { dest_action: 'shared' }, 400, 'DATA_FILE_INVALID', 'actions/shared.sh'],
  [
    'a file, when asked to replace',
    'from.greet',
    { dest_action: 'shared', overwrite: true },
    400,
    'DATA_FILE_INVALID',
    'shared',
  ],
  ['a name too long for a file', 'from.greet', { dest_action: 'x'.repeat(254) }, 400, 'DATA_FILE_INVALID', 'name'],
])('refuses %s and writes nothing', async (_, source, body, status, code, text) => {
  const before = ['from', 'to', 'bare'].map(listing)
  const answer = await clone(source, body)
  expect([answer.status, answer.body.code]).toEqual([status, code])
  expect(answer.body.faultstring).toContain(text)
  expect(answer.text).not.toContain(folder.path)
  expect(['from', 'to', 'bare'].map(listing)).toEqual(before)
  expect((await get(`to.${name}`)).status).toBe(404)
})

test('when the record cannot be stored, the overwritten action and its files are back', async () => {
  const { body: before } = await clone('from.greet', {})
  const listed = listing('to')
  const database = new Sqlite(join(folder.path, 'svc.db'))
  database.exec(`create trigger refuse before insert on actions begin select raise(abort, 'for the test'); end`)
  try {
    expect((await clone('from.flow', { overwrite: true })).status).toBeGreaterThanOrEqual(500)
    expect((await clone('from.flow', { dest_action: `${name}_new` })).status).toBeGreaterThanOrEqual(500)
  } finally {
    database.exec('drop trigger refuse')
    database.close()
  }
  expect((await get(`to.${name}`)).body).toEqual(before)
  expect(listing('to')).toEqual(listed)
  expect(read(`to/actions/${name}.sh`)).toBe(files['from/actions/bin/greet.sh'])
})

test('of many copies to one place at once one is made; copies in both directions end', async () => {
  const answers = await Promise.all(Array.from({ length: 8 }, () => clone('from.greet', {})))
  expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([201, ...Array<number>(7).fill(400)])
  const both = await Promise.all(
    Array.from({ length: 8 }, (_, n) =>
      n % 2 === 0
        ? clone('from.greet', { dest_action: `${name}_${n}` })
        : clone(`to.${name}`, { dest_pack: 'from', dest_action: `${name}_${n}` }),
    ),
  )
  expect(both.map(({ status }) => status)).toEqual(Array<number>(8).fill(201))
})

test('needs action_view on the source, action_create on the copy, action_delete on what it replaces', async () => {
  const own = makeFolder()
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(own.path, 'packs', path)), { recursive: true })
    writeFileSync(join(own.path, 'packs', path), text)
  }
  const rbac = createRbacFiles(own.path)
  rbac.assign('admin', 'system_admin')
  const sees = { types: ['action_view'], on: 'action:from:greet' }
  rbac.define('blind', [{ types: ['action_create', 'action_delete'], on: 'pack:to' }])
  rbac.define('looker', [sees])
  rbac.define('copier', [sees, { types: ['action_create'], on: 'pack:to' }])
  rbac.define('replacer', [sees, { types: ['action_create', 'action_delete'], on: 'pack:to' }])
  const limited = await createTestApp({
    basePath: own.path,
    settings: { 'auth.enable': 'True', 'rbac.enable': 'True', 'rbac.backend': 'default' },
  })
  try {
    const admin = await signIn(limited, 'admin', firstPassword(own.path))
    const as = async (user: string, overwrite: boolean): Promise<unknown[]> => {
      const { body: key } = await limited.call<{ key: string }>('POST', '/v1/apikeys', { user }, admin)
      const { status, body } = await limited.call<ErrorAnswer>(
        'POST',
        '/v1/actions/from.greet/clone',
        { dest_pack: 'to', dest_action: 'copied', overwrite },
        { 'Svc-Api-Key': key.key },
      )
      return [user, status, body.code]
    }
    expect(await as('blind', true)).toEqual(['blind', 403, 'PERMISSION_DENIED'])
    expect(await as('looker', true)).toEqual(['looker', 403, 'PERMISSION_DENIED'])
    expect(await as('copier', true)).toEqual(['copier', 201, undefined])
    expect(await as('looker', false)).toEqual(['looker', 403, 'PERMISSION_DENIED'])
    expect(await as('copier', false)).toEqual(['copier', 400, 'ACTION_EXISTS'])
    expect(await as('copier', true)).toEqual(['copier', 403, 'PERMISSION_DENIED'])
    expect(await as('replacer', true)).toEqual(['replacer', 201, undefined])
  } finally {
    await limited.stop()
    own.remove()
  }
})
