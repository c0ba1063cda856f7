/**
 * Parameters of the trigger type `core.svc.webhook` (contract 06, 6.1): the hook and the signature of its senders. Has
 * the schema and the checks that a schema cannot express; the module `webhooks` applies the parameters.
 */
import { isTemplate } from '../../../lib/template/index.ts'
import { isObject, type JsonSchema } from '../../../lib/schema/index.ts'
import { challengeSchemes, signatureSchemes } from '../types.ts'

/** A name of a header (RFC 9110, 5.1). */
const header = { type: 'string', minLength: 1, maxLength: 100, pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$" }
/** `arn:<partition>:sns:<region>:<account>:<name>` */
const topicPattern = '^arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}(?:\\.fifo)?$'
const secretText = { type: 'string', minLength: 1, maxLength: 1000 }

export const webhookParametersSchema: JsonSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['url'],
  properties: {
    url: {
      type: 'string',
      minLength: 1,
      maxLength: 1000,
      description: 'Path of the hook after /v1/webhooks/.',
    },
    signature: {
      type: 'object',
      additionalProperties: false,
      required: ['scheme'],
      description: 'How senders sign. Signed requests need no other credential.',
      properties: {
        scheme: { type: 'string', enum: [...signatureSchemes] },
        secret: {
          description:
            'Secret shared with the sender; required, except for sns. Two secrets are valid during a rotation.',
          secret: true,
          ...secretText,
          type: ['string', 'array'],
          minItems: 1,
          maxItems: 2,
          items: secretText,
        },
        tolerance_seconds: {
          type: 'integer',
          minimum: 1,
          maximum: 86_400,
          description:
            'Maximum difference in seconds between the time of a signature and the time of the server. Default: 300, for sns 7200.',
        },
        topics: {
          type: 'array',
          minItems: 1,
          maxItems: 100,
          items: { type: 'string', maxLength: 400, pattern: topicPattern },
          description: 'Only for sns, and required there: ARNs of the topics whose messages are accepted.',
        },
        header: {
          ...header,
          description: 'Only for hmac, and for stripe if it is not Stripe-Signature: header with the signature.',
        },
        algorithm: {
          type: 'string',
          enum: ['sha1', 'sha256', 'sha512'],
          description: 'Only for hmac. Default: sha256.',
        },
        encoding: { type: 'string', enum: ['hex', 'base64'], description: 'Only for hmac. Default: hex.' },
        prefix: {
          type: 'string',
          maxLength: 100,
          description: 'Only for hmac: text before the signature in its header.',
        },
        template: {
          type: 'string',
          minLength: 1,
          maxLength: 1000,
          description: 'Only for hmac: signed text, with {body}, {timestamp} and {id}. Default: {body}.',
        },
        timestamp_header: {
          ...header,
          description:
            'Only for hmac: header with the time, in seconds or milliseconds since the epoch or as ISO 8601.',
        },
        id_header: { ...header, description: 'Only for hmac: header with the delivery id.' },
      },
    },
    delivery_id_header: {
      ...header,
      description:
        'Header with the delivery id. svc ignores a repeated delivery within 24 hours. Replaces the header of the scheme.',
    },
    challenge: {
      type: 'object',
      additionalProperties: false,
      required: ['scheme'],
      description: 'How the sender verifies the address before it sends events.',
      properties: {
        scheme: {
          type: 'string',
          enum: [...challengeSchemes],
          description:
            'meta: GET with hub.verify_token and hub.challenge; okta: GET with X-Okta-Verification-Challenge; graph: POST with validationToken.',
        },
        token: { ...secretText, secret: true, description: 'Only for meta: the verify token.' },
      },
    },
    deduplicate: {
      type: 'boolean',
      description: 'false: each delivery runs, also a repeated one. Default: true.',
    },
  },
}

/**
 * A whole datastore item. A part of it would be so short that the author of the rule could guess it by sending signed
 * requests, and so read items of other users.
 */
const storedSecret = /^\{\{\s*svckv\.(?:system|user)(?:\.[A-Za-z_]\w*)+\s*(?:\|\s*decrypt_kv\s*)?\}\}$/

export const traceTagHeader = 'svc-trace-tag'

/** Headers in lower case that svc itself reads, such as credentials. Payloads do not contain them. */
export const takenHeaders: ReadonlySet<string> = new Set(['x-auth-token', 'svc-api-key', 'cookie', traceTagHeader])

/** Parameters of the scheme `hmac` only. */
const hmacOnly = ['header', 'algorithm', 'encoding', 'prefix', 'template', 'timestamp_header', 'id_header'] as const

/** Hook that dispatches any trigger by name. It always exists and is not listed. */
export const genericHook = 'svc'

/** The path without slashes around it. */
export function hookOf(url: string): string {
  let start = 0
  let end = url.length
  while (start < end && url[start] === '/') start += 1
  while (end > start && url[end - 1] === '/') end -= 1
  return url.slice(start, end)
}

/**
 * First problem in parameters; undefined: none. Contains no secret.
 *
 * @param parameters valid against `webhookParametersSchema`
 */
export function problemOfWebhook(parameters: Readonly<Record<string, unknown>>): string | undefined {
  const { url, signature, challenge } = parameters
  return (
    problemOfUrl(String(url)) ??
    (isObject(signature) ? problemOfSignature(signature) : undefined) ??
    (isObject(challenge) ? problemOfChallenge(challenge) : undefined)
  )
}

function problemOfChallenge({ scheme, token }: Record<string, unknown>): string | undefined {
  if (scheme !== 'meta') return token == null ? undefined : `challenge.token is only for the scheme 'meta'; remove it`
  if (typeof token !== 'string') return `'token' is a required property of a challenge of the scheme 'meta'`
  if (isTemplate(token) && !storedSecret.test(token)) {
    return `a template in challenge.token must be a single datastore item: '{{ svckv.system.<name> | decrypt_kv }}'`
  }
  return token.trim() === token ? undefined : 'challenge.token begins or ends with a blank; remove it'
}

/** Hooks that no request, or not the one that was meant, would reach. */
const unusableUrls: readonly { pattern: RegExp; why: string }[] = [
  {
    pattern: /\{\{|\{%/,
    why: 'contains a template, which svc does not render here; write the name of the webhook itself',
  },
  {
    pattern: /^[a-z][a-z\d+.-]*:\/\//i,
    why: 'is an address; write only the path after /v1/webhooks/, such as github/push',
  },
  {
    pattern: /^(?:api\/)?v1\/webhooks(?:\/|$)/,
    why: 'begins with v1/webhooks, which svc itself adds; write only what follows',
  },
  {
    pattern: /[?#]/,
    why: 'has a query or a fragment, which is not part of the name of a webhook; write only the path',
  },
  { pattern: /%[\da-f]{2}/i, why: 'is percent-encoded; write the characters themselves' },
  { pattern: /^\s|\s$/, why: 'begins or ends with a blank; remove it' },
]

function problemOfUrl(url: string): string | undefined {
  const hook = hookOf(url)
  const unusable = unusableUrls.find(({ pattern }) => pattern.test(hook))
  if (unusable !== undefined) return `'url' ${unusable.why}`
  if (hook === '') return `'url' is empty or contains only slashes`
  if (hook === genericHook)
    return `'url' is '${genericHook}', which is reserved for the generic webhook; use another URL`
  if (hook.split('/').some((segment) => segment === '.' || segment === '..')) {
    return `'url' has a segment '.' or '..', which clients remove from URLs; use another URL`
  }
  return hook.isWellFormed() ? undefined : `'url' is not valid Unicode`
}

function problemOfSignature(signature: Record<string, unknown>): string | undefined {
  const { scheme, secret, topics } = signature
  if (scheme === 'sns') {
    if (secret != null) return `signature.secret is not for the scheme 'sns', whose certificates svc fetches; remove it`
    if (topics == null) return `'topics' is a required property of a signature of the scheme 'sns'`
  } else {
    if (secret == null) return `'secret' is a required property of a signature of the scheme '${String(scheme)}'`
    if (topics != null) return `signature.topics is only for the scheme 'sns'; remove it`
  }
  const secrets = [secret ?? []].flat().map(String)
  if (secrets.some((secret) => isTemplate(secret) && !storedSecret.test(secret))) {
    return `a template in signature.secret must be a single datastore item: '{{ svckv.system.<name> | decrypt_kv }}'`
  }
  if (scheme === 'standard' && secrets.some((secret) => !isTemplate(secret) && standardKey(secret) === undefined)) {
    return `signature.secret of the scheme 'standard' must be base64 text of at least 16 bytes, usually after '${standardPrefix}'`
  }
  if (secrets.some((secret) => !isTemplate(secret) && secret.trim() !== secret)) {
    return `signature.secret begins or ends with a blank or a line end, which is not part of the secret; remove it`
  }
  const { header: name } = signature
  if (typeof name === 'string' && takenHeaders.has(name.toLowerCase())) {
    return `signature.header is '${name}', which svc itself reads; use another header`
  }
  if (scheme !== 'hmac') {
    const foreign = hmacOnly.find(
      (option) => signature[option] != null && !(option === 'header' && scheme === 'stripe'),
    )
    return foreign === undefined ? undefined : `signature.${foreign} is only for the scheme 'hmac'; remove it`
  }
  const template = typeof signature['template'] === 'string' ? signature['template'] : '{body}'
  if (typeof signature['header'] !== 'string')
    return `'header' is a required property of a signature of the scheme 'hmac'`
  if (!template.includes('{body}')) return `signature.template must contain {body}, else the body is not signed`
  const hasTime = typeof signature['timestamp_header'] === 'string'
  if (hasTime !== template.includes('{timestamp}')) {
    return hasTime
      ? `signature.template must contain {timestamp} if timestamp_header is set, else the time is not signed`
      : `signature.timestamp_header is missing: signature.template contains {timestamp}`
  }
  if (template.includes('{id}') && typeof signature['id_header'] !== 'string') {
    return `signature.id_header is missing: signature.template contains {id}`
  }
  return undefined
}

const base64Pattern = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/
const MIN_KEY_BYTES = 16

/** Prefix of Standard Webhooks secrets. */
export const standardPrefix = 'whsec_'

/** The key in a Standard Webhooks secret: base64, usually after `whsec_`. Undefined: invalid. */
export function standardKey(secret: string): Buffer | undefined {
  const text = secret.startsWith(standardPrefix) ? secret.slice(standardPrefix.length) : secret
  if (!base64Pattern.test(text)) return undefined
  const key = Buffer.from(text, 'base64')
  return key.length < MIN_KEY_BYTES ? undefined : key
}
