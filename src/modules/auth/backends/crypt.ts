/**
 * Password hashes that need processor time: Apache MD5 and `$1$`, SHA-1, SHA-crypt, bcrypt. Only `crypt-thread.ts` runs
 * them.
 *
 * MD5 and SHA-crypt are own code: libraries compute wrong hashes for some passwords (`docs/dependencies.md`, section 3).
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { compareSync } from 'bcryptjs'

const md5Pattern = /^(\$(?:apr1|1)\$)([^$]{0,8})\$([./0-9A-Za-z]{22})$/
const sha1Pattern = /^\{SHA\}([A-Za-z0-9+/]{27}=)$/
const shaCryptPattern = /^\$([56])\$(?:rounds=(\d{1,9})\$)?([^$]{0,16})\$([./0-9A-Za-z]{43}|[./0-9A-Za-z]{86})$/
const bcryptPattern = /^\$2[aby]\$(\d\d)\$[./0-9A-Za-z]{53}$/

/** About two seconds of one processor. A hash with more rounds would delay every other login. */
const MAX_SHA_ROUNDS = 1_000_000
const MAX_BCRYPT_COST = 15

/** Whether `verifyCrypt` supports this form and its cost is within the limits. */
export function isCryptHash(hash: string): boolean {
  if (md5Pattern.test(hash) || sha1Pattern.test(hash)) return true
  const shaCrypt = shaCryptPattern.exec(hash)
  if (shaCrypt !== null) {
    const [, form, rounds, , digest = ''] = shaCrypt
    return digest.length === (form === '5' ? 43 : 86) && Number(rounds ?? 0) <= MAX_SHA_ROUNDS
  }
  const bcrypt = bcryptPattern.exec(hash)
  const cost = Number(bcrypt?.[1])
  return cost >= 4 && cost <= MAX_BCRYPT_COST
}

/**
 * Whether the password has this hash; false for a hash that `isCryptHash` does not accept. Synchronous, and slow on
 * purpose.
 */
export function verifyCrypt(hash: string, password: string): boolean {
  if (!isCryptHash(hash)) return false
  // crypt programs stop at a NUL byte, so `secret\0anything` would match `secret`.
  if (password.includes('\0')) return false
  const bytes = Buffer.from(password)

  const md5 = md5Pattern.exec(hash)
  if (md5 !== null) {
    const [, magic = '', salt = '', digest = ''] = md5
    return isSame(digest, md5Crypt(bytes, Buffer.from(salt), Buffer.from(magic)))
  }
  const sha1 = sha1Pattern.exec(hash)
  if (sha1 !== null) return isSame(sha1[1] ?? '', createHash('sha1').update(bytes).digest('base64'))
  const shaCryptMatch = shaCryptPattern.exec(hash)
  if (shaCryptMatch !== null) {
    const [, form, rounds, salt = '', digest = ''] = shaCryptMatch
    const count = Math.max(MIN_SHA_ROUNDS, Number(rounds ?? DEFAULT_SHA_ROUNDS))
    return isSame(digest, shaCrypt(form === '5' ? sha256 : sha512, bytes, Buffer.from(salt), count))
  }
  return compareSync(password, hash)
}

function isSame(expected: string, found: string): boolean {
  const [a, b] = [Buffer.from(expected), Buffer.from(found)]
  return a.length === b.length && timingSafeEqual(a, b)
}

/** Poul-Henning Kamp's MD5-crypt, and Apache's variant of it with another magic. */
function md5Crypt(password: Buffer, salt: Buffer, magic: Buffer): string {
  const md5 = (...parts: Buffer[]): Buffer => createHash('md5').update(Buffer.concat(parts)).digest()
  const inner = md5(password, salt, password)
  const start = [password, magic, salt]
  for (let left = password.length; left > 0; left -= 16) start.push(inner.subarray(0, Math.min(16, left)))
  for (let bits = password.length; bits > 0; bits >>= 1) start.push(bits % 2 === 1 ? zero : password.subarray(0, 1))
  let digest = md5(...start)
  for (let round = 0; round < 1000; round++) digest = md5(...mixRound(round, digest, password, salt))
  return encode(digest, md5Order)
}

const zero = Buffer.alloc(1)

/** The input of one round; the order of its parts depends on the number of the round. */
function mixRound(round: number, digest: Buffer, password: Buffer, salt: Buffer): Buffer[] {
  const isOdd = round % 2 === 1
  return [
    isOdd ? password : digest,
    ...(round % 3 === 0 ? [] : [salt]),
    ...(round % 7 === 0 ? [] : [password]),
    isOdd ? digest : password,
  ]
}

/** Digest bytes in output order, in groups of three. Each group gives four characters, low bits first. */
type Order = readonly (readonly number[])[]

const md5Order: Order = [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5], [11]]

/** Each group is the previous one with every index plus one, rotated by one place. */
function rotatedOrder(step: number, direction: 'left' | 'right', last: readonly number[]): Order {
  const groups: number[][] = []
  for (let i = 0; i < step; i++) {
    const group = [i, i + step, i + 2 * step]
    const places = direction === 'left' ? i % 3 : (3 - (i % 3)) % 3
    groups.push([...group.slice(places), ...group.slice(0, places)])
  }
  return [...groups, last]
}

interface ShaForm {
  algorithm: string
  order: Order
}

const sha256: ShaForm = { algorithm: 'sha256', order: rotatedOrder(10, 'right', [31, 30]) }
const sha512: ShaForm = { algorithm: 'sha512', order: rotatedOrder(21, 'left', [63]) }
const MIN_SHA_ROUNDS = 1000
const DEFAULT_SHA_ROUNDS = 5000

/** Ulrich Drepper's SHA-crypt (`$5$`, `$6$`). */
function shaCrypt({ algorithm, order }: ShaForm, password: Buffer, salt: Buffer, rounds: number): string {
  const sha = (...parts: Buffer[]): Buffer => createHash(algorithm).update(Buffer.concat(parts)).digest()
  const inner = sha(password, salt, password)
  const start = [password, salt, stretch(inner, password.length)]
  for (let bits = password.length; bits > 0; bits >>= 1) start.push(bits % 2 === 1 ? inner : password)
  let digest = sha(...start)
  const stretchedPassword = stretch(sha(...repeat(password, password.length)), password.length)
  const stretchedSalt = stretch(sha(...repeat(salt, 16 + (digest[0] ?? 0))), salt.length)
  for (let round = 0; round < rounds; round++) {
    digest = sha(...mixRound(round, digest, stretchedPassword, stretchedSalt))
  }
  return encode(digest, order)
}

function repeat(bytes: Buffer, times: number): Buffer[] {
  return Array.from({ length: times }, () => bytes)
}

/** Repeats the bytes up to this length. */
function stretch(bytes: Buffer, length: number): Buffer {
  return Buffer.alloc(length, bytes)
}

const alphabet = './0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

function encode(digest: Buffer, order: Order): string {
  let text = ''
  for (const group of order) {
    let value = 0
    for (const index of group) value = (value << 8) | (digest[index] ?? 0)
    for (let i = 0; i <= group.length; i++) {
      text += alphabet[value & 63] ?? ''
      value >>= 6
    }
  }
  return text
}
