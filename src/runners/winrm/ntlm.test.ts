import { expect, it } from 'vitest'
import { md4 } from './md4.ts'
import { authenticateMessage, negotiateMessage, ntlmKey, ntlmResponse, readChallenge } from './ntlm.ts'

it.each([
  ['', '31d6cfe0d16ae931b73c59d7e0c089c0'],
  ['a', 'bde52cb31de33e46245e05fbdbd6fb24'],
  ['message digest', 'd9130a8164549fe818874806e1c7014b'],
  ['1234567890'.repeat(8), 'e33b4ddc9c38f2199c3e7b164fcc0536'],
])('MD4 of %j is that of RFC 1320', (text, digest) => {
  expect(md4(Buffer.from(text)).toString('hex')).toBe(digest)
})

// The example of MS-NLMP, 4.2.4.
const serverChallenge = Buffer.from('0123456789abcdef', 'hex')
const targetInfo = Buffer.from('02000c0044006f006d00610069006e0001000c00530065007200760065007200' + '00000000', 'hex')

it('proves the password of the example of the specification', () => {
  const key = ntlmKey('Password', 'User', 'Domain')
  expect(key.toString('hex')).toBe('0c868a403bfd7a93a3001ef22ef02e3f')
  const response = ntlmResponse(key, { serverChallenge, targetInfo }, Buffer.alloc(8, 0xaa), Buffer.alloc(8))
  expect(response.subarray(0, 16).toString('hex')).toBe('68cd0ab851e51c96aabc927bebef6a1c')
})

it('reads the challenge of the specification, and nothing else', () => {
  const message = Buffer.alloc(56)
  message.write('NTLMSSP\0', 'latin1')
  message.writeUInt32LE(2, 8)
  message.writeUInt32LE(0xe28a8233, 20)
  serverChallenge.copy(message, 24)
  message.writeUInt16LE(targetInfo.length, 40)
  message.writeUInt32LE(56, 44)
  const whole = Buffer.concat([message, targetInfo])
  expect(readChallenge(whole)).toEqual({ flags: 0xe28a8233, serverChallenge, targetInfo })
  for (let length = 0; length < whole.length; length++) expect(readChallenge(whole.subarray(0, length))).toBeUndefined()
  expect(readChallenge(negotiateMessage())).toBeUndefined()
})

it('does not fail with target information that lies about its lengths', () => {
  for (const info of ['0700ffff00', '07000800', '0100', 'ffffffff', '']) {
    const challenge = { flags: 0xe28a8233, serverChallenge, targetInfo: Buffer.from(info, 'hex') }
    const message = authenticateMessage({ username: 'D\\u', password: 'p' }, challenge)
    expect(message.readUInt32LE(8)).toBe(3)
  }
})
