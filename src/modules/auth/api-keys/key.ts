/** The values of API keys, and the digests by which they are found again (contract 01, 1.9). */
import { hash, randomBytes } from 'node:crypto'
import { API_KEY_BYTES, API_KEY_PREFIX } from '../../../core/api-key-form.ts'

/**
 * Digests on installations that people come from were made with these characters in front of the key. With the same ones
 * here, records taken over from there keep their keys working. They need no secret: 32 random bytes cannot be guessed.
 */
const DIGEST_PREFIX = 'saltnpeper'

/** A new key: 47 URL-safe characters. */
export function makeKey(): string {
  return API_KEY_PREFIX + randomBytes(API_KEY_BYTES).toString('base64url')
}

/** SHA-512 as 128 lower-case hexadecimal characters: all that is ever kept of a key. */
export function hashKey(key: string): string {
  return hash('sha512', DIGEST_PREFIX + key)
}
