/** Signs a request in the browser, as its sender would. The secret stays in the page. */
import type { SignatureParameters } from '../../api/records.ts'
import { serverNow } from '../../api/server-clock.ts'

const algorithms = { sha1: 'SHA-1', sha256: 'SHA-256', sha512: 'SHA-512' } as const

type Bytes = Uint8Array<ArrayBuffer>

const encode = (text: string): Bytes => new TextEncoder().encode(text)

/**
 * The headers of the signature.
 *
 * @param body as it is sent
 * @throws Error for a secret that is none of this scheme, and where the browser has no cryptography: on pages that came
 *   over plain HTTP from another machine
 */
export async function signatureHeaders(
  signature: SignatureParameters,
  secret: string,
  body: string,
  nowSeconds = Math.floor(serverNow() / 1000),
): Promise<Record<string, string>> {
  const time = String(nowSeconds)
  const hmac = (text: string, name: keyof typeof algorithms = 'sha256'): Promise<Bytes> =>
    mac(name, encode(secret), text)
  switch (signature.scheme) {
    case 'github':
      return { 'X-Hub-Signature-256': `sha256=${toHex(await hmac(body))}` }
    case 'gitlab':
      return secret.startsWith('whsec_') ? standardHeaders(secret, time, body) : { 'X-Gitlab-Token': secret }
    case 'stripe':
      return { [signature.header ?? 'Stripe-Signature']: `t=${time},v1=${toHex(await hmac(`${time}.${body}`))}` }
    case 'slack':
      return {
        'X-Slack-Request-Timestamp': time,
        'X-Slack-Signature': `v0=${toHex(await hmac(`v0:${time}:${body}`))}`,
      }
    case 'zoom':
      return { 'X-Zm-Request-Timestamp': time, 'X-Zm-Signature': `v0=${toHex(await hmac(`v0:${time}:${body}`))}` }
    case 'standard':
      return standardHeaders(secret, time, body)
    case 'sns':
      throw new Error('Only Amazon SNS can sign for this webhook. Publish a message to its topic instead.')
    case 'hmac': {
      const { header = '', algorithm, encoding = 'hex', prefix = '', template = '{body}' } = signature
      const { timestamp_header: timeHeader, id_header: idHeader } = signature
      const id = newId()
      const values: Readonly<Record<string, string>> = { '{body}': body, '{timestamp}': time, '{id}': id }
      const text = template
        .split(/(\{(?:body|timestamp|id)\})/)
        .map((part) => values[part] ?? part)
        .join('')
      const bytes = await hmac(text, algorithm)
      return {
        ...(idHeader === undefined ? {} : { [idHeader]: id }),
        ...(timeHeader === undefined ? {} : { [timeHeader]: time }),
        [header]: prefix + (encoding === 'hex' ? toHex(bytes) : toBase64(bytes)),
      }
    }
  }
}

async function standardHeaders(secret: string, time: string, body: string): Promise<Record<string, string>> {
  const id = `msg_${newId()}`
  let key: Bytes
  try {
    key = Uint8Array.from(atob(secret.replace(/^whsec_/, '')), (character) => character.charCodeAt(0))
  } catch {
    throw new Error('The secret must be base64 text, usually after whsec_.')
  }
  return {
    'webhook-id': id,
    'webhook-timestamp': time,
    'webhook-signature': `v1,${toBase64(await mac('sha256', key, `${id}.${time}.${body}`))}`,
  }
}

async function mac(name: keyof typeof algorithms, secret: Bytes, text: string): Promise<Bytes> {
  // The types of the platform do not know that it may be missing.
  const subtle = crypto.subtle as SubtleCrypto | undefined
  if (subtle === undefined) {
    throw new Error(
      'The browser can sign only on HTTPS pages or on the machine of the server. Use the shell commands instead.',
    )
  }
  const key = await subtle.importKey('raw', secret, { name: 'HMAC', hash: algorithms[name] }, false, ['sign'])
  return new Uint8Array(await subtle.sign('HMAC', key, encode(text)))
}

function newId(): string {
  return toHex(crypto.getRandomValues(new Uint8Array(12)))
}

function toHex(bytes: Bytes): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

function toBase64(bytes: Bytes): string {
  return btoa(String.fromCharCode(...bytes))
}
