/** Contract 01, 1.7 and 03, 3.7: the token with which an action calls the API, for as long as it runs. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeFolder } from '../helpers/folders.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import { createTestApp } from '../helpers/app.ts'
import {
  call,
  finalStatuses,
  waitForLog,
  type Answer,
  type ExecutionAnswer,
  type TestApp,
  startServer,
  type TestServer,
} from '../helpers/server.ts'
import { openEvents } from '../helpers/sse.ts'
import { waitFor } from '../helpers/wait.ts'
import { rowsOf, type ErrorAnswer } from './support.ts'
import { fullOnly, variants } from '../helpers/tiers.ts'

interface Report {
  token?: string
  status: number
  body: { username: string; authentication: { method: string; location: string; token_expire: string } }
}

interface Run {
  id: string
  /** What the action has found out; there once it runs. */
  report: string
  /** It goes on until there is a file of this name. */
  until: string
}

type Headers = Record<string, string>

const folder = makeFolder()
/** Beside the data of the server: the actions write their tokens here. */
const outside = makeFolder()
const settings = {
  'auth.enable': 'True',
  'auth.token_ttl': '3600',
  'auth.service_token_ttl': '100000',
  'system_user.user': userInfo().username,
  'stream.heartbeat': '3600',
}
let server: TestApp
let password: string
let admin: Headers

const start = (more: Record<string, string> = {}): Promise<TestApp> =>
  createTestApp({ basePath: folder.path, settings: { ...settings, ...more } })

beforeAll(async () => {
  server = await start()
  password = firstPassword(folder.path)
  admin = await signIn(server, 'admin', password)
  for (const name of ['alice', 'bob']) {
    await server.call('POST', '/v1/users', { name, password: `of ${name}` }, admin)
  }
})

afterAll(async () => {
  await server.stop()
  folder.remove()
  outside.remove()
})

let runs = 0
const fixture = join(import.meta.dirname, '..', 'fixtures', 'calls-api.mjs')

/** An action that calls the API with its token, then waits. */
async function run(
  headers: Headers,
  parameters: Record<string, unknown> = {},
  more: Record<string, unknown> = {},
): Promise<Run> {
  runs += 1
  const [report, until] = [join(outside.path, `report-${runs}`), join(outside.path, `until-${runs}`)]
  const cmd = `${process.execPath} ${fixture} ${report} ${until}`
  const body = { action: 'core.local', parameters: { cmd, timeout: 120, ...parameters }, ...more }
  const answer = await server.call<ExecutionAnswer>('POST', '/v1/executions', body, headers)
  if (answer.status !== 201) throw new Error(answer.text)
  return { id: answer.body.id, report, until }
}

function reportOf({ report }: Run): Promise<Report> {
  return waitFor(
    'the report of the action',
    () => existsSync(report) && (JSON.parse(readFileSync(report, 'utf8')) as Report), // as the fixture writes it
    90_000,
  )
}

const get = (id: string): Promise<Answer<ExecutionAnswer>> =>
  server.call<ExecutionAnswer>('GET', `/v1/executions/${id}`, undefined, admin)

async function endOf({ id }: Run, status: string): Promise<void> {
  const ended = await waitFor(
    'its end',
    async () => {
      const { body } = await get(id)
      return finalStatuses.includes(body.status) && body.status
    },
    90_000,
  )
  expect(ended).toBe(status)
}

const whoAmI = (token: string | undefined): Promise<Answer<ErrorAnswer & { username: string }>> =>
  server.call('GET', '/v1/user', undefined, { 'X-Auth-Token': token ?? '' })

async function expectRefused(token: string | undefined): Promise<void> {
  expect(token).toMatch(/^[!-~]{32,1024}$/)
  const { status, body } = await whoAmI(token)
  expect(status).toBe(401)
  expect(body.faultstring).toBe('Unauthorized - Invalid token.')
}

const serviceTokens = (): unknown[] => rowsOf(server, 'select id from tokens where service = 1')

describe('01.7 the token of an action', () => {
  it('is of the acting user, counts while the action runs, and not a moment longer', async () => {
    const alice = await signIn(server, 'alice', 'of alice')
    const one = await run(alice)
    const { token, status, body } = await reportOf(one)
    expect(status).toBe(200)
    expect(body.username).toBe('alice')
    expect(body.authentication).toMatchObject({ method: 'authentication token', location: 'header' })
    const seconds = (Date.parse(body.authentication.token_expire) - Date.now()) / 1000
    expect(seconds).toBeGreaterThan(90_000)
    expect(seconds).toBeLessThanOrEqual(100_001)

    const { body: execution } = await get(one.id)
    const liveactionId = (execution.liveaction as { id: string }).id
    expect(rowsOf(server, 'select user, service, metadata from tokens where service = 1')).toEqual([
      {
        user: 'alice',
        service: 1,
        metadata: JSON.stringify({
          service: 'actions_container',
          action_name: 'core.local',
          live_action_id: liveactionId,
        }),
      },
    ])
    expect((await whoAmI(token)).body.username).toBe('alice')
    const events = await openEvents(`${server.urls.stream}/v1/stream`, { 'X-Auth-Token': token ?? '' })
    expect(events.status).toBe(200)

    writeFileSync(one.until, '')
    await endOf(one, 'succeeded')
    await expectRefused(token)
    expect(await events.ended).toBe('end')
    expect(serviceTokens()).toEqual([])
    expect((await server.call('GET', '/v1/user', undefined, alice)).status).toBe(200)
  })

  fullOnly(it)('of one run is not that of another', async () => {
    const [one, other] = [await run(admin), await run(admin)]
    const [first, second] = [await reportOf(one), await reportOf(other)]
    expect(first.token).not.toBe(second.token)
    writeFileSync(one.until, '')
    await endOf(one, 'succeeded')
    await expectRefused(first.token)
    expect((await whoAmI(second.token)).status).toBe(200)
    writeFileSync(other.until, '')
    await endOf(other, 'succeeded')
    await expectRefused(second.token)
  })

  it('is limited like the API key that has started the action, and so is what that starts', async () => {
    const scopes = [{ permission_types: ['action_execute'], resource_uid: 'action:core:local' }]
    const made = await server.call<{ key: string }>('POST', '/v1/apikeys', { scopes }, admin)
    const one = await run({ 'Svc-Api-Key': made.body.key }, {}, { context: { scopes: null } })
    const { token } = await reportOf(one)
    const headers = { 'X-Auth-Token': token ?? '' }
    const codeOf = async (method: string, path: string, body?: unknown): Promise<unknown> =>
      (await server.call<ErrorAnswer>(method, path, body, headers)).body.code
    for (const [method, path, body] of [
      ['POST', '/v1/executions', { action: 'core.noop' }],
      ['GET', '/v1/executions', undefined],
      ['GET', '/v1/users', undefined],
      ['POST', '/v1/executions', { action: 'core.local', parameters: { cmd: 'true' }, user: 'bob' }],
    ] as const) {
      expect(await codeOf(method, path, body)).toBe('PERMISSION_DENIED')
    }
    const inner = await run(headers)
    const innerToken = (await reportOf(inner)).token ?? ''
    const { status } = await server.call('GET', '/v1/users', undefined, { 'X-Auth-Token': innerToken })
    expect(status).toBe(403)
    for (const each of [one, inner]) {
      writeFileSync(each.until, '')
      await endOf(each, 'succeeded')
    }
  })

  fullOnly(it)('ends with a run that is cancelled', async () => {
    const one = await run(admin)
    const { token } = await reportOf(one)
    expect((await whoAmI(token)).status).toBe(200)
    await server.call('DELETE', `/v1/executions/${one.id}`, undefined, admin)
    await endOf(one, 'canceled')
    await expectRefused(token)
  })

  fullOnly(it)('ends with a run that takes too long', async () => {
    const one = await run(admin, { timeout: 10 })
    const { token, status } = await reportOf(one)
    expect(status).toBe(200)
    await endOf(one, 'timeout')
    await expectRefused(token)
  })

  it('ends when the execution is settled from outside', async () => {
    const one = await run(admin)
    const { token } = await reportOf(one)
    expect((await whoAmI(token)).status).toBe(200)
    await server.call('PUT', `/v1/executions/${one.id}`, { status: 'failed', result: {} }, admin)
    await expectRefused(token)
    await endOf(one, 'failed')
  })

  it('ends when its user is disabled or deleted, while the action goes on', async () => {
    await server.call('POST', '/v1/users', { name: 'passing', password: 'x' }, admin)
    const one = await run(await signIn(server, 'passing', 'x'))
    const { token } = await reportOf(one)
    await server.call('PUT', '/v1/users/passing', { is_disabled: true }, admin)
    expect((await whoAmI(token)).status).toBe(401)
    await server.call('PUT', '/v1/users/passing', { is_disabled: false }, admin)
    expect((await whoAmI(token)).status).toBe(200)
    await server.call('DELETE', '/v1/users/passing', undefined, admin)
    await expectRefused(token)
    expect((await get(one.id)).body.status).toBe('running')
    writeFileSync(one.until, '')
    await endOf(one, 'succeeded')
  })

  it('opens nothing that outlives the run', async () => {
    const one = await run(admin)
    const { token = '' } = await reportOf(one)
    const headers = { 'X-Auth-Token': token }
    for (const [method, url, body] of [
      ['POST', `${server.urls.auth}/tokens`, {}],
      ['POST', `${server.urls.auth}/tokens`, { user: 'alice' }],
      ['POST', `${server.urls.api}/v1/apikeys`, {}],
      ['POST', `${server.urls.api}/v1/users`, { name: 'made-by-action', password: 'x' }],
      ['PUT', `${server.urls.api}/v1/users/alice`, { password: 'x' }],
      ['DELETE', `${server.urls.api}/v1/users/alice`, undefined],
      ['DELETE', `${server.urls.auth}/tokens`, undefined],
      ['DELETE', `${server.urls.auth}/tokens/current`, undefined],
    ] as const) {
      const { status } = await call(url, method, body, headers)
      expect({ method, url, status }).toEqual({
        method,
        url,
        status: url.endsWith('/tokens') && method === 'POST' ? 401 : 403,
      })
    }
    writeFileSync(one.until, '')
    await endOf(one, 'succeeded')
    expect((await server.call('GET', '/v1/users/made-by-action', undefined, admin)).status).toBe(404)
    expect((await server.call('GET', '/v1/user', undefined, await signIn(server, 'alice', 'of alice'))).status).toBe(
      200,
    )
  })

  it('is found neither in the data of the server nor in its log, records, streams or command lines', async () => {
    const events = await openEvents(`${server.urls.stream}/v1/stream`, admin)
    const one = await run(admin)
    const { token = '' } = await reportOf(one)
    const signature = token.split('.')[2] ?? ''
    expect(signature.length).toBeGreaterThan(40)
    const seen = [(await get(one.id)).text, commandLines()]
    writeFileSync(one.until, '')
    await endOf(one, 'succeeded')
    await events.frame(({ event, data }) => event.includes('execution__update') && data.includes('"succeeded"'))
    seen.push((await get(one.id)).text, events.raw(), server.log())
    for (const name of readdirSync(folder.path, { recursive: true, encoding: 'utf8' })) {
      const path = join(folder.path, name)
      try {
        seen.push(readFileSync(path, 'latin1'))
      } catch (error) {
        // Folders, and sockets.
        if (!(error instanceof Error && 'code' in error && /EISDIR|ENXIO/.test(String(error.code)))) throw error
      }
    }
    events.close()
    expect(seen.join('\n')).toContain(one.id)
    for (const text of seen) expect(text).not.toContain(signature)
  })
})

function commandLines(): string {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => {
      try {
        return readFileSync(`/proc/${name}/cmdline`, 'latin1')
      } catch {
        return ''
      }
    })
    .join('\n')
}

describe('01.7 a server that dies while actions run', () => {
  /** The rest of this file needs no server that can be killed. */
  const startKillable = async (): Promise<TestServer> => {
    await server.stop()
    const killable = await startServer({ basePath: folder.path, settings })
    server = killable
    return killable
  }

  it('accepts none of their tokens once it is back', async () => {
    const dying = await startKillable()
    const one = await run(admin)
    const { token } = await reportOf(one)
    expect(serviceTokens()).toHaveLength(1)
    await dying.stop('SIGKILL')
    server = await start()
    await expectRefused(token)
    await endOf(one, 'abandoned')
    expect(serviceTokens()).toEqual([])
    expect((await server.call('GET', '/v1/user', undefined, admin)).status).toBe(200)
  })

  fullOnly(it)('forgets them also when authentication is off in between', async () => {
    const dying = await startKillable()
    const one = await run(admin)
    const { token } = await reportOf(one)
    await dying.stop('SIGKILL')
    server = await start({ 'auth.enable': 'False' })
    await endOf(one, 'abandoned')
    expect(serviceTokens()).toEqual([])
    const open = await run({})
    expect(await reportOf(open)).toMatchObject({ status: 200 })
    expect((await reportOf(open)).token).toBeUndefined()
    writeFileSync(open.until, '')
    await endOf(open, 'succeeded')
    await server.stop()
    server = await start()
    await expectRefused(token)
  })
})

describe('01.7 an action that waited while its user', () => {
  const ends = [
    ['was disabled', (name: string) => server.call('PUT', `/v1/users/${name}`, { is_disabled: true }, admin)],
    ['was deleted', (name: string) => server.call('DELETE', `/v1/users/${name}`, undefined, admin)],
  ] as const

  it.each(variants(ends))('%s runs without a token', async (title, change) => {
    const name = title.replaceAll(' ', '-')
    await server.stop()
    server = await start({ 'actionrunner.actions_pool_size': '1' })
    await server.call('POST', '/v1/users', { name, password: 'x' }, admin)
    const user = await signIn(server, name, 'x')
    const first = await run(admin)
    await reportOf(first)
    const waiting = await run(user)
    expect((await change(name)).status).toBeLessThan(300)
    writeFileSync(first.until, '')
    const report = await reportOf(waiting)
    expect(report.token).toBeUndefined()
    expect(report.status).toBe(401)
    writeFileSync(waiting.until, '')
    await endOf(waiting, 'succeeded')
    expect(serviceTokens()).toEqual([])
    await waitForLog(server, 'service_token.refused')
  })
})

it('01.7 the system user has a token although nobody ever logs in as it; of others a record is needed', async () => {
  for (const [name, hasToken] of [
    [userInfo().username, true],
    ['somebody-else', false],
  ] as const) {
    const one = await run(admin, {}, { user: name })
    const { token, status, body } = await reportOf(one)
    expect(status).toBe(hasToken ? 200 : 401)
    expect(token !== undefined).toBe(hasToken)
    expect(body.username).toBe(hasToken ? name : undefined)
    writeFileSync(one.until, '')
    await endOf(one, 'succeeded')
  }
})
