/** Private key files as text (OpenSSH's PROTOCOL.key). */
import { createPrivateKey } from 'node:crypto'
import type { ParsedKey } from 'ssh2'

const MAGIC = Buffer.from('openssh-key-v1\0', 'latin1')
const BLOCK = 8

/** Whether the text is a key rather than the path of a key file. */
export function isKeyText(text: string): boolean {
  return text.includes('-----BEGIN ') || text.includes('PuTTY-User-Key-File-')
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
  const { d = '', x = '' } = createPrivateKey(pem).export({ format: 'jwk' })
  const [seed, point] = [Buffer.from(d, 'base64url'), Buffer.from(x, 'base64url')]
  const check = Buffer.alloc(8) // twice the same number, by which a wrong passphrase is found
  const secret = Buffer.concat([
    check,
    field('ssh-ed25519'),
    field(point),
    field(Buffer.concat([seed, point])),
    field(key.comment ?? ''),
  ])
  const padding = Buffer.from(Array.from({ length: (BLOCK - (secret.length % BLOCK)) % BLOCK }, (_, i) => i + 1))
  const bytes = Buffer.concat([
    MAGIC,
    field('none'),
    field('none'),
    field(''),
    Buffer.from([0, 0, 0, 1]),
    field(key.getPublicSSH()),
    field(Buffer.concat([secret, padding])),
  ])
  const lines = bytes.toString('base64').match(/.{1,70}/g) ?? []
  return ['-----BEGIN OPENSSH PRIVATE KEY-----', ...lines, '-----END OPENSSH PRIVATE KEY-----', ''].join('\n')
}

function field(content: string | Buffer): Buffer {
  const bytes = Buffer.from(content as string) // both kinds are taken
  const length = Buffer.alloc(4)
  length.writeUInt32BE(bytes.length)
  return Buffer.concat([length, bytes])
}
