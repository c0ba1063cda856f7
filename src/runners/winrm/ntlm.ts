/** The messages of an NTLMv2 login (MS-NLMP): negotiate, challenge, authenticate. Without signing and sealing. */
import { createHmac, randomBytes } from 'node:crypto'
import { md4 } from './md4.ts'

export interface NtlmLogin {
  /** `name`, `DOMAIN\name` or `name@domain`. */
  username: string
  password: string
}

const SIGNATURE = Buffer.from('NTLMSSP\0', 'latin1')
const UNICODE = 0x1
const REQUEST_TARGET = 0x4
const NTLM = 0x200
const ALWAYS_SIGN = 0x8000
const EXTENDED_SECURITY = 0x80000
const TARGET_INFO = 0x800000
const KEY_128 = 0x20000000
const KEY_56 = 0x80000000
const FLAGS = (UNICODE | REQUEST_TARGET | NTLM | ALWAYS_SIGN | EXTENDED_SECURITY | TARGET_INFO | KEY_128 | KEY_56) >>> 0

const CHALLENGE_HEAD_BYTES = 48
const AUTHENTICATE_HEAD_BYTES = 64
/** Attribute of the target information: the time of the server. */
const TIMESTAMP_ID = 7
/** 100 ns between 1601 and 1970. */
const EPOCH_OFFSET = 116_444_736_000_000_000n

/** The first message: which features the client supports. */
export function negotiateMessage(): Buffer {
  const message = Buffer.alloc(32)
  SIGNATURE.copy(message)
  message.writeUInt32LE(1, 8)
  message.writeUInt32LE(FLAGS, 12)
  return message
}

export interface NtlmChallenge {
  flags: number
  serverChallenge: Buffer
  targetInfo: Buffer
}

/** @returns undefined for bytes that are not a challenge of NTLMv2 */
export function readChallenge(message: Buffer): NtlmChallenge | undefined {
  if (message.length < CHALLENGE_HEAD_BYTES || !message.subarray(0, 8).equals(SIGNATURE)) return undefined
  if (message.readUInt32LE(8) !== 2) return undefined
  const flags = message.readUInt32LE(20)
  const length = message.readUInt16LE(40)
  const offset = message.readUInt32LE(44)
  if ((flags & UNICODE) === 0 || (flags & TARGET_INFO) === 0 || offset + length > message.length) return undefined
  return {
    flags,
    serverChallenge: Buffer.from(message.subarray(24, 32)),
    targetInfo: Buffer.from(message.subarray(offset, offset + length)),
  }
}

/** Time of the server, when it sends one. */
function timestampIn(targetInfo: Buffer): Buffer | undefined {
  for (let at = 0; at + 4 <= targetInfo.length;) {
    const id = targetInfo.readUInt16LE(at)
    const length = targetInfo.readUInt16LE(at + 2)
    if (id === 0) return undefined
    if (id === TIMESTAMP_ID && length === 8 && at + 12 <= targetInfo.length) return targetInfo.subarray(at + 4, at + 12)
    at += 4 + length
  }
  return undefined
}

/** The key of all proofs of a user. */
export function ntlmKey(password: string, name: string, domain: string): Buffer {
  return hmacMd5(md4(utf16(password)), utf16(name.toUpperCase() + domain))
}

/** What proves the password: HMAC of the challenge, followed by what it covers. */
export function ntlmResponse(
  key: Buffer,
  { serverChallenge, targetInfo }: Pick<NtlmChallenge, 'serverChallenge' | 'targetInfo'>,
  clientChallenge: Buffer,
  timestamp: Buffer,
): Buffer {
  const covered = Buffer.concat([
    Buffer.from([1, 1, 0, 0, 0, 0, 0, 0]),
    timestamp,
    clientChallenge,
    Buffer.alloc(4),
    targetInfo,
    Buffer.alloc(4),
  ])
  return Buffer.concat([hmacMd5(key, Buffer.concat([serverChallenge, covered])), covered])
}

/** The last message: the name, and the proof of the password. */
export function authenticateMessage({ username, password }: NtlmLogin, challenge: NtlmChallenge): Buffer {
  const slash = username.indexOf('\\')
  const domain = slash < 0 ? '' : username.slice(0, slash)
  const name = username.slice(slash + 1)
  const key = ntlmKey(password, name, domain)
  const clientChallenge = randomBytes(8)
  const sent = timestampIn(challenge.targetInfo)
  const own = Buffer.alloc(8)
  own.writeBigUInt64LE(BigInt(Date.now()) * 10_000n + EPOCH_OFFSET)
  const response = ntlmResponse(key, challenge, clientChallenge, sent ?? own)
  const lanManager =
    sent === undefined
      ? Buffer.concat([hmacMd5(key, Buffer.concat([challenge.serverChallenge, clientChallenge])), clientChallenge])
      : Buffer.alloc(24)
  const parts = [lanManager, response, utf16(domain), utf16(name), Buffer.alloc(0), Buffer.alloc(0)]
  const head = Buffer.alloc(AUTHENTICATE_HEAD_BYTES)
  SIGNATURE.copy(head)
  head.writeUInt32LE(3, 8)
  let offset = AUTHENTICATE_HEAD_BYTES
  parts.forEach((part, index) => {
    const at = 12 + 8 * index
    head.writeUInt16LE(part.length, at)
    head.writeUInt16LE(part.length, at + 2)
    head.writeUInt32LE(offset, at + 4)
    offset += part.length
  })
  head.writeUInt32LE((challenge.flags & FLAGS) >>> 0, 60)
  return Buffer.concat([head, ...parts])
}

function hmacMd5(key: Buffer, data: Buffer): Buffer {
  return createHmac('md5', key).update(data).digest()
}

const utf16 = (text: string): Buffer => Buffer.from(text, 'utf16le')
