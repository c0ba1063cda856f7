/** Secrets as StackStorm keeps them, made by openssl and not by code of svc. */
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'

export interface OldKey {
  /** The content of the key file. */
  readonly file: Record<string, unknown>
  /** Cipher text of a value. */
  encrypt(plain: string): string
}

export function makeOldKey(): OldKey {
  const [aes, hmac] = [randomBytes(32), randomBytes(32)]
  const openssl = (args: readonly string[], input: Buffer): Buffer => execFileSync('openssl', args, { input })
  return {
    file: {
      hmacKey: { hmacKeyString: hmac.toString('base64url'), size: 256 },
      size: 256,
      aesKeyString: aes.toString('base64url'),
      mode: 'CBC',
    },
    encrypt(plain) {
      const vector = randomBytes(16)
      const data = openssl(
        ['enc', '-aes-256-cbc', '-K', aes.toString('hex'), '-iv', vector.toString('hex')],
        Buffer.from(plain),
      )
      const message = Buffer.concat([Buffer.from('00000'), vector, data])
      const mac = openssl(
        ['dgst', '-sha1', '-mac', 'HMAC', '-macopt', `hexkey:${hmac.toString('hex')}`, '-binary'],
        message,
      )
      return Buffer.concat([message, mac]).toString('hex').toUpperCase()
    },
  }
}
