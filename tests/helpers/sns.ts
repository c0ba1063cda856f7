/** Messages as Amazon SNS signs them, with a key of the test's own. */
import { execFileSync } from 'node:child_process'
import { randomUUID, sign } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ensureDebianPackage } from './apt.ts'

export const snsTopic = 'arn:aws:sns:us-east-1:123456789012:alarms'
export const snsHost = 'https://sns.us-east-1.amazonaws.com'
export const snsCertificateUrl = `${snsHost}/SimpleNotificationService-0123456789abcdef.pem`
export const snsConfirmationUrl = `${snsHost}/?Action=ConfirmSubscription&TopicArn=${snsTopic}&Token=2336412f37`

export interface SnsKey {
  key: string
  certificate: Buffer
}

/** A key and its self-signed certificate, which is valid for two days. */
export async function makeSnsKey(bits = 2048): Promise<SnsKey> {
  await ensureDebianPackage('openssl', '/usr/bin/openssl')
  const folder = mkdtempSync(join(tmpdir(), 'svc-sns-'))
  try {
    const [keyFile, file] = [join(folder, 'key.pem'), join(folder, 'certificate.pem')]
    const flags = ['req', '-x509', '-newkey', `rsa:${bits}`, '-nodes', '-days', '2', '-subj', '/CN=sns.amazonaws.com']
    execFileSync('/usr/bin/openssl', [...flags, '-keyout', keyFile, '-out', file], { stdio: 'ignore' })
    return { key: readFileSync(keyFile, 'utf8'), certificate: readFileSync(file) }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

export type SnsFields = Readonly<Record<string, unknown>>

/** A message with a valid signature, in the order of keys that Amazon sends. A field that is undefined is left out. */
export function snsMessage(key: string, fields: SnsFields = {}): Record<string, string> {
  const { Type = 'Notification' } = fields
  const isEvent = Type === 'Notification'
  const message: Record<string, unknown> = {
    Type,
    MessageId: randomUUID(),
    ...(isEvent ? {} : { Token: '2336412f37', SubscribeURL: snsConfirmationUrl }),
    TopicArn: snsTopic,
    Message: 'the disk of "db1" is full\n',
    Timestamp: new Date().toISOString(),
    SignatureVersion: '2',
    SigningCertURL: snsCertificateUrl,
    ...(isEvent ? { UnsubscribeURL: `${snsHost}/?Action=Unsubscribe` } : {}),
    ...fields,
  }
  const names = isEvent
    ? ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type']
    : ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type']
  const signed = names
    .map((name) => (message[name] === undefined ? '' : `${name}\n${message[name] as string}\n`))
    .join('')
  const algorithm = message['SignatureVersion'] === '1' ? 'RSA-SHA1' : 'RSA-SHA256'
  const Signature = sign(algorithm, Buffer.from(signed), key).toString('base64')
  return { ...message, Signature } as Record<string, string> // undefined ones are left out of JSON
}
