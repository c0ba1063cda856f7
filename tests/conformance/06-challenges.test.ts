/** Senders that verify an address before they send events: they are answered, and nothing is dispatched. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { makeFolder } from '../helpers/folders.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import type { TestApp } from '../helpers/server.ts'
import { rowsOf, send, type RawAnswer } from './support.ts'

const folder = makeFolder()
let server: TestApp
let token: Record<string, string>
let key = ''

beforeAll(async () => {
  server = await createTestApp({ basePath: folder.path, settings: { 'auth.enable': 'True' } })
  token = await signIn(server, 'admin', firstPassword(folder.path))
  key = (await server.call<{ key: string }>('POST', '/v1/apikeys', {}, token)).body.key
})
afterAll(async () => {
  await server.stop()
  folder.remove()
})

let made = 0
async function makeHook(parameters: Record<string, unknown>): Promise<[hook: string, status: number]> {
  made += 1
  const url = `challenged${made}`
  const { status } = await server.call(
    'POST',
    '/v1/rules',
    {
      name: url,
      enabled: true,
      trigger: { type: 'core.svc.webhook', parameters: { url, ...parameters } },
      action: { ref: 'core.noop' },
    },
    token,
  )
  return [url, status]
}

const ask = (path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<RawAnswer> =>
  send(server.urls.api, { method, path: `/v1/webhooks/${path}`, headers })
const countInstances = (): number =>
  rowsOf<{ n: number }>(
    server,
    `select count(*) as n from trigger_instances where trigger_type = 'core.svc.webhook'`,
  )[0]?.n ?? -1
const plain = { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' }
const meta = (verify: string, challenge = '1158201444'): string =>
  `?hub.mode=subscribe&hub.challenge=${encodeURIComponent(challenge)}&hub.verify_token=${encodeURIComponent(verify)}`

describe('meta', () => {
  it('the right verify token gets the text back, as text', async () => {
    const [hook] = await makeHook({ challenge: { scheme: 'meta', token: 'a token & more' } })
    const before = countInstances()
    const answer = await ask(hook + meta('a token & more'))
    expect([answer.status, answer.text, answer.headers]).toEqual([200, '1158201444', expect.objectContaining(plain)])
    const markup = await ask(hook + meta('a token & more', '<script>alert(1)</script>'))
    expect([markup.text, markup.headers]).toEqual(['<script>alert(1)</script>', expect.objectContaining(plain)])
    expect(countInstances()).toBe(before)
  })

  it('every other request gets nothing without a credential', async () => {
    const [hook] = await makeHook({ challenge: { scheme: 'meta', token: 'right' } })
    for (const query of [meta('wrong'), meta('righ'), meta('right '), meta('')]) {
      expect([query, (await ask(hook + query)).status]).toEqual([query, 401])
    }
    const others = ['', '?hub.mode=unsubscribe&hub.challenge=1&hub.verify_token=right', meta('right', 'x'.repeat(2001))]
    for (const query of others) expect([query, (await ask(hook + query)).status]).toEqual([query, 401])
    expect((await ask(hook, {}, 'POST')).status).toBe(401)
    const viewed = await ask(hook, token)
    expect([viewed.status, viewed.text.includes('right')]).toEqual([200, false])
  })

  it('the token may be an item of the datastore; without it nobody is answered', async () => {
    const [hook] = await makeHook({ challenge: { scheme: 'meta', token: '{{ svckv.system.verify }}' } })
    expect((await ask(hook + meta(''))).status).toBe(503)
    await server.call('PUT', '/v1/keys/verify', { name: 'verify', value: 'stored\n' }, token)
    expect((await ask(hook + meta('stored'))).text).toBe('1158201444')
    expect((await ask(hook + meta('{{ svckv.system.verify }}'))).status).toBe(401)
  })

  it('a hook without the challenge answers no stranger', async () => {
    const [hook] = await makeHook({ signature: { scheme: 'github', secret: 's' } })
    expect((await ask(hook + meta('s'))).status).toBe(401)
    expect((await ask(`unknown${meta('s')}`)).status).toBe(401)
  })
})

it('okta gets the text of its header', async () => {
  const [hook] = await makeHook({ challenge: { scheme: 'okta' } })
  const answer = await ask(hook, { 'X-Okta-Verification-Challenge': 'a "text"' })
  expect([answer.status, JSON.parse(answer.text)]).toEqual([200, { verification: 'a "text"' }])
  expect((await ask(hook)).status).toBe(401)
  const long = await ask(hook, { 'X-Okta-Verification-Challenge': 'x'.repeat(2001) })
  expect(long.status).toBe(401)
})

it('Microsoft Graph gets its token; its address has the key', async () => {
  const [hook] = await makeHook({ challenge: { scheme: 'graph' } })
  const before = countInstances()
  const answer = await ask(`${hook}?svc-api-key=${key}&validationToken=Validation%3A%20x`, {}, 'POST')
  expect([answer.status, answer.text, answer.headers]).toEqual([200, 'Validation: x', expect.objectContaining(plain)])
  expect((await ask(`${hook}?validationToken=x`, {}, 'POST')).status).toBe(401)
  expect(countInstances()).toBe(before)
  const [usual] = await makeHook({})
  expect((await ask(`${usual}?svc-api-key=${key}&validationToken=x`, {}, 'POST')).status).toBe(202)
})

it.each([
  [{ scheme: 'meta' }],
  [{ scheme: 'meta', token: 'x ' }],
  [{ scheme: 'meta', token: '{{ 7 * 7 }}' }],
  [{ scheme: 'okta', token: 'x' }],
  [{ scheme: 'other' }],
])('%j is refused', async (challenge) => {
  expect((await makeHook({ challenge }))[1]).toBe(400)
})
