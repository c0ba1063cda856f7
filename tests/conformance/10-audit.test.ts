/** Contract 10, 10.3: the audit file of a real server, and its events. */
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { makeFolder } from '../helpers/folders.ts'
import { basicAuth, firstPassword } from '../helpers/logins.ts'
import { call, run, runToEnd, startServer, waitForStatus, type Answer, type TestApp } from '../helpers/server.ts'
import { fullOnly, rounds, variants } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'

type AuditRecord = Record<string, unknown> & { _event: string; short_message: string; full_message: string }

const fileOf = (server: TestApp): string => join(server.basePath, 'logs', 'svc.audit.log')

/** Every line must be an object. */
function readRecords(path: string): AuditRecord[] {
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1)
  return lines.map((line) => JSON.parse(line) as AuditRecord)
}

/** The records of a kind once there are so many. */
function waitForRecords(
  server: TestApp,
  event: string,
  fits: Record<string, unknown> = {},
  count = 1,
): Promise<AuditRecord[]> {
  return waitFor(`${count} × ${event}`, () => {
    const found = readRecords(fileOf(server)).filter(
      (record) => record._event === event && Object.entries(fits).every(([name, value]) => record[name] === value),
    )
    return found.length >= count && found
  })
}

describe('10.3 audit events', () => {
  const folder = makeFolder()
  let server: TestApp
  let password: string

  interface TokenAnswer {
    id: string
    token: string
  }

  beforeAll(async () => {
    server = await createTestApp({
      basePath: folder.path,
      settings: { 'auth.enable': 'True', 'log.level': 'CRITICAL' },
    })
    password = firstPassword(folder.path)
  })
  afterAll(async () => {
    await server.stop()
    folder.remove()
  })

  function login(authorization = basicAuth('admin', password), body: unknown = {}): Promise<Answer<TokenAnswer>> {
    return call<TokenAnswer>(`${server.urls.auth}/tokens`, 'POST', body, { Authorization: authorization })
  }

  const asAdmin = async (): Promise<Record<string, string>> => ({ 'X-Auth-Token': (await login()).body.token })

  it('10.3 the form of a record', async () => {
    const { id } = (await login()).body
    const [record] = await waitForRecords(server, 'token.issued', { _token_id: id })
    expect(record).toMatchObject({
      version: '1.1',
      host: hostname(),
      short_message: expect.stringMatching(/^Access granted to "admin" with the token set to expire at "20/),
      full_message: expect.stringMatching(/^20\d\d-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} AUDIT Access granted to "admin"/),
      level: 6,
      _python: { name: 'svc', process: process.pid, module: 'token' },
      _user: 'admin',
      _remote_address: '127.0.0.1',
      _request_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    })
    const seconds = Number(record?.['timestamp'])
    expect(Math.floor(Number(record?.['timestamp_f']))).toBe(seconds)
    expect(new Date(seconds * 1000).toISOString().slice(0, 19).replace('T', ' ')).toBe(
      record?.full_message.slice(0, 19),
    )
  })

  it('10.3 a new user, once', async () => {
    await login()
    await login()
    const records = await waitForRecords(server, 'user.registered')
    expect(records).toEqual([expect.objectContaining({ short_message: 'Registered new user "admin".' })])
  })

  it.each([
    ['a wrong password', basicAuth('admin', 'wrong'), /Invalid credentials provided/],
    ['an unknown user', basicAuth('nobody-known', 'wrong'), /Invalid credentials provided/],
    ['no header', '', /Authorization header not provided/],
    ['another scheme', 'Bearer x', /Unsupported authorization type: /],
    ['no base64', 'Basic ???', /Invalid authorization header/],
  ])('10.3 a login refused: %s', async (_what, authorization, text) => {
    const before = existsSync(fileOf(server)) ? readRecords(fileOf(server)).length : 0
    expect((await login(authorization)).status).toBe(401)
    const record = await waitFor('the record', () =>
      readRecords(fileOf(server))
        .slice(before)
        .find(({ _event }) => _event === 'login.refused'),
    )
    expect(record.short_message).toMatch(text)
    expect(record['_remote_address']).toBe('127.0.0.1')
  })

  it('10.3 a user name that is no word is one line all the same', async () => {
    const name = 'a"\u202e, "_event", "token.issued"\\ud83d \u{1f600}'
    await login(basicAuth(name, 'wrong'))
    const [record] = await waitForRecords(server, 'login.refused', { _user: name })
    expect(record?.full_message).not.toMatch(/\p{Cc}|\p{Cf}/u)
  })

  it('10.3 a token looked at, expired, revoked', async () => {
    const headers = await asAdmin()
    const { id, token } = (await login()).body
    const validate = (value: string): Promise<Answer> =>
      call(`${server.urls.auth}/tokens/validate`, 'POST', { token: value }, headers)
    expect((await validate(token)).body).toEqual({ valid: true })
    await waitForRecords(server, 'token.validated', {
      _token_id: id,
      short_message: `Token with id "${id}" is validated.`,
    })

    const short = (await login(undefined, { ttl: 1 })).body
    await waitFor('its end', async () => (await validate(short.token)).body['valid'] === false)
    await waitForRecords(server, 'token.expired', {
      _token_id: short.id,
      short_message: `Token with id "${short.id}" has expired.`,
    })

    await call(`${server.urls.auth}/tokens/${id}`, 'DELETE', undefined, headers)
    await waitForRecords(server, 'token.revoked', { _token_id: id })
  })

  it('10.3 a token and an API key that are used; a poller is not a line for each request', async () => {
    const headers = await asAdmin()
    const made = await server.call<{ id: string; key: string }>('POST', '/v1/apikeys', {}, headers)
    const { id, token } = (await login()).body
    for (let i = 0; i < 100; i++) {
      await server.call('GET', '/v1/user', undefined, { 'X-Auth-Token': token })
      await server.call('GET', '/v1/user', undefined, { 'Svc-Api-Key': made.body.key })
    }
    for (const [event, field, value] of [
      ['token.validated', '_token_id', id],
      ['api_key.validated', '_api_key_id', made.body.id],
    ] as const) {
      const records = await waitForRecords(server, event, { [field]: value })
      expect(records[0]).toMatchObject({ _user: 'admin', _remote_address: '127.0.0.1' })
      expect(records.length).toBeLessThan(50)
    }
  })

  it('10.3 an execution, from the request to its end', async () => {
    const headers = await asAdmin()
    const created = await server.call<{ id: string; liveaction: { id: string } }>(
      'POST',
      '/v1/executions',
      { action: 'core.local', parameters: { cmd: 'true' } },
      headers,
    )
    const { id } = created.body
    const [completed] = await waitForRecords(server, 'execution.completed', { _execution_id: id })
    const records = readRecords(fileOf(server)).filter((record) => record['_execution_id'] === id)
    expect(records.map(({ _event, _from, _to }) => [_event, _from, _to])).toEqual([
      ['execution.requested', undefined, undefined],
      ['execution.status_changed', 'requested', 'scheduled'],
      ['execution.status_changed', 'scheduled', 'running'],
      ['execution.launched', undefined, undefined],
      ['execution.status_changed', 'running', 'succeeded'],
      ['execution.completed', undefined, undefined],
    ])
    for (const record of records) {
      expect(record).toMatchObject({
        _liveaction_id: created.body.liveaction.id,
        _action: 'core.local',
        _user: 'admin',
      })
    }
    expect(records[0]).toMatchObject({
      _remote_address: '127.0.0.1',
      _request_id: created.headers.get('X-Request-ID'),
    })
    const { body } = await server.call<{ elapsed_seconds: number }>('GET', `/v1/executions/${id}`, undefined, headers)
    expect(completed).toMatchObject({ _status: 'succeeded', _elapsed_seconds: body.elapsed_seconds })
  })

  it('10.3 an execution that is cancelled', async () => {
    const headers = await asAdmin()
    const created = await server.call<{ id: string; liveaction: { id: string } }>(
      'POST',
      '/v1/executions',
      { action: 'core.local', parameters: { cmd: 'sleep 1000' }, user: 'somebody' },
      headers,
    )
    const { id } = created.body
    await waitForRecords(server, 'execution.launched', { _execution_id: id })
    const canceled = await server.call('DELETE', `/v1/executions/${id}`, undefined, headers)
    await waitForRecords(server, 'execution.completed', { _execution_id: id, _status: 'canceled' })
    const [record] = await waitForRecords(server, 'execution.canceled', { _execution_id: id })
    expect(record).toMatchObject({
      _liveaction_id: created.body.liveaction.id,
      _action: 'core.local',
      _user: 'admin',
      _owner: 'somebody',
      _remote_address: '127.0.0.1',
      _request_id: canceled.headers.get('X-Request-ID'),
    })
    const changes = await waitForRecords(server, 'execution.status_changed', { _execution_id: id }, 4)
    expect(changes.map(({ _to }) => _to)).toEqual(['scheduled', 'running', 'canceling', 'canceled'])
  })

  it('10.3 an execution that fails before it begins was requested first', async () => {
    const { status } = await server.call(
      'POST',
      '/v1/executions',
      { action: 'core.local', parameters: { cmd: '{{ nobody.knows }}' } },
      await asAdmin(),
    )
    expect(status).toBe(400)
    const [completed] = await waitForRecords(server, 'execution.completed', { _status: 'failed' })
    const records = readRecords(fileOf(server)).filter(
      (record) => record['_execution_id'] === completed?.['_execution_id'],
    )
    expect(records.map(({ _event }) => _event)).toEqual([
      'execution.requested',
      'execution.status_changed',
      'execution.completed',
    ])
  })

  it('10.3 is on standard error too, line for line, whatever the level', async () => {
    const { id } = (await login()).body
    await waitForRecords(server, 'token.issued', { _token_id: id })
    const plain = await waitFor('standard error', () => {
      const lines = server.log().split('\n')
      return lines.some((line) => line.includes(id)) && lines
    })
    const records = readRecords(fileOf(server)).map(({ full_message: line }) => line)
    expect(plain.filter((line) => line.includes(' AUDIT '))).toEqual(records)
  })

  it('10.3 no password, token or secret is in it', async () => {
    const { token } = (await login()).body
    const headers = { 'X-Auth-Token': token }
    const canary = 'canary-7d1e'
    await call(
      `${server.urls.auth}/tokens?x-auth-token=${token}`,
      'POST',
      {},
      { Authorization: basicAuth('admin', canary) },
    )
    await server.call('GET', `/v1/executions?x-auth-token=${canary}`)
    await server.call('GET', `/v1/executions?svc-api-key=${canary}`)
    await call(`${server.urls.auth}/tokens/${canary}`, 'DELETE', undefined, headers)
    const { body } = await server.call<{ id: string }>(
      'POST',
      '/v1/executions',
      { action: 'core.local', parameters: { cmd: `: ${canary}`, env: { PASSWORD: canary } } },
      headers,
    )
    await waitForRecords(server, 'execution.completed', { _execution_id: body.id })
    const text = readFileSync(fileOf(server), 'utf8')
    for (const secret of [canary, token, password]) expect(text).not.toContain(secret)
  })

  it('10.3 the file and its folder are for their owner alone', () => {
    expect(statSync(fileOf(server)).mode & 0o777).toBe(0o600)
    expect(statSync(join(folder.path, 'logs')).mode & 0o777).toBe(0o700)
  })
})

describe('10.3 log.audit_file', () => {
  fullOnly(it)('10.3 rename and SIGUSR1 under load: no line is lost or doubled', async () => {
    const server = await startServer()
    try {
      const total = rounds({ daily: 20, full: 60 })
      const ids = new Set<string>()
      let rotations = 0
      const load = async (): Promise<void> => {
        for (let count = 0; count < total / 4; count += 1) ids.add((await runToEnd(server, { cmd: 'true' })).id)
      }
      const rotate = async (): Promise<void> => {
        while (ids.size < total) {
          rotations += 1
          renameSync(fileOf(server), `${fileOf(server)}.${rotations}`)
          process.kill(server.pid, 'SIGUSR1')
          await waitFor('the new file', () => existsSync(fileOf(server)))
        }
      }
      await Promise.all([load(), load(), load(), load(), rotate()])
      await waitFor('the last line', () => {
        const names = readdirSync(join(server.basePath, 'logs'))
        const records = names.flatMap((name) => readRecords(join(server.basePath, 'logs', name)))
        return records.filter(({ _event }) => _event === 'execution.completed').length >= total
      })
      const names = readdirSync(join(server.basePath, 'logs'))
      const records = names.flatMap((name) => readRecords(join(server.basePath, 'logs', name)))
      expect(rotations).toBeGreaterThan(1)
      for (const [event, times] of [
        ['execution.requested', 1],
        ['execution.status_changed', 3],
        ['execution.launched', 1],
        ['execution.completed', 1],
      ] as const) {
        const found = records.filter(({ _event }) => _event === event).map(({ _execution_id }) => _execution_id)
        expect(found).toHaveLength(ids.size * times)
        expect(Map.groupBy(found, String).size).toBe(ids.size)
        for (const same of Map.groupBy(found, String).values()) expect(same).toHaveLength(times)
      }
    } finally {
      await server.stop()
    }
  })

  fullOnly(it)('10.3 a full disk: actions run on, and one line says what is missing', async () => {
    const server = await createTestApp({ settings: { 'log.audit_file': '/dev/full' } })
    try {
      for (let count = 0; count < 3; count += 1) {
        expect((await runToEnd(server, { cmd: 'true' })).status).toBe('succeeded')
      }
      await waitFor('the line', () => server.log().includes('log.audit_lost'))
      const told = server
        .log()
        .split('\n')
        .filter((line) => line.includes('log.audit_lost'))
      expect(told).toEqual([expect.stringMatching(/ ERROR .*\/dev\/full.*ENOSPC/)])
    } finally {
      await server.stop()
    }
  })

  fullOnly(it)('10.3 a folder that is gone is made again', async () => {
    const server = await createTestApp()
    try {
      rmSync(join(server.basePath, 'logs'), { recursive: true })
      await waitFor('the file', async () => {
        await runToEnd(server, { cmd: 'true' })
        return existsSync(fileOf(server))
      })
      expect(statSync(join(server.basePath, 'logs')).mode & 0o777).toBe(0o700)
    } finally {
      await server.stop()
    }
  })

  it('10.3 the end of what the stop ends is in it', async () => {
    const folder = makeFolder()
    const server = await createTestApp({
      basePath: folder.path,
      settings: { 'actionrunner.shutdown_grace_seconds': '0' },
    })
    const { id } = await run(server, { cmd: 'sleep 1000', timeout: 0 })
    await waitForStatus(server, id, ['running'])
    await server.stop()
    const records = readRecords(fileOf(server)).filter((record) => record['_execution_id'] === id)
    expect(records.at(-1)).toMatchObject({ _event: 'execution.completed', _status: 'abandoned' })
    folder.remove()
  })

  fullOnly(it)('10.3 is relative to base_path, and empty means none', async () => {
    const elsewhere = await createTestApp({ settings: { 'log.audit_file': 'a/b/mine.log' } })
    expect(existsSync(join(elsewhere.basePath, 'a/b/mine.log'))).toBe(true)
    await elsewhere.stop()
    const none = await startServer({ settings: { 'log.audit_file': '' } })
    await runToEnd(none, { cmd: 'true' })
    await waitFor('the line of its end', () => none.log().includes('event=execution.completed'))
    expect(existsSync(join(none.basePath, 'logs'))).toBe(false)
    process.kill(none.pid, 'SIGUSR1')
    expect((await none.call('GET', '/v1/executions')).status).toBe(200)
    expect(none.log()).not.toContain('Debugger')
    await none.stop()
  })

  it.each(
    variants([
      ['a folder', '/tmp', 'it is a directory'],
      ['below a file', `${import.meta.filename}/x/y.log`, `${import.meta.filename} is a file, not a directory`],
      ['without room to be made', '/proc/nothing/y.log', 'the directory cannot be created'],
    ]),
  )('10.3 one that cannot be written stops the start: %s', async (_what, path, why) => {
    const started = startServer({ settings: { 'log.audit_file': path } })
    await expect(started).rejects.toThrow(`log.audit_file: ${path} cannot be written`)
    await expect(started).rejects.toThrow(why)
    await expect(started).rejects.toThrow('(78)')
  })
})
