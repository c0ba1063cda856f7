/**
 * Parameters of the trigger type `core.svc.webhook` (contract 06, 6.1): the hook, and how its senders prove themselves.
 * The schema, and what a schema cannot say; the module `webhooks` gives them their meaning.
 */
import { isTemplate } from '../../../lib/template/index.ts'
import { isObject, type JsonSchema } from '../../../lib/schema/index.ts'
import { signatureSchemes } from '../types.ts'

/** A name of a header (RFC 9110, 5.1). */
const header = { type: 'string', minLength: 1, maxLength: 100, pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$" }
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
      description: 'What follows /v1/webhooks/ in the address of the hook.',
    },
    signature: {
      type: 'object',
      additionalProperties: false,
      required: ['scheme', 'secret'],
      description: 'How senders sign; such a hook needs no other credential.',
      properties: {
        scheme: { type: 'string', enum: [...signatureSchemes] },
        secret: {
          description: 'Shared with the sender; two while one replaces the other.',
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
          description: 'How far the time of a signature may be from ours, either way; default 300.',
        },
        header: { ...header, description: 'Of hmac: the header with the signature.' },
        algorithm: { type: 'string', enum: ['sha1', 'sha256', 'sha512'], description: 'Of hmac; default sha256.' },
        encoding: { type: 'string', enum: ['hex', 'base64'], description: 'Of hmac; default hex.' },
        prefix: { type: 'string', maxLength: 100, description: 'Of hmac: what stands in front of the signature.' },
        template: {
          type: 'string',
          minLength: 1,
          maxLength: 1000,
          description: 'Of hmac: what is signed, with {body}, {timestamp} and {id} in it; default {body}.',
        },
        timestamp_header: { ...header, description: 'Of hmac: the header with the seconds since the epoch.' },
        id_header: { ...header, description: 'Of hmac: the header with the id of the delivery.' },
      },
    },
    delivery_id_header: {
      ...header,
      description: 'The header with the id of the delivery; what comes twice within 24 hours causes nothing twice.',
    },
  },
}

/**
 * A part of an item, or something made of it, would be a secret so short that who wrote the rule could find it out by trying,
 * and so read what others have stored.
 */
const storedSecret = /^\{\{\s*svckv\.(?:system|user)(?:\.[A-Za-z_]\w*)+\s*(?:\|\s*decrypt_kv\s*)?\}\}$/

export const traceTagHeader = 'svc-trace-tag'

/** Headers of requests to hooks, in lower case, that this server reads itself, credentials most of all. */
export const takenHeaders: ReadonlySet<string> = new Set(['x-auth-token', 'svc-api-key', 'cookie', traceTagHeader])

/** Of the scheme `hmac` alone. */
const hmacOnly = ['header', 'algorithm', 'encoding', 'prefix', 'template', 'timestamp_header', 'id_header'] as const

/** Takes any trigger by name; always there, not listed. */
export const genericHook = 'svc'

/** Without the slashes around it. */
export function hookOf(url: string): string {
  let start = 0
  let end = url.length
  while (start < end && url[start] === '/') start += 1
  while (end > start && url[end - 1] === '/') end -= 1
  return url.slice(start, end)
}

/**
 * First problem of parameters that fit the schema; undefined: none. Contains no secret.
 *
 * @param parameters fit `webhookParametersSchema`
 */
export function problemOfWebhook(parameters: Readonly<Record<string, unknown>>): string | undefined {
  const { url, signature } = parameters
  return problemOfUrl(String(url)) ?? (isObject(signature) ? problemOfSignature(signature) : undefined)
}

function problemOfUrl(url: string): string | undefined {
  const hook = hookOf(url)
  if (hook === '') return `'url' names no hook: it needs something besides slashes`
  if (hook === genericHook)
    return `'url' is '${genericHook}', which is reserved for the generic webhook; choose another`
  if (hook.split('/').some((segment) => segment === '.' || segment === '..')) {
    return `'url' has a segment '.' or '..', which clients take out of addresses; choose another`
  }
  return hook.isWellFormed() ? undefined : `'url' is not valid Unicode`
}

function problemOfSignature(signature: Record<string, unknown>): string | undefined {
  const scheme = signature['scheme']
  const secrets = [signature['secret']].flat().map(String)
  if (secrets.some((secret) => isTemplate(secret) && !storedSecret.test(secret))) {
    return `a template as signature.secret is one item of the datastore: '{{ svckv.system.<name> | decrypt_kv }}'`
  }
  if (scheme === 'standard' && secrets.some((secret) => !isTemplate(secret) && standardKey(secret) === undefined)) {
    return `signature.secret of the scheme 'standard' is base64 text of at least 16 bytes, usually after '${standardPrefix}'`
  }
  if (scheme !== 'hmac') {
    const foreign = hmacOnly.find((name) => signature[name] !== undefined && signature[name] !== null)
    return foreign === undefined ? undefined : `signature.${foreign} is for the scheme 'hmac' only; leave it out`
  }
  const template = typeof signature['template'] === 'string' ? signature['template'] : '{body}'
  if (typeof signature['header'] !== 'string')
    return `'header' is a required property of a signature of the scheme 'hmac'`
  if (takenHeaders.has(signature['header'].toLowerCase())) {
    return `signature.header is '${signature['header']}', which this server reads itself; senders have to use another`
  }
  if (!template.includes('{body}')) return `signature.template has to contain {body}, or the body would not be signed`
  const hasTime = typeof signature['timestamp_header'] === 'string'
  if (hasTime !== template.includes('{timestamp}')) {
    return hasTime
      ? `signature.template has to contain {timestamp} when there is a timestamp_header, or anybody could change the time`
      : `signature.timestamp_header is missing: signature.template contains {timestamp}`
  }
  if (template.includes('{id}') && typeof signature['id_header'] !== 'string') {
    return `signature.id_header is missing: signature.template contains {id}`
  }
  return undefined
}

const base64Pattern = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/
const MIN_KEY_BYTES = 16

/** Of secrets of Standard Webhooks. */
export const standardPrefix = 'whsec_'

/** The key of Standard Webhooks: base64, usually after `whsec_`. Undefined: it is none. */
export function standardKey(secret: string): Buffer | undefined {
  const text = secret.startsWith(standardPrefix) ? secret.slice(standardPrefix.length) : secret
  if (!base64Pattern.test(text)) return undefined
  const key = Buffer.from(text, 'base64')
  return key.length < MIN_KEY_BYTES ? undefined : key
}
