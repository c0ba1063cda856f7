/** Failed logins of one user, or from one address, slow down: 429 with `Retry-After`. */
import { afterEach, describe, expect, it } from 'vitest'
import { basicAuth, firstPassword } from '../helpers/logins.ts'
import { createTestApp } from '../helpers/app.ts'
import { TestClock } from '../helpers/clock.ts'
import { type TestApp } from '../helpers/server.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import { auditRecords, send, type ErrorAnswer, type RawAnswer } from './support.ts'

const HOME = '127.0.0.1'
const ELSEWHERE = '127.0.0.2'
let server: TestApp
let password: string
let clock: TestClock

async function start(settings: Record<string, string>): Promise<void> {
  clock = new TestClock()
  server = await createTestApp({ settings: { 'auth.enable': 'True', ...settings }, clock })
  password = firstPassword(server.basePath)
}

afterEach(async () => {
  await server.stop()
})

interface Try {
  user?: string
  password?: string
  from?: string
  /** `X-Forwarded-For` */
  client?: string
  surface?: 'auth' | 'api'
}

function login({ user = 'admin', password: given = password, from = HOME, client, surface }: Try): Promise<RawAnswer> {
  const headers = {
    Authorization: basicAuth(user, given),
    ...(client === undefined ? {} : { 'X-Forwarded-For': client }),
  }
  const path = surface === 'api' ? '/auth/v1/tokens' : '/tokens'
  return send(server.urls[surface ?? 'auth'], { method: 'POST', path, headers, from })
}

const statusOf = async (by: Try): Promise<number> => (await login(by)).status

/** Statuses of so many wrong passwords, one after the other. */
async function guess(by: Try, times: number): Promise<number[]> {
  const statuses: number[] = []
  for (let n = 0; n < times; n++) statuses.push(await statusOf({ password: `guess ${n}`, ...by }))
  return statuses
}

/**
 * Guesses until one has to wait, which must be after so many were refused.
 *
 * @param status of a guess that is looked at
 * @returns the seconds to wait
 */
async function slowDown(limit: number, guessAt: (n: number) => Promise<RawAnswer>, status = 401): Promise<number> {
  for (let n = 0; n < limit; n++) expect([n, (await guessAt(n)).status]).toEqual([n, status])
  const { status: last, headers } = await guessAt(limit)
  expect(last).toBe(429)
  return Number(headers['retry-after'])
}

const many = (count: number, status: number): number[] => Array.from({ length: count }, () => status)

const request = (headers: Record<string, string>, from = HOME): Promise<RawAnswer> =>
  send(server.urls.api, { path: '/v1/user', headers, from })

async function tokenOf(by: Try): Promise<string> {
  const { status, text } = await login(by)
  expect(status).toBe(201)
  return (JSON.parse(text) as { token: string }).token
}

describe('01 failed logins of one user', () => {
  it('01 are answered 401 up to auth.failures_per_user, then 429 with Retry-After, whatever the password', async () => {
    await start({ 'auth.failures_per_user': '4', 'auth.max_failure_wait': '3600' })
    expect(await guess({}, 4)).toEqual(many(4, 401))
    const { headers, text } = await login({})
    expect(headers['retry-after']).toBe('1')
    const body = JSON.parse(text) as ErrorAnswer & { details: unknown }
    expect(body).toMatchObject({ code: 'TOO_MANY_FAILURES', details: { retry_after: 1 } })
    expect(body.faultstring).toContain('try again in 1 s')
    // With the right password, from another address, over the other listener, in another spelling: the same user.
    for (const by of [{}, { from: ELSEWHERE }, { surface: 'api' as const }, { user: 'ADMIN' }]) {
      expect(await statusOf(by)).toBe(429)
    }
    expect(await statusOf({ user: 'somebody' })).toBe(401)
    clock.advance(999)
    expect(await statusOf({})).toBe(429)
    clock.advance(1)
    expect(await statusOf({})).toBe(201)
  })

  fullOnly(it)('01 each further failure doubles the wait, up to auth.max_failure_wait', async () => {
    await start({ 'auth.failures_per_user': '1', 'auth.max_failure_wait': '5' })
    for (const seconds of [1, 2, 4, 5, 5]) {
      expect(await slowDown(1, () => login({ password: 'wrong' }))).toBe(seconds)
      clock.advance(seconds * 1000)
    }
    expect(await statusOf({})).toBe(201)
  })

  it('01 do not keep the user out of where the user has logged in', async () => {
    await start({ 'auth.failures_per_user': '3', 'auth.max_failure_wait': '3600' })
    expect(await statusOf({ from: HOME })).toBe(201)
    await slowDown(3, (n) => login({ from: ELSEWHERE, password: `guess ${n}` }))
    for (let n = 0; n < 5; n++) expect(await statusOf({ from: HOME })).toBe(201)
    expect(await guess({ from: HOME }, 2)).toEqual([401, 401])
    expect(await statusOf({ from: HOME })).toBe(201)
    await slowDown(3, (n) => login({ from: HOME, password: `guess ${n}` }))
  })

  it('01 many guesses at once are no more than one after the other', async () => {
    await start({ 'auth.failures_per_user': '5', 'auth.max_failure_wait': '3600' })
    const statuses = await Promise.all(Array.from({ length: 64 }, (_, n) => statusOf({ password: `guess ${n}` })))
    expect(statuses.toSorted((a, b) => a - b)).toEqual([...many(5, 401), ...many(59, 429)])
  })

  fullOnly(it)('01 many right logins at once all succeed', async () => {
    await start({ 'auth.failures_per_user': '5', 'auth.failures_per_address': '5' })
    const statuses = await Promise.all(Array.from({ length: 50 }, () => statusOf({})))
    expect(statuses).toEqual(many(50, 201))
  })

  it('01 the current password of a change counts as well', async () => {
    await start({ 'auth.failures_per_user': '3', 'auth.max_failure_wait': '3600' })
    const headers = { 'X-Auth-Token': await tokenOf({}), 'Content-Type': 'application/json' }
    const change = (current: string): Promise<RawAnswer> => {
      const body = JSON.stringify({ password: 'another password', current_password: current })
      return send(server.urls.api, { method: 'PUT', path: '/v1/users/admin', headers, body })
    }
    await slowDown(3, (n) => change(`guess ${n}`), 403)
    expect((await change(password)).status).toBe(429)
  })

  fullOnly(it)('01 are not counted with 0', async () => {
    await start({ 'auth.failures_per_user': '0', 'auth.failures_per_address': '0' })
    expect(await guess({}, 30)).toEqual(many(30, 401))
    for (let n = 0; n < 150; n++) expect((await request({ 'X-Auth-Token': `wrong ${n}` })).status).toBe(401)
  })
})

describe('01 failures from one address', () => {
  it('01 count whoever is tried, and stop logins of all users from there', async () => {
    await start({ 'auth.failures_per_address': '6', 'auth.max_failure_wait': '3600' })
    const token = await tokenOf({})
    for (let n = 0; n < 6; n++) expect(await statusOf({ user: `user${n}`, password: 'x' })).toBe(401)
    expect(await statusOf({ user: 'user8', password: 'x' })).toBe(429)
    expect(await statusOf({})).toBe(429)
    expect(await statusOf({ from: ELSEWHERE })).toBe(201)
    // Who is logged in goes on.
    expect((await request({ 'X-Auth-Token': token })).status).toBe(200)
  })

  it('01 are those of the client behind a trusted proxy, of IPv6 of its network', async () => {
    await start({ 'auth.failures_per_address': '2', 'auth.trusted_proxies': HOME, 'auth.max_failure_wait': '3600' })
    expect(await guess({ client: '198.51.100.1', user: 'a' }, 2)).toEqual([401, 401])
    expect(await statusOf({ client: '198.51.100.1' })).toBe(429)
    expect(await statusOf({ client: '198.51.100.2' })).toBe(201)
    expect(await statusOf({})).toBe(201)
    expect(await statusOf({ client: '2001:db8::1', user: 'b', password: 'x' })).toBe(401)
    expect(await statusOf({ client: '2001:DB8:0::2', user: 'c', password: 'x' })).toBe(401)
    expect(await statusOf({ client: '2001:db8::4' })).toBe(429)
    expect(await statusOf({ client: '2001:db8:0:1::3' })).toBe(201)
    // Nobody else is believed.
    const spoof = (n: number): Try => ({ from: ELSEWHERE, client: `203.0.113.${n}`, user: `s${n}`, password: 'x' })
    await slowDown(2, (n) => login(spoof(n)))
  })

  it('01 wrong tokens and API keys count, each once, and hold up nobody who has a right one', async () => {
    await start({ 'auth.failures_per_address': '5', 'auth.max_failure_wait': '3600' })
    const token = await tokenOf({})
    const right = { 'X-Auth-Token': token }
    for (let n = 0; n < 30; n++) expect((await request({ 'Svc-Api-Key': 'the old key' })).status).toBe(401)
    for (let n = 0; n < 2; n++) expect((await request({ 'X-Auth-Token': `guess ${n}` })).status).toBe(401)
    for (let n = 0; n < 2; n++) expect((await request({ 'Svc-Api-Key': `key guess ${n}` })).status).toBe(401)
    expect(await slowDown(0, () => request({ 'X-Auth-Token': 'one more' }))).toBe(1)
    for (let n = 0; n < 20; n++) expect((await request(right)).status).toBe(200)
    expect((await request({ 'Svc-Api-Key': 'the old key' })).status).toBe(401)
    expect((await request({})).status).toBe(401)
    expect(await statusOf({})).toBe(429)
    expect((await request({ 'X-Auth-Token': 'another' }, ELSEWHERE)).status).toBe(401)
  })

  it('01 tokens that were good once are no guesses', async () => {
    await start({ 'auth.failures_per_address': '3' })
    const admin = { 'X-Auth-Token': await tokenOf({}) }
    for (let n = 0; n < 6; n++) {
      const revoked = await tokenOf({})
      const { status } = await send(server.urls.auth, { method: 'DELETE', path: `/tokens/${revoked}`, headers: admin })
      expect(status).toBe(204)
      expect((await request({ 'X-Auth-Token': revoked })).status).toBe(401)
    }
    expect(await statusOf({})).toBe(201)
  })
})

describe('01 what is written about it', () => {
  it('01 one audit line for each wait, none for each request in it', async () => {
    await start({ 'auth.failures_per_user': '2', 'auth.max_failure_wait': '3600' })
    expect(await guess({}, 40)).toEqual([...many(2, 401), ...many(38, 429)])
    clock.advance(1000)
    expect(await guess({}, 40)).toEqual([...many(1, 401), ...many(39, 429)])
    const records = await waitFor('the audit records', () => {
      const found = auditRecords(server, 'login.throttled')
      return found.length > 1 && auditRecords(server, 'login.refused').length >= 3 && found
    })
    const who = { _user: 'admin', _remote_address: HOME }
    expect(records).toEqual([expect.objectContaining(who), expect.objectContaining(who)])
    expect(auditRecords(server, 'login.refused')).toHaveLength(3)
  })

  it('01 nor does who makes up a new wrong thing each time', async () => {
    await start({})
    for (let n = 0; n < 100; n++) {
      const headers = { Authorization: `made-up-${n} x` }
      expect((await send(server.urls.auth, { method: 'POST', path: '/tokens', headers })).status).toBe(401)
    }
    await waitFor('the audit records', () => auditRecords(server, 'login.refused').length >= 10)
    // Ten in ten seconds.
    expect(auditRecords(server, 'login.refused')).toHaveLength(10)
  })

  fullOnly(it)('01 who says the same wrong thing over and over does not fill the log', async () => {
    await start({})
    const logins = (): Promise<RawAnswer> => send(server.urls.auth, { method: 'POST', path: '/tokens' })
    for (let n = 0; n < 100; n++) {
      expect([(await logins()).status, (await request({ 'Svc-Api-Key': 'old' })).status]).toEqual([401, 401])
    }
    for (const event of ['login.refused', 'request.unauthenticated']) {
      const count = (): number => server.log().split(`event=${event}`).length - 1
      await waitFor('the first lines', () => count() >= 10)
      expect(count()).toBe(10)
    }
  })
})
