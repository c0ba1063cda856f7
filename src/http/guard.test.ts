/** Endpoints whose requests may prove themselves: who is let in, who is read, and what strangers can fill. */
import { connect } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startHttp, type TestHttp } from '../../tests/helpers/http.ts'
import { waitFor } from '../../tests/helpers/wait.ts'
import { credentialsMissing, permissionMissing, tokenInvalid, webhookNotRegistered } from '../core/errors.ts'
import { createAllowance } from './allowance.ts'
import { allRights, type AccessControl } from './authenticate.ts'
import type { ApiRequest, Route } from './route.ts'
import { webhookResource } from '../core/permissions.ts'

const MAX_BYTES = 10_000

/** `X-Auth-Token: good` may do everything, `poor` nothing; no other is known. */
const access: AccessControl = {
  authenticate(request) {
    const token = request.headers['x-auth-token']
    if (token === undefined) throw credentialsMissing()
    if (token !== 'good' && token !== 'poor') throw tokenInvalid()
    return { user: token, isAdmin: false, method: 'token' }
  },
  hasCredential: (request) => request.headers['x-auth-token'] !== undefined,
  login: () => {
    throw new Error('nobody logs in here')
  },
  rightsOf: ({ user }) =>
    user === 'good'
      ? allRights
      : {
          ...allRights,
          may: () => false,
          require(permission, resource) {
            throw permissionMissing(user, permission, resource?.uid)
          },
        },
  isCurrent: () => true,
  watch: () => () => undefined,
}

let seen: ApiRequest[] = []

const routes: Route[] = [
  {
    surface: 'api',
    method: 'post',
    path: '/hooks/*hook',
    summary: 'Takes what proves itself.',
    permission: 'webhook_send',
    resource: ({ params }) => webhookResource(params['hook'] ?? ''),
    provesItself({ params, headers }) {
      if (params['hook'] === 'refuses') throw webhookNotRegistered('refuses')
      return params['hook']?.startsWith('signed') === true && headers['x-signature'] !== undefined
    },
    rawBody: {},
    response: {},
    handler(request) {
      seen.push(request)
      return { user: request.principal.user, length: request.raw?.bytes.length }
    },
  },
]

let http: TestHttp

beforeAll(async () => {
  http = await startHttp(routes, { access, maxBodyBytes: MAX_BYTES })
})
beforeEach(() => {
  seen = []
})
afterAll(async () => {
  await http.close()
})

async function post(path: string, headers: Record<string, string> = {}, body = '{}') {
  const response = await fetch(`${http.urls.api}${path}`, { method: 'POST', headers, body })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> } // all answers are JSON
}

const signature = { 'X-Signature': 'x' }
const good = { 'X-Auth-Token': 'good' }
const poor = { 'X-Auth-Token': 'poor' }

describe('who is let in', () => {
  test('somebody without a credential, where the request can prove itself; as nobody, without rights', async () => {
    expect(await post('/v1/hooks/signed', signature)).toEqual({ status: 200, body: { user: '', length: 2 } })
    const [request] = seen
    expect(request?.principal).toEqual({ user: '', isAdmin: false, method: 'none' })
    expect(request?.rights.may('webhook_send', webhookResource('signed'))).toBe(false)
    expect(request?.rights.named('webhook_send')).toEqual([])
    expect(() => request?.rights.require('webhook_send')).toThrow('One of Token or API key required')
    expect(() => request?.rights.requireAdministrator()).toThrow('One of Token or API key required')
  })

  test.each([
    ['a hook without signatures', '/v1/hooks/plain', signature],
    ['no signature', '/v1/hooks/signed', {}],
  ])('nobody else without a credential: %s', async (_, path, headers) => {
    expect(await post(path, headers)).toMatchObject({ status: 401, body: { code: 'CREDENTIALS_MISSING' } })
    expect(seen).toEqual([])
  })

  test('a credential is looked at wherever one is given', async () => {
    expect(await post('/v1/hooks/signed', { ...signature, ...good })).toMatchObject({ body: { user: 'good' } })
    expect(await post('/v1/hooks/plain', good)).toMatchObject({ body: { user: 'good' } })
    for (const path of ['/v1/hooks/signed', '/v1/hooks/plain']) {
      expect(await post(path, { ...signature, 'X-Auth-Token': 'wrong' })).toMatchObject({
        status: 401,
        body: { code: 'TOKEN_INVALID' },
      })
    }
  })

  test('the permission is asked for unless the request can prove itself', async () => {
    expect(await post('/v1/hooks/plain', poor)).toMatchObject({
      status: 403,
      body: { faultstring: expect.stringContaining('"webhook:plain"') as string },
    })
    expect((await post('/v1/hooks/signed', poor)).status).toBe(403)
    expect(await post('/v1/hooks/signed', { ...poor, ...signature })).toMatchObject({ status: 200 })
  })

  test('a throw is the answer, whoever calls', async () => {
    for (const headers of [{}, good, poor]) expect((await post('/v1/hooks/refuses', headers)).status).toBe(404)
  })
})

describe('what is read of a stranger', () => {
  const head = (path: string, more: string): string => `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${more}\r\n`

  test('nothing where nothing can be proven: the answer does not wait for the body', async () => {
    for (const length of ['Content-Length: 1073741824\r\n', 'Transfer-Encoding: chunked\r\n']) {
      const multipart = 'Content-Type: multipart/form-data; boundary=x\r\n'
      const answer = await http.raw(head('/v1/hooks/plain', length + multipart), (text) =>
        text.includes('CREDENTIALS_MISSING'),
      )
      expect(answer).toContain(' 401 ')
    }
  })

  test('no more than the limit where it can: refused as soon as that is known', async () => {
    const announced = head('/v1/hooks/signed', 'X-Signature: x\r\nContent-Length: 1073741824\r\n')
    expect(await http.raw(announced, (text) => text.includes('BODY_TOO_LARGE'))).toContain(' 413 ')
    const chunked = head('/v1/hooks/signed', 'X-Signature: x\r\nTransfer-Encoding: chunked\r\n')
    const chunk = `2000\r\n${'x'.repeat(0x2000)}\r\n`
    expect(await http.raw(chunked + chunk + chunk, (text) => text.includes('BODY_TOO_LARGE'))).toContain(' 413 ')
  })

  test('an address can fill two bodies, and gets its room back', async () => {
    const opened = [1, 2, 3].map(() => {
      const socket = connect(Number(new URL(http.urls.api).port), '127.0.0.1')
      let answer = ''
      socket.on('data', (data) => (answer += String(data)))
      socket.on('error', () => undefined)
      socket.write(head('/v1/hooks/signed', `X-Signature: x\r\nContent-Length: ${MAX_BYTES}\r\n`))
      socket.write('x'.repeat(MAX_BYTES - 1))
      return { socket, answer: () => answer }
    })
    try {
      await waitFor('one of the three to be refused', () =>
        opened.some(({ answer }) => answer().includes('QUEUE_FULL') && answer().includes(' 503 ')),
      )
      const waiting = opened.filter(({ answer }) => answer() === '')
      expect(waiting).toHaveLength(2)
      // Requests with a credential do not share that memory.
      expect((await post('/v1/hooks/signed', { ...signature, ...good }, 'x'.repeat(MAX_BYTES))).status).toBe(200)
      waiting[0]?.socket.destroy()
      await waitFor('the room of who has gone to be free', async () => {
        return (await post('/v1/hooks/signed', signature, 'x'.repeat(MAX_BYTES))).status === 200
      })
      waiting[1]?.socket.write('x')
      await waitFor('the last one to be answered', () => waiting[1]?.answer().includes(' 200 '))
    } finally {
      for (const { socket } of opened) socket.destroy()
    }
  })
})

describe('an allowance', () => {
  test('is bounded for each, and for all together', () => {
    const allowance = createAllowance({ what: 'bytes', totalBytes: 25, bytesPerKey: 10 })
    const a = allowance.begin('a')
    a.add(6)
    a.add(4)
    expect(() => allowance.begin('a').add(1)).toThrow('try again later')
    allowance.begin('b').add(10)
    const c = allowance.begin('c')
    c.add(5)
    expect(() => c.add(1)).toThrow('try again later')
    a.end()
    c.add(5)
    expect(() => c.add(1)).toThrow('try again later')
    a.end()
    allowance.begin('a').add(5)
  })
})

describe('names with slashes', () => {
  const hookOf = async (rawPath: string): Promise<string | number> => {
    const answer = await http.raw(
      `POST ${rawPath} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Auth-Token: good\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
    )
    const status = Number(answer.slice(9, 12))
    return status === 200 ? (seen.at(-1)?.params['hook'] ?? '') : status
  }

  test.each([
    ['/v1/hooks/a', 'a'],
    ['/v1/hooks/a/b', 'a/b'],
    ['/v1/hooks/a%2Fb', 'a/b'],
    ['/v1/hooks/a%2fb/c', 'a/b/c'],
    ['/v1/hooks/a//b', 'a//b'],
    ['/v1/hooks/a/', 'a'],
    ['/v1/hooks/a%2F', 'a/'],
    ['/v1/hooks/%2Fa', '/a'],
    ['/v1/hooks//a', '/a'],
    ['/v1/hooks/../things', '../things'],
    ['/v1/hooks/a/../b', 'a/../b'],
    ['/v1/hooks/%2e%2e/things', '../things'],
    ['/v1/hooks/a;b=c', 'a;b=c'],
    ['/v1/hooks/a%3Bb', 'a;b'],
    ['/v1/hooks/a%253Bb', 'a%3Bb'],
    ['/v1/hooks/a%00b', 'a\0b'],
    ['/v1/hooks/%C3%A4', 'ä'],
    ['/hooks/a', 'a'],
    ['/api/hooks/a', 'a'],
    ['/api/v1/hooks/a?x=/y', 'a'],
    ['/v1/hooks', 404],
    ['/v1/hooks/', 404],
    ['/v1/hooks/%ff', 400],
    ['/v1//hooks/a', 404],
    ['/v1/hooks;/a', 404],
    ['/v1/Hooks/a', 404],
    ['/v1/hooks%2Fa', 404],
  ])('%s', async (path, hook) => {
    expect(await hookOf(path)).toBe(hook)
  })

  test('no spelling of an address gets somebody in without a credential', async () => {
    const parts = [
      'hooks',
      'plain',
      'signed',
      '..',
      '.',
      '',
      '%2F',
      '%2e%2e',
      ';',
      '%3B',
      '%00',
      '//',
      '%252F',
      '/',
      '?',
      'v1',
      'api',
    ]
    let seed = 7
    const pick = (): string => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
      return parts[seed % parts.length] ?? ''
    }
    const codes = new Set<unknown>()
    for (let round = 0; round < 300; round += 1) {
      const path = `/v1/hooks/${pick()}/${pick()}${pick()}/${pick()}`
      // With a signature only what begins with "signed" can be proven; without one nothing.
      const answer = await http.raw(
        `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
      )
      codes.add(Number(answer.slice(9, 12)))
    }
    expect(seen).toEqual([])
    expect([...codes].filter((code) => code !== 401 && code !== 404)).toEqual([])
    expect(codes).toContain(401)
  })
})
