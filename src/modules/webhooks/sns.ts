/** Messages of Amazon SNS: their signatures, and the confirmation of subscriptions. */
import { verify, type X509Certificate } from 'node:crypto'
import {
  signatureInvalid,
  signatureMissing,
  snsMessageExpired,
  snsMessageMalformed,
  snsMessageRefused,
  subscriptionUnconfirmed,
} from '../../core/errors.ts'
import { parseJsonBody } from '../../http/index.ts'
import { parseDateText } from '../../lib/calendar/index.ts'
import type { Log } from '../../lib/log/index.ts'
import { isObject } from '../../lib/schema/index.ts'
import { shown } from '../../lib/text/index.ts'
import type { SignatureParameters } from '../triggers/index.ts'
import { certificateUrl, confirmationUrl, type FetchAmazon } from './amazon.ts'
import type { Certificates } from './certificates.ts'
import { isoTime, only, type SignedRequest, type Verifier } from './signatures.ts'
import type { WebhookSubscription } from './types.ts'

const TYPE_HEADER = 'X-Amz-Sns-Message-Type'
/** Amazon repeats a message for an hour, with the time of the first attempt. */
const DEFAULT_TOLERANCE_SECONDS = 7200
/** Amazon sends 256 KiB, in which a character can become six. */
const MAX_MESSAGE_BYTES = 2 * 1024 * 1024

/** What is signed, in this order. Attributes of the message and the other addresses are not signed. */
const signedFields = {
  Notification: ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type'],
  SubscriptionConfirmation: ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type'],
  UnsubscribeConfirmation: ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type'],
} as const satisfies Record<string, readonly string[]>

type MessageType = keyof typeof signedFields

interface Message {
  type: MessageType
  /** The text that is signed. */
  signed: string
  /** The whole message, as it was sent. */
  text: string
  readonly field: (name: string) => string
}

const algorithms: Readonly<Record<string, string>> = { '1': 'RSA-SHA1', '2': 'RSA-SHA256' }

export function createSnsVerifier(
  { topics: allowed = [], tolerance_seconds: tolerance = DEFAULT_TOLERANCE_SECONDS }: SignatureParameters,
  deps: { certificates: Certificates; confirm: FetchAmazon; log: Log },
): Verifier {
  const { certificates, confirm, log } = deps
  const topics: ReadonlySet<string> = new Set(allowed)

  /** The response; undefined for an event. @throws SUBSCRIPTION_UNCONFIRMED */
  async function respond({ type, field }: Message): Promise<WebhookSubscription | undefined> {
    const topic = field('TopicArn')
    switch (type) {
      case 'Notification':
        return undefined
      case 'UnsubscribeConfirmation':
        log.info('webhook.unsubscribed', 'Amazon SNS has ended a subscription of a webhook', { topic })
        return { topic, subscription: 'ended' }
      case 'SubscriptionConfirmation': {
        const url = confirmationUrl(field('SubscribeURL'))
        if (url === undefined) throw snsMessageRefused('has a SubscribeURL that is no address of Amazon SNS')
        try {
          await confirm(url)
        } catch (error) {
          throw subscriptionUnconfirmed(topic, error)
        }
        log.info('webhook.subscribed', 'Confirmed a subscription of a webhook to Amazon SNS', { topic })
        return { topic, subscription: 'confirmed' }
      }
    }
  }

  return {
    headers: [TYPE_HEADER.toLowerCase()],
    secretHeaders: [],
    async verify(request, nowSeconds) {
      const message = await readMessage(request)
      const { field, signed } = message
      const topic = field('TopicArn')
      if (!topics.has(topic)) {
        throw snsMessageRefused(`is of the topic "${shown(topic)}", which signature.topics does not name`)
      }
      const micros = isoTime.test(field('Timestamp')) ? parseDateText(field('Timestamp')) : undefined
      if (micros === undefined) throw snsMessageMalformed('has a Timestamp that is no ISO 8601 with a time zone')
      if (Math.abs(nowSeconds - micros / 1_000_000) > tolerance) throw snsMessageExpired(tolerance)
      const url = certificateUrl(field('SigningCertURL'))
      if (url === undefined) {
        throw snsMessageRefused('has a SigningCertURL that is no address of a certificate of Amazon SNS')
      }
      const algorithm = algorithms[field('SignatureVersion')]
      if (algorithm === undefined) throw snsMessageMalformed('has a SignatureVersion other than "1" and "2"')
      const signature = Buffer.from(field('Signature'), 'base64')
      const certificate = await certificates.at(url)
      if (!isValidAt(certificate, nowSeconds)) throw snsMessageRefused('has a certificate that is not valid now')
      if (!verify(algorithm, Buffer.from(signed), certificate.publicKey, signature)) throw signatureInvalid()
      const id = field('MessageId')
      return { eventText: message.text, signedId: () => id, answerTo: () => respond(message) }
    },
  }
}

/** @throws SIGNATURE_MISSING, SIGNATURE_MALFORMED */
async function readMessage(request: SignedRequest): Promise<Message> {
  const header = only(request, TYPE_HEADER)
  if (header === undefined) throw signatureMissing([TYPE_HEADER])
  if (request.headers.has('x-amz-sns-rawdelivery')) {
    throw snsMessageMalformed('is not signed: turn off raw message delivery for this subscription')
  }
  const { body } = request
  if (body.length > MAX_MESSAGE_BYTES) throw snsMessageMalformed(`is longer than ${MAX_MESSAGE_BYTES} bytes`)
  const [text, fields] = await parse(body)
  const field = (name: string): string => {
    const value = Object.hasOwn(fields, name) ? fields[name] : undefined
    if (typeof value !== 'string') throw snsMessageMalformed(`has no text ${name}`)
    // The signed text separates fields by line ends: in one of them, others could be hidden.
    if (name !== 'Message' && /[\r\n]/.test(value)) throw snsMessageMalformed(`has a line end in its ${name}`)
    return value
  }
  const type = field('Type')
  if (!isMessageType(type) || type !== header) throw snsMessageMalformed(`has a Type other than its ${TYPE_HEADER}`)
  if (!/^[\w-]{1,100}$/.test(field('MessageId'))) throw snsMessageMalformed('has a MessageId that is none')
  const signed = signedFields[type]
    .filter((name) => name !== 'Subject' || (fields[name] ?? null) !== null)
    .map((name) => `${name}\n${field(name)}\n`)
    .join('')
  return { type, signed, text, field }
}

/** @throws SIGNATURE_MALFORMED */
async function parse(body: Buffer): Promise<[text: string, fields: Record<string, unknown>]> {
  let text: string
  let fields: unknown
  try {
    text = utf8.decode(body)
    fields = await parseJsonBody(text)
  } catch {
    throw snsMessageMalformed('is no JSON')
  }
  if (!isObject(fields)) throw snsMessageMalformed('is no JSON object')
  return [text, fields]
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

const isMessageType = (text: string): text is MessageType => Object.hasOwn(signedFields, text)

function isValidAt({ validFrom, validTo }: X509Certificate, seconds: number): boolean {
  return Date.parse(validFrom) <= seconds * 1000 && seconds * 1000 <= Date.parse(validTo)
}
