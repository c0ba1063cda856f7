import { execFileSync } from 'node:child_process'
import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { makeFolder } from '../../../tests/helpers/folders.ts'
import { createPrivateKeys } from './private-key.ts'
import { fullOnly } from '../../../tests/helpers/tiers.ts'

const keys = createPrivateKeys()
const folder = makeFolder()
afterAll(async () => {
  await keys.stop()
  folder.remove()
})

const kinds: [string, KeyObject][] = [
  ['RSA', generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey],
  ['ECDSA', generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey],
  ['Ed25519', generateKeyPairSync('ed25519').privateKey],
]
const pkcs8 = (key: KeyObject, passphrase?: string): string =>
  String(
    key.export({
      type: 'pkcs8',
      format: 'pem',
      ...(passphrase === undefined ? {} : { cipher: 'aes-256-cbc', passphrase }),
    }),
  )

let openssh: string
let locked: string
let oldPem: string
beforeAll(() => {
  const make = (name: string, ...options: string[]): string => {
    const path = join(folder.path, name)
    execFileSync('ssh-keygen', ['-q', '-C', 'test', '-f', path, ...options])
    return readFileSync(path, 'utf8')
  }
  openssh = make('openssh', '-t', 'ed25519', '-N', '')
  locked = make('locked', '-t', 'ed25519', '-N', 'open sesame')
  oldPem = make('old', '-t', 'rsa', '-b', '2048', '-m', 'PEM', '-N', 'open sesame')
})

/** Whether the answer is a key that ssh2 takes, of the same secret. */
async function publicPart(text: string): Promise<Buffer> {
  const { default: ssh2 } = await import('ssh2')
  const parsed = ssh2.utils.parseKey(text)
  if (parsed instanceof Error) throw parsed
  expect(parsed.isPrivateKey()).toBe(true)
  return parsed.getPublicSSH()
}

/** The same from a format that ssh2 knows; of Ed25519 the end, which is the point. */
async function expected(key: KeyObject): Promise<Buffer> {
  const type = { rsa: 'pkcs1', ec: 'sec1' }[String(key.asymmetricKeyType)]
  if (type === undefined) return Buffer.from(key.export({ format: 'jwk' }).x ?? '', 'base64url')
  return await publicPart(String(key.export({ type: type as 'pkcs1', format: 'pem' })))
}

describe('PKCS #8', () => {
  test.each(kinds)('%s, with and without a passphrase', async (_, key) => {
    const plain = await publicPart(await keys.unlock(pkcs8(key), undefined))
    expect(await publicPart(await keys.unlock(pkcs8(key, 'open sesame'), 'open sesame'))).toEqual(plain)
    const point = await expected(key)
    expect(plain.subarray(-point.length)).toEqual(point)
  })

  test('a wrong or missing passphrase', async () => {
    const text = pkcs8(kinds[0]![1], 'open sesame')
    await expect(keys.unlock(text, undefined)).rejects.toThrow(/has a passphrase/)
    await expect(keys.unlock(text, 'wrong')).rejects.toThrow(/does not match/)
  })

  test('a kind that SSH does not know', async () => {
    const text = pkcs8(generateKeyPairSync('ed448').privateKey)
    await expect(keys.unlock(text, undefined)).rejects.toThrow(/unsupported format or kind/)
  })

  test('a passphrase that takes an hour to try is refused', async () => {
    const bytes = Buffer.from(pkcs8(kinds[2]![1], 'x').replaceAll(/-----.*-----|\s/g, ''), 'base64')
    const salt = bytes.indexOf(Buffer.from([0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x05, 0x0c])) + 9
    const iterations = salt + 4 + (bytes[salt + 3] ?? 0)
    expect(bytes[iterations]).toBe(2)
    bytes.fill(0x7f, iterations + 2, iterations + 2 + (bytes[iterations + 1] ?? 0))
    const slow = `-----BEGIN ENCRYPTED PRIVATE KEY-----\n${bytes.toString('base64')}\n-----END ENCRYPTED PRIVATE KEY-----\n`
    // 2 bytes hold at most 32,767: a valid number.
    await expect(keys.unlock(slow, 'x')).rejects.toThrow(/does not match/)
    const grown = Buffer.concat([
      bytes.subarray(0, iterations),
      Buffer.from([2, 4, 0x7f, 0xff, 0xff, 0xff]),
      bytes.subarray(iterations + 4),
    ])
    const hour = `-----BEGIN ENCRYPTED PRIVATE KEY-----\n${grown.toString('base64')}\n-----END ENCRYPTED PRIVATE KEY-----\n`
    await expect(keys.unlock(hour, 'x')).rejects.toThrow(/more than 10000000 iterations/)
  })
})

fullOnly(test)('the text may have lost its line ends, or have others', async () => {
  const wanted = await publicPart(openssh)
  for (const change of [
    (text: string) => text.replaceAll('\n', '\r\n'),
    (text: string) => text.trim(),
    (text: string) => text.replaceAll('\n', ' '),
    (text: string) => text.replaceAll('\n', ''),
    (text: string) => text.replaceAll('\n', '\\n'),
    (text: string) => text.replaceAll('\n', '\n    '),
    (text: string) => `\uFEFF${text}`,
  ]) {
    expect(await publicPart(await keys.unlock(change(openssh), undefined))).toEqual(wanted)
    expect(await keys.unlock(change(locked), 'open sesame')).toContain('OPENSSH PRIVATE KEY')
    expect(await keys.unlock(change(oldPem), 'open sesame')).toContain('RSA PRIVATE KEY')
    expect(await keys.unlock(change(pkcs8(kinds[1]![1])), undefined)).toContain('EC PRIVATE KEY')
  }
})

test('what is no private key is named', async () => {
  const publicKey = readFileSync(join(folder.path, 'openssh.pub'), 'utf8')
  const spki = String(createPrivateKey(pkcs8(kinds[0]![1])).export({ type: 'pkcs8', format: 'pem' })).replaceAll(
    'PRIVATE',
    'PUBLIC',
  )
  const cut = openssh.slice(0, 200)
  const cases: [string, RegExp][] = [
    [publicKey, /is a public key.*without \.pub/],
    [spki, /is a public key/],
    ['---- BEGIN SSH2 PUBLIC KEY ----\nAAAA\n---- END SSH2 PUBLIC KEY ----', /is a public key/],
    [publicKey.replace('ssh-ed25519', 'ssh-ed25519-cert-v01@openssh.com'), /is a certificate.*-cert\.pub/],
    ['-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----', /is an X\.509 certificate/],
    ['PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\n', /PuTTY.*puttygen key\.ppk -O private-openssh/],
    [cut, /is cut off: the line "-----END OPENSSH PRIVATE KEY-----" is missing/],
    [openssh.replace(/^[^-].*$/gm, 'AAAA'), /unsupported format or kind, or is damaged/],
    [
      `-----BEGIN OPENSSH PRIVATE KEY-----\n${Buffer.from('openssh-key-v1\0 sk-ssh-ed25519@openssh.com').toString('base64')}\n-----END OPENSSH PRIVATE KEY-----`,
      /hardware token/,
    ],
    ['', /unsupported format/],
  ]
  for (const [text, problem] of cases) {
    for (const passphrase of [undefined, 'x']) await expect(keys.unlock(text, passphrase)).rejects.toThrow(problem)
  }
})
