/** Messages of Amazon SNS, and everything that is not quite one: with certificates of openssl and an Amazon of the test. */
import { beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { isAppError } from '../../core/errors.ts'
import type { HttpGet } from '../../runners/index.ts'
import {
  makeSnsKey,
  snsCertificateUrl,
  snsConfirmationUrl,
  snsHost,
  snsMessage,
  snsTopic,
  type SnsFields,
  type SnsKey,
} from '../../../tests/helpers/sns.ts'
import { problemOfWebhook } from '../triggers/builtin/webhook-parameters.ts'
import { certificateUrl, confirmationUrl, createFetchAmazon } from './amazon.ts'
import { createCertificates } from './certificates.ts'
import { readHeaders } from './headers.ts'
import type { Verifier } from './signatures.ts'
import { createSnsVerifier } from './sns.ts'

let amazon: SnsKey
let stranger: SnsKey
beforeAll(async () => {
  amazon = await makeSnsKey()
  stranger = await makeSnsKey()
})

let get: ReturnType<typeof vi.fn<HttpGet>>
let info: ReturnType<typeof vi.fn<(event: string) => void>>
let clockMs = 0
const stopped = new AbortController()
const answerWith = (body: Buffer | string, statusCode = 200): HttpGet => {
  return () => Promise.resolve({ statusCode, body: Buffer.from(body) })
}
beforeEach(() => {
  get = vi.fn<HttpGet>(answerWith(amazon.certificate))
  info = vi.fn<(event: string) => void>()
  clockMs = 1000
})

function createVerifier(more: { tolerance_seconds?: number; timeLimit?: () => AbortSignal } = {}): Verifier {
  const { timeLimit, ...parameters } = more
  const fetch = () => createFetchAmazon((url, limits) => get(url, limits), stopped.signal, timeLimit)
  return createSnsVerifier(
    { scheme: 'sns', topics: ['arn:aws:sns:eu-west-1:123456789012:other', snsTopic], ...parameters },
    { certificates: createCertificates(fetch(), () => clockMs), confirm: fetch(), log: { info } as never },
  )
}

const seconds = (): number => Date.now() / 1000
type Headers = Record<string, string>

async function verify(message: SnsFields | string, verifier = createVerifier(), more: Headers = {}, at = seconds()) {
  const text = typeof message === 'string' ? message : JSON.stringify(message)
  const type = typeof message === 'string' ? 'Notification' : String(message['Type'])
  const headers = readHeaders(Object.entries({ 'x-amz-sns-message-type': type, ...more }).flat())
  return verifier.verify({ headers, body: Buffer.from(text) }, at)
}

/** The code and the message of the refusal. */
async function refusal(begun: Promise<unknown>): Promise<string> {
  try {
    await begun
  } catch (error) {
    if (isAppError(error)) return `${error.code} ${error.message}`
    throw error
  }
  return 'accepted'
}

describe('a notification', () => {
  test.each(['1', '2'])('with a valid signature of version %s is accepted', async (SignatureVersion) => {
    for (const more of [{}, { Subject: 'Alarm' }, { Message: '{"a": "ä😀"}\nType\nx' }, { Message: '' }]) {
      const message = snsMessage(amazon.key, { SignatureVersion, ...more })
      const proof = await verify(message)
      expect(JSON.parse(proof.eventText ?? '')).toEqual(message)
      expect(proof.signedId?.(undefined)).toBe(message['MessageId'])
      expect(await proof.answerTo?.(undefined)).toBeUndefined()
    }
  })

  test.each([
    ['Message', 'another'],
    ['Message', 'the disk of "db1" is full'],
    ['MessageId', 'another'],
    ['Subject', 'added'],
    ['Subject', ''],
    ['Timestamp', new Date(Date.now() - 1000).toISOString()],
    ['TopicArn', 'arn:aws:sns:eu-west-1:123456789012:other'],
    ['SignatureVersion', '1'],
    ['Signature', ''],
    ['Signature', 'AAAA'],
    ['Signature', '!'],
  ])('whose %s becomes %j is refused', async (name, value) => {
    expect(await refusal(verify({ ...snsMessage(amazon.key), [name]: value }))).toMatch(/^SIGNATURE_INVALID/)
  })

  test('may not become a confirmation, nor the other way round', async () => {
    const event = snsMessage(amazon.key, { Token: 'x', SubscribeURL: snsConfirmationUrl })
    expect(await refusal(verify({ ...event, Type: 'SubscriptionConfirmation' }))).toMatch(/^SIGNATURE_INVALID/)
    const confirmation = snsMessage(amazon.key, { Type: 'SubscriptionConfirmation' })
    expect(await refusal(verify({ ...confirmation, Type: 'Notification' }))).toMatch(/^SIGNATURE_INVALID/)
  })

  test('that somebody else signed is refused', async () => {
    expect(await refusal(verify(snsMessage(stranger.key)))).toMatch(/^SIGNATURE_INVALID/)
  })

  test('of another topic is refused, and nothing is fetched for it', async () => {
    for (const TopicArn of [`${snsTopic}2`, snsTopic.toUpperCase(), `${snsTopic} `, '']) {
      const message = snsMessage(amazon.key, { TopicArn })
      expect(await refusal(verify(message))).toMatch(/^SIGNATURE_INVALID .*which signature.topics does not name/)
    }
    expect(get).not.toHaveBeenCalled()
  })

  test('hides no other field behind a line end', async () => {
    // The text that is signed is the same for both.
    const honest = snsMessage(amazon.key, { MessageId: 'a', Message: 'x\nMessageId\nb\nSubject\ny' })
    const forged = { ...honest, Message: 'x', MessageId: 'b', Subject: 'y\nMessageId\na' }
    expect(await refusal(verify(honest))).toBe('accepted')
    expect(await refusal(verify(forged))).toMatch(/^SIGNATURE_MALFORMED .*a line end in its Subject/)
  })

  test('is accepted for two hours, unless the rule says otherwise', async () => {
    const message = snsMessage(amazon.key)
    const at = Date.parse(message['Timestamp'] ?? '') / 1000
    for (const off of [0, 3700, 7200]) {
      expect([off, await refusal(verify(message, undefined, {}, at + off))]).toEqual([off, 'accepted'])
    }
    for (const off of [7201, -7201]) {
      expect(await refusal(verify(message, undefined, {}, at + off))).toMatch(/^SIGNATURE_EXPIRED .*more than 7200 s/)
    }
    expect(await refusal(verify(message, createVerifier({ tolerance_seconds: 60 }), {}, at + 61))).toMatch(
      /^SIGNATURE_EXPIRED/,
    )
    expect(await refusal(verify({ ...message, Timestamp: 'now' }))).toMatch(/^SIGNATURE_MALFORMED/)
  })

  test('is refused while its certificate is not valid', async () => {
    for (const days of [-1, 3]) {
      const at = Date.now() + days * 86_400_000
      const message = snsMessage(amazon.key, { Timestamp: new Date(at).toISOString() })
      expect(await refusal(verify(message, undefined, {}, at / 1000))).toMatch(/^SIGNATURE_INVALID .*not valid now/)
    }
  })

  test('needs its form', async () => {
    const message = snsMessage(amazon.key)
    const refused = async (text: SnsFields | string, more?: Headers) => refusal(verify(text, undefined, more))
    for (const text of ['', 'x', '[]', '"x"', '{"a": 1', `${JSON.stringify(message)}x`]) {
      expect(await refused(text)).toMatch(/^SIGNATURE_MALFORMED/)
    }
    for (const name of Object.keys(message).filter((each) => each !== 'UnsubscribeURL')) {
      for (const value of [undefined, 7, null, {}, ['x']]) {
        expect(await refused({ ...message, [name]: value })).toMatch(/^SIGNATURE_MALFORMED/)
      }
    }
    expect(await refused(message, { 'x-amz-sns-message-type': 'SubscriptionConfirmation' })).toMatch(
      /^SIGNATURE_MALFORMED/,
    )
    expect(await refused({ ...message, Type: 'toString' })).toMatch(/^SIGNATURE_MALFORMED/)
    expect(await refused({ ...message, SignatureVersion: '3' })).toMatch(/^SIGNATURE_MALFORMED/)
    expect(await refused(message, { 'x-amz-sns-rawdelivery': 'true' })).toMatch(/turn off raw message delivery/)
    expect(await refused({ ...message, x: 'x'.repeat(2_100_000) })).toMatch(/^SIGNATURE_MALFORMED .*longer than/)
    expect(get).not.toHaveBeenCalled()
  })
})

const badHosts = [
  'http://sns.us-east-1.amazonaws.com',
  'HTTPS://sns.us-east-1.amazonaws.com',
  'ftp://sns.us-east-1.amazonaws.com',
  '//sns.us-east-1.amazonaws.com',
  'https://sns.us-east-1.amazonaws.com.evil.example',
  'https://evil.example',
  'https://evil.example/sns.us-east-1.amazonaws.com',
  'https://evil.example#sns.us-east-1.amazonaws.com',
  'https://sns.us-east-1.amazonaws.com@evil.example',
  'https://user@sns.us-east-1.amazonaws.com',
  'https://user:password@sns.us-east-1.amazonaws.com',
  'https://sns.us-east-1.amazonaws.com:8443',
  'https://sns.us-east-1.amazonaws.com:80',
  'https://sns.us-east-1.amazonaws.com.',
  'https://sns.us-east-1.amazonaws.com\\@evil.example',
  'https://snsxus-east-1.amazonaws.com',
  'https://sns.us-east-1xamazonaws.com',
  'https://evil.sns.us-east-1.amazonaws.com',
  'https://sns.evil.us-east-1.amazonaws.com',
  // Buckets of a storage that anybody can fill.
  'https://sns.s3.amazonaws.com',
  'https://sns.s3-us-west-2.amazonaws.com',
  'https://sns.s3-website-us-east-1.amazonaws.com',
  'https://sns.amazonaws.com',
  'https://127.0.0.1',
  ' https://sns.us-east-1.amazonaws.com',
]

describe('addresses of Amazon', () => {
  test('are those of SNS in a region', () => {
    for (const host of ['us-east-1', 'ap-southeast-2', 'us-gov-west-1', 'us-east-1.amazonaws.com:443']) {
      const origin = `https://sns.${host.replace(/^([^.]*)$/, '$1.amazonaws.com')}`
      expect([host, certificateUrl(`${origin}/a-B_1.pem`)?.port]).toEqual([host, ''])
      expect([host, confirmationUrl(`${origin}/?Action=x&Token=y`)?.port]).toEqual([host, ''])
    }
    expect(certificateUrl('https://sns.cn-north-1.amazonaws.com.cn/a.pem')?.hostname).toMatch(/\.cn$/)
  })

  test.each(badHosts)('are none at %s', async (host) => {
    expect(certificateUrl(`${host}/a.pem`)).toBeUndefined()
    expect(confirmationUrl(`${host}/?Action=ConfirmSubscription`)).toBeUndefined()
    const message = snsMessage(amazon.key, { SigningCertURL: `${host}/a.pem` })
    expect(await refusal(verify(message))).toMatch(/^SIGNATURE_INVALID .*SigningCertURL/)
    expect(get).not.toHaveBeenCalled()
  })

  test.each([
    '/a.pem?x',
    '/a.pem#x',
    '/a.pem/',
    '/a',
    '/',
    '',
    '/a/b.pem',
    '/../a.pem',
    '/%2e.pem',
    '/a.pem\n',
    '/?x=.pem',
  ])('of certificates do not end in %j', (path) => {
    expect(certificateUrl(snsHost + path)).toBeUndefined()
  })
})

describe('certificates', () => {
  test('many messages at once fetch one, and the next ones none for an hour', async () => {
    const verifier = createVerifier()
    const messages = Array.from({ length: 50 }, () => snsMessage(amazon.key))
    await Promise.all(messages.map((message) => verify(message, verifier)))
    clockMs += 3_599_999
    await verify(snsMessage(amazon.key), verifier)
    expect(get.mock.calls.map(([url, { maxBytes }]) => [url.href, maxBytes])).toEqual([[snsCertificateUrl, 65_536]])
    clockMs += 1
    await verify(snsMessage(amazon.key), verifier)
    expect(get).toHaveBeenCalledTimes(2)
  })

  test.each<[string, () => HttpGet]>([
    ['a redirect', () => answerWith('', 302)],
    ['an error', () => answerWith(amazon.certificate, 403)],
    ['no certificate', () => answerWith('-----BEGIN')],
    ['nothing', () => answerWith('')],
    ['too much', () => () => Promise.reject(new Error('The response body is longer than the limit (65536)'))],
  ])('%s instead of one is no proof; svc asks again after half a minute', async (_, answer) => {
    get.mockImplementation(answer())
    const verifier = createVerifier()
    const messages = [snsMessage(amazon.key), snsMessage(amazon.key)]
    for (const message of messages) {
      expect(await refusal(verify(message, verifier))).toMatch(/^SIGNATURE_UNCHECKABLE .*certificate/)
    }
    expect(get).toHaveBeenCalledTimes(1)
    get.mockImplementation(answerWith(amazon.certificate))
    clockMs += 30_000
    expect(await refusal(verify(messages[0] ?? '', verifier))).toBe('accepted')
  })

  test('a short key is none', async () => {
    const { key, certificate } = await makeSnsKey(1024)
    get.mockImplementation(answerWith(certificate))
    expect(await refusal(verify(snsMessage(key)))).toMatch(/^SIGNATURE_UNCHECKABLE/)
  })

  /** Answers only when its signal ends it. */
  const silent: HttpGet = (_, { signal }) =>
    new Promise((_resolve, reject) => {
      const end = (): void => reject(signal.reason as Error)
      if (signal.aborted) end()
      else signal.addEventListener('abort', end)
    })

  test('a slow answer has a time limit', async () => {
    get.mockImplementation(silent)
    const time = new AbortController()
    const verifier = createVerifier({ timeLimit: () => time.signal })
    const refused = refusal(verify(snsMessage(amazon.key), verifier))
    await vi.waitFor(() => expect(get).toHaveBeenCalled())
    time.abort()
    expect(await refused).toMatch(/^SIGNATURE_UNCHECKABLE/)
  })

  test('four requests run at a time; made-up addresses do not push out a certificate', async () => {
    const time = new AbortController()
    const verifier = createVerifier({ timeLimit: () => time.signal })
    await verify(snsMessage(amazon.key), verifier)
    get.mockImplementation(silent)
    const made = Array.from({ length: 120 }, (_, n) =>
      refusal(verify(snsMessage(amazon.key, { SigningCertURL: `${snsHost}/${n}.pem` }), verifier)),
    )
    await vi.waitFor(() => expect(get).toHaveBeenCalledTimes(5))
    time.abort()
    for (const text of await Promise.all(made)) expect(text).toMatch(/^SIGNATURE_UNCHECKABLE/)
    expect(get).toHaveBeenCalledTimes(5)
    expect(await refusal(verify(snsMessage(amazon.key), verifier))).toBe('accepted')
    // Nor is more asked for until the failures are forgotten.
    get.mockImplementation(answerWith(amazon.certificate))
    const fresh = snsMessage(amazon.key, { SigningCertURL: `${snsHost}/fresh.pem` })
    expect(await refusal(verify(fresh, createVerifier()))).toBe('accepted')
    expect(await refusal(verify(fresh, verifier))).toMatch(/^SIGNATURE_UNCHECKABLE/)
    clockMs += 30_000
    expect(await refusal(verify(fresh, verifier))).toBe('accepted')
  })
})

describe('subscriptions', () => {
  const confirmation = (fields: SnsFields = {}) =>
    snsMessage(amazon.key, { Type: 'SubscriptionConfirmation', ...fields })

  test.each(['1', '2'])('are confirmed with a GET (version %s)', async (SignatureVersion) => {
    const proof = await verify(confirmation({ SignatureVersion }))
    expect(get).toHaveBeenCalledTimes(1)
    expect(await proof.answerTo?.(undefined)).toEqual({ topic: snsTopic, subscription: 'confirmed' })
    expect(get.mock.calls.map(([url]) => url.href)).toEqual([snsCertificateUrl, snsConfirmationUrl])
    expect(info.mock.calls.map(([event]) => event)).toEqual(['webhook.subscribed'])
  })

  test.each([302, 400, 500])('are not when Amazon answers %d', async (status) => {
    const proof = await verify(confirmation())
    get.mockImplementation(answerWith('', status))
    expect(await refusal(Promise.resolve(proof.answerTo?.(undefined)))).toMatch(/^SUBSCRIPTION_UNCONFIRMED/)
    expect(info).not.toHaveBeenCalled()
    get.mockImplementation(answerWith('<ConfirmSubscriptionResponse/>'))
    expect(await proof.answerTo?.(undefined)).toEqual({ topic: snsTopic, subscription: 'confirmed' })
  })

  test('of other topics, or unsigned, are not', async () => {
    expect(await refusal(verify(confirmation({ TopicArn: `${snsTopic}2` })))).toMatch(/^SIGNATURE_INVALID/)
    for (const name of ['Token', 'SubscribeURL']) {
      const changed = { ...confirmation(), [name]: `${snsHost}/?Action=another` }
      expect(await refusal(verify(changed))).toMatch(/^SIGNATURE_INVALID/)
    }
    expect(get.mock.calls.map(([url]) => url.href)).not.toContain(`${snsHost}/?Action=another`)
  })

  test.each(badHosts)('svc does not go to %s', async (host) => {
    const proof = await verify(confirmation({ SubscribeURL: `${host}/?Action=ConfirmSubscription` }))
    get.mockClear()
    expect(await refusal(Promise.resolve(proof.answerTo?.(undefined)))).toMatch(/^SIGNATURE_INVALID .*SubscribeURL/)
    expect(get).not.toHaveBeenCalled()
  })

  test('that end are noted, and not begun again', async () => {
    const proof = await verify(snsMessage(amazon.key, { Type: 'UnsubscribeConfirmation' }))
    expect(await proof.answerTo?.(undefined)).toEqual({ topic: snsTopic, subscription: 'ended' })
    expect(get.mock.calls.map(([url]) => url.href)).toEqual([snsCertificateUrl])
    expect(info.mock.calls.map(([event]) => event)).toEqual(['webhook.unsubscribed'])
  })
})

test.each([
  [{ scheme: 'sns', topics: [snsTopic] }, 'none'],
  [{ scheme: 'sns' }, "'topics' is a required property"],
  [{ scheme: 'sns', topics: [snsTopic], secret: 'x' }, "signature.secret is not for the scheme 'sns'"],
  [{ scheme: 'sns', topics: [snsTopic], header: 'X-A' }, "only for the scheme 'hmac'"],
  [{ scheme: 'github', secret: 'x', topics: [snsTopic] }, "only for the scheme 'sns'"],
  [{ scheme: 'github' }, "'secret' is a required property"],
])('the parameters %j: %s', (signature, text) => {
  expect(problemOfWebhook({ url: 'a', signature }) ?? 'none').toContain(text)
})
