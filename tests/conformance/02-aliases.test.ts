/** Contract 02, 2.13: aliases of actions, and the executions that chat commands ask for. */
import { load } from 'js-yaml'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp, withApp } from '../helpers/app.ts'
import { docBlock } from '../helpers/doc-blocks.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { firstPassword } from '../helpers/logins.ts'
import { createRbacFiles } from '../helpers/rbac.ts'
import { waitForStatus, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'
import { openEvents } from '../helpers/sse.ts'
import { waitFor } from '../helpers/wait.ts'
import { idPattern, unknownId, type ErrorAnswer } from './support.ts'

interface Alias {
  id: string
  ref: string
  formats: unknown[]
  [attribute: string]: unknown
}

interface AliasExecution {
  execution: ExecutionAnswer & { parameters: Record<string, unknown>; context: Record<string, unknown> }
  actionalias: Alias
  message?: string
  extra?: unknown
}

let server: TestApp
beforeAll(async () => {
  server = await createTestApp()
})
afterAll(async () => {
  await server.stop()
})

const call = <T = Alias>(method: string, path: string, body?: unknown) => server.call<T>(method, `/v1${path}`, body)

async function make(name: string, more: Record<string, unknown> = {}): Promise<Alias> {
  const body = { name, pack: 'chat', action_ref: 'core.echo', formats: [`${name} {{ message }}`], ...more }
  const answer = await call('POST', '/actionalias', body)
  expect([answer.text, answer.status]).toEqual([answer.text, 201])
  return answer.body
}

const caller = { user: 'ann', source_channel: 'ops' }

async function say(command: string, more: Record<string, unknown> = {}): Promise<AliasExecution[]> {
  const body = { command, ...caller, ...more }
  const answer = await call<{ results: AliasExecution[] }>('POST', '/aliasexecution/match_and_execute', body)
  expect([answer.text, answer.status]).toEqual([answer.text, 201])
  return answer.body.results
}

async function sayOne(command: string, more: Record<string, unknown> = {}): Promise<AliasExecution> {
  const [first, ...others] = await say(command, more)
  expect(others).toEqual([])
  return first as AliasExecution // `say` has seen an answer
}

async function refusal(path: string, body: unknown): Promise<[status: number, text: string]> {
  const { status, body: answer } = await call<ErrorAnswer>('POST', path, body)
  return [status, answer.faultstring]
}

describe('2.13 the records', () => {
  const definition = {
    name: 'crud',
    pack: 'records',
    description: 'd',
    action_ref: 'records.later',
    formats: ['crud {{ a }}', { display: 'crud it', representation: ['crudding', 'cruddy'], match_multiple: false }],
    ack: { format: 'ok', append_url: false },
    result: { enabled: false },
    extra: { key: 'value' },
    immutable_parameters: { b: 1 },
  }

  it('can be created, replaced and deleted, and tell of it', async () => {
    const events = await openEvents(`${server.urls.stream}/v1/stream?events=svc.actionalias__*`)
    const others = await openEvents(`${server.urls.stream}/v1/stream`)
    await waitFor('both streams', () => events.raw() !== '' && others.raw() !== '')
    const created = await call('POST', '/actionalias', definition)
    expect([created.status, created.body]).toEqual([
      201,
      {
        id: expect.stringMatching(idPattern) as string,
        uid: 'action_alias:records:crud',
        ref: 'records.crud',
        enabled: true,
        ...definition,
      },
    ])
    const again = await call<ErrorAnswer & { 'conflict-id': string }>('POST', '/actionalias', definition)
    expect([again.status, again.body['conflict-id']]).toEqual([409, created.body.id])
    expect((await call('GET', '/actionalias/records.crud')).body).toEqual(created.body)
    expect((await call('GET', `/actionalias/${created.body.id}`)).body).toEqual(created.body)

    const changed = { ...created.body, enabled: false, description: 'other', ack: null }
    const updated = await call('PUT', `/actionalias/${created.body.id}`, changed)
    expect([updated.status, updated.body]).toEqual([200, { ...changed, ack: {} }])
    const renamed = await call('PUT', '/actionalias/records.crud', { ...definition, name: 'crud2', id: unknownId })
    expect(renamed.body).toMatchObject({ id: created.body.id, ref: 'records.crud2', uid: 'action_alias:records:crud2' })

    const gone = await call('DELETE', '/actionalias/records.crud2')
    expect([gone.status, gone.text]).toEqual([204, ''])
    expect((await call('GET', '/actionalias/records.crud2')).status).toBe(404)
    expect((await call('DELETE', '/actionalias/records.crud2')).status).toBe(404)
    expect((await call('PUT', '/actionalias/records.crud2', definition)).status).toBe(404)

    await waitFor('four events', () => events.frames.length === 4)
    expect(events.frames.map(({ event, data }) => [event, (JSON.parse(data) as Alias).ref])).toEqual([
      ['svc.actionalias__create', 'records.crud'],
      ['svc.actionalias__update', 'records.crud'],
      ['svc.actionalias__update', 'records.crud2'],
      ['svc.actionalias__delete', 'records.crud2'],
    ])
    expect(others.frames).toEqual([])
    for (const client of [events, others]) client.close()
  })

  it('without a pack go to the default one; a name that another has is a conflict', async () => {
    const first = await call('POST', '/actionalias', { name: 'one', action_ref: 'core.noop', formats: ['one more'] })
    expect(first.body.ref).toBe('default.one')
    await call('POST', '/actionalias', { name: 'two', action_ref: 'core.noop', formats: ['two more'] })
    const taken = await call('PUT', '/actionalias/default.two', {
      name: 'one',
      action_ref: 'core.noop',
      formats: ['x'],
    })
    expect(taken.status).toBe(409)
    for (const name of ['one', 'two']) await call('DELETE', `/actionalias/default.${name}`)
  })

  it.each<[what: string, change: Record<string, unknown>, says: RegExp]>([
    ['an unknown attribute', { colour: 'red' }, /'colour' was unexpected/],
    ['a format that is no text', { formats: [1] }, /formats/],
    ['a format with an open brace', { formats: ['do {{ it'] }, /formats\[0\]: .*without }}/],
    [
      'a format that is no regular expression',
      { formats: ['do (it'] },
      /formats\[0\]: .*regular expression is invalid/,
    ],
    ['a format that could take for ever', { formats: [String.raw`(a)\1`] }, /linear time/],
    ['no name', { name: undefined }, /'name' is a required property/],
    ['no action', { action_ref: undefined }, /'action_ref' is a required property/],
    ['an action without a pack', { action_ref: 'echo' }, /action_ref/],
    ['a strange pack', { pack: 'Über' }, /pack/],
    ['the pack of the system', { pack: 'core' }, /core/],
    ['an unknown key of ack', { ack: { shown: true } }, /shown/],
  ])('are refused with %s', async (_, change, says) => {
    const { status, body } = await call<ErrorAnswer>('POST', '/actionalias', { ...definition, name: 'bad', ...change })
    expect([body.faultstring, status]).toEqual([expect.stringMatching(says), 400])
    expect((await call('GET', '/actionalias?name=bad')).body).toEqual([])
  })

  it('are taken as packs have them: without formats, with further keys of a format, and with blanks in the name', async () => {
    for (const change of [
      { formats: [] },
      { formats: [{ display: 'a', representation: ['odd a'], colour: 1 }] },
      { formats: [{ representation: ['odd a', 'odd b'] }] },
      { name: 'odd name' },
    ]) {
      const { status, body } = await call('POST', '/actionalias', { ...definition, name: 'odd', ...change })
      expect([status, body]).toEqual([201, expect.objectContaining(change)])
      await call('DELETE', `/actionalias/${body.id}`)
    }
  })
})

describe('2.13 the alias that a command fits', () => {
  const match = (command: string) => call<Record<string, unknown>>('POST', '/actionalias/match', { command })

  it('is found with its format', async () => {
    const formats = [
      'paint {{ message }}',
      { display: 'paint it in colour', representation: ['colour in {{ message }}', 'dye {{ message }}'] },
    ]
    const alias = await make('paint', { formats })
    expect((await match('paint it')).body).toEqual({
      actionalias: alias,
      display: 'paint {{ message }}',
      representation: 'paint {{ message }}',
    })
    expect((await match('dye it')).body).toMatchObject({
      display: 'paint it in colour',
      representation: 'dye {{ message }}',
    })
    expect((await match('  paint it loud=yes ')).status).toBe(200)
  })

  it('must be one, and enabled', async () => {
    await make('twice', { formats: ['twice {{ message }}', '(?:once|twice) {{ message }}'] })
    const off = await make('off', { enabled: false })
    expect(await refusal('/actionalias/match', { command: 'twice it' })).toEqual([
      400,
      'Command \'twice it\' matched more than 1 pattern: "twice {{ message }}" of chat.twice, "(?:once|twice) {{ message }}" of chat.twice.',
    ])
    expect((await match('once it')).status).toBe(200)
    for (const command of ['off it', 'nothing of the kind', '']) {
      expect(await refusal('/actionalias/match', { command })).toEqual([
        400,
        `Command '${command}' matched no patterns.`,
      ])
    }
    await call('PUT', `/actionalias/${off.id}`, { ...off, enabled: true })
    expect((await match('off it')).status).toBe(200)
    await call('DELETE', `/actionalias/${off.id}`)
    expect((await match('off it')).status).toBe(400)
  })

  it('is looked for among those for several places only when none fits as a whole', async () => {
    const formats = [{ display: 'issues', representation: ['(?P<message>QQ-[0-9]+)'], match_multiple: true }]
    await make('issues', { formats })
    await make('issue', { formats: ['QQ-1 please'] })
    expect((await match('QQ-1 please')).body).toMatchObject({ representation: 'QQ-1 please' })
    expect((await match('see QQ-1 and QQ-22')).body).toMatchObject({ display: 'issues' })
    const more = await make('issues2', { formats })
    expect(await refusal('/actionalias/match', { command: 'see QQ-1' })).toEqual([
      400,
      expect.stringMatching(/matched more than 1 \(multi\) pattern/),
    ])
    await call('DELETE', `/actionalias/${more.id}`)
  })

  it.each<[what: string, body: unknown]>([
    ['no command', {}],
    ['a command that is no text', { command: 1 }],
    ['a command that is too long', { command: 'x'.repeat(10_001) }],
    ['more than a command', { command: 'x', user: 'ann' }],
  ])('%s is refused', async (_, body) => {
    expect((await refusal('/actionalias/match', body))[0]).toBe(400)
  })
})

describe('2.13 help', () => {
  const help = async (query: string) =>
    (
      await call<{ available: number; helpstrings: { pack: string; display: string; description: string }[] }>(
        'GET',
        `/actionalias/help${query}`,
      )
    ).body

  it('lists the formats of enabled aliases, by pack, by a regular expression, page by page', async () => {
    const described = { pack: 'helping', description: 'Helps.' }
    const formats = [
      { representation: ['help me', 'support me'] },
      { display: 'help {{ somebody }}', representation: ['help {{ message }}', 'aid {{ message }}'] },
    ]
    await make('help', { ...described, formats })
    await make('silent', { ...described, formats: [{ display: '', representation: ['be silent'] }] })
    await make('disabled', { ...described, enabled: false })
    const [first, second] = ['help me', 'help {{ somebody }}'].map((display) => ({
      pack: 'helping',
      display,
      description: 'Helps.',
    }))
    expect(await help('?pack=helping')).toEqual({ available: 2, helpstrings: [first, second] })
    expect(await help('?pack=helping&filter=ME$')).toEqual({ available: 1, helpstrings: [first] })
    expect(await help('?pack=helping&limit=1&offset=1')).toEqual({ available: 2, helpstrings: [second] })
    expect(await help('?pack=nothing')).toEqual({ available: 0, helpstrings: [] })
    expect((await help('')).available).toBeGreaterThan(2)
    expect((await call('GET', '/actionalias/help?filter=(')).status).toBe(400)
    expect(await call('GET', '/actionalias/help?filter=(a?){900}b')).toMatchObject({
      status: 400,
      body: { faultstring: expect.stringContaining('more than 400 instructions') },
    })
  })
})

describe('2.13 executions of aliases', () => {
  it('have the values of the command, the chat in their context, and a notification at their end', async () => {
    await make('tell', {
      ack: {
        format: 'On it, {{ execution.context.api_user }}: {{ actionalias.ref }}',
        extra: { at: '{{ execution.status }}' },
      },
    })
    const source = { source_context: { thread: '{{ svckv.system.secret }}' }, notification_route: 'chatops' }
    const { execution, actionalias, message, extra } = await sayOne('tell "hello you"', source)
    expect(actionalias.ref).toBe('chat.tell')
    expect([message, extra]).toEqual(['On it, ann: chat.tell', { at: 'requested' }])
    expect(execution).toMatchObject({
      action: { ref: 'core.echo' },
      parameters: { message: 'hello you' },
      context: {
        action_alias_ref: { id: actionalias.id, name: 'tell' },
        api_user: 'ann',
        source_channel: 'ops',
        pack: 'core',
      },
    })
    const ended = await waitForStatus(server, execution.id)
    expect(ended.result).toMatchObject({ stdout: 'hello you' })
    const told = async () => {
      const path = '/triggerinstances?trigger_type=core.svc.generic.notifytrigger&limit=100'
      const { body } = await call<{ payload: Record<string, unknown> }[]>('GET', path)
      return body.map(({ payload }) => payload).filter(({ execution_id: id }) => id === execution.id)
    }
    const [notification, ...others] = await waitFor('the notification', async () => {
      const all = await told()
      return all.length > 0 && all
    })
    expect(others).toEqual([])
    expect(notification).toMatchObject({
      route: 'chatops',
      channel: 'chatops',
      status: 'succeeded',
      data: { user: 'ann', source_channel: 'ops', source_context: { thread: '{{ svckv.system.secret }}' } },
    })
  })

  it('what a chat user says is data; what the alias fixes may be a template', async () => {
    await call('PUT', '/keys/chat_secret', { name: 'chat_secret', value: 'open' })
    await make('data', { formats: ['data {{ message }}'] })
    await make('fixed', {
      formats: ['fixed {{ cmd }}'],
      action_ref: 'core.local',
      immutable_parameters: { cwd: '/{{ svckv.system.chat_secret }}' },
    })
    expect((await sayOne('data {{ svckv.system.chat_secret }}')).execution.parameters).toMatchObject({
      message: '{{ svckv.system.chat_secret }}',
    })
    const body = { command: 'fixed date cwd=/tmp', ...caller }
    expect(await refusal('/aliasexecution/match_and_execute', body)).toEqual([
      400,
      'Immutable arguments cannot be overriden: cwd',
    ])
    expect((await sayOne('fixed date')).execution.parameters).toMatchObject({ cmd: 'date', cwd: '/open' })
  })

  it('values become what the action declares', async () => {
    const action = {
      name: 'typed',
      pack: 'default',
      runner_type: 'noop',
      parameters: {
        text: { type: 'string' },
        count: { type: 'integer' },
        ratio: { type: 'number' },
        loud: { type: 'boolean' },
        hosts: { type: 'array' },
        numbers: { type: 'array', items: { type: 'integer' } },
        options: { type: 'object' },
      },
    }
    expect((await call('POST', '/actions', action)).status).toBe(201)
    await make('typed', { action_ref: 'default.typed', formats: ['typed {{ text = 12 }}'] })
    const written = 'count=3 ratio=0.5 loud=True hosts="a, b,c" numbers=1,2 options={"a": [1]}'
    expect((await sayOne(`typed ${written}`)).execution.parameters).toEqual({
      text: '12',
      count: 3,
      ratio: 0.5,
      loud: true,
      hosts: ['a', 'b', 'c'],
      numbers: [1, 2],
      options: { a: [1] },
    })
    const quoted = `typed hosts='["x, y"]' numbers=""`
    expect((await sayOne(quoted)).execution.parameters).toMatchObject({
      hosts: ['x, y'],
      numbers: [],
    })
    for (const [command, says] of [
      ['typed count=three', /count: .*three/],
      ['typed numbers=1,x', /numbers/],
      ['typed colour=red', /colour/],
      ['typed options=x', /options/],
    ] as const) {
      expect(await refusal('/aliasexecution/match_and_execute', { command, ...caller })).toEqual([
        400,
        expect.stringMatching(says),
      ])
    }
  })

  it('a command that fits several places runs once for each', async () => {
    const formats = [{ display: 'all tickets', representation: ['(?P<message>TT-[0-9]+)'], match_multiple: true }]
    await make('tickets', { formats })
    const results = await say('close TT-1 and TT-2')
    expect(results.map(({ execution }) => execution.parameters['message'])).toEqual(['TT-1', 'TT-2'])
    const many = Array.from({ length: 101 }, (_, i) => `TT-${i}`).join(' ')
    expect(await refusal('/aliasexecution/match_and_execute', { command: many, ...caller })).toEqual([
      400,
      'The command asks for more than 100 executions.',
    ])
  })

  describe('of a named alias', () => {
    const path = '/aliasexecution'
    const named = { name: 'named', format: 'named {{ message }}', command: 'named x', ...caller }
    beforeAll(async () => {
      await make('named', { formats: ['named {{ message }}', 'named', 'naming {{ message = }}'] })
      await make('named', { pack: 'other', formats: ['other {{ message }}'] })
      await make('asleep', { enabled: false })
    })

    it('run with one of its formats', async () => {
      const { status, body } = await call<AliasExecution>('POST', path, named)
      expect([status, body.execution.parameters, body.actionalias.ref]).toEqual([201, { message: 'x' }, 'chat.named'])
      const other = await call<AliasExecution>('POST', path, {
        ...named,
        format: 'other {{ message }}',
        command: 'other y',
      })
      expect(other.body.actionalias.ref).toBe('other.named')
      const byRef = await call<AliasExecution>('POST', path, { ...named, name: 'chat.named' })
      expect([byRef.status, byRef.body.message]).toEqual([201, undefined])
    })

    it.each<[what: string, change: Record<string, unknown>, status: number, says: string | RegExp]>([
      ['no name', { name: undefined }, 400, 'Alias execution "name" is required'],
      ['an empty name', { name: '' }, 400, 'Alias execution "name" is required'],
      ['an unknown name', { name: 'nobody' }, 404, 'Unable to identify action alias with name "nobody".'],
      ['a disabled alias', { name: 'asleep' }, 400, 'Action alias with name "asleep" is disabled.'],
      [
        'an unknown format',
        { name: 'chat.named', format: 'nothing' },
        400,
        'Format string "nothing" is not available on the alias "chat.named".',
      ],
      [
        'a name that two have, and a format that none has',
        { format: 'x' },
        400,
        'Several action aliases have the name "named": chat.named, other.named.',
      ],
      [
        'another command',
        { command: 'something' },
        400,
        'Command "something" doesn\'t match format string "named {{ message }}".',
      ],
      ['no value', { command: '' }, 400, 'No value supplied and no default value found.'],
      ['a default, and another command', { format: 'naming {{ message = }}', command: '' }, 400, /doesn't match/],
      ['no user', { user: undefined }, 400, /'user' is a required property/],
      ['no channel', { source_channel: undefined }, 400, /'source_channel' is a required property/],
      ['no command', { command: undefined }, 400, /'command' is a required property/],
      ['more than it knows', { colour: 'red' }, 400, /colour/],
      ['a command that is too long', { command: `named ${'x'.repeat(10_000)}` }, 400, /command/],
    ])('%s is refused', async (_, change, status, says) => {
      const [answered, text] = await refusal(path, { ...named, ...change })
      expect([text, answered]).toEqual([
        typeof says === 'string' ? says : (says.exec(text)?.input ?? says.source),
        status,
      ])
    })

    it('an action that is gone is named', async () => {
      await make('lost', { action_ref: 'chat.lost' })
      const body = { command: 'lost x', ...caller }
      expect(await refusal('/aliasexecution/match_and_execute', body)).toEqual([
        400,
        'Action "chat.lost" cannot be found.',
      ])
    })
  })

  it('an acknowledgement that cannot be rendered says why', async () => {
    await make('unsaid', { ack: { format: '{{ execution.nothing.at_all }}' } })
    expect((await sayOne('unsaid x')).message).toMatch(/^Cannot render "format" in field "ack" for alias\. /)
  })

  it('a repeated request with its key starts nothing more', async () => {
    await make('once_only')
    const body = { command: 'once_only x', ...caller }
    const ask = () =>
      server.call<{ results: AliasExecution[] }>('POST', '/v1/aliasexecution/match_and_execute', body, {
        'Idempotency-Key': 'chat-1',
      })
    const [first, second] = [await ask(), await ask()]
    expect(second.body.results.map(({ execution }) => execution.id)).toEqual(
      first.body.results.map(({ execution }) => execution.id),
    )
  })

  it('the executions of one command start together or not at all', async () => {
    await withApp(
      { settings: { 'actionrunner.queue_limit': '3', 'actionrunner.actions_pool_size': '1' } },
      async (app) => {
        const formats = [{ representation: ['(?P<message>PP-[0-9]+)'], match_multiple: true }]
        const body = { name: 'parts', pack: 'chat', action_ref: 'core.echo', formats }
        expect((await app.call('POST', '/v1/actionalias', body)).status).toBe(201)
        const run = (command: string, key: string) =>
          app.call<{ results: AliasExecution[] }>(
            'POST',
            '/v1/aliasexecution/match_and_execute',
            { command, ...caller },
            { 'Idempotency-Key': key },
          )
        const started = async (): Promise<number> => (await app.call<unknown[]>('GET', '/v1/executions')).body.length
        expect((await run('PP-1 PP-2 PP-3 PP-4', 'many')).status).toBe(503)
        expect(await started()).toBe(0)

        const { status, body: first } = await run('PP-1 PP-2 PP-3', 'few')
        expect([status, first.results.length]).toEqual([201, 3])
        // As if the server had been killed before it answered.
        const database = new Sqlite(join(app.basePath, 'svc.db'))
        database.prepare('update idempotent_requests set status = null, answer = null').run()
        database.close()
        const again = await run('PP-1 PP-2 PP-3', 'few')
        const idsOf = ({ results }: { results: AliasExecution[] }): string[] =>
          results.map(({ execution }) => execution.id)
        expect([again.status, idsOf(again.body)]).toEqual([201, idsOf(first)])
        expect(await started()).toBe(3)
      },
    )
  })
})

it('the first example of docs/chat.md works as it is printed', async () => {
  const alias = load(docBlock('chat.md', '# uptime.yaml')) as Record<string, unknown>
  expect((await call('POST', '/actionalias', alias)).status).toBe(201)
  const { execution, message } = await sayOne('uptime')
  await waitForStatus(server, execution.id)
  const { body } = await call<Record<string, unknown>>('GET', `/aliasexecution/${execution.id}/reply`)
  expect([message, body['message']]).toEqual(['Looking.', expect.stringMatching(/^Up: .*load average/)])
})

describe('2.13 the reply to a chat', () => {
  const replyTo = async (command: string): Promise<Record<string, unknown>> => {
    const { execution } = await sayOne(command)
    await waitForStatus(server, execution.id)
    return (await call<Record<string, unknown>>('GET', `/aliasexecution/${execution.id}/reply`)).body
  }

  it('is what the alias says', async () => {
    await make('reply', {
      result: { format: 'It said {{ execution.result.stdout }}', extra: { colour: '{{ execution.status }}' } },
    })
    expect(await replyTo('reply x')).toEqual({
      execution_id: expect.stringMatching(idPattern) as string,
      status: 'succeeded',
      enabled: true,
      message: 'It said x',
      extra: { colour: 'succeeded' },
      user: 'ann',
      source_channel: 'ops',
    })
  })

  it('is status and result otherwise; a template that fails says why', async () => {
    await make('plainly')
    await make('hidden', { result: { enabled: false } })
    await make('wrongly', { result: { format: '{{ execution.nothing.at_all }}' } })
    expect((await replyTo('plainly x'))['message']).toMatch(/^Action core\.echo is succeeded\.\n```\nx\n```\nhttp/)
    expect(await replyTo('hidden x')).toMatchObject({ enabled: false })
    expect((await replyTo('wrongly x'))['message']).toMatch(/^Cannot render "format" in field "result" for alias\. /)
    expect((await call('GET', `/aliasexecution/${unknownId}/reply`)).status).toBe(404)
  })
})

describe('2.13 with access control', () => {
  let folder: TemporaryFolder
  let guarded: TestApp
  const headers: Record<string, Record<string, string>> = {}

  beforeAll(async () => {
    folder = makeFolder()
    const files = createRbacFiles(folder.path)
    files.assign('admin', 'system_admin')
    files.define('bot', [{ types: ['action_execute'], on: 'action:core:echo' }, { types: ['action_alias_match'] }])
    guarded = await createTestApp({
      basePath: folder.path,
      settings: { 'auth.enable': 'True', 'rbac.enable': 'True', 'rbac.backend': 'default' },
    })
    const login = await guarded.call<{ token: string }>(
      'POST',
      '/auth/v1/tokens',
      {},
      {
        Authorization: `Basic ${Buffer.from(`admin:${firstPassword(folder.path)}`).toString('base64')}`,
      },
    )
    headers['admin'] = { 'X-Auth-Token': login.body.token }
    const key = await guarded.call<{ key: string }>('POST', '/v1/apikeys', { user: 'bot' }, headers['admin'])
    headers['bot'] = { 'Svc-Api-Key': key.body.key }
    for (const [name, action] of [
      ['echo', 'core.echo'],
      ['local', 'core.local'],
    ] as const) {
      const formats = [name === 'echo' ? 'echo {{ message }}' : 'run {{ cmd }}']
      await guarded.call(
        'POST',
        '/v1/actionalias',
        { name, pack: 'chat', action_ref: action, formats },
        headers['admin'],
      )
    }
  })
  afterAll(async () => {
    await guarded.stop()
    folder.remove()
  })

  const ask = (command: string, user = 'ann') =>
    guarded.call<{ results: AliasExecution[] }>(
      'POST',
      '/v1/aliasexecution/match_and_execute',
      { command, user, source_channel: 'ops' },
      headers['bot'],
    )

  it('a command needs the permission to run its action', async () => {
    expect((await ask('run date')).status).toBe(403)
    expect((await ask('echo hi')).status).toBe(201)
    const named = { name: 'local', format: 'run {{ cmd }}', command: 'run date', user: 'ann', source_channel: 'ops' }
    expect((await guarded.call('POST', '/v1/aliasexecution', named, headers['bot'])).status).toBe(403)
  })

  it('a chat user whom the caller may not impersonate lends it no access to the datastore', async () => {
    const { body } = await ask('echo hi', 'admin')
    expect(body.results[0]?.execution.context).toMatchObject({ user: 'bot', api_user: 'admin', datastore_user: 'bot' })
    const given = {
      action: 'core.echo',
      parameters: { message: 'x' },
      context: { datastore_user: 'admin', action_alias_ref: 'x' },
    }
    const plain = await guarded.call<ExecutionAnswer & { context: Record<string, unknown> }>(
      'POST',
      '/v1/executions',
      given,
      headers['bot'],
    )
    expect(plain.body.context).not.toHaveProperty('datastore_user')
    expect(plain.body.context).not.toHaveProperty('action_alias_ref')
  })
})
