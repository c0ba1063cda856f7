/** Every scheme against recorded requests, and against everything that is not quite one of them. */
import { createHash, createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { isAppError } from '../../core/errors.ts'
import { MASK } from '../../lib/schema/index.ts'
import type { SignatureParameters } from '../triggers/types.ts'
import { problemOfWebhook } from '../triggers/builtin/webhook-parameters.ts'
import { readHeaders } from './headers.ts'
import { createVerifier } from './signatures.ts'

interface Ids {
  signedId?: string
  unsignedId?: string
}

interface Recorded {
  name: string
  /** Where it comes from. */
  source: string
  parameters: SignatureParameters
  headers: [name: string, value: string][]
  body: string
  /** Time of the request; undefined: the scheme knows none. */
  at?: number
  proof: Ids
  /** Headers and the part of them that is signed or is the signature. */
  signed: string[]
}

const slackBody =
  'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar' +
  '&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com' +
  '%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d' +
  '10d2c447fce8b6703c'
const zoomBody =
  '{"event":"endpoint.url_validation","payload":{"plainToken":"qgg8vlvZRS6UYooatFL8Aw"},"event_ts":1654503849680}'
const idOf = (text: string): string => createHash('sha256').update(text).digest('hex')
const genericBody = '{"a": "ä😀"}\n'

const recorded: Recorded[] = [
  {
    name: 'GitHub',
    source: 'the example of its documentation',
    parameters: { scheme: 'github', secret: "It's a Secret to Everybody" },
    headers: [
      ['X-Hub-Signature-256', 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17'],
      ['X-GitHub-Delivery', '72d3162e-cc78-11e3-81ab-4c9367dc0958'],
    ],
    body: 'Hello, World!',
    proof: { unsignedId: '72d3162e-cc78-11e3-81ab-4c9367dc0958' },
    signed: ['X-Hub-Signature-256'],
  },
  {
    name: 'GitLab, token',
    source: 'written by hand',
    parameters: { scheme: 'gitlab', secret: 'tökén of the project' },
    headers: [['X-Gitlab-Token', Buffer.from('tökén of the project').toString('latin1')]],
    body: '{"object_kind":"push"}',
    proof: {},
    signed: ['X-Gitlab-Token'],
  },
  {
    name: 'GitLab, signed',
    source: 'computed with Python',
    parameters: { scheme: 'gitlab', secret: 'whsec_c2lnbmluZyB0b2tlbiBvZiBnaXRsYWI=' },
    headers: [
      ['webhook-id', '3f2f5a1e-8b8e-4c6c-9b43-0c6f3f8c2f11'],
      ['webhook-timestamp', '1700000000'],
      ['webhook-signature', 'v1,JN8fWmQKW0SFseLzBS7v/nrAf4/r0fulfSMJWe7pd3A='],
    ],
    body: '{"object_kind":"push","ref":"refs/heads/main"}',
    at: 1_700_000_000,
    proof: { signedId: '3f2f5a1e-8b8e-4c6c-9b43-0c6f3f8c2f11' },
    signed: ['webhook-id', 'webhook-timestamp', 'webhook-signature'],
  },
  {
    name: 'Stripe',
    source: 'computed with Python and openssl',
    parameters: { scheme: 'stripe', secret: 'whsec_test_secret_for_recorded_vectors' },
    headers: [
      ['Stripe-Signature', 't=1700000000,v0=00,v1=41285482da613222c6043786bfba470fb5c3e519942de9ec721e59075647e48c'],
    ],
    body: '{"id":"evt_1","object":"event","type":"charge.succeeded"}',
    at: 1_700_000_000,
    proof: { signedId: 'event evt_1' },
    signed: [],
  },
  {
    name: 'Slack',
    source: 'the example of its documentation',
    parameters: { scheme: 'slack', secret: '8f742231b10e8888abcd99yyyzzz85a5' },
    headers: [
      ['X-Slack-Signature', 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503'],
      ['X-Slack-Request-Timestamp', '1531420618'],
    ],
    body: slackBody,
    at: 1_531_420_618,
    proof: { signedId: idOf(`1531420618.${slackBody}`) },
    signed: ['X-Slack-Signature', 'X-Slack-Request-Timestamp'],
  },
  {
    name: 'Standard Webhooks',
    source: 'the example of a library for it',
    parameters: { scheme: 'standard', secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' },
    headers: [
      ['webhook-id', 'msg_p5jXN8AQM9LWM0D4loKWxJek'],
      ['webhook-timestamp', '1614265330'],
      ['webhook-signature', 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='],
    ],
    body: '{"test": 2432232314}',
    at: 1_614_265_330,
    proof: { signedId: 'msg_p5jXN8AQM9LWM0D4loKWxJek' },
    signed: ['webhook-id', 'webhook-timestamp', 'webhook-signature'],
  },
  {
    name: 'Gitea, which writes no prefix',
    source: 'computed with openssl',
    parameters: { scheme: 'github', secret: 'gitea secret' },
    headers: [
      ['X-Gitea-Signature', '99c6f92cc56487df18837fe9b006e3d7d668359bd88294e510b1857b3fa56c9c'],
      ['X-Gitea-Delivery', 'f6266f16-1bf3-46a5-9ea4-602e06ead473'],
    ],
    body: '{"ref":"refs/heads/main"}',
    proof: { unsignedId: 'f6266f16-1bf3-46a5-9ea4-602e06ead473' },
    signed: ['X-Gitea-Signature'],
  },
  {
    name: 'Zoom',
    source: 'computed with openssl',
    parameters: { scheme: 'zoom', secret: 'zoom secret' },
    headers: [
      ['x-zm-signature', 'v0=e1d27f3fbbbdaa2d609570e1220bc99bea76970f8004be843c2c2465f6e46b85'],
      ['x-zm-request-timestamp', '1700000000'],
    ],
    body: zoomBody,
    at: 1_700_000_000,
    proof: { signedId: idOf(`1700000000.${zoomBody}`) },
    signed: ['x-zm-signature', 'x-zm-request-timestamp'],
  },
  {
    name: 'Svix',
    source: 'computed with openssl',
    parameters: { scheme: 'standard', secret: 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODk=' },
    headers: [
      ['svix-id', 'msg_1'],
      ['svix-timestamp', '1700000000'],
      ['svix-signature', 'v1,Uz46xk3be/PwarvrMfIhy9yjfeS9vY8atfExy9uwZQ0='],
    ],
    body: '{"a":1}',
    at: 1_700_000_000,
    proof: { signedId: 'msg_1' },
    signed: ['svix-id', 'svix-timestamp', 'svix-signature'],
  },
  {
    name: 'HMAC, SHA-1 in hexadecimal',
    source: 'computed with Python',
    parameters: { scheme: 'hmac', secret: 'käy', header: 'X-Signature', algorithm: 'sha1', id_header: 'X-Id' },
    headers: [['X-Signature', '02dba92aafab3be733a56a8d0b71c2edf0f68e15']],
    body: genericBody,
    proof: {},
    signed: ['X-Signature'],
  },
  {
    name: 'HMAC, base64',
    source: 'computed with Python',
    parameters: { scheme: 'hmac', secret: 'generic secret', header: 'x-signature', encoding: 'base64' },
    headers: [['X-Signature', 'ytXHv7GYZKVGTGG162rfvtQmDyNONM9gUnjOfBSyqig=']],
    body: genericBody,
    proof: {},
    signed: ['X-Signature'],
  },
  {
    name: 'HMAC, SHA-512 over a template',
    source: 'computed with Python',
    parameters: {
      scheme: 'hmac',
      secret: 'generic secret',
      header: 'X-Signature',
      algorithm: 'sha512',
      encoding: 'base64',
      prefix: 'v1:',
      template: '2026-v1|{id}|{timestamp}|{body}|end',
      timestamp_header: 'X-Time',
      id_header: 'X-Id',
    },
    headers: [
      ['X-Signature', 'v1:EQ+QZBD5KEh/4azFDs/CSBrvjiBZehgvGYD/zxkqoeYV3eS7/Kfas84XWjDWNqoc8LOFYhYrQFvJf7g60dmrGg=='],
      ['X-Time', '1700000000'],
      ['X-Id', 'delivery-7'],
    ],
    body: genericBody,
    at: 1_700_000_000,
    proof: { signedId: 'delivery-7' },
    signed: ['X-Signature', 'X-Time', 'X-Id'],
  },
]

const plain = (text: string): string => text

interface Changes {
  headers?: [string, string][]
  body?: Buffer
  now?: number
  parameters?: Partial<SignatureParameters>
  readSecret?: (text: string) => string
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString())
  } catch {
    return undefined
  }
}

/** What the proof tells of the delivery, or the code of the refusal. */
function outcome(request: Recorded, changes: Changes = {}): Ids | string {
  const verifier = createVerifier({ ...request.parameters, ...changes.parameters }, changes.readSecret ?? plain)
  const body = changes.body ?? Buffer.from(request.body)
  try {
    const { signedId, unsignedId } = verifier.verify(
      { headers: readHeaders((changes.headers ?? request.headers).flat()), body },
      changes.now ?? request.at ?? 1_700_000_000,
    )
    return {
      ...(signedId === undefined ? {} : { signedId: signedId(parsed(body)) }),
      ...(unsignedId === undefined ? {} : { unsignedId }),
    }
  } catch (error) {
    if (!isAppError(error)) throw error
    const kind = error.code === 'SIGNATURE_UNCHECKABLE' ? 'unavailable' : 'unauthenticated'
    const isTold = [request.parameters.secret ?? []].flat().some((secret) => error.message.includes(secret))
    if (error.kind !== kind || isTold) throw error
    return error.code
  }
}

const isRefusal = (found: unknown): boolean => refusals.some((code) => code === found)
const refusals = ['SIGNATURE_INVALID', 'SIGNATURE_MALFORMED', 'SIGNATURE_EXPIRED', 'SIGNATURE_MISSING']

describe.each(recorded.map((request) => [request.name, request] as const))('%s', (_, request) => {
  const main = request.signed.at(-1) ?? request.headers[0]?.[0] ?? ''
  const signatureName = createVerifier(request.parameters, plain).headers
  const isSignature = (name: string): boolean => signatureName.includes(name.toLowerCase())

  test(`accepts the recorded request (${request.source})`, () => {
    expect(problemOfWebhook({ url: 'a', signature: { ...request.parameters } })).toBeUndefined()
    expect(outcome(request)).toEqual(request.proof)
  })

  test('rejects one changed bit of the body; only a token does not cover the body', () => {
    const verdict = request.name === 'GitLab, token' ? request.proof : 'SIGNATURE_INVALID'
    const body = Buffer.from(request.body)
    for (let i = 0; i < body.length; i += 1) {
      for (const bit of [1, 32, 128]) {
        const changed = Buffer.from(body)
        changed[i] = (body[i] ?? 0) ^ bit
        expect([i, bit, outcome(request, { body: changed })]).toEqual([i, bit, verdict])
      }
    }
    for (const changed of [body.subarray(1), body.subarray(0, -1), Buffer.concat([body, Buffer.of(0)]), Buffer.of()]) {
      expect(outcome(request, { body: changed })).toEqual(verdict)
    }
  })

  test('rejects one changed character of the signed text', () => {
    for (const [index, [name, value]] of request.headers.entries()) {
      if (!request.signed.includes(name)) continue
      for (let i = 0; i < value.length; i += 1) {
        const character = value.charAt(i) === '1' ? '2' : '1'
        const changed = value.slice(0, i) + character + value.slice(i + 1)
        const headers = request.headers.with(index, [name, changed])
        expect([name, changed, isRefusal(outcome(request, { headers }))]).toEqual([name, changed, true])
      }
    }
  })

  test('rejects signatures of any other length or format without an internal error', () => {
    const index = request.headers.findIndex(([name]) => isSignature(name))
    const [name = '', value = ''] = request.headers[index] ?? []
    const texts = [
      ...Array.from({ length: value.length + 60 }, (_, length) => value.repeat(3).slice(0, length)).filter(
        (text) => text !== value,
      ),
      '= , sha256= sha1= v0= v1, t=,v1= t=1700000000,v1= \0 ä %00 null'.split(' '),
      `sha1=${value}`,
      `${value}0`,
      `0${value}`,
      `${value.slice(0, -1)}g`,
      'a'.repeat(16_000),
      '='.repeat(16_000),
      ','.repeat(16_000),
      ' v1,'.repeat(4000),
    ].flat()
    for (const text of texts) {
      const found = outcome(request, { headers: request.headers.with(index, [name, text]) })
      expect([text, typeof found]).toEqual([text, 'string'])
      expect(refusals).toContain(found)
    }
  })

  test('rejects a missing, an empty and a repeated header', () => {
    const index = request.headers.findIndex(([name]) => isSignature(name))
    const [name = '', value = ''] = request.headers[index] ?? []
    expect(outcome(request, { headers: request.headers.toSpliced(index, 1) })).toBe('SIGNATURE_MISSING')
    expect(outcome(request, { headers: [] })).toBe('SIGNATURE_MISSING')
    for (const empty of ['', ' ', '\t']) {
      expect(outcome(request, { headers: request.headers.with(index, [name, empty]) })).toBe('SIGNATURE_MALFORMED')
    }
    for (const [header, sent] of request.headers.filter(([header]) => request.signed.includes(header))) {
      for (const other of [sent, 'x']) {
        const after = outcome(request, { headers: [...request.headers, [header.toLowerCase(), other]] })
        const before = outcome(request, { headers: [[header.toUpperCase(), other], ...request.headers] })
        expect([header, after, before]).toEqual([header, 'SIGNATURE_MALFORMED', 'SIGNATURE_MALFORMED'])
      }
    }
    expect(main).not.toBe('')
    expect(value).not.toBe('')
  })

  test('accepts header names in any letter case', () => {
    const headers = request.headers.map(([name, value]): [string, string] => [name.toUpperCase(), value])
    expect(outcome(request, { headers })).toEqual(request.proof)
  })

  test('rejects another secret; accepts both secrets during a rotation', () => {
    const [secret = ''] = [request.parameters.secret].flat()
    const other = secret.startsWith('whsec_') ? 'whsec_b3RoZXIgc2VjcmV0IGFsdG9nZXRoZXI=' : 'other'
    expect(outcome(request, { parameters: { secret: other } })).toBe('SIGNATURE_INVALID')
    expect(outcome(request, { parameters: { secret: [other, secret] } })).toEqual(request.proof)
    expect(outcome(request, { parameters: { secret: [secret, other] } })).toEqual(request.proof)
    expect(outcome(request, { parameters: { secret: [other, other] } })).toBe('SIGNATURE_INVALID')
  })

  test('rejects requests if the secret cannot be read', () => {
    const [secret = ''] = [request.parameters.secret].flat()
    const readSecret = (text: string): string => {
      if (text === '{{ broken }}') throw new Error('there is no such item')
      return text
    }
    const change = (wanted: string[]) => ({ readSecret, parameters: { secret: wanted } })
    expect(outcome(request, change(['{{ broken }}']))).toBe('SIGNATURE_UNCHECKABLE')
    expect(outcome(request, change(['{{ broken }}', secret]))).toEqual(request.proof)
    expect(outcome(request, change([secret, '{{ broken }}']))).toEqual(request.proof)
  })
})

const timed = recorded.flatMap((request) => (request.at === undefined ? [] : [{ ...request, at: request.at }]))

describe.each(timed.map((request) => [request.name, request] as const))('the time of %s', (_, request) => {
  const { at } = request

  test('accepts times within the tolerance, earlier and later', () => {
    for (const seconds of [-300, -299, 0, 299, 300]) {
      expect([seconds, outcome(request, { now: at + seconds })]).toEqual([seconds, request.proof])
    }
    for (const seconds of [-86_400, -300.001, 300.001, 301, 86_400, 1e9]) {
      expect([seconds, outcome(request, { now: at + seconds })]).toEqual([seconds, 'SIGNATURE_EXPIRED'])
    }
    const parameters = { tolerance_seconds: 5 }
    expect(outcome(request, { now: at + 5, parameters })).toEqual(request.proof)
    expect(outcome(request, { now: at + 6, parameters })).toBe('SIGNATURE_EXPIRED')
  })

  test('an invalid time is malformed', () => {
    for (const time of ['', 'x', '-1', '1.7e9', '0x1', '1700000000.5', '1'.repeat(15), '٣', 'NaN', 'Infinity', '+1']) {
      const headers = request.headers.map(([name, value]): [string, string] => [
        name,
        value === String(at) ? time : value.replace(`t=${at}`, `t=${time}`),
      ])
      expect([time, outcome(request, { headers })]).toEqual([time, 'SIGNATURE_MALFORMED'])
    }
  })
})

const find = (name: string): Recorded => {
  const request = recorded.find((each) => each.name === name)
  if (request === undefined) throw new Error(name)
  return request
}

describe('weaker proof than configured is rejected', () => {
  test('GitHub: a valid SHA-1 signature is ignored', () => {
    const request = find('GitHub')
    const sha1 = createHmac('sha1', "It's a Secret to Everybody").update(request.body).digest('hex')
    expect(outcome(request, { headers: [['X-Hub-Signature', `sha1=${sha1}`]] })).toBe('SIGNATURE_MISSING')
    expect(outcome(request, { headers: [['X-Hub-Signature-256', `sha1=${sha1}`]] })).toBe('SIGNATURE_MALFORMED')
    expect(outcome(request, { headers: [['X-Hub-Signature-256', sha1]] })).toBe('SIGNATURE_MALFORMED')
  })

  test('GitLab: a signing key is not accepted as a token', () => {
    const request = find('GitLab, signed')
    const secret = String(request.parameters.secret)
    expect(outcome(request, { headers: [['X-Gitlab-Token', secret]] })).toBe('SIGNATURE_INVALID')
    expect(outcome(request, { headers: [...request.headers, ['X-Gitlab-Token', 'anything']] })).toEqual(request.proof)
  })

  test('GitLab: a valid token is accepted together with signatures of an unknown key', () => {
    const request = find('GitLab, signed')
    const headers: [string, string][] = [...request.headers, ['X-Gitlab-Token', 'the token']]
    expect(outcome(request, { headers, parameters: { secret: 'the token' } })).toEqual({})
    expect(outcome(request, { headers, parameters: { secret: 'other' } })).toBe('SIGNATURE_INVALID')
  })

  test('Stripe: signatures of other versions are ignored', () => {
    const request = find('Stripe')
    const [[, value] = ['', '']] = request.headers
    for (const changed of [value.replace('v1=', 'v0='), value.replace('v1=', 'v2='), value.replace('v1=', 'V1=')]) {
      expect(outcome(request, { headers: [['Stripe-Signature', changed]] })).toBe('SIGNATURE_MALFORMED')
    }
    const twoTimes = outcome(request, { headers: [['Stripe-Signature', `t=1700000000,${value}`]] })
    expect(twoTimes).toBe('SIGNATURE_MALFORMED')
    const other = `v1=${'0'.repeat(64)}`
    expect(outcome(request, { headers: [['Stripe-Signature', `${other},${value}`]] })).toEqual(request.proof)
  })

  test('Stripe: during a rotation, a request without one of its signatures is a repetition', () => {
    const { parameters, body, ...request } = find('Stripe')
    const secrets = [String(parameters.secret), 'the secret to come']
    const [v1, next] = secrets.map(
      (secret) => `v1=${createHmac('sha256', secret).update(`1700000000.${body}`).digest('hex')}`,
    )
    const proofs = [`${v1},${next}`, `${next},${v1}`, v1, next].map((given) =>
      outcome(
        { ...request, parameters, body },
        { parameters: { secret: secrets }, headers: [['Stripe-Signature', `t=1700000000,${given}`]] },
      ),
    )
    expect(proofs).toEqual(Array(4).fill(request.proof))
  })

  test.each([
    ['stripe', 'Stripe-Signature', { id: 'evt_7', object: 'event' }, { id: 7, object: 'event' }],
    ['stripe', 'Stripe-Signature', { id: 'evt_7', object: 'event' }, { id: 'cus_7', object: 'customer' }],
    ['slack', 'X-Slack-Signature', { type: 'event_callback', event_id: 'Ev7' }, { type: 'event_callback' }],
    ['slack', 'X-Slack-Signature', { type: 'event_callback', event_id: 'Ev7' }, { type: 'other', event_id: 'Ev7' }],
  ] as const)(
    '%s: an event is the same when it is signed anew later, other requests are not',
    (scheme, name, event, other) => {
      const signedAt = (sent: object, at: number): Ids | string => {
        const body = JSON.stringify(sent)
        const sum = (text: string): string => createHmac('sha256', 's').update(text).digest('hex')
        const headers: [string, string][] =
          scheme === 'stripe'
            ? [[name, `t=${at},v1=${sum(`${at}.${body}`)}`]]
            : [
                [name, `v0=${sum(`v0:${at}:${body}`)}`],
                ['X-Slack-Request-Timestamp', String(at)],
              ]
        const parameters = { scheme, secret: 's' }
        return outcome({ name: '', source: '', parameters, headers, body, at, proof: {}, signed: [] })
      }
      const id = 'id' in event ? event.id : event.event_id
      for (const at of [1_700_000_000, 1_700_003_600]) {
        expect(signedAt(event, at)).toEqual({ signedId: `event ${id}` })
        expect(signedAt(other, at)).toEqual({ signedId: idOf(`${at}.${JSON.stringify(other)}`) })
      }
    },
  )

  test('Standard Webhooks: one valid signature of several is enough, other versions are ignored', () => {
    const request = find('Standard Webhooks')
    const [id, time, [name, value] = ['', '']] = request.headers
    if (id === undefined || time === undefined) throw new Error('headers')
    const other = `v1,${Buffer.alloc(32).toString('base64')}`
    const of = (text: string) => outcome(request, { headers: [id, time, [name, text]] })
    expect(of(`${other} ${value}`)).toEqual(request.proof)
    expect(of(`${value}  ${other} v1a,xx`)).toEqual(request.proof)
    expect(of(`${other} ${other}`)).toBe('SIGNATURE_INVALID')
    expect(of(value.replace('v1,', 'v1a,'))).toBe('SIGNATURE_MALFORMED')
    expect(of(value.replace('v1,', 'v2,'))).toBe('SIGNATURE_MALFORMED')
    expect(of(value.replaceAll('=', ''))).toBe('SIGNATURE_MALFORMED')
    expect(of(`${`${other} `.repeat(20)}${value}`)).toBe('SIGNATURE_MALFORMED')
    for (const missing of ['webhook-id', 'webhook-timestamp']) {
      const headers = request.headers.filter(([header]) => header !== missing)
      expect(outcome(request, { headers })).toBe('SIGNATURE_MALFORMED')
    }
  })

  test('Standard Webhooks: a key without its prefix is the same key', () => {
    const request = find('Standard Webhooks')
    expect(outcome(request, { parameters: { secret: 'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' } })).toEqual(request.proof)
    expect(outcome(request, { parameters: { secret: 'whsec_not base64' } })).toBe('SIGNATURE_UNCHECKABLE')
  })

  test('HMAC: a placeholder in a signed value is not replaced', () => {
    const request = find('HMAC, SHA-1 in hexadecimal')
    const template = '__proto__ constructor {{body}} {body} {Body}'
    const signature = createHmac('sha1', 'käy')
      .update(`__proto__ constructor {${request.body}} ${request.body} {Body}`)
      .digest('hex')
    const changes = { parameters: { template }, headers: [['X-Signature', signature]] as [string, string][] }
    expect(outcome(request, changes)).toEqual({})
    expect(outcome(request, { ...changes, headers: [...changes.headers, ['X-Id', 'a']] })).toEqual({ unsignedId: 'a' })
  })
})

describe('other forms of a signed time', () => {
  const of = (parameters: SignatureParameters, headers: [string, string][], now: number) =>
    outcome({ name: '', source: '', parameters, headers, body: '{"a":1}', proof: {}, signed: [] }, { now })
  const hmac: SignatureParameters = {
    scheme: 'hmac',
    secret: 'zen',
    header: 'X-Sig',
    encoding: 'base64',
    template: '{timestamp}{body}',
    timestamp_header: 'X-Ts',
  }
  const signedAt = (time: string): [string, string][] => [
    ['X-Ts', time],
    ['X-Sig', createHmac('sha256', 'zen').update(`${time}{"a":1}`).digest('base64')],
  ]

  test('ISO 8601, signed as it is written (Zendesk; computed with openssl)', () => {
    const headers: [string, string][] = [
      ['X-Ts', '2023-11-14T22:13:20.5Z'],
      ['X-Sig', 'nx1FioYxnf84qBt1YxZTcrt/6mk85B7z5I4dqOwNtes='],
    ]
    expect(of(hmac, headers, 1_700_000_300.5)).toEqual({})
    expect(of(hmac, headers, 1_700_000_300.6)).toBe('SIGNATURE_EXPIRED')
    expect(of(hmac, headers, 1_700_000_000.5 - 300.1)).toBe('SIGNATURE_EXPIRED')
    expect(of(hmac, headers.with(0, ['X-Ts', '2023-11-14T22:13:20.50Z']), 1_700_000_000)).toBe('SIGNATURE_INVALID')
    expect(of(hmac, headers.with(0, ['X-Ts', '1700000000']), 1_700_000_000)).toBe('SIGNATURE_INVALID')
  })

  test('milliseconds, in a header called otherwise (Calendly; computed with openssl)', () => {
    const value = 't=1700000000123,v1=7ad8206b5bbd22144dd7aed782c3754d35b952eb815a7a72f3e7bff4b29dc721'
    const parameters = { scheme: 'stripe', secret: 'calendly secret', header: 'Calendly-Webhook-Signature' } as const
    expect(problemOfWebhook({ url: 'a', signature: parameters })).toBeUndefined()
    const sent = (name: string, now: number) => of(parameters, [[name, value]], now)
    expect(sent('calendly-webhook-signature', 1_700_000_300.1)).toHaveProperty('signedId')
    expect(sent('Calendly-Webhook-Signature', 1_700_000_300.2)).toBe('SIGNATURE_EXPIRED')
    expect(sent('Stripe-Signature', 1_700_000_000)).toBe('SIGNATURE_MISSING')
  })

  test.each(['2023-11-14T22:13:20Z', '2023-11-14T23:13:20+01:00', '2023-11-14T17:13:20.000000-0500', '1700000000000'])(
    '%s is 1700000000',
    (time) => {
      expect([0, 300, 301].map((late) => of(hmac, signedAt(time), 1_700_000_000 + late))).toEqual([
        {},
        {},
        'SIGNATURE_EXPIRED',
      ])
    },
  )

  test.each(['2023-11-14T22:13:20', '2023-11-14', '2023-13-45T22:13:20Z', 'Tue, 14 Nov 2023 22:13:20 GMT'])(
    '%s is malformed: it has no zone, or is no such time',
    (time) => {
      expect(of(hmac, signedAt(time), 1_700_000_000)).toBe('SIGNATURE_MALFORMED')
    },
  )
})

describe('several signatures in one header, during a rotation', () => {
  const [one, two] = [
    'e79be63e110f0c08969f5b4df3f8cfa79349f9b03758c28822fb8bda8cb6d312',
    '8fb84cd0f727f5dda4da05cc68cd62200b48578a621f31478ed566c5327a34cf',
  ]
  const send = (value: string, secret: string | string[] = 'one', more: Partial<SignatureParameters> = {}) =>
    outcome({
      name: '',
      source: 'computed with openssl',
      parameters: { scheme: 'hmac', secret, header: 'X-Sig', prefix: 'v1=', ...more },
      headers: [['X-Sig', value]],
      body: '{"a":1}',
      proof: {},
      signed: [],
    })

  test('any that is valid counts, wherever it stands and however they are separated', () => {
    for (const separator of [',', ', ', ' ', ';', ' ; ']) {
      expect(send(`v1=${one}${separator}v1=${two}`)).toEqual({})
      expect(send(`v1=${two}${separator}v1=${one}`)).toEqual({})
      expect(send(`v0=${one}${separator}v1=${two}`)).toBe('SIGNATURE_INVALID')
      expect(send(`v2=zz${separator}v1=${one}${separator}`)).toEqual({})
    }
    expect(send(`v1=${two}`, ['one', 'two'])).toEqual({})
    expect(send(`v1=${two},v1=${two}`)).toBe('SIGNATURE_INVALID')
  })

  test('a prefix may end with a comma itself', () => {
    expect(send(`v1,${two} v1,${one}`, 'one', { prefix: 'v1,' })).toEqual({})
    expect(send(`${two},${one}`, 'one', { prefix: '' })).toEqual({})
  })

  test('there are at most 20', () => {
    const others = (n: number) =>
      Array.from({ length: n }, (_, i) => `v1=${i.toString(16).padStart(64, '0')},`).join('')
    expect(send(`${others(19)}v1=${one}`)).toEqual({})
    expect(send(`${others(20)}v1=${one}`)).toBe('SIGNATURE_MALFORMED')
  })
})

describe('events that GitHub and Gitea wrap in a form', () => {
  const form = 'payload=%7B%22ref%22%3A%22refs%2Fheads%2F%C3%A4%22%2C%22a%22%3A%22b%26c%22%7D'
  const event = '{"ref":"refs/heads/ä","a":"b&c"}'
  const asForm: [string, string] = ['Content-Type', 'application/x-www-form-urlencoded; charset=UTF-8']
  const ofGitHub: [string, string] = [
    'X-Hub-Signature-256',
    'sha256=eb8340de75f3d0c4b68a0178ef7e8c1c7c03d469e68778b21a0da596f653f0d6',
  ]
  const ofGitea: [string, string] = [
    'X-Gitea-Signature',
    'b35bfb4d892ee3abef11ab49591d8ac1aa60959852dd0df396401d3f513db86d',
  ]
  const textOf = (secret: string, headers: [string, string][], body = form): string | undefined => {
    const request = { headers: readHeaders(headers.flat()), body: Buffer.from(body) }
    try {
      return createVerifier({ scheme: 'github', secret }, plain).verify(request, 0).eventText
    } catch (error) {
      if (!isAppError(error)) throw error
      return error.code
    }
  }

  test('GitHub signs the form, Gitea the event in it (computed with openssl)', () => {
    expect(textOf('form secret', [asForm, ofGitHub])).toBe(event)
    expect(textOf('gitea secret', [asForm, ofGitea])).toBe(event)
    expect(textOf('form secret', [ofGitHub])).toBeUndefined()
  })

  test('a signature of the event proves nothing else', () => {
    expect(textOf('gitea secret', [ofGitea])).toBe('SIGNATURE_INVALID')
    expect(textOf('gitea secret', [asForm, ofGitea], `payload=x&${form}`)).toBe('SIGNATURE_INVALID')
    expect(textOf('gitea secret', [asForm, ofGitea], `x=1&${form}&payload=y`)).toBe(event)
    expect(textOf('gitea secret', [asForm, ofGitea], form.replace('payload', 'p%61yload'))).toBe('SIGNATURE_INVALID')
    expect(textOf('form secret', [asForm, ofGitHub], `${form}&x=1`)).toBe('SIGNATURE_INVALID')
    for (const empty of ['', 'payload', 'payload=', 'a=1', '&', '&payload']) {
      expect(textOf('gitea secret', [asForm, ofGitea], empty)).toBe('SIGNATURE_INVALID')
    }
  })

  test('a second header must not disagree in form', () => {
    expect(textOf('form secret', [asForm, ofGitHub, ['X-Gogs-Signature', 'x']])).toBe('SIGNATURE_MALFORMED')
    expect(textOf('form secret', [asForm, asForm, ofGitHub])).toBeUndefined()
  })
})

test('Zoom gets its text back with a signature of it (computed with openssl)', () => {
  const { parameters, headers } = find('Zoom')
  const proof = createVerifier(parameters, plain).verify(
    { headers: readHeaders(headers.flat()), body: Buffer.from(zoomBody) },
    1_700_000_000,
  )
  expect(proof.answerTo?.(JSON.parse(zoomBody))).toEqual({
    plainToken: 'qgg8vlvZRS6UYooatFL8Aw',
    encryptedToken: '33c87763eeee7760422d82e566d46fe8b5eaca6c3da5abf7923e6e8765c76a26',
  })
  for (const other of [
    { event: 'meeting.started', payload: { plainToken: 'x' } },
    { event: 'endpoint.url_validation' },
  ]) {
    expect(proof.answerTo?.(other)).toBeUndefined()
  }
})

describe('signatures are compared in constant time', () => {
  test('timingSafeEqual: a token of another length is rejected without an error', () => {
    const request = find('GitLab, token')
    for (let length = 1; length < 300; length += 1) {
      expect(outcome(request, { headers: [['X-Gitlab-Token', 'x'.repeat(length)]] })).toBe('SIGNATURE_INVALID')
    }
    const token = request.headers[0]?.[1] ?? ''
    for (const wrong of [token.slice(0, -1), `${token}x`, token.toUpperCase(), ` x${token}`, `${token}\0`]) {
      expect(outcome(request, { headers: [['X-Gitlab-Token', wrong]] })).toBe('SIGNATURE_INVALID')
    }
  })
})

describe('signature parameters of a rule', () => {
  const problem = (signature: Record<string, unknown>, url = 'a') => problemOfWebhook({ url, signature })

  test.each([
    [{ scheme: 'hmac', secret: 'x' }, "'header' is a required property"],
    [{ scheme: 'hmac', secret: 'x', header: 'X-A', template: '{timestamp}' }, 'must contain {body}'],
    [{ scheme: 'hmac', secret: 'x', header: 'X-A', template: '{timestamp}{body}' }, 'timestamp_header is missing'],
    [{ scheme: 'hmac', secret: 'x', header: 'X-A', timestamp_header: 'X-T' }, 'must contain {timestamp}'],
    [{ scheme: 'hmac', secret: 'x', header: 'X-A', template: '{id}{body}' }, 'id_header is missing'],
    [{ scheme: 'hmac', secret: 'x', header: 'Svc-Api-Key' }, 'which svc itself reads'],
    [{ scheme: 'github', secret: 'x', header: 'X-A' }, "signature.header is only for the scheme 'hmac'"],
    [{ scheme: 'stripe', secret: 'x', header: 'Cookie' }, 'which svc itself reads'],
    [{ scheme: 'stripe', secret: 'x', prefix: 'v1=' }, "signature.prefix is only for the scheme 'hmac'"],
    [{ scheme: 'github', secret: 'x\n' }, 'begins or ends with a blank'],
    [{ scheme: 'github', secret: ['x', ' y'] }, 'begins or ends with a blank'],
    [{ scheme: 'hmac', secret: '  ', header: 'X-A' }, 'begins or ends with a blank'],
    [{ scheme: 'slack', secret: 'x', algorithm: 'sha1' }, "signature.algorithm is only for the scheme 'hmac'"],
    [{ scheme: 'github', secret: '{{ (svckv.system.a | decrypt_kv)[0] }}' }, 'must be a single datastore item'],
    [{ scheme: 'github', secret: '{{ svckv.system.a | decrypt_kv | first }}' }, 'must be a single datastore item'],
    [{ scheme: 'github', secret: 'x{{ svckv.system.a }}' }, 'must be a single datastore item'],
    [{ scheme: 'github', secret: ['x', '{{ 7 * 7 }}'] }, 'must be a single datastore item'],
    [{ scheme: 'gitlab', secret: '{% if svckv.system.a %}a{% endif %}' }, 'must be a single datastore item'],
    [{ scheme: 'standard', secret: 'whsec_short' }, 'must be base64 text of at least 16 bytes'],
    [{ scheme: 'standard', secret: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'x'] }, 'must be base64 text'],
  ])('%j: %s', (signature, text) => {
    expect(problem(signature)).toContain(text)
    expect(problem(signature)).not.toContain('whsec_short')
  })

  test('accepts valid parameters', () => {
    expect(problem({ scheme: 'hmac', secret: 'x', header: 'X-A' })).toBeUndefined()
    expect(problem({ scheme: 'hmac', secret: MASK, header: 'X-A', id_header: 'X-I' })).toBeUndefined()
    expect(problem({ scheme: 'standard', secret: '{{ svckv.system.key | decrypt_kv }}' })).toBeUndefined()
    expect(problem({ scheme: 'github', secret: '{{svckv.user.a.b}}' })).toBeUndefined()
    expect(problem({ scheme: 'github', secret: 'no {{ template' })).toBeUndefined()
  })

  test.each([
    ['/', 'is empty or contains only slashes'],
    ['///', 'is empty or contains only slashes'],
    ['svc', 'reserved'],
    ['/svc/', 'reserved'],
    ['a/../b', "'.' or '..'"],
    ['./a', "'.' or '..'"],
    ['a\ud800', 'not valid Unicode'],
    ['hook-{{ svckv.system.name }}', 'contains a template'],
    ['{% raw %}a{% endraw %}', 'contains a template'],
    ['https://svc.example.com/v1/webhooks/a', 'is an address'],
    ['HTTP://a', 'is an address'],
    ['/v1/webhooks/github', 'write only what follows'],
    ['api/v1/webhooks/github/push', 'write only what follows'],
    ['a?token=x', 'has a query'],
    ['a#b', 'has a query or a fragment'],
    ['a%20b', 'percent-encoded'],
    [' a', 'begins or ends with a blank'],
    ['/a\n/', 'begins or ends with a blank'],
  ])('the url %j: %s', (url, text) => {
    expect(problemOfWebhook({ url })).toContain(text)
  })

  test.each(['a', '/a/', 'a/b', 'github/push', 'svc/x', 'a..b', 'ä', 'a b', '.a', '100%', 'v1/webhook', 'a:b', '{a}'])(
    'the url %j is fine',
    (url) => {
      expect(problemOfWebhook({ url })).toBeUndefined()
    },
  )
})
