/** Amazon SNS at a real server with authentication. Amazon itself is played by the test. */
import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import type { HttpGet } from '../../src/runners/index.ts'
import { createTestApp } from '../helpers/app.ts'
import { makeFolder } from '../helpers/folders.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import type { TestApp } from '../helpers/server.ts'
import { makeSnsKey, snsConfirmationUrl, snsMessage, snsTopic, type SnsFields, type SnsKey } from '../helpers/sns.ts'
import { waitFor } from '../helpers/wait.ts'
import { auditRecords, rowsOf, send, type ErrorAnswer, type RawAnswer } from './support.ts'

const get = vi.fn<HttpGet>()

const folder = makeFolder()
let server: TestApp
let token: Record<string, string>
let amazon: SnsKey

beforeAll(async () => {
  amazon = await makeSnsKey()
  server = await createTestApp({ basePath: folder.path, get, settings: { 'auth.enable': 'True' } })
  token = await signIn(server, 'admin', firstPassword(folder.path))
  const made = await makeRule('alarms', { scheme: 'sns', topics: [snsTopic] })
  if (made.status !== 201) throw new Error(made.text)
})
afterAll(async () => {
  await server.stop()
  folder.remove()
})
beforeEach(() => {
  get.mockReset()
  get.mockImplementation((url) =>
    Promise.resolve({
      statusCode: 200,
      body: url.pathname.endsWith('.pem') ? amazon.certificate : Buffer.from('<ok/>'),
    }),
  )
})

const makeRule = (url: string, signature: object) =>
  server.call(
    'POST',
    '/v1/rules',
    {
      name: url,
      enabled: true,
      trigger: { type: 'core.svc.webhook', parameters: { url, signature } },
      action: { ref: 'core.noop' },
    },
    token,
  )

function post(message: SnsFields, headers: Record<string, string> = {}): Promise<RawAnswer> {
  return send(server.urls.api, {
    method: 'POST',
    path: '/v1/webhooks/alarms',
    headers: {
      'Content-Type': 'text/plain; charset=UTF-8',
      'x-amz-sns-message-type': String(message['Type']),
      ...headers,
    },
    body: JSON.stringify(message),
  })
}

const codeOf = ({ text }: RawAnswer): string => (JSON.parse(text) as ErrorAnswer).code
const bodies = (): unknown[] =>
  rowsOf<{ payload: string }>(
    server,
    "select payload from trigger_instances where trigger_type = 'core.svc.webhook' order by id",
  ).map(({ payload }) => (JSON.parse(payload) as { body: unknown }).body)

it('a certificate that cannot be fetched is 503, so that Amazon sends again', async () => {
  get.mockImplementation(() => Promise.reject(new Error('No response')))
  const answer = await post(snsMessage(amazon.key, { SigningCertURL: 'https://sns.us-east-1.amazonaws.com/gone.pem' }))
  expect([answer.status, codeOf(answer), answer.headers['retry-after']]).toEqual([503, 'SIGNATURE_UNCHECKABLE', '5'])
  expect(server.log()).toContain('No response')
  expect(bodies()).toEqual([])
})

it('a subscription is confirmed, and is no event; a failure is 503 with the reason in the log', async () => {
  const message = snsMessage(amazon.key, { Type: 'SubscriptionConfirmation' })
  const works = get.getMockImplementation()
  get.mockImplementation((url, limits) =>
    url.pathname === '/' ? Promise.resolve({ statusCode: 502, body: Buffer.from('') }) : works!(url, limits),
  )
  const failed = await post(message)
  expect([failed.status, codeOf(failed), failed.headers['retry-after']]).toEqual([503, 'SUBSCRIPTION_UNCONFIRMED', '5'])
  expect(server.log()).toContain('answered 502')
  get.mockImplementation(works!)
  const confirmed = await post(message)
  expect([confirmed.status, JSON.parse(confirmed.text)]).toEqual([200, { topic: snsTopic, subscription: 'confirmed' }])
  expect(get.mock.calls.map(([url]) => url.href)).toContain(snsConfirmationUrl)
  const ended = await post(snsMessage(amazon.key, { Type: 'UnsubscribeConfirmation' }))
  expect([ended.status, JSON.parse(ended.text)]).toEqual([200, { topic: snsTopic, subscription: 'ended' }])
  expect(bodies()).toEqual([])
})

it('a notification is an event, once, whatever it says of its own form', async () => {
  const message = snsMessage(amazon.key, { Subject: 'Alarm' })
  const first = await post(message)
  expect(first.status).toBe(202)
  // What is not signed cannot make it another event.
  const again = await post(message, {
    'Content-Type': 'application/x-www-form-urlencoded',
    'X-Amz-Sns-Message-Id': 'x',
  })
  expect([again.status, again.headers['idempotent-replayed']]).toEqual([202, 'true'])
  expect(again.headers['svc-trigger-instance-id']).toBe(first.headers['svc-trigger-instance-id'])
  expect(bodies()).toEqual([message])
})

it('others are refused, with the reason in the audit log', async () => {
  const before = bodies().length
  const refused = [
    await post({ ...snsMessage(amazon.key), Message: 'forged' }),
    await post(snsMessage(amazon.key, { TopicArn: `${snsTopic}2` })),
    await post(snsMessage(amazon.key, { Timestamp: '2012-04-25T21:49:25.719Z' })),
    await post({ Type: 'Notification' }),
    await post(snsMessage(amazon.key), { ...token, 'x-amz-sns-message-type': '' }),
  ]
  expect(refused.map((answer) => [answer.status, codeOf(answer)])).toEqual([
    [401, 'SIGNATURE_INVALID'],
    [401, 'SIGNATURE_INVALID'],
    [401, 'SIGNATURE_EXPIRED'],
    [401, 'SIGNATURE_MALFORMED'],
    [401, 'SIGNATURE_MALFORMED'],
  ])
  const unsigned = await send(server.urls.api, {
    method: 'POST',
    path: '/v1/webhooks/alarms',
    body: '{}',
    headers: token,
  })
  expect([unsigned.status, codeOf(unsigned)]).toEqual([401, 'SIGNATURE_MISSING'])
  expect(bodies()).toHaveLength(before)
  const wanted = ['SIGNATURE_INVALID', 'SIGNATURE_EXPIRED', 'SIGNATURE_MALFORMED']
  await waitFor('the refusals in the audit log', () => {
    const noted = auditRecords(server, 'webhook.refused').map((record) => record['_code'])
    return wanted.every((code) => noted.includes(code))
  })
})

it.each([
  [{ scheme: 'sns' }, "'topics' is a required property"],
  [{ scheme: 'sns', topics: [] }, 'non-empty'],
  [{ scheme: 'sns', topics: ['alarms'] }, 'does not match'],
  [{ scheme: 'sns', topics: ['arn:aws:sqs:us-east-1:123456789012:alarms'] }, 'does not match'],
  [{ scheme: 'sns', topics: [snsTopic], secret: 'x' }, 'signature.secret'],
])('%j → 400', async (signature, text) => {
  const answer = await makeRule('other', signature)
  expect([answer.status, answer.text]).toEqual([400, expect.stringContaining(text)])
})
