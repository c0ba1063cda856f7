/** A webhook of the site: JSON, signed by Standard Webhooks when the destination has secrets. */
import { createHmac } from 'node:crypto'
import { SendFailure, originOf, postJson, textIn, type Channel, type Settings } from './channel.ts'
import { writeJson } from '../../../lib/json/index.ts'

const PREFIX = 'whsec_'
const MIN_KEY_BYTES = 16
const MAX_SECRETS = 5

export const webhook: Channel = {
  kind: 'webhook',
  settings: {
    webhook_url: { type: 'string', minLength: 1, description: 'Address that gets a POST.' },
    secret: { type: 'string', minLength: 1, description: 'Signs: `whsec_` and base64 of at least 16 bytes.' },
    secrets: {
      type: 'array',
      maxItems: MAX_SECRETS,
      items: { type: 'string', minLength: 1 },
      description: 'The same, several: each signs, so that a secret can be replaced while both count.',
    },
    headers: {
      type: 'object',
      maxProperties: 20,
      additionalProperties: { type: 'string' },
      propertyNames: { pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$" },
      description: 'Further headers.',
    },
  },
  required: ['webhook_url'],
  secrets: ['secret', 'secrets', 'headers'],
  schemes: ['json', 'jsons'],
  fromUrl(url) {
    const { user, password, path, query, scheme } = url
    const text = query.size === 0 ? '' : `?${new URLSearchParams([...query]).toString()}`
    const address = `${originOf(url, scheme === 'jsons')}/${path.map(encodeURIComponent).join('/')}${text}`
    if (user === '') return { webhook_url: address }
    const credentials = Buffer.from(`${user}:${password}`).toString('base64')
    return { webhook_url: address, headers: { authorization: `Basic ${credentials}` } }
  },
  isDigested: true,
  async send({ id, timestamp, data }, settings, tools) {
    const body = writeJson({ type: `svc.notification.${String(data['condition'])}`, timestamp, data: { id, ...data } })
    const seconds = Math.floor(tools.now())
    await postJson(tools, textIn(settings, 'webhook_url'), body, {
      ...headersIn(settings),
      'webhook-id': id,
      'webhook-timestamp': String(seconds),
      ...signaturesOf(keysIn(settings), id, seconds, body),
    })
    return 'accepted'
  },
}

function signaturesOf(keys: readonly Buffer[], id: string, seconds: number, body: string): Record<string, string> {
  if (keys.length === 0) return {}
  const signatures = keys.map(
    (key) => `v1,${createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64')}`,
  )
  return { 'webhook-signature': signatures.join(' ') }
}

/** @throws SendFailure */
function keysIn(settings: Settings): Buffer[] {
  const { secret, secrets } = settings
  const given = [...(typeof secret === 'string' ? [secret] : []), ...(Array.isArray(secrets) ? secrets : [])]
  return given.map((each) => {
    const text = String(each).trim()
    const key = Buffer.from(text.startsWith(PREFIX) ? text.slice(PREFIX.length) : text, 'base64')
    if (key.length >= MIN_KEY_BYTES) return key
    throw new SendFailure(`a secret is not "${PREFIX}" and base64 of at least ${MIN_KEY_BYTES} bytes`)
  })
}

/** @throws SendFailure */
function headersIn({ headers }: Settings): Record<string, string> {
  const given = Object.entries((headers ?? {}) as Record<string, string>) // has passed its schema
  const broken = given.find(([, value]) => /[^\t\x20-\x7e\x80-\xff]/.test(value))
  if (broken !== undefined) throw new SendFailure(`the header "${broken[0]}" has characters that no header can have`)
  return Object.fromEntries(given.map(([name, value]) => [name.toLowerCase(), value]))
}
