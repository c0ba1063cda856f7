import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { TextSink } from '../../../tests/helpers/text-sink.ts'
import type { Database } from '../../db/database.ts'
import { createTemplateThread } from '../../core/rendering/index.ts'
import { openSqlite } from '../../db/sqlite/open.ts'
import { allRights } from '../../http/authenticate.ts'
import { readQuery } from '../../http/query.ts'
import { JsonText } from '../../http/list.ts'
import { Reply, type JsonRoute } from '../../http/route.ts'
import type { RunnerTypeDefinition } from '../../runners/runner.ts'
import { createLog } from '../../lib/log/log.ts'
import { compileSchema } from '../../lib/schema/index.ts'
import { createActions, type Actions } from './index.ts'

const shell: RunnerTypeDefinition = {
  name: 'local-shell-cmd',
  description: 'Runs a command.',
  enabled: true,
  runner_package: 'local_runner',
  runner_module: 'local_runner',
  runner_parameters: { cmd: { type: 'string' }, sudo: { type: 'boolean', default: false } },
}
const noop: RunnerTypeDefinition = { ...shell, name: 'noop', runner_parameters: {} }

let folder: string
let database: Database
let actions: Actions
const templateThread = createTemplateThread()
afterAll(() => templateThread.stop())
const log = createLog({ level: 'CRITICAL', format: 'text', stream: new TextSink() })

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-actions-'))
  await open()
  await actions.registerRunnerTypes([shell, noop])
})

afterEach(async () => {
  await database.close()
  rmSync(folder, { recursive: true })
})

async function open(): Promise<void> {
  database = await openSqlite({ path: join(folder, 'svc.db'), synchronous: 'normal', announce: () => undefined })
  actions = createActions({
    database,
    log,
    templateThread,
    planEvent: () => undefined,
    maxPageSize: 2,
  })
}

async function reopen(): Promise<void> {
  await database.close()
  await open()
}

/** File name → definition. */
async function register(files: Record<string, unknown>, others: string[] = [], pack = 'mine') {
  return actions.registerActions({
    pack,
    definitions: Object.entries(files).map(([metadataFile, definition]) => ({ metadataFile, definition })),
    metadataFiles: new Set([...Object.keys(files), ...others]),
  })
}

const one = { name: 'one', runner_type: 'local-shell-cmd', parameters: { cmd: { required: true } } }
const two = { name: 'two', runner_type: 'noop', tags: [{ name: 'team', value: 'x' }] }

test('a file that came while the others were read keeps its action', async () => {
  await register({ 'actions/one.yaml': one, 'actions/two.yaml': two })
  const pack = join(folder, 'mine')
  mkdirSync(join(pack, 'actions'), { recursive: true })
  writeFileSync(join(pack, 'actions/two.yaml'), JSON.stringify(two))
  const before = actions.find('mine.two')
  const content = {
    pack: 'mine',
    folder: pack,
    definitions: [{ metadataFile: 'actions/one.yaml', definition: one }],
    metadataFiles: new Set(['actions/one.yaml']),
  }
  expect(await actions.registerActions(content)).toMatchObject({ registered: 1, removed: 0 })
  expect(actions.find('mine.two')).toEqual(before)
  rmSync(join(pack, 'actions/two.yaml'))
  expect(await actions.registerActions(content)).toMatchObject({ registered: 1, removed: 1 })
  expect(actions.find('mine.two')).toBeUndefined()
})

describe('registering the same again after a restart', () => {
  beforeEach(async () => {
    await register({ 'actions/one.yaml': one })
    await reopen()
  })

  test('keeps the record as it is', async () => {
    const before = actions.find('mine.one')
    await actions.registerRunnerTypes([shell, noop])
    expect(await register({ 'actions/one.yaml': one })).toEqual({ registered: 1, removed: 0, problems: [] })
    expect(actions.find('mine.one')).toEqual(before)
  })

  test('checks a definition that has something more', async () => {
    await actions.registerRunnerTypes([shell, noop])
    const { problems } = await register({ 'actions/one.yaml': { ...one, colour: 'red' } })
    expect(problems.map(({ message }) => message).join()).toContain('colour')
  })

  test('checks it when its runner has changed', async () => {
    const changed = {
      cmd: { type: 'string' as const },
      sudo: { type: 'boolean' as const, immutable: true, default: false },
    }
    await register({ 'actions/one.yaml': { ...one, parameters: { sudo: { immutable: true } } } })
    await reopen()
    await actions.registerRunnerTypes([{ ...shell, runner_parameters: changed }, noop])
    const { problems } = await register({ 'actions/one.yaml': { ...one, parameters: { sudo: { immutable: true } } } })
    expect(problems.map(({ message }) => message).join()).toContain('sudo')
  })
})

describe('registering actions', () => {
  test('makes records that are found by ref and by id', async () => {
    expect(await register({ 'actions/one.yaml': one })).toEqual({ registered: 1, removed: 0, problems: [] })
    const record = actions.find('mine.one')
    expect(record).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{24}$/) as unknown,
      uid: 'action:mine:one',
      ref: 'mine.one',
      name: 'one',
      pack: 'mine',
      description: '',
      enabled: true,
      runner_type: 'local-shell-cmd',
      entry_point: '',
      parameters: { cmd: { required: true } },
      output_schema: {},
      tags: [],
      notify: {},
      metadata_file: 'actions/one.yaml',
    })
    expect(actions.find(record?.id ?? '')).toEqual(record)
    expect(actions.find('mine.nothing')).toBeUndefined()
    expect(actions.find('000000000000000000000000')).toBeUndefined()
  })

  test('again keeps ids and takes changes over, also after a restart', async () => {
    await register({ 'actions/one.yaml': one, 'actions/two.yaml': two })
    const before = actions.find('mine.one')
    await reopen()
    await register({ 'actions/one.yaml': { ...one, description: 'new' }, 'actions/two.yaml': two })
    expect(actions.find('mine.one')).toEqual({ ...before, description: 'new' })
  })

  test('a missing file takes its action along, a broken one does not', async () => {
    await register({ 'actions/one.yaml': one, 'actions/two.yaml': two })
    await register({ 'actions/other.yaml': one }, [], 'other')
    expect(await register({}, ['actions/one.yaml'])).toEqual({ registered: 0, removed: 1, problems: [] })
    expect(actions.find('mine.one')).toBeDefined()
    expect(actions.find('mine.two')).toBeUndefined()
    expect(actions.find('other.one')).toBeDefined()
  })

  test('a new name in the same file replaces the old action', async () => {
    await register({ 'actions/one.yaml': one })
    expect(await register({ 'actions/one.yaml': { ...one, name: 'renamed' } })).toMatchObject({
      registered: 1,
      removed: 1,
    })
    expect(actions.find('mine.one')).toBeUndefined()
    expect(actions.find('mine.renamed')).toBeDefined()
  })

  test('a moved action keeps its id', async () => {
    await register({ 'actions/one.yaml': one })
    const id = actions.find('mine.one')?.id
    expect(await register({ 'actions/moved.yaml': one })).toMatchObject({ registered: 1, removed: 0 })
    expect(actions.find('mine.one')).toMatchObject({ id, metadata_file: 'actions/moved.yaml' })
  })

  test('problems name file and place, and do not keep the others out', async () => {
    const result = await register({
      'actions/a.yaml': one,
      'actions/b.yaml': { ...one, description: 'again' },
      'actions/c.yaml': { ...two, pack: 'other' },
      'actions/d.yaml': { ...two, runner_type: 'nothing' },
      'actions/e.yaml': null,
    })
    expect(result).toEqual({
      registered: 1,
      removed: 0,
      problems: [
        {
          metadataFile: 'actions/b.yaml',
          path: ['name'],
          message: 'Action "mine.one" is defined in actions/a.yaml as well; this file counts.',
          isWarning: true,
        },
        {
          metadataFile: 'actions/c.yaml',
          path: ['pack'],
          message: 'The action says pack "other" but belongs to pack "mine".',
        },
        { metadataFile: 'actions/d.yaml', path: ['runner_type'], message: 'RunnerType nothing is not found' },
        { metadataFile: 'actions/e.yaml', path: [], message: `None is not of type 'object'` },
      ],
    })
  })
})

describe('registering runner types', () => {
  test('again keeps ids and what an administrator switched off', async () => {
    const { id } = await actions.setRunnerTypeEnabled('noop', false)
    expect(actions.findRunnerType('noop')).toMatchObject({ id, uid: 'runner_type:noop', enabled: false })
    await reopen()
    await actions.registerRunnerTypes([shell, { ...noop, description: 'new' }])
    expect(actions.findRunnerType(id)).toMatchObject({ id, name: 'noop', description: 'new', enabled: false })
    expect(actions.findRunnerType('local-shell-cmd')).toMatchObject({ enabled: true })
  })
})

describe('resolving with records', () => {
  test('render, check, effective, mask', async () => {
    await actions.registerRunnerTypes([
      { ...shell, runner_parameters: { ...shell.runner_parameters, password: { type: 'string', secret: true } } },
    ])
    await register({ 'actions/one.yaml': one })
    const action = actions.find('mine.one')
    const runner = actions.findRunnerType('local-shell-cmd')
    if (action === undefined || runner === undefined) throw new Error('not registered')

    const supplied = { cmd: 'echo {{ action_context.user }}', password: 'hunter2' }
    const turn = { caller: 'ada', isRequest: true }
    const scope = { variables: { action_context: { user: 'ada' } } }
    const rendered = await actions.render(action, runner, supplied, scope, turn)
    expect(rendered).toEqual({ cmd: 'echo ada', password: 'hunter2' })
    actions.check(action, runner, rendered, supplied)
    expect(() => actions.check(action, runner, {}, {})).toThrow(`'cmd' is a required property`)
    expect(await actions.effective(action, runner, rendered, { variables: {} }, turn)).toEqual({
      runnerParameters: { cmd: 'echo ada', sudo: false, password: 'hunter2' },
      actionParameters: {},
    })
    expect(actions.mask(action, runner, rendered)).toEqual({ cmd: 'echo ada', password: '********' })
  })

  test('entry points lie in the folder of the pack', async () => {
    await register({ 'actions/s.yaml': { ...two, entry_point: 'lib/s.sh' }, 'actions/one.yaml': one })
    const script = actions.find('mine.two')
    const command = actions.find('mine.one')
    if (script === undefined || command === undefined) throw new Error('not registered')
    expect(actions.entryPointOf(command)).toBe('')
    expect(() => actions.entryPointOf(script)).toThrow('The pack "mine" has no folder on this server.')
    actions.usePackFolder('mine', join(folder, 'mine'))
    expect(actions.entryPointOf(script)).toBe(join(folder, 'mine/actions/lib/s.sh'))
  })
})

interface Answer {
  body: unknown
  headers: Record<string, string>
}

const caller = { isAdmin: true }

async function textOf(pieces: AsyncIterable<string>): Promise<string> {
  const all: string[] = []
  for await (const piece of pieces) all.push(piece)
  return all.join('')
}

async function call(
  method: string,
  path: string,
  more: { params?: Record<string, string>; query?: string; body?: unknown; isAdmin?: boolean } = {},
): Promise<Answer> {
  const route = actions.routes?.find((candidate) => candidate.method === method && candidate.path === path)
  if (route === undefined || route.kind === 'stream') throw new Error(`no route ${method} ${path}`)
  const answer: unknown = await route.handler({
    principal: { user: 'ada', isAdmin: more.isAdmin ?? caller.isAdmin, method: 'none' },
    rights: allRights,
    params: more.params ?? {},
    query: readQuery(route.query ?? {}, new URLSearchParams(more.query ?? '')),
    body: more.body,
    headers: {},
    requestId: 'r',
    remoteAddress: '',
    isSecure: false,
    onClose: () => () => undefined,
  })
  const reply = answer instanceof Reply ? answer : new Reply(answer)
  // A list is written already.
  const isWritten = reply.body instanceof JsonText
  const body: unknown = reply.body instanceof JsonText ? JSON.parse(await textOf(reply.body)) : reply.body
  expect(compileSchema((route as JsonRoute).response)(body)).toBeUndefined()
  const { 'Content-Type': _json, ...headers } = reply.headers
  return { body, headers: isWritten ? headers : reply.headers }
}

function refs(body: unknown): unknown {
  return Array.isArray(body) ? body.map((record: { ref?: string; name?: string }) => record.ref ?? record.name) : body
}

describe('lists of actions', () => {
  beforeEach(async () => {
    await register({ 'actions/two.yaml': two, 'actions/one.yaml': one })
    await register({ 'actions/one.yaml': { ...one, name: 'zero' } }, [], 'another')
  })

  test.each<[string, string[], Record<string, string>]>([
    ['', ['another.zero', 'mine.one', 'mine.two'], { 'X-Total-Count': '3' }],
    ['pack=mine', ['mine.one', 'mine.two'], { 'X-Total-Count': '2' }],
    ['name=one', ['mine.one'], { 'X-Total-Count': '1' }],
    ['tags=team', ['mine.two'], { 'X-Total-Count': '1' }],
    ['tags=x', [], { 'X-Total-Count': '0' }],
    ['limit=1&offset=1', ['mine.one'], { 'X-Total-Count': '3', 'X-Limit': '1' }],
    ['offset=2', ['mine.two'], { 'X-Total-Count': '3' }],
    ['limit=1&tags=team', ['mine.two'], { 'X-Total-Count': '1', 'X-Limit': '1' }],
    ['limit=-1', ['another.zero', 'mine.one', 'mine.two'], { 'X-Total-Count': '3' }],
    ['id=nothing', [], { 'X-Total-Count': '0' }],
    ["pack=' or 1=1 --", [], { 'X-Total-Count': '0' }],
  ])('?%s', async (query, found, headers) => {
    const answer = await call('get', '/actions', { query })
    expect(refs(answer.body)).toEqual(found)
    expect(answer.headers).toEqual(headers)
  })

  test('by ids', async () => {
    const ids = [actions.find('mine.one')?.id, actions.find('another.zero')?.id].join(',')
    expect(refs((await call('get', '/actions', { query: `id=${ids}` })).body)).toEqual(['another.zero', 'mine.one'])
  })

  test('attributes', async () => {
    const included = await call('get', '/actions', { query: 'pack=another&include_attributes=enabled' })
    expect(Object.keys((included.body as object[])[0] ?? {})).toEqual(['id', 'ref', 'pack', 'name', 'enabled'])
    const excluded = await call('get', '/actions', { query: 'pack=another&exclude_attributes=parameters,notify' })
    expect((excluded.body as object[])[0]).not.toHaveProperty('parameters')
    await expect(call('get', '/actions', { query: 'exclude_attributes=tags' })).rejects.toThrow(
      'exclude attribute specified: tags',
    )
  })

  test('limits are held for everybody but administrators', async () => {
    await expect(call('get', '/actions', { query: 'limit=3', isAdmin: false })).rejects.toThrow('maximum value is "2"')
    expect((await call('get', '/actions', { isAdmin: false })).headers).toEqual({ 'X-Total-Count': '3' })
  })

  test('the overview merges the parameters of the runner in', async () => {
    const { body } = await call('get', '/actions/views/overview', { query: 'name=one' })
    expect(body).toMatchObject([{ ref: 'mine.one', parameters: { cmd: { type: 'string', required: true }, sudo: {} } }])
    const single = await call('get', '/actions/views/overview/:ref_or_id', { params: { ref_or_id: 'mine.one' } })
    expect(single.body).toEqual((body as unknown[])[0])
    const { id } = single.body as { id: string }
    expect((await call('get', '/actions/views/parameters/:id', { params: { id } })).body).toEqual({
      parameters: { cmd: { type: 'string', required: true }, sudo: { type: 'boolean', default: false } },
    })
  })
})

describe('one action', () => {
  test('by ref and id, or 404', async () => {
    await register({ 'actions/one.yaml': one })
    const { body } = await call('get', '/actions/:ref_or_id', { params: { ref_or_id: 'mine.one' } })
    const { id } = body as { id: string }
    expect((await call('get', '/actions/:ref_or_id', { params: { ref_or_id: id } })).body).toEqual(body)
    await expect(call('get', '/actions/:ref_or_id', { params: { ref_or_id: '../one' } })).rejects.toMatchObject({
      kind: 'not_found',
      message: 'Resource with a reference or id "../one" not found',
    })
  })

  test('its entry point is shown as text of its kind', async () => {
    await register({
      'actions/py.yaml': { ...two, name: 'py', entry_point: 'lib/run.py' },
      'actions/sh.yaml': { ...two, name: 'sh', entry_point: 'run.sh' },
      'actions/gone.yaml': { ...two, name: 'gone', entry_point: 'gone.sh' },
      'actions/one.yaml': one,
    })
    mkdirSync(join(folder, 'mine/actions/lib'), { recursive: true })
    writeFileSync(join(folder, 'mine/actions/lib/run.py'), 'print("é")\n')
    writeFileSync(join(folder, 'mine/actions/run.sh'), 'true\n')
    const show = (ref: string) => call('get', '/actions/views/entry_point/:ref_or_id', { params: { ref_or_id: ref } })
    await expect(show('mine.py')).rejects.toMatchObject({ kind: 'not_found' })
    actions.usePackFolder('mine', join(folder, 'mine'))
    expect(await show('mine.py')).toEqual({
      body: 'print("é")\n',
      headers: { 'Content-Type': 'text/x-python; charset=UTF-8' },
    })
    expect((await show('mine.sh')).headers).toEqual({ 'Content-Type': 'text/plain; charset=UTF-8' })
    await expect(show('mine.gone')).rejects.toMatchObject({
      kind: 'not_found',
      message: expect.stringContaining('its file is missing') as unknown,
    })
    await expect(show('mine.one')).rejects.toMatchObject({
      kind: 'not_found',
      message: expect.stringContaining('its runner needs none') as unknown,
    })
  })
})

describe('runner types', () => {
  test.each<[string, string[], Record<string, string>]>([
    ['', ['local-shell-cmd', 'noop'], { 'X-Total-Count': '2', 'X-Limit': '100' }],
    ['name=noop', ['noop'], { 'X-Total-Count': '1', 'X-Limit': '100' }],
    ['name=noop,local-shell-cmd,x', ['local-shell-cmd', 'noop'], { 'X-Total-Count': '2', 'X-Limit': '100' }],
    ['limit=1&offset=1', ['noop'], { 'X-Total-Count': '2', 'X-Limit': '1' }],
  ])('?%s', async (query, names, headers) => {
    const answer = await call('get', '/runnertypes', { query })
    expect(refs(answer.body)).toEqual(names)
    expect(answer.headers).toEqual(headers)
  })

  test('one by name and id, or 404', async () => {
    const { body } = await call('get', '/runnertypes/:name_or_id', { params: { name_or_id: 'noop' } })
    expect(body).toMatchObject({ uid: 'runner_type:noop', runner_module: 'local_runner', runner_parameters: {} })
    const { id } = body as { id: string }
    expect((await call('get', '/runnertypes/:name_or_id', { params: { name_or_id: id } })).body).toEqual(body)
    await expect(call('get', '/runnertypes/:name_or_id', { params: { name_or_id: 'x' } })).rejects.toThrow(
      'Resource with a name or id "x" not found',
    )
  })

  test('only `enabled` is taken from the body', async () => {
    const body = { enabled: false, description: 'changed', name: 'other' }
    const answer = await call('put', '/runnertypes/:name_or_id', { params: { name_or_id: 'noop' }, body })
    expect(answer.body).toMatchObject({ name: 'noop', description: 'Runs a command.', enabled: false })
    expect(actions.findRunnerType('noop')).toEqual(answer.body)
    await expect(call('put', '/runnertypes/:name_or_id', { params: { name_or_id: 'x' }, body })).rejects.toMatchObject({
      kind: 'not_found',
    })
  })
})
