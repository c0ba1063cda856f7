/** Signature schemes of webhooks. To add one, add an entry here and its name to the schema. */
import { createHash, createHmac, timingSafeEqual, type Hmac } from 'node:crypto'
import {
  isAppError,
  signatureExpired,
  signatureInvalid,
  signatureMalformed,
  signatureMissing,
  signatureUncheckable,
  type AppError,
} from '../../core/errors.ts'
import { parseDateText } from '../../lib/calendar/index.ts'
import { isObject } from '../../lib/schema/index.ts'
import { formType } from '../../http/index.ts'
import { standardKey, standardPrefix, type SignatureParameters, type SignatureScheme } from '../triggers/index.ts'
import type { SentHeaders } from './headers.ts'

/** The received bytes. */
export interface SignedRequest {
  headers: SentHeaders
  body: Buffer
}

export interface Verifier {
  /** In lower case; a request without any of them has no signature. */
  readonly headers: readonly string[]
  /** In lower case: headers that contain the secret itself. */
  readonly secretHeaders: readonly string[]
  /**
   * @param nowSeconds since the epoch
   * @throws SIGNATURE_MISSING, SIGNATURE_MALFORMED, SIGNATURE_EXPIRED, SIGNATURE_INVALID, SIGNATURE_UNCHECKABLE
   */
  verify(request: SignedRequest, nowSeconds: number): Proof | Promise<Proof>
}

/** Of a scheme with a shared secret. */
export interface SecretVerifier extends Verifier {
  verify(request: SignedRequest, nowSeconds: number): Proof
}

type Response = Record<string, unknown> | undefined

/** Result of a valid signature. Its functions take the parsed body. */
export interface Proof {
  /** The event as JSON text, of senders that wrap it in a form. */
  readonly eventText?: string

  /** The delivery id, if the signature covers it. */
  readonly signedId?: (body: unknown) => string
  /** A delivery id that the signature does not cover. */
  unsignedId?: string
  /** The response to the verification request of some senders; undefined for events. */
  readonly answerTo?: (body: unknown) => Response | Promise<Response>
}

/** Signatures in a request, before their check. */
interface Claim {
  /** One valid signature is enough. */
  signatures: readonly Buffer[]
  /** The signature with this secret; undefined: the secret is of another kind. */
  readonly expected: (secret: string) => Buffer | undefined
  time?: { header: string; seconds: number }
  /** @param secret with which the signature is valid */
  readonly proof: (secret: string) => Proof
}

interface Scheme {
  /** Headers that can contain a signature, as messages spell them. */
  headers(parameters: SignatureParameters): readonly string[]
  /** Headers that contain the secret itself. */
  secretHeaders?: readonly string[]
  /** @throws SIGNATURE_MALFORMED */
  claims(request: SignedRequest, parameters: SignatureParameters): readonly Claim[]
}

const DEFAULT_TOLERANCE_SECONDS = 300
const MAX_SIGNATURES = 20

/**
 * @param readSecret renders a secret, never to an empty text; its error becomes the cause of SIGNATURE_UNCHECKABLE
 */
export function createVerifier(parameters: SignatureParameters, readSecret: (text: string) => string): SecretVerifier {
  if (parameters.scheme === 'sns') throw new Error('the scheme sns has no secret')
  const scheme = schemes[parameters.scheme]
  const tolerance = parameters.tolerance_seconds ?? DEFAULT_TOLERANCE_SECONDS
  const secrets = [parameters.secret ?? []].flat()
  const names = scheme.headers(parameters)

  /** @returns undefined if no signature is valid @throws SIGNATURE_EXPIRED, SIGNATURE_UNCHECKABLE */
  function check({ signatures, expected, time, proof }: Claim, nowSeconds: number): Proof | undefined {
    if (time !== undefined && Math.abs(nowSeconds - time.seconds) > tolerance) {
      throw signatureExpired(time.header, tolerance)
    }
    let valid: string | undefined
    let failure: AppError | undefined
    // Checks all of them even after a match, to keep the time constant.
    for (const text of secrets) {
      let secret = ''
      let wanted: Buffer | undefined
      try {
        secret = readSecret(text)
        wanted = expected(secret)
      } catch (error) {
        failure = signatureUncheckable(error)
      }
      for (const signature of signatures) {
        if (wanted !== undefined && isSame(signature, wanted)) valid = secret
      }
    }
    if (valid !== undefined) return proof(valid)
    if (failure !== undefined) throw failure
    return undefined
  }

  return {
    headers: names.map((name) => name.toLowerCase()),
    secretHeaders: scheme.secretHeaders ?? [],
    verify(request, nowSeconds) {
      const claims = scheme.claims(request, parameters)
      if (claims.length === 0) throw signatureMissing(names)
      let failure: AppError | undefined
      for (const claim of claims) {
        try {
          const proof = check(claim, nowSeconds)
          if (proof !== undefined) return proof
        } catch (error) {
          if (!isAppError(error)) throw error
          failure ??= error
        }
      }
      throw failure ?? signatureInvalid()
    },
  }
}

/** Compares digests in constant time, whatever the length and the position of a difference. */
function isSame(a: Buffer, b: Buffer): boolean {
  return timingSafeEqual(sha256(a), sha256(b))
}

const sha256 = (bytes: Buffer): Buffer => createHash('sha256').update(bytes).digest()

/** The single value of a header; undefined: missing. @throws SIGNATURE_MALFORMED */
export function only({ headers }: SignedRequest, name: string): string | undefined {
  const values = headers.get(name.toLowerCase())
  if (values === undefined) return undefined
  const [value = ''] = values
  if (values.length > 1) throw signatureMalformed(name, 'is given more than once')
  if (value.trim() === '') throw signatureMalformed(name, 'is empty')
  return value.trim()
}

/** @throws SIGNATURE_MALFORMED */
function needed(request: SignedRequest, name: string): string {
  const value = only(request, name)
  if (value === undefined) throw signatureMalformed(name, 'is missing')
  return value
}

export const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)$/

/** Seconds since the epoch, whatever form the sender gives the time. @throws SIGNATURE_MALFORMED */
function secondsOf(text: string, header: string): number {
  if (/^\d{1,11}$/.test(text)) return Number(text)
  if (/^\d{12,14}$/.test(text)) return Number(text) / 1000
  const micros = isoTime.test(text) ? parseDateText(text) : undefined
  if (micros === undefined) {
    throw signatureMalformed(
      header,
      'has no time: neither seconds nor milliseconds since the epoch, nor ISO 8601 with a time zone',
    )
  }
  return micros / 1_000_000
}

/** Node decodes headers as Latin-1. */
const bytesOf = (header: string): Buffer => Buffer.from(header, 'latin1')

const bytesOfHex = (text: string, length: number): Buffer | undefined =>
  text.length === length * 2 && /^[0-9a-f]+$/i.test(text) ? Buffer.from(text, 'hex') : undefined

const bytesOfBase64 = (text: string, length: number): Buffer | undefined => {
  const bytes = Buffer.from(text, 'base64')
  return bytes.length === length && bytes.toString('base64') === text ? bytes : undefined
}

const SHA256_BYTES = 32
const STRIPE_HEADER = 'Stripe-Signature'
const signedByNothing = (): Proof => ({})

/** Names of the same signature: GitHub writes `sha256=` before it, Gitea, Forgejo and Gogs write it bare. */
const hubNames = ['X-Hub-Signature-256', 'X-Forgejo-Signature', 'X-Gitea-Signature', 'X-Gogs-Signature'] as const
const hubIdNames = ['X-GitHub-Delivery', 'X-Forgejo-Delivery', 'X-Gitea-Delivery', 'X-Gogs-Delivery'] as const

function github(request: SignedRequest): readonly Claim[] {
  const form = createHubForm(request)
  const ids = hubIdNames.map((name) => only(request, name))
  const id = ids.find((each) => each !== undefined)
  const proof = (): Proof => {
    const eventText = form?.payload()
    return { ...(id === undefined ? {} : { unsignedId: id }), ...(eventText === undefined ? {} : { eventText }) }
  }
  return hubNames.flatMap((name) => {
    const header = only(request, name)
    if (header === undefined) return []
    const prefix = name === 'X-Hub-Signature-256' ? 'sha256=' : ''
    const signature = header.startsWith(prefix) ? bytesOfHex(header.slice(prefix.length), SHA256_BYTES) : undefined
    if (signature === undefined) {
      throw signatureMalformed(
        name,
        prefix === '' ? 'is not 64 hexadecimal digits' : 'is not "sha256=" and 64 hexadecimal digits',
      )
    }
    const ofBody: Claim = {
      signatures: [signature],
      expected: (secret) => createHmac('sha256', secret).update(request.body).digest(),
      proof,
    }
    if (form === undefined) return [ofBody]
    // Gitea signs the event before it becomes a field of the form.
    const ofEvent: Claim = {
      signatures: [signature],
      expected(secret) {
        const text = form.payload()
        return text === undefined ? undefined : createHmac('sha256', secret).update(text).digest()
      },
      proof,
    }
    return [ofBody, ofEvent]
  })
}

/** The form in which these senders can wrap their events; undefined: the request is no form. */
function createHubForm({ headers, body }: SignedRequest): { payload(): string | undefined } | undefined {
  const [type = '', ...others] = headers.get('content-type') ?? []
  if (others.length > 0 || type.split(';', 1)[0]?.trim().toLowerCase() !== formType) return undefined
  let known: { text: string | undefined } | undefined
  return { payload: () => (known ??= { text: payloadIn(body) }).text }
}

const PAYLOAD_FIELD = 'payload='

/** Decodes the first field `payload` alone: a body can have many others. */
function payloadIn(form: Buffer): string | undefined {
  const isFirst = form.subarray(0, PAYLOAD_FIELD.length).toString() === PAYLOAD_FIELD
  const start = isFirst ? 0 : form.indexOf(`&${PAYLOAD_FIELD}`) + 1
  if (!isFirst && start === 0) return undefined
  const end = form.indexOf('&', start)
  const field = form.subarray(start, end === -1 ? form.length : end).toString()
  return new URLSearchParams(field).get('payload') ?? undefined
}

/** The secret itself as a token, or a Standard Webhooks signature. The prefix of the secret decides. */
function gitlab(request: SignedRequest): readonly Claim[] {
  const token = only(request, 'X-Gitlab-Token')
  const signed = standardClaims(request, 'webhook').map((claim) => ({
    ...claim,
    expected: (secret: string) => (secret.startsWith(standardPrefix) ? claim.expected(secret) : undefined),
  }))
  if (token === undefined) return signed
  const plain: Claim = {
    signatures: [bytesOf(token)],
    expected: (secret) => (secret.startsWith(standardPrefix) ? undefined : Buffer.from(secret)),
    proof: signedByNothing,
  }
  return [...signed, plain]
}

function stripe(request: SignedRequest, { header: name = STRIPE_HEADER }: SignatureParameters): readonly Claim[] {
  const header = only(request, name)
  if (header === undefined) return []
  const items = header.split(',').map((item) => item.trim().split('=', 2))
  const valuesOf = (wanted: string): string[] => items.flatMap(([key, value = '']) => (key === wanted ? [value] : []))
  const [time, ...others] = valuesOf('t')
  const given = valuesOf('v1')
  const signatures = given.flatMap((text) => bytesOfHex(text, SHA256_BYTES) ?? [])
  if (time === undefined || others.length > 0 || signatures.length === 0 || items.length > MAX_SIGNATURES) {
    throw signatureMalformed(name, 'has not one "t=" and at least one "v1=" with 64 hexadecimal digits')
  }
  return [
    {
      signatures,
      time: { header: name, seconds: secondsOf(time, name) },
      expected: (secret) => createHmac('sha256', secret).update(`${time}.`).update(request.body).digest(),
      proof: () => ({
        signedId: (body) => idOfEvent(body, 'object', 'event', 'id') ?? idOfRequest(time, request.body),
      }),
    },
  ]
}

/** Slack's scheme, which Zoom uses with other names. */
function timedLikeSlack(
  name: string,
  timeName: string,
  answerTo: (body: unknown, secret: string) => Record<string, unknown> | undefined,
): Scheme['claims'] {
  return (request) => {
    const header = only(request, name)
    if (header === undefined) return []
    const signature = header.startsWith('v0=') ? bytesOfHex(header.slice(3), SHA256_BYTES) : undefined
    if (signature === undefined) throw signatureMalformed(name, 'is not "v0=" and 64 hexadecimal digits')
    const time = needed(request, timeName)
    return [
      {
        signatures: [signature],
        time: { header: timeName, seconds: secondsOf(time, timeName) },
        expected: (secret) => createHmac('sha256', secret).update(`v0:${time}:`).update(request.body).digest(),
        proof: (secret) => ({
          signedId: (body) => idOfEvent(body, 'type', 'event_callback', 'event_id') ?? idOfRequest(time, request.body),
          answerTo: (body) => answerTo(body, secret),
        }),
      },
    ]
  }
}

/** Slack verifies an address by a challenge, which the response repeats. */
function answerToSlack(body: unknown): Record<string, unknown> | undefined {
  if (!isObject(body) || body['type'] !== 'url_verification' || typeof body['challenge'] !== 'string') return undefined
  return { challenge: body['challenge'] }
}

/** Zoom verifies an address by a text, which the response returns with its signature. */
function answerToZoom(body: unknown, secret: string): Record<string, unknown> | undefined {
  if (!isObject(body) || body['event'] !== 'endpoint.url_validation' || !isObject(body['payload'])) return undefined
  const { plainToken } = body['payload']
  if (typeof plainToken !== 'string' || plainToken === '') return undefined
  return { plainToken, encryptedToken: createHmac('sha256', secret).update(plainToken).digest('hex') }
}

/** The sender signs a repetition with a new time, so only the event id in the body identifies it. */
function idOfEvent(body: unknown, kindKey: string, kind: string, idKey: string): string | undefined {
  if (!isObject(body) || body[kindKey] !== kind) return undefined
  const id = body[idKey]
  return typeof id === 'string' && id !== '' ? `event ${id}` : undefined
}

/** Body and time identify a request, whichever of its signatures a repetition has. */
function idOfRequest(time: string, body: Buffer): string {
  return createHash('sha256').update(`${time}.`).update(body).digest('hex')
}

/** Standard Webhooks. Svix, where it comes from, writes `svix` in the names unless its customer asks for others. */
const standardNames = ['webhook', 'svix'] as const

const standard: Scheme['claims'] = (request) => standardNames.flatMap((kind) => standardClaims(request, kind))

function standardClaims(request: SignedRequest, kind: string): readonly Claim[] {
  const name = `${kind}-signature`
  const timeName = `${kind}-timestamp`
  const header = only(request, name)
  if (header === undefined) return []
  const items = header.split(/ +/)
  const signatures = items.flatMap((item) =>
    item.startsWith('v1,') ? (bytesOfBase64(item.slice(3), SHA256_BYTES) ?? []) : [],
  )
  if (signatures.length === 0 || items.length > MAX_SIGNATURES) {
    throw signatureMalformed(name, 'has no "v1," with a signature in base64')
  }
  const id = needed(request, `${kind}-id`)
  const time = needed(request, timeName)
  return [
    {
      signatures,
      time: { header: timeName, seconds: secondsOf(time, timeName) },
      expected(secret) {
        const key = standardKey(secret)
        if (key === undefined) throw new Error('the secret is not base64 text of at least 16 bytes')
        return createHmac('sha256', key).update(id, 'latin1').update(`.${time}.`).update(request.body).digest()
      },
      proof: () => ({ signedId: () => id }),
    },
  ]
}

/** During a rotation, senders write one signature per secret, separated by commas, semicolons or blanks. */
function itemsOf(header: string): readonly string[] {
  // A prefix can contain a comma itself, as that of Standard Webhooks does.
  return [...new Set([header, ...header.split(/\s+/), ...header.split(/\s*[,;]\s*|\s+/)])]
}

const digestBytes = { sha1: 20, sha256: SHA256_BYTES, sha512: 64 }

function hmac(request: SignedRequest, parameters: SignatureParameters): readonly Claim[] {
  const { header: name = '', algorithm = 'sha256', encoding = 'hex', prefix = '', template = '{body}' } = parameters
  const header = only(request, name)
  if (header === undefined) return []
  const decode = encoding === 'hex' ? bytesOfHex : bytesOfBase64
  const items = itemsOf(header)
  const signatures = items.flatMap((item) =>
    item.startsWith(prefix) ? (decode(item.slice(prefix.length), digestBytes[algorithm]) ?? []) : [],
  )
  if (signatures.length === 0 || signatures.length > MAX_SIGNATURES) {
    throw signatureMalformed(
      name,
      signatures.length > 0
        ? `has more than ${MAX_SIGNATURES} signatures`
        : `has no ${algorithm} signature in ${encoding}${prefix === '' ? '' : ' after its prefix'}`,
    )
  }
  const { timestamp_header: timeName, id_header: idName } = parameters
  const time = timeName === undefined ? undefined : needed(request, timeName)
  const isIdSigned = template.includes('{id}')
  const id = idName === undefined ? undefined : isIdSigned ? needed(request, idName) : only(request, idName)
  const values = new Map([
    ['{body}', request.body],
    ['{timestamp}', bytesOf(time ?? '')],
    ['{id}', bytesOf(id ?? '')],
  ])
  const parts = template.split(/(\{(?:body|timestamp|id)\})/)
  const signed = (mac: Hmac): Hmac => parts.reduce((sum, part) => sum.update(values.get(part) ?? part), mac)
  return [
    {
      signatures,
      ...(time === undefined || timeName === undefined
        ? {}
        : { time: { header: timeName, seconds: secondsOf(time, timeName) } }),
      expected: (secret) => signed(createHmac(algorithm, secret)).digest(),
      proof: () => (id === undefined ? {} : isIdSigned ? { signedId: () => id } : { unsignedId: id }),
    },
  ]
}

const schemes: Record<Exclude<SignatureScheme, 'sns'>, Scheme> = {
  github: { headers: () => hubNames, claims: github },
  gitlab: {
    headers: () => ['X-Gitlab-Token', 'webhook-signature'],
    secretHeaders: ['x-gitlab-token'],
    claims: gitlab,
  },
  stripe: { headers: ({ header = STRIPE_HEADER }) => [header], claims: stripe },
  slack: {
    headers: () => ['X-Slack-Signature'],
    claims: timedLikeSlack('X-Slack-Signature', 'X-Slack-Request-Timestamp', answerToSlack),
  },
  zoom: {
    headers: () => ['X-Zm-Signature'],
    claims: timedLikeSlack('X-Zm-Signature', 'X-Zm-Request-Timestamp', answerToZoom),
  },
  standard: { headers: () => standardNames.map((kind) => `${kind}-signature`), claims: standard },
  hmac: { headers: ({ header }) => [header ?? ''], claims: hmac },
}
