/** Private key files as text (OpenSSH's PROTOCOL.key). */
import { createPrivateKey, type KeyObject } from 'node:crypto'
import type { ParsedKey } from 'ssh2'

const MAGIC = Buffer.from('openssh-key-v1\0', 'latin1')
const BLOCK = 8

const LINE_LENGTH = 70
const PUBLIC_KEY = /^(?:ssh-|ecdsa-sha2-|sk-ssh-|sk-ecdsa-)[\w@.-]+ +AAAA/
const PEM = /-----BEGIN ([A-Z0-9 ]+)-----([\s\S]*?)-----END \1-----/
/** Headers of a PEM key with a passphrase, also on one line. */
const PEM_HEADERS =
  /^\s*Proc-Type:\s*4,ENCRYPTED\s*DEK-Info:\s*(AES-[A-Z0-9-]+,[0-9A-F]{32}|DES-[A-Z0-9-]+,[0-9A-F]{16})/i
/** PKCS #8, the format of OpenSSL 3 and of many other tools. */
const PKCS8 = /^-----BEGIN (?:ENCRYPTED )?PRIVATE KEY-----/

/** Whether the text is a key of any kind, also a wrong one, rather than the path of a key file. */
export function isKeyText(text: string): boolean {
  return text.includes('-----BEGIN ') || text.includes('PuTTY-User-Key-File-') || PUBLIC_KEY.test(text.trim())
}

export const isPkcs8 = (text: string): boolean => PKCS8.test(text)

/**
 * The key as its tool wrote it. Forms, shells and configuration files add carriage returns, drop the last line end, and
 * turn the other line ends into blanks, into `\n`, or into nothing.
 */
export function normalizeKey(given: string): string {
  const text = given
    .replace(/^\uFEFF|^\u00EF\u00BB\u00BF/, '')
    .replaceAll(/\r\n?|\\r\\n|\\n/g, '\n')
    .trim()
  const pem = PEM.exec(text)
  if (pem === null) return `${text}\n`
  const [, label = '', content = ''] = pem
  const [headers = '', cipher] = PEM_HEADERS.exec(content) ?? []
  const body = content.slice(headers.length).replaceAll(/\s/g, '')
  // Something else, which the parser shall judge.
  if (!/^[A-Za-z0-9+/]+=*$/.test(body)) return `${text}\n`
  const lines = body.match(new RegExp(`.{1,${LINE_LENGTH}}`, 'g')) ?? []
  const head = cipher === undefined ? [] : ['Proc-Type: 4,ENCRYPTED', `DEK-Info: ${cipher}`, '']
  return [`-----BEGIN ${label}-----`, ...head, ...lines, `-----END ${label}-----`, ''].join('\n')
}

/** What a text is that cannot be a private key, as a sentence; undefined when it may be one. @param text normalized */
export function problemOfKey(text: string): string | undefined {
  if (/^\S+-cert-v01@openssh\.com /.test(text)) {
    return 'The private key is a certificate; give the private key that belongs to it, the file without -cert.pub.'
  }
  if (PUBLIC_KEY.test(text) || /-----BEGIN (?:RSA )?PUBLIC KEY-----|---- BEGIN SSH2 PUBLIC KEY/.test(text)) {
    return 'The private key is a public key; give the private key that belongs to it, the file without .pub.'
  }
  if (/-----BEGIN (?:TRUSTED )?CERTIFICATE(?: REQUEST)?-----/.test(text)) {
    return 'The private key is an X.509 certificate; give the private key that belongs to it.'
  }
  const putty = /PuTTY-User-Key-File-(\d+): (\S+)/.exec(text)
  if (putty !== null && (putty[1] !== '2' || !/^ssh-(?:rsa|dss)$/.test(putty[2] ?? ''))) {
    return (
      'The private key has a format of PuTTY that svc does not read; convert it: ' +
      'puttygen key.ppk -O private-openssh -o key.'
    )
  }
  const [, openssh = ''] = /-----BEGIN OPENSSH PRIVATE KEY-----([A-Za-z0-9+/=\s]*)/.exec(text) ?? []
  if (/sk-(?:ssh|ecdsa)[\w-]*@openssh\.com/.test(Buffer.from(openssh, 'base64').toString('latin1'))) {
    return 'The private key belongs to a hardware token (sk-…), which svc does not use; give a key without one.'
  }
  const [, label] = /-----BEGIN ([A-Z0-9 ]*PRIVATE KEY)-----/.exec(text) ?? []
  if (label !== undefined && !text.includes(`-----END ${label}-----`)) {
    return `The private key is cut off: the line "-----END ${label}-----" is missing.`
  }
  return undefined
}

/** The key of PKCS #8 as text that ssh2 can parse. @throws Error of OpenSSL, or `unsupported` */
export function fromPkcs8(text: string, passphrase?: string): string {
  const key = createPrivateKey({ key: text, format: 'pem', ...(passphrase === undefined ? {} : { passphrase }) })
  switch (key.asymmetricKeyType) {
    case 'rsa':
      return String(key.export({ type: 'pkcs1', format: 'pem' }))
    case 'ec':
      return String(key.export({ type: 'sec1', format: 'pem' }))
    case 'ed25519':
      return ed25519Text(key)
    default:
      throw new Error('unsupported')
  }
}

/** The largest number of the key derivation in an encrypted PKCS #8 key: its iterations. 0 when there is none. */
export function iterationsOf(text: string): number {
  const [, encoded = ''] = /-----BEGIN ENCRYPTED PRIVATE KEY-----([A-Za-z0-9+/=\s]*)-----END/.exec(text) ?? []
  const bytes = Buffer.from(encoded, 'base64')
  let largest = 0
  // DER: tag, length, content. The first sequence of the outer one describes the encryption.
  const walk = (start: number, end: number, depth: number): void => {
    for (let at = start; at + 2 <= end && depth < 10;) {
      const tag = bytes[at] ?? 0
      let length = bytes[at + 1] ?? 0
      at += 2
      if (length > 0x80) {
        const count = length - 0x80
        if (count > 4 || at + count > end) return
        length = bytes.readUIntBE(at, count)
        at += count
      }
      const next = Math.min(at + length, end)
      if (tag === 0x30) walk(at, next, depth + 1)
      else if (tag === 0x02) largest = Math.max(largest, next - at > 6 ? Infinity : bytes.readUIntBE(at, next - at))
      if (depth === 1 && tag === 0x30) return
      at = next
    }
  }
  walk(0, bytes.length, 0)
  return largest
}

/** Rounds of the key derivation that decrypts this key; 0 when the format stores no such number. */
export function roundsOf(text: string): number {
  const match = /-----BEGIN OPENSSH PRIVATE KEY-----([A-Za-z0-9+/=\s]*)-----END/.exec(text)
  const bytes = Buffer.from(match?.[1] ?? '', 'base64')
  let offset = MAGIC.length
  const next = (): Buffer => {
    if (offset + 4 > bytes.length) return Buffer.alloc(0)
    const length = bytes.readUInt32BE(offset)
    const field = bytes.subarray(offset + 4, offset + 4 + length)
    offset += 4 + length
    return field
  }
  next() // name of the cipher
  if (next().toString('latin1') !== 'bcrypt') return 0
  const options = next()
  return options.length < 4 ? 0 : options.readUInt32BE(options.length - 4)
}

/** The key as unencrypted text that ssh2 can parse. ssh2 cannot parse its own output for Ed25519. */
export function toUnlockedText(key: ParsedKey): string {
  const pem = String(key.getPrivatePEM())
  if (key.type !== 'ssh-ed25519') return pem
  return ed25519Text(createPrivateKey(pem), key.comment)
}

function ed25519Text(key: KeyObject, comment = ''): string {
  const { d = '', x = '' } = key.export({ format: 'jwk' })
  const [seed, point] = [Buffer.from(d, 'base64url'), Buffer.from(x, 'base64url')]
  const check = Buffer.alloc(8) // twice the same number, by which a wrong passphrase is found
  const secret = Buffer.concat([
    check,
    field('ssh-ed25519'),
    field(point),
    field(Buffer.concat([seed, point])),
    field(comment),
  ])
  const padding = Buffer.from(Array.from({ length: (BLOCK - (secret.length % BLOCK)) % BLOCK }, (_, i) => i + 1))
  const bytes = Buffer.concat([
    MAGIC,
    field('none'),
    field('none'),
    field(''),
    Buffer.from([0, 0, 0, 1]),
    field(Buffer.concat([field('ssh-ed25519'), field(point)])),
    field(Buffer.concat([secret, padding])),
  ])
  const lines = bytes.toString('base64').match(new RegExp(`.{1,${LINE_LENGTH}}`, 'g')) ?? []
  return ['-----BEGIN OPENSSH PRIVATE KEY-----', ...lines, '-----END OPENSSH PRIVATE KEY-----', ''].join('\n')
}

function field(content: string | Buffer): Buffer {
  const bytes = Buffer.from(content as string) // both kinds are taken
  const length = Buffer.alloc(4)
  length.writeUInt32BE(bytes.length)
  return Buffer.concat([length, bytes])
}
