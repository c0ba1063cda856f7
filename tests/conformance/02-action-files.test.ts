/** Actions made, replaced and deleted by request, with their files (contract 02, 2.1 and 2.2; 05, 5.9) on a running server. */
import {
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { makeFolder } from '../helpers/folders.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import { createRbacFiles } from '../helpers/rbac.ts'
import { startServer, waitForStatus, type Answer, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { auditRecords, idPattern, rowsOf, unknownId, type ErrorAnswer } from './support.ts'

interface ActionAnswer {
  id: string
  uid: string
  ref: string
  name: string
  pack: string
  runner_type: string
  entry_point: string
  metadata_file?: string
  [attribute: string]: unknown
}

type Call = Answer<ActionAnswer & ErrorAnswer>

const folder = makeFolder()
const pack = join(folder.path, 'packs', 'web')
const inPack = (path: string): string => join(pack, path)
const read = (path: string): string => readFileSync(inPack(path), 'utf8')
/** Every file and link of the pack, hidden ones included. */
const listing = (): string[] =>
  readdirSync(pack, { recursive: true, encoding: 'utf8' })
    .filter((name) => !statSync(join(pack, name), { throwIfNoEntry: false })?.isDirectory())
    .toSorted()

function writePack(path: string, files: Record<string, string>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(path, name)), { recursive: true })
    writeFileSync(join(path, name), text)
  }
}

const manifest = (name: string): string =>
  `name: ${name}\nref: ${name}\ndescription: For tests.\nversion: 1.0.0\nauthor: tests\n`

let server: TestApp
beforeAll(async () => {
  writePack(pack, {
    'pack.yaml': manifest('web'),
    'actions/shared.yaml': 'name: shared\nrunner_type: local-shell-script\nentry_point: shared.sh\n',
    'actions/shared.sh': '#!/bin/sh\necho shared\n',
  })
  writePack(join(folder.path, 'packs', 'bare'), { 'pack.yaml': manifest('bare') })
  server = await createTestApp({ basePath: folder.path })
  const { status, text } = await server.call('POST', '/v1/packs/register', { packs: ['web', 'bare'] })
  if (status !== 200) throw new Error(text)
})
afterAll(async () => {
  await server.stop()
  folder.remove()
})

let count = 0
let name: string
beforeEach(() => {
  count += 1
  name = `made_${count}`
})

const post = (body: Record<string, unknown>): Promise<Call> =>
  server.call('POST', '/v1/actions', { name, pack: 'web', runner_type: 'noop', ...body })
const put = (ref: string, body: Record<string, unknown>): Promise<Call> =>
  server.call('PUT', `/v1/actions/${ref}`, { name, pack: 'web', runner_type: 'noop', ...body })
const get = (ref: string): Promise<Call> => server.call('GET', `/v1/actions/${ref}`)
const remove = (ref: string, body?: unknown): Promise<Call> => server.call('DELETE', `/v1/actions/${ref}`, body)

async function make(body: Record<string, unknown> = {}): Promise<ActionAnswer> {
  const { status, text, body: action } = await post(body)
  if (status !== 201) throw new Error(text)
  return action
}

describe('02.2 POST /actions', () => {
  it('makes a record with everything that was left out, of pack "default" if it does not say', async () => {
    const { status, body } = await post({ description: 'Of a test.', tags: [{ name: 'a', value: 'b' }] })
    expect(status).toBe(201)
    expect(body).toEqual({
      id: expect.stringMatching(idPattern) as unknown,
      uid: `action:web:${name}`,
      ref: `web.${name}`,
      name,
      pack: 'web',
      description: 'Of a test.',
      enabled: true,
      runner_type: 'noop',
      entry_point: '',
      parameters: {},
      output_schema: {},
      tags: [{ name: 'a', value: 'b' }],
      notify: {},
    })
    expect((await get(`web.${name}`)).body).toEqual(body)
    await waitFor('the audit record', () =>
      auditRecords(server, 'action.created').some((record) => record['_action_id'] === body.id),
    )
  })

  it('writes files, which run at once', async () => {
    const files = [
      { file_path: `${name}.sh`, content: '#!/bin/sh\necho "hello ✓ $1"\n' },
      { file_path: `actions/${name}.yaml`, content: `name: ${name}\nrunner_type: noop\n` },
      { file_path: `lib/deep/${name}.txt`, content: 'plain' },
    ]
    const action = await make({
      runner_type: 'local-shell-script',
      entry_point: `${name}.sh`,
      parameters: { who: { type: 'string', position: 0 } },
      data_files: files,
    })
    expect(action).not.toHaveProperty('data_files')
    expect(read(`actions/${name}.sh`)).toBe(files[0]?.content)
    expect(read(`actions/${name}.yaml`)).toBe(files[1]?.content)
    expect(read(`actions/lib/deep/${name}.txt`)).toBe('plain')
    expect(statSync(inPack(`actions/${name}.sh`)).mode & 0o111).toBe(0o111)
    expect(statSync(inPack(`actions/lib/deep/${name}.txt`)).mode & 0o111).toBe(0)
    const { body } = await server.call<ExecutionAnswer>('POST', '/v1/executions', {
      action: action.ref,
      parameters: { who: 'there' },
    })
    const ended = await waitForStatus(server, body.id)
    expect(ended).toMatchObject({ status: 'succeeded', result: { stdout: 'hello ✓ there' } })
    expect(listing().filter((path) => path.includes('.svc-'))).toEqual([])
  })

  it('says core.svc.action.file_written for each file', async () => {
    const rule = {
      name,
      enabled: true,
      trigger: { type: 'core.svc.action.file_written' },
      criteria: { 'trigger.ref': { type: 'equals', pattern: `web.${name}` } },
      action: { ref: 'core.noop' },
    }
    expect((await server.call('POST', '/v1/rules', rule)).status).toBe(201)
    await make({ data_files: [1, 2].map((n) => ({ file_path: `${name}-${n}.txt`, content: String(n) })) })
    const instances = rowsOf<{ payload: string }>(
      server,
      `select payload from trigger_instances where trigger = 'core.svc.action.file_written' order by id`,
    ).map(({ payload }) => JSON.parse(payload) as { ref: string })
    expect(instances.filter(({ ref }) => ref === `web.${name}`)).toEqual(
      [1, 2].map((n) => ({
        ref: `web.${name}`,
        file_path: inPack(`actions/${name}-${n}.txt`),
        host_info: { hostname: hostname() },
      })),
    )
    await server.call('DELETE', `/v1/rules/default.${name}`)
  })

  it('refuses a name that is taken, with the id of who has it, and writes nothing', async () => {
    const { id } = await make()
    const before = listing()
    const { status, body } = await post({ data_files: [{ file_path: `${name}.txt`, content: 'x' }] })
    expect([status, body.code, body['conflict-id']]).toEqual([409, 'NAME_TAKEN', id])
    expect(listing()).toEqual(before)
  })

  it('of many that make the same action at once one does, and its file stays', async () => {
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, n) => post({ data_files: [{ file_path: `${name}.txt`, content: `by ${n}` }] })),
    )
    const made = answers.flatMap(({ status }, n) => (status === 201 ? [n] : []))
    expect(made).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(11)
    expect(read(`actions/${name}.txt`)).toBe(`by ${made[0]}`)
  })

  it.each<[string, Record<string, unknown>, string]>([
    ['pack core', { pack: 'core' }, "Resources belonging to system level packs can't be manipulated"],
    [
      'a pack that is not there',
      { pack: 'nowhere' },
      'Content pack "nowhere" is not found or doesn\'t contain actions',
    ],
    ['a pack without actions', { pack: 'bare' }, 'Content pack "bare" is not found or doesn\'t contain actions'],
    ['an unknown runner', { runner_type: 'unheard-of' }, 'RunnerType unheard-of is not found'],
    [
      'positions that are the same',
      { parameters: { a: { position: 0 }, b: { position: 0 } } },
      'Parameters a and b have same position 0.',
    ],
    [
      'positions with gaps',
      { parameters: { a: { position: 0 }, b: { position: 2 } } },
      'Positions supplied [0, 2] for parameters are not contiguous.',
    ],
    [
      'an immutable parameter without default',
      { parameters: { a: { type: 'string', immutable: true } } },
      'Immutable param a requires a default value.',
    ],
    [
      'overriding what cannot be',
      { runner_type: 'local-shell-cmd', parameters: { cmd: { type: 'integer' } } },
      'The attribute "type" for the runner parameter "cmd" in action',
    ],
    ['a parameter schema that is none', { parameters: { a: { type: 'text' } } }, 'parameters.a'],
    ['an unknown property', { unheard_of: 1 }, 'Additional properties are not allowed'],
    ['an entry point outside', { entry_point: '../../etc/passwd' }, 'entry_point'],
    ['a metadata file outside', { metadata_file: '../x.yaml' }, '../x.yaml'],
    ['files that are no list', { data_files: 'x' }, 'data_files'],
    ['a file without content', { data_files: [{ file_path: 'a' }] }, 'content'],
    [
      'too many files',
      { data_files: Array.from({ length: 101 }, (_, n) => ({ file_path: `${n}`, content: '' })) },
      'data_files',
    ],
  ])('refuses %s', async (_, more, text) => {
    const before = listing()
    const { status, body } = await post({ data_files: [{ file_path: 'refused.txt', content: 'x' }], ...more })
    expect([status, body.faultstring]).toEqual([400, expect.stringContaining(text)])
    expect(body.faultstring).not.toContain(folder.path)
    expect((await get(`web.${name}`)).status).toBe(404)
    expect(listing()).toEqual(before)
  })
})

describe('02.2 nothing outside of the actions of the pack is written', () => {
  it.each([
    '../escaped.txt',
    'actions/../../escaped.txt',
    'a/../../../escaped.txt',
    '/tmp/escaped.txt',
    'a//b.txt',
    './a.txt',
    'a\0.txt',
    'a\n.txt',
    '..',
    '',
    'actions/',
    'a\\..\\b.txt',
    `${'a'.repeat(300)}.txt`,
    'x/'.repeat(20) + 'y',
    'a'.repeat(2000),
  ])('%j', async (path) => {
    const before = listing()
    const data_files = [
      { file_path: `${name}-first.txt`, content: 'goes again' },
      { file_path: path, content: 'escaped' },
    ]
    const { status, body } = await post({ data_files })
    expect([status, body.code]).toEqual([400, 'DATA_FILE_INVALID'])
    expect(listing()).toEqual(before)
    expect((await get(`web.${name}`)).status).toBe(404)
  })

  it('the same file twice', async () => {
    const data_files = ['a.txt', 'actions/a.txt'].map((file_path) => ({ file_path, content: file_path }))
    expect((await post({ data_files })).body.code).toBe('DATA_FILE_INVALID')
    expect(existsSync(inPack('actions/a.txt'))).toBe(false)
  })

  it('through a link that leads out', async () => {
    const outside = join(folder.path, 'outside')
    mkdirSync(outside, { recursive: true })
    writeFileSync(join(outside, 'target.txt'), 'untouched')
    symlinkSync(outside, inPack('actions/way-out'))
    symlinkSync(join(outside, 'target.txt'), inPack('actions/link.txt'))
    for (const file_path of ['way-out/new.txt', 'way-out/deep/new.txt', 'way-out/target.txt']) {
      const { status, body } = await post({ data_files: [{ file_path, content: 'x' }] })
      expect([file_path, status, body.code]).toEqual([file_path, 400, 'DATA_FILE_INVALID'])
    }
    // A link in the place of the file itself is replaced, and what it led to stays.
    await make({ data_files: [{ file_path: 'link.txt', content: 'now a file' }] })
    expect(lstatSync(inPack('actions/link.txt')).isSymbolicLink()).toBe(false)
    expect(readdirSync(outside)).toEqual(['target.txt'])
    expect(readFileSync(join(outside, 'target.txt'), 'utf8')).toBe('untouched')
  })

  it('over a folder, or below a file', async () => {
    mkdirSync(inPack('actions/a-folder'), { recursive: true })
    for (const file_path of ['a-folder', 'shared.sh/below.txt']) {
      const { status, body } = await post({ data_files: [{ file_path, content: 'x' }] })
      expect([file_path, status, body.code]).toEqual([file_path, 400, 'DATA_FILE_INVALID'])
    }
    expect(read('actions/shared.sh')).toContain('echo shared')
  })

  it('when an earlier file of the request replaced another, that is back', async () => {
    await make({ data_files: [{ file_path: `${name}.txt`, content: 'as it was' }] })
    const before = listing()
    const { status } = await put(`web.${name}`, {
      data_files: [
        { file_path: `${name}.txt`, content: 'replaced' },
        { file_path: `new-folder-${name}/x.txt`, content: 'x' },
        { file_path: 'a-folder', content: 'cannot be' },
      ],
    })
    expect(status).toBe(400)
    expect(read(`actions/${name}.txt`)).toBe('as it was')
    expect(existsSync(inPack(`actions/new-folder-${name}`))).toBe(false)
    expect(listing()).toEqual(before)
  })

  it('when the record cannot be stored', async () => {
    await make({ data_files: [{ file_path: `${name}.txt`, content: 'as it was' }] })
    const before = listing()
    const database = new Sqlite(join(folder.path, 'svc.db'))
    database.exec(`create trigger refuse before update on actions begin select raise(abort, 'for the test'); end`)
    database.exec(`create trigger refuse_new before insert on actions begin select raise(abort, 'for the test'); end`)
    database.exec(`create trigger refuse_gone before delete on actions begin select raise(abort, 'for the test'); end`)
    try {
      const data_files = [
        { file_path: `${name}.txt`, content: 'replaced' },
        { file_path: `${name}-more/x.txt`, content: 'x' },
      ]
      expect((await put(`web.${name}`, { data_files })).status).toBeGreaterThanOrEqual(500)
      expect((await post({ name: `${name}_2`, data_files })).status).toBeGreaterThanOrEqual(500)
      expect((await remove('web.shared', { remove_files: true })).status).toBeGreaterThanOrEqual(500)
    } finally {
      database.exec('drop trigger refuse; drop trigger refuse_new; drop trigger refuse_gone')
      database.close()
    }
    expect(read(`actions/${name}.txt`)).toBe('as it was')
    expect(listing()).toEqual(before)
    expect((await get('web.shared')).status).toBe(200)
  })
})

describe('02.2 PUT /actions/{ref_or_id}', () => {
  it('replaces the record: what is left out has its default, the id stays', async () => {
    const before = await make({ description: 'Old.', tags: [{ name: 'a', value: 'b' }], enabled: false })
    const { status, body } = await put(before.id, { description: 'New.' })
    expect([status, body]).toEqual([200, { ...before, description: 'New.', tags: [], enabled: true }])
    expect((await get(before.ref)).body).toEqual(body)
    await waitFor('the audit record', () =>
      auditRecords(server, 'action.updated').some((record) => record['_action_id'] === body.id),
    )
  })

  it('takes a record back as it was read', async () => {
    const before = (await get('web.shared')).body
    const { status, body } = await server.call('PUT', '/v1/actions/web.shared', before)
    expect([status, body]).toEqual([200, before])
  })

  it('does not cut an action off from its metadata file', async () => {
    const { metadata_file } = (await get('web.shared')).body
    expect(metadata_file).toBe('actions/shared.yaml')
    const { body } = await put('web.shared', {
      name: 'shared',
      runner_type: 'local-shell-script',
      entry_point: 'shared.sh',
    })
    expect(body.metadata_file).toBe(metadata_file)
  })

  it('replaces files, whose rights stay', async () => {
    const file_path = `${name}.sh`
    const action = await make({
      runner_type: 'local-shell-script',
      entry_point: file_path,
      data_files: [{ file_path, content: '#!/bin/sh\necho one\n' }],
    })
    const { status } = await put(action.ref, {
      ...action,
      data_files: [{ file_path, content: 'echo two\n' }],
    })
    expect(status).toBe(200)
    expect(read(`actions/${file_path}`)).toBe('echo two\n')
    expect(statSync(inPack(`actions/${file_path}`)).mode & 0o111).toBe(0o111)
    expect(listing().filter((path) => path.includes('.svc-'))).toEqual([])
  })

  it('gives another name, unless that is taken', async () => {
    const action = await make()
    const { status, body } = await put(action.ref, { name: `${name}_renamed` })
    expect([status, body.id, body.ref]).toEqual([200, action.id, `web.${name}_renamed`])
    expect((await get(action.ref)).status).toBe(404)
    const taken = await put(body.ref, { name: 'shared' })
    expect([taken.status, taken.body.code]).toEqual([409, 'NAME_TAKEN'])
  })

  it('refuses what POST refuses, what is not there, and the pack core', async () => {
    const { ref } = await make()
    expect((await put(ref, { runner_type: 'unheard-of' })).status).toBe(400)
    expect((await put(ref, { pack: 'core' })).body.code).toBe('PACK_PROTECTED')
    expect((await put('core.noop', {})).body.code).toBe('PACK_PROTECTED')
    for (const id of [unknownId, 'web.unheard_of']) expect((await put(id, {})).status).toBe(404)
  })
})

describe('02.2 DELETE /actions/{ref_or_id}', () => {
  it('deletes the record, and its files only when asked to', async () => {
    const file_path = `${name}.sh`
    const metadata = `actions/${name}.yaml`
    const files = {
      runner_type: 'local-shell-script',
      entry_point: file_path,
      metadata_file: metadata,
      data_files: [
        { file_path, content: '#!/bin/sh\n' },
        { file_path: metadata, content: `name: ${name}\nrunner_type: local-shell-script\nentry_point: ${file_path}\n` },
      ],
    }
    const first = await make(files)
    expect((await remove(first.ref)).status).toBe(204)
    expect((await get(first.ref)).status).toBe(404)
    expect(existsSync(inPack(metadata))).toBe(true)
    const second = await make(files)
    expect((await remove(second.id, { remove_files: true })).status).toBe(204)
    expect([existsSync(inPack(metadata)), existsSync(inPack(`actions/${file_path}`))]).toEqual([false, false])
    expect(listing().filter((path) => path.includes(name) || path.includes('.svc-'))).toEqual([])
    await waitFor('the audit record', () =>
      auditRecords(server, 'action.deleted').some((record) => record['_action_id'] === second.id),
    )
  })

  it('does not mind files that are gone already, and leaves those that other actions need', async () => {
    const action = await make({
      runner_type: 'local-shell-script',
      entry_point: 'shared.sh',
      metadata_file: 'gone.yaml',
    })
    expect((await remove(action.ref, { remove_files: true })).status).toBe(204)
    expect(read('actions/shared.sh')).toContain('echo shared')
  })

  it('leaves the file of another action, however its path is written', async () => {
    for (const entry_point of ['./shared.sh', './/./shared.sh']) {
      await make({ runner_type: 'local-shell-script', entry_point })
      expect((await remove(`web.${name}`, { remove_files: true })).status).toBe(204)
      expect([entry_point, existsSync(inPack('actions/shared.sh'))]).toEqual([entry_point, true])
    }
  })

  it('leaves what an entry point names elsewhere in the pack, which runs', async () => {
    writePack(pack, { 'lib/elsewhere.sh': '#!/bin/sh\necho elsewhere\n' })
    const { ref } = await make({ runner_type: 'local-shell-script', entry_point: 'sub/../../lib/elsewhere.sh' })
    expect((await server.call('GET', `/v1/actions/views/entry_point/${ref}`)).text).toContain('echo elsewhere')
    const { body } = await server.call<ExecutionAnswer>('POST', '/v1/executions', { action: ref })
    expect(await waitForStatus(server, body.id)).toMatchObject({ result: { stdout: 'elsewhere' } })
    expect((await remove(ref, { remove_files: true })).status).toBe(204)
    expect(read('lib/elsewhere.sh')).toContain('echo elsewhere')
  })

  it('deletes a link itself, and nothing that it leads to', async () => {
    const outside = join(folder.path, 'precious.sh')
    writeFileSync(outside, 'precious')
    symlinkSync(outside, inPack(`actions/${name}.sh`))
    expect(readlinkSync(inPack(`actions/${name}.sh`))).toBe(outside)
    const action = await make({ runner_type: 'local-shell-script', entry_point: `${name}.sh` })
    expect((await remove(action.ref, { remove_files: true })).status).toBe(204)
    expect(readFileSync(outside, 'utf8')).toBe('precious')
  })

  it('refuses the pack core, what is not there, and a body with more in it', async () => {
    expect((await remove('core.noop', { remove_files: true })).body.code).toBe('PACK_PROTECTED')
    expect((await remove('web.unheard_of')).status).toBe(404)
    const { ref } = await make()
    for (const body of [{ more: 1 }, { remove_files: 'yes' }]) expect((await remove(ref, body)).status).toBe(400)
    expect((await get(ref)).status).toBe(200)
  })

  it('puts the record back when a file cannot be deleted', async () => {
    const action = await make({
      runner_type: 'local-shell-script',
      entry_point: `${name}.sh`,
      metadata_file: `${name}/in-the-way.yaml`,
      data_files: [{ file_path: `${name}.sh`, content: '#!/bin/sh\n' }],
    })
    // What is to be a file is a folder.
    mkdirSync(inPack(`actions/${name}/in-the-way.yaml`), { recursive: true })
    const { status } = await remove(action.ref, { remove_files: true })
    expect(status).toBe(400)
    expect((await get(action.ref)).body).toEqual(action)
    expect(read(`actions/${name}.sh`)).toBe('#!/bin/sh\n')
    expect(listing().filter((path) => path.includes('.svc-'))).toEqual([])
  })
})

it('02.2 files that the account of the server may not change: 403 with the file, and nothing is changed', async () => {
  const own = makeFolder()
  const NOBODY = 65_534
  const actions = join(own.path, 'packs', 'locked', 'actions')
  writePack(join(own.path, 'packs', 'locked'), {
    'pack.yaml': manifest('locked'),
    'actions/one.yaml': 'name: one\nrunner_type: local-shell-script\nentry_point: one.sh\n',
    'actions/one.sh': '#!/bin/sh\n',
  })
  chownSync(own.path, NOBODY, NOBODY)
  const locked = await startServer({
    basePath: own.path,
    through: (command) => ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', ...command],
  })
  try {
    const before = (await locked.call('GET', '/v1/actions/locked.one')).body
    const refused = await locked.call<ErrorAnswer>('DELETE', '/v1/actions/locked.one', { remove_files: true })
    expect([refused.status, refused.body.code]).toEqual([403, 'PACK_FILE_DENIED'])
    expect(refused.body.faultstring).toMatch(/^No permission to delete "actions\/one\.(yaml|sh)" file from disk/)
    expect((await locked.call('GET', '/v1/actions/locked.one')).body).toEqual(before)
    const denied = await locked.call<ErrorAnswer>('POST', '/v1/actions', {
      name: 'two',
      pack: 'locked',
      runner_type: 'noop',
      data_files: [{ file_path: 'two.sh', content: 'x' }],
    })
    expect([denied.status, denied.body.code]).toEqual([403, 'PACK_FILE_DENIED'])
    expect((await locked.call('GET', '/v1/actions/locked.two')).status).toBe(404)
    expect(readdirSync(actions).toSorted()).toEqual(['one.sh', 'one.yaml'])
  } finally {
    await locked.stop()
    own.remove()
  }
})

it('2.8 registering a pack with the same content again changes nothing', async () => {
  const metadata = `actions/${name}.yaml`
  const action = await make({
    metadata_file: metadata,
    data_files: [{ file_path: metadata, content: `name: ${name}\nrunner_type: noop\n` }],
  })
  const { status } = await server.call('POST', '/v1/packs/register', { packs: ['web'] })
  expect(status).toBe(200)
  expect((await get(action.ref)).body).toEqual(action)
})

describe('11.4 rights on actions and their files', () => {
  const own = makeFolder()
  let place: TestApp
  const keys = new Map<string, Record<string, string>>()

  beforeAll(async () => {
    const rbac = createRbacFiles(own.path)
    rbac.assign('admin', 'system_admin')
    rbac.define('one', [{ types: ['action_all'], on: 'action:web:one' }])
    rbac.define('whole', [{ types: ['action_all'], on: 'pack:web' }])
    writePack(join(own.path, 'packs', 'web'), {
      'pack.yaml': manifest('web'),
      'actions/other.yaml': 'name: other\nrunner_type: local-shell-script\nentry_point: other.sh\n',
      'actions/other.sh': '#!/bin/sh\necho other\n',
      'actions/lib/helper.py': 'pass\n',
      'secret.txt': 'of the pack\n',
    })
    place = await createTestApp({
      basePath: own.path,
      settings: { 'auth.enable': 'True', 'rbac.enable': 'True', 'rbac.backend': 'default' },
    })
    const admin = await signIn(place, 'admin', firstPassword(own.path))
    const { status, text } = await place.call('POST', '/v1/packs/register', { packs: ['web'] }, admin)
    if (status !== 200) throw new Error(text)
    for (const user of ['one', 'whole']) {
      const { body } = await place.call<{ key: string }>('POST', '/v1/apikeys', { user }, admin)
      keys.set(user, { 'Svc-Api-Key': body.key })
    }
  })
  afterAll(async () => {
    await place.stop()
    own.remove()
  })

  const as = (user: string, method: string, path: string, body?: unknown) =>
    place.call<ErrorAnswer>(method, `/v1/actions${path}`, body, keys.get(user))
  const action = (file_path: string, entry_point = 'one.sh') => ({
    name: 'one',
    pack: 'web',
    runner_type: 'local-shell-script',
    entry_point,
    data_files: [{ file_path, content: '#!/bin/sh\necho one\n' }],
  })

  it('who may change one action writes its entry point, and no file that others may use', async () => {
    for (const [path, entryPoint] of [
      ['other.sh'],
      ['other.sh', 'other.sh'],
      ['other.yaml'],
      ['lib/helper.py'],
      ['new.yaml'],
    ] as const) {
      const { status, body } = await as('one', 'POST', '', action(path, entryPoint))
      expect([path, status, body.code]).toEqual([path, 403, 'PERMISSION_DENIED'])
    }
    expect(readFileSync(join(own.path, 'packs/web/actions/other.sh'), 'utf8')).toContain('echo other')
    // Nor does it become one that goes with the action.
    const { data_files: _, ...without } = action('one.sh')
    for (const claim of [
      { metadata_file: 'lib/helper.py' },
      { entry_point: 'lib/helper.py' },
      { entry_point: './lib/helper.py' },
      { entry_point: '../secret.txt' },
      action('lib/helper.py', 'lib/helper.py'),
    ]) {
      const { status, body } = await as('one', 'POST', '', { ...without, ...claim })
      expect([claim, status, body.code]).toEqual([claim, 403, 'PERMISSION_DENIED'])
    }
    expect(readFileSync(join(own.path, 'packs/web/actions/lib/helper.py'), 'utf8')).toBe('pass\n')
    expect((await as('one', 'POST', '', action('one.sh'))).status).toBe(201)
    expect((await as('one', 'PUT', '/web.one', action('one.sh'))).status).toBe(200)
    expect((await as('one', 'PUT', '/web.one', { ...without, entry_point: 'lib/helper.py' })).status).toBe(403)
    expect((await as('one', 'PUT', '/web.one', action('other.sh'))).status).toBe(403)
    expect((await as('one', 'PUT', '/web.one', { ...action('one.sh'), name: 'three' })).status).toBe(403)
    expect((await as('whole', 'PUT', '/web.one', action('lib/helper.py'))).status).toBe(200)
    expect((await as('one', 'DELETE', '/web.other', {})).status).toBe(403)
    expect((await as('one', 'DELETE', '/web.one', { remove_files: true })).status).toBe(204)
  })
})
