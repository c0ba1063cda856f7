/** Inquiries (contract 08, 8.15; 11.4, row 8) on a running server. */
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { makeFolder } from '../helpers/folders.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import { createRbacFiles } from '../helpers/rbac.ts'
import { run, startServer, waitForStatus, type Answer, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'
import { openEvents } from '../helpers/sse.ts'
import { waitFor } from '../helpers/wait.ts'
import { auditRecords, impossibleIds, rowsOf, unknownId, type ErrorAnswer } from './support.ts'

interface InquiryAnswer {
  id: string
  schema: Record<string, unknown>
  roles: string[]
  users: string[]
  route: string
  ttl: number
}

const secretSchema = {
  type: 'object',
  properties: {
    name: { type: 'string', required: true },
    password: { type: 'string', secret: true, required: true },
    accounts: { type: 'array', items: { type: 'object', properties: { pin: { type: 'string', secret: true } } } },
  },
}
const secrets = ['a very secret word', '98 76 54']
const secretResponse = { name: 'ann', password: secrets[0], accounts: [{ pin: secrets[1] }] }
const maskedResponse = { name: 'ann', password: '********', accounts: [{ pin: '********' }] }

let server: TestApp
beforeAll(async () => {
  server = await createTestApp()
})
afterAll(async () => {
  await server.stop()
})

/** Once it waits. */
async function ask(parameters: Record<string, unknown> = {}, on = server): Promise<ExecutionAnswer> {
  const { id } = await run(on, parameters, { action: 'core.ask' })
  return waitForStatus(on, id, ['pending', 'failed'])
}

const get = (id: string, on = server) => on.call<InquiryAnswer & ErrorAnswer>('GET', `/v1/inquiries/${id}`)
const respond = (id: string, response: unknown, on = server): Promise<Answer<{ id: string } & ErrorAnswer>> =>
  on.call('PUT', `/v1/inquiries/${id}`, { id, response })
const executionOf = (id: string, query = '', on = server) =>
  on.call<ExecutionAnswer>('GET', `/v1/executions/${id}${query}`).then(({ body }) => body)

describe('8.15 an inquiry', () => {
  it('is a pending execution that says what it asks, whom, and how long', async () => {
    const execution = await ask({ route: 'team-a', users: ['ann'], roles: ['ops'], ttl: 30 })
    expect(execution.status).toBe('pending')
    expect(execution).not.toHaveProperty('end_timestamp')
    expect(execution.log.map(({ status }) => status)).toEqual(['requested', 'scheduled', 'running', 'pending'])
    expect(execution.result).toEqual({
      schema: expect.objectContaining({ type: 'object' }) as unknown,
      roles: ['ops'],
      users: ['ann'],
      route: 'team-a',
      ttl: 30,
    })
    const { status, body } = await get(execution.id)
    expect([status, body]).toEqual([200, { id: execution.id, ...execution.result }])
  })

  it('asks by default whether to go on, anybody, for a day', async () => {
    const { body } = await get((await ask()).id)
    expect(body).toMatchObject({ roles: [], users: [], route: '', ttl: 1440 })
    expect(body.schema['properties']).toMatchObject({ continue: { type: 'boolean', required: true } })
  })

  it('succeeds with the response in its result', async () => {
    const { id, result } = await ask()
    const { status, body } = await respond(id, { continue: true })
    expect([status, body]).toEqual([200, { id, response: { continue: true } }])
    const ended = await executionOf(id)
    expect(ended).toMatchObject({ status: 'succeeded', result: { ...result, response: { continue: true } } })
    expect(ended.end_timestamp).toBe(ended.log.at(-1)?.timestamp)
    await waitFor('the audit record', () =>
      auditRecords(server, 'inquiry.responded').some((record) => record['_execution_id'] === id),
    )
  })

  it('holds no slot and no process, and is no work that waits', async () => {
    const more = await createTestApp({ settings: { 'actionrunner.actions_pool_size': '1' } })
    try {
      const inquiries = [await ask({}, more), await ask({}, more)]
      const other = await run(more, { cmd: 'echo through' })
      expect((await waitForStatus(more, other.id)).result).toMatchObject({ stdout: 'through' })
      expect(rowsOf(more, 'select * from processes')).toEqual([])
      for (const { id } of inquiries) expect((await executionOf(id, '', more)).status).toBe('pending')
    } finally {
      await more.stop()
    }
  })

  it('fails when its schema cannot be used, and is refused when its parameters do not fit', async () => {
    const failed = await ask({ schema: { type: 'nonsense' } })
    expect(failed.status).toBe('failed')
    expect(failed.result['error']).toContain('schema of the response')
    for (const parameters of [{ ttl: -1 }, { ttl: 1e12 }, { users: [5] }, { schema: 'x' }, { unknown: 1 }]) {
      const { status, text } = await server.call('POST', '/v1/executions', { action: 'core.ask', parameters })
      expect([parameters, status, text]).toEqual([parameters, 400, expect.stringContaining('faultstring')])
    }
  })

  it('cannot be cancelled directly, but an end from outside can be set', async () => {
    const { id } = await ask()
    const refused = await server.call<ErrorAnswer>('DELETE', `/v1/executions/${id}`)
    expect([refused.status, refused.body.faultstring]).toEqual([200, expect.stringContaining('pending')])
    expect((await executionOf(id)).status).toBe('pending')
    const { status } = await server.call('PUT', `/v1/executions/${id}`, { status: 'failed', result: { by: 'hand' } })
    expect(status).toBe(200)
    expect((await respond(id, { continue: true })).body.code).toBe('INQUIRY_NOT_PENDING')
    expect((await executionOf(id)).result).toEqual({ by: 'hand' })
  })

  it('its stream of output ends when it ends, and not before', async () => {
    const { id } = await ask()
    const client = await openEvents(`${server.urls.stream}/executions/${id}/output`)
    const isEnd = ({ event }: { event: string }): boolean => event === 'EOF'
    try {
      // What another client is told after that would have come to this one as well.
      const other = await run(server, { cmd: 'echo x' })
      const marker = await openEvents(`${server.urls.stream}/executions/${other.id}/output`)
      await marker.frame(isEnd)
      marker.close()
      expect(client.frames.filter(isEnd)).toEqual([])
      await respond(id, { continue: false })
      await client.frame(isEnd)
    } finally {
      client.close()
    }
  })
})

describe('8.15 GET /inquiries', () => {
  it('lists those that wait, newest first, in pages of 20', async () => {
    const own = await createTestApp()
    try {
      expect((await own.call('GET', '/v1/inquiries')).body).toEqual([])
      const asked: string[] = []
      for (let n = 0; n < 22; n++) asked.push((await run(own, {}, { action: 'core.ask' })).id)
      for (const id of asked) await waitForStatus(own, id, ['pending'])
      await respond(asked[3] ?? '', { continue: true }, own)
      const waiting = asked.filter((_, n) => n !== 3).toReversed()
      const list = async (query = '') => {
        const { body, headers } = await own.call<InquiryAnswer[]>('GET', `/v1/inquiries${query}`)
        return { ids: body.map(({ id }) => id), total: headers.get('x-total-count'), limit: headers.get('x-limit') }
      }
      expect(await list()).toEqual({ ids: waiting.slice(0, 20), total: '21', limit: '20' })
      expect(await list('?limit=2&offset=1')).toEqual({ ids: waiting.slice(1, 3), total: '21', limit: '2' })
      const { body } = await own.call<InquiryAnswer[]>('GET', '/v1/inquiries?limit=1')
      expect(body.map((inquiry) => Object.keys(inquiry))).toEqual([['id', 'schema', 'roles', 'users', 'route', 'ttl']])
      expect((await own.call('GET', '/v1/inquiries?limit=0')).status).toBe(400)
    } finally {
      await own.stop()
    }
  })
})

describe('8.15 what is refused', () => {
  it('an id that nothing has', async () => {
    for (const id of [unknownId, ...impossibleIds]) {
      expect([id, (await get(id)).status]).toEqual([id, 404])
      expect([id, (await respond(id, {})).status]).toEqual([id, 404])
    }
  })

  it('an execution that is no inquiry', async () => {
    const { id } = await run(server, {}, { action: 'core.noop' })
    for (const { status, body } of [await get(id), await respond(id, {})]) {
      expect([status, body.code, body.faultstring]).toEqual([
        400,
        'NOT_AN_INQUIRY',
        `Action execution "${id}" is not an inquiry.`,
      ])
    }
  })

  it('a second response', async () => {
    const { id } = await ask()
    await respond(id, { continue: true })
    for (const { status, body } of [await get(id), await respond(id, { continue: false })]) {
      expect([status, body.code, body.faultstring]).toEqual([
        400,
        'INQUIRY_ANSWERED',
        `Inquiry "${id}" has already been responded to.`,
      ])
    }
    expect((await executionOf(id)).result['response']).toEqual({ continue: true })
  })

  it.each([
    ['a missing property', {}],
    ['another type', { continue: 'yes' }],
    ['null where a value is required', { continue: null }],
  ])('a response that does not fit: %s', async (_, response) => {
    const { id } = await ask()
    const { status, body } = await respond(id, response)
    expect([status, body.code]).toEqual([400, 'INQUIRY_RESPONSE_INVALID'])
    expect(body.faultstring).toMatch(`Response for inquiry "${id}" did not pass schema validation. `)
    expect(body.faultstring).toContain('continue')
    expect((await executionOf(id)).status).toBe('pending')
  })

  it('a body without a response, or with one that is no object', async () => {
    const { id } = await ask()
    for (const body of [{}, { response: 'yes' }, { response: null }, { response: [] }]) {
      expect([body, (await server.call('PUT', `/v1/inquiries/${id}`, body)).status]).toEqual([body, 400])
    }
    const more = { response: { continue: true }, unknown: 'is ignored' }
    expect((await server.call('PUT', `/v1/inquiries/${id}`, more)).status).toBe(200)
  })

  it('a response by whom the inquiry does not ask', async () => {
    const { id } = await ask({ users: ['somebody else'] })
    const { status, body } = await respond(id, { continue: true })
    expect([status, body.faultstring]).toEqual([
      403,
      expect.stringMatching(
        new RegExp(`^User ".+" does not have permission to respond to inquiry "${id}"\\.$`),
      ) as unknown,
    ])
    expect((await executionOf(id)).status).toBe('pending')
  })
})

it('8.15 of several who respond at once exactly one is heard', async () => {
  const { id } = await ask({ schema: { type: 'object', properties: { who: { type: 'integer', required: true } } } })
  const answers = await Promise.all(Array.from({ length: 20 }, (_, who) => respond(id, { who })))
  const heard = answers.flatMap(({ status }, who) => (status === 200 ? [who] : []))
  expect(heard).toHaveLength(1)
  expect(answers.filter(({ body }) => body.code === 'INQUIRY_ANSWERED')).toHaveLength(19)
  const ended = await executionOf(id)
  expect(ended.result['response']).toEqual({ who: heard[0] })
  expect(ended.log.filter(({ status }) => status === 'succeeded')).toHaveLength(1)
})

describe('8.15 and 0.15 secrets of a response', () => {
  it('are echoed to who gave them and masked for everybody who reads, whatever way', async () => {
    const { id } = await ask({ schema: secretSchema })
    const stream = await openEvents(`${server.urls.stream}/stream`)
    try {
      const { body } = await respond(id, secretResponse)
      expect(body).toEqual({ id, response: secretResponse })
      await stream.frame(({ data }) => data.includes(id) && data.includes('succeeded'))
      const readings = [
        `/v1/executions/${id}`,
        `/v1/executions/${id}/result`,
        `/v1/executions/${id}/attribute/result`,
        '/v1/executions?limit=5',
        `/v1/triggerinstances?limit=50`,
      ]
      const texts = await Promise.all(readings.map(async (path) => (await server.call('GET', path)).text))
      for (const text of [...texts, stream.raw(), server.log()]) {
        for (const secret of secrets) expect(text).not.toContain(secret)
      }
      expect((await executionOf(id)).result['response']).toEqual(maskedResponse)
    } finally {
      stream.close()
    }
  })

  it('are kept, encrypted, for administrators who ask for them', async () => {
    const { id } = await ask({ schema: secretSchema })
    await respond(id, secretResponse)
    const [row] = rowsOf<{ result: string; sealed: string }>(
      server,
      'select result, sealed from execution_results where execution_id = ?',
      id,
    )
    for (const secret of secrets) expect(`${row?.result} ${row?.sealed}`).not.toContain(secret)
    expect(row?.sealed).toMatch(/^[0-9A-F]+$/)
    expect((await executionOf(id, '?show_secrets=true')).result['response']).toEqual(secretResponse)
    const { body } = await server.call<ExecutionAnswer[]>('GET', '/v1/executions?show_secrets=true&limit=20')
    expect(body.find((execution) => execution.id === id)?.result['response']).toEqual(secretResponse)
  })

  it('are not repeated when they do not fit', async () => {
    const { id } = await ask({ schema: secretSchema })
    const { status, text } = await respond(id, { name: 'ann', password: 5_551_234 })
    expect(status).toBe(400)
    expect(text).not.toContain('5551234')
  })
})

describe('5.9 core.svc.generic.inquiry', () => {
  it('is dispatched when an inquiry begins to wait, once, and rules react to it', async () => {
    const { status, text } = await server.call('POST', '/v1/rules', {
      name: 'ask_around',
      enabled: true,
      trigger: { type: 'core.svc.generic.inquiry' },
      criteria: { 'trigger.route': { type: 'equals', pattern: 'by-rule' } },
      action: { ref: 'core.echo', parameters: { message: '{{ trigger.id }} by {{ trigger.route }}' } },
    })
    if (status !== 201) throw new Error(text)
    const { id } = await ask({ route: 'by-rule' })
    await ask({ route: 'elsewhere' })
    const [told] = await waitFor('the rule', async () => {
      const { body } = await server.call<ExecutionAnswer[]>('GET', '/v1/executions?action=core.echo')
      return body.length > 0 && body
    })
    const ended = await waitForStatus(server, told?.id ?? '')
    expect(ended.result['stdout']).toBe(`${id} by by-rule`)
    await respond(id, { continue: true })
    const instances = rowsOf<{ payload: string }>(
      server,
      `select payload from trigger_instances where trigger = 'core.svc.generic.inquiry' and payload like ?`,
      `%${id}%`,
    )
    expect(instances.map(({ payload }) => JSON.parse(payload) as unknown)).toEqual([{ id, route: 'by-rule' }])
    const [trace] = rowsOf<{ n: number }>(
      server,
      'select count(distinct trace_id) as n from executions where id in (?, ?)',
      id,
      ended.id,
    )
    expect(trace?.n).toBe(1)
  })
})

describe('8.15 ttl', () => {
  const endTime = (basePath: string, id: string): void => {
    const database = new Sqlite(join(basePath, 'svc.db'))
    database.prepare(`update executions set due_timestamp = '2001-01-01T00:00:00.000000Z' where id = ?`).run(id)
    database.close()
  }

  it('survives the server however that ends; then what is over times out, and the rest waits', async () => {
    const folder = makeFolder()
    const first = await startServer({ basePath: folder.path })
    const [over, waiting, endless] = [
      await ask({}, first),
      await ask({ ttl: 600 }, first),
      await ask({ ttl: 0 }, first),
    ]
    await first.stop('SIGKILL')
    endTime(folder.path, over.id)

    const held = await createTestApp({
      basePath: folder.path,
      settings: { 'garbagecollector.purge_inquiries': 'False' },
    })
    expect((await respond(over.id, { continue: 'not sure' }, held)).body.code).toBe('INQUIRY_RESPONSE_INVALID')
    expect((await executionOf(over.id, '', held)).status).toBe('pending')
    await held.stop()

    const second = await createTestApp({ basePath: folder.path })
    try {
      for (const { status, body } of [await get(over.id, second), await respond(over.id, { continue: true }, second)]) {
        expect([status, body.code, body.faultstring]).toEqual([
          400,
          'INQUIRY_TIMED_OUT',
          `Inquiry "${over.id}" timed out and cannot be responded to.`,
        ])
      }
      const ended = await waitForStatus(second, over.id)
      expect(ended).toMatchObject({ status: 'timeout', result: over.result })
      const { body } = await second.call<InquiryAnswer[]>('GET', '/v1/inquiries')
      expect(body.map(({ id }) => id)).toEqual([endless.id, waiting.id])
      const rows = rowsOf<{ id: string; due_timestamp: string | null }>(
        second,
        `select id, due_timestamp from executions where status = 'pending' order by id`,
      )
      expect(rows).toEqual([
        { id: waiting.id, due_timestamp: expect.stringMatching(/^\d{4}-/) as unknown },
        { id: endless.id, due_timestamp: null },
      ])
      expect((await respond(waiting.id, { continue: true }, second)).status).toBe(200)
    } finally {
      await second.stop()
      folder.remove()
    }
  })
})

describe('11.4 row 8 who may respond', () => {
  const folder = makeFolder()
  let place: TestApp
  let admin: Record<string, string>
  const keys = new Map<string, Record<string, string>>()
  const users = ['responder', 'executor', 'packer', 'viewer', 'lister', 'nobody', 'named', 'second'] as const

  beforeAll(async () => {
    const rbac = createRbacFiles(folder.path)
    rbac.assign('admin', 'system_admin')
    rbac.define('responder', [{ types: ['inquiry_respond'] }])
    rbac.define('named', [{ types: ['inquiry_respond'] }])
    rbac.define('second', [{ types: ['inquiry_respond'] }])
    rbac.define('executor', [{ types: ['action_execute'], on: 'action:core:noop' }])
    rbac.define('packer', [{ types: ['action_all'], on: 'pack:core' }])
    rbac.define('viewer', [{ types: ['inquiry_view'] }])
    rbac.define('lister', [{ types: ['inquiry_list'] }])
    place = await createTestApp({
      basePath: folder.path,
      settings: { 'auth.enable': 'True', 'rbac.enable': 'True', 'rbac.backend': 'default' },
    })
    admin = await signIn(place, 'admin', firstPassword(folder.path))
    for (const user of users) {
      const { body } = await place.call<{ key: string }>('POST', '/v1/apikeys', { user }, admin)
      keys.set(user, { 'Svc-Api-Key': body.key })
    }
  })
  afterAll(async () => {
    await place.stop()
    folder.remove()
  })

  const as = <T = ErrorAnswer>(user: (typeof users)[number], method: string, path: string, body?: unknown) =>
    place.call<T & ErrorAnswer>(method, path, body, keys.get(user))

  async function askHere(parameters: Record<string, unknown> = {}, context?: unknown): Promise<string> {
    const onPlace: TestApp = { ...place, call: (method, path, body) => place.call(method, path, body, admin) }
    const { id } = await run(onPlace, parameters, { action: 'core.ask', ...(context === undefined ? {} : { context }) })
    await waitForStatus(onPlace, id, ['pending'])
    return id
  }

  /** Asked by an execution of core.noop. */
  async function askAsChild(): Promise<string> {
    const { body } = await place.call<ExecutionAnswer>('POST', '/v1/executions', { action: 'core.noop' }, admin)
    return askHere({}, { parent: { execution_id: body.id } })
  }

  const allowed = async (user: (typeof users)[number], id: string): Promise<boolean> => {
    const { status, body } = await as(user, 'PUT', `/v1/inquiries/${id}`, { response: {} })
    expect([403, 400]).toContain(status)
    expect(body.code).toBe(status === 403 ? 'PERMISSION_DENIED' : 'INQUIRY_RESPONSE_INVALID')
    return status === 400
  }

  it('whoever may respond to all, or run the action that asks; alone, an inquiry is for the former', async () => {
    const [child, alone] = [await askAsChild(), await askHere()]
    const may = async (id: string) => {
      const able: string[] = []
      for (const user of users) if (await allowed(user, id)) able.push(user)
      return able
    }
    expect(await may(child)).toEqual(['responder', 'executor', 'packer', 'named', 'second'])
    expect(await may(alone)).toEqual(['responder', 'named', 'second'])
  })

  it('then the lists of the inquiry decide, and both have to admit the user, an administrator too', async () => {
    const byUser = await askHere({ users: ['named'] })
    expect([await allowed('named', byUser), await allowed('responder', byUser)]).toEqual([true, false])
    const byRole = await askHere({ roles: ['second', 'named'] })
    expect([await allowed('second', byRole), await allowed('responder', byRole)]).toEqual([true, false])
    const byBoth = await askHere({ users: ['named', 'responder'], roles: ['named', 'second'] })
    expect([
      await allowed('named', byBoth),
      await allowed('responder', byBoth),
      await allowed('second', byBoth),
    ]).toEqual([true, false, false])
    const { status } = await place.call('PUT', `/v1/inquiries/${byUser}`, { response: { continue: true } }, admin)
    expect(status).toBe(403)
    const { status: accepted } = await as('named', 'PUT', `/v1/inquiries/${byBoth}`, { response: { continue: true } })
    expect(accepted).toBe(200)
  })

  it('and nobody gets round them by setting its end', async () => {
    const id = await askHere({ users: ['named'] })
    const end = { status: 'succeeded', result: { response: { continue: true } } }
    for (const headers of [keys.get('packer'), admin]) {
      const { status, body } = await place.call<ErrorAnswer>('PUT', `/v1/executions/${id}`, end, headers)
      expect([status, body.code]).toEqual([400, 'EXECUTION_UPDATE_REFUSED'])
    }
    expect(await allowed('named', id)).toBe(true)
  })

  it('while it waits nothing has a credential in its name', async () => {
    const tokensOf = (id: string) =>
      rowsOf(place, 'select id from tokens where id = (select liveaction_id from executions where id = ?)', id)
    const body = { action: 'core.local', parameters: { cmd: 'sleep 600' } }
    const { body: running } = await place.call<ExecutionAnswer>('POST', '/v1/executions', body, admin)
    await waitFor('the token of an action that runs', () => tokensOf(running.id).length === 1)
    expect(tokensOf(await askHere())).toEqual([])
    await place.call('DELETE', `/v1/executions/${running.id}`, undefined, admin)
  })

  it('to look needs permissions of its own', async () => {
    const id = await askHere()
    const seen = async (user: (typeof users)[number]) => [
      (await as(user, 'GET', '/v1/inquiries')).status,
      (await as(user, 'GET', `/v1/inquiries/${id}`)).status,
    ]
    expect(await seen('viewer')).toEqual([403, 200])
    expect(await seen('lister')).toEqual([200, 403])
    expect(await seen('nobody')).toEqual([403, 403])
    expect(await seen('responder')).toEqual([403, 403])
  })
})
