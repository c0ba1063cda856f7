import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { makeFolder } from '../../tests/helpers/folders.ts'
import { loadEncryption, newKeyFile, type Encryption } from './encryption.ts'
import { createSecretFile } from '../lib/files/secret-file.ts'

const folder = makeFolder()
afterAll(() => folder.remove())

let n = 0
const newPath = (): string => join(folder.path, String((n += 1)), 'keys', 'secrets.json')
const load = (ownKeyPath = newPath()): Promise<Encryption> => loadEncryption({ enabled: true, keyPath: '', ownKeyPath })
const newKey = (): string => randomBytes(32).toString('base64')

/** As an operator would. */
function writeKeys(path: string, content: unknown, mode = 0o600): string {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  chmodSync(path, mode)
  return path
}

const code = (work: () => unknown): unknown => {
  try {
    return work()
  } catch (error) {
    return error
  }
}

describe('the key file', () => {
  test('is made at first use, kept, and readable by nobody else', async () => {
    const path = newPath()
    const encryption = await load(path)
    expect(code(() => encryption.decrypt('01'.padEnd(100, '0'), 'a'))).toMatchObject({ code: 'CRYPTO_KEY_MISSING' })
    expect(code(() => readdirSync(dirname(path)))).toMatchObject({ code: 'ENOENT' })
    const sealed = encryption.encrypt('x', 'a')
    const content = readFileSync(path, 'utf8')
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(statSync(dirname(path)).mode & 0o777).toBe(0o700)
    expect(readdirSync(dirname(path))).toEqual(['secrets.json'])
    expect((await load(path)).decrypt(sealed, 'a')).toBe('x')
    expect(readFileSync(path, 'utf8')).toBe(content)
  })

  test('is one for several that start at once', async () => {
    const path = newPath()
    const all = await Promise.all(Array.from({ length: 8 }, () => load(path)))
    const sealed = all.map((encryption) => encryption.encrypt('x', 'a'))
    for (const encryption of all)
      expect(sealed.map((text) => encryption.decrypt(text, 'a'))).toEqual(Array(8).fill('x'))
  })

  test.for([0o604, 0o644, 0o620, 0o601])('other accounts may not use it (mode %o)', async (mode) => {
    const path = writeKeys(newPath(), { digest_key: newKey(), keys: [newKey()] }, mode)
    await expect(load(path)).rejects.toThrow(/secrets\.json has mode 06\d\d.*chmod 600/)
  })

  test('its group may be allowed to read it', async () => {
    const path = writeKeys(newPath(), { digest_key: newKey(), keys: [newKey()] }, 0o640)
    const encryption = await load(path)
    expect(encryption.decrypt(encryption.encrypt('x', ''), '')).toBe('x')
  })

  test('that is a pipe stops the start, and does not hold it up', async () => {
    const path = newPath()
    mkdirSync(dirname(path), { recursive: true })
    execFileSync('mkfifo', ['-m', '600', path])
    await expect(load(path)).rejects.toThrow(/secrets\.json is not a file/)
  })

  const same = newKey()
  test.for<[why: RegExp, content: unknown]>([
    [/not JSON/, ''],
    [/not JSON/, '{"keys": ["CANARY'],
    [/not an object/, '["CANARY"]'],
    [/"keys" is not a list of 1 to 100/, { digest_key: newKey() }],
    [/"keys" is not a list of 1 to 100/, { digest_key: newKey(), keys: [] }],
    [/"keys" is not a list of 1 to 100/, { digest_key: newKey(), keys: Array.from({ length: 101 }, newKey) }],
    [/key 2 of "keys" is not 32 bytes/, { digest_key: newKey(), keys: [newKey(), 'CANARY'] }],
    [/key 1 of "keys" is not 32 bytes/, { digest_key: newKey(), keys: [randomBytes(16).toString('base64')] }],
    [/key 2 of "keys" is there twice/, { digest_key: newKey(), keys: [same, same] }],
    [/"digest_key" is not 32 bytes/, { digest_key: 'CANARY', keys: [newKey()] }],
  ])('damaged (%s) stops the start, is not replaced, and its content is not told', async ([why, content]) => {
    const path = writeKeys(newPath(), content)
    const before = readFileSync(path, 'utf8')
    const error = await load(path).catch((reason: unknown) => String(reason))
    expect(error).toMatch(why)
    expect(error).toMatch(/secrets\.json is damaged.*backup/)
    expect(error).not.toMatch(/CANARY|\n/)
    expect(readFileSync(path, 'utf8')).toBe(before)
  })
})

describe('sealing', () => {
  test.for(['', 'a', 'päß wörd 🔑', '\0', 'x'.repeat(1_000_000)])('gives the text back (%#)', async (plain) => {
    const encryption = await load()
    const sealed = encryption.encrypt(plain, 'key_value_pair:a')
    expect(sealed).toMatch(/^01[0-9A-F]+$/)
    // version, key id, nonce, data, tag
    expect(sealed).toHaveLength(2 * (1 + 4 + 12 + Buffer.byteLength(plain) + 16))
    expect(encryption.decrypt(sealed, 'key_value_pair:a')).toBe(plain)
    expect(encryption.decrypt(sealed.toLowerCase(), 'key_value_pair:a')).toBe(plain)
  })

  test('the same text twice gives two cipher texts', async () => {
    const encryption = await load()
    expect(encryption.encrypt('x', 'a')).not.toBe(encryption.encrypt('x', 'a'))
  })

  test('a value decrypts only in the context in which it was encrypted', async () => {
    const encryption = await load()
    const sealed = encryption.encrypt('x', 'a')
    expect(code(() => encryption.decrypt(sealed, 'b'))).toMatchObject({
      kind: 'invalid',
      code: 'CIPHER_TEXT_INVALID',
      message: 'Unable to decrypt the value: the cipher text has been changed, or was made for something else.',
    })
  })

  test('a change of any byte is noticed', async () => {
    const encryption = await load()
    const bytes = Buffer.from(encryption.encrypt('plain', 'a'), 'hex')
    for (let i = 0; i < bytes.length; i += 1) {
      const changed = Buffer.from(bytes)
      changed.writeUInt8(bytes.readUInt8(i) ^ 1, i)
      expect(code(() => encryption.decrypt(changed.toString('hex'), 'a'))).toMatchObject({
        code: 'CIPHER_TEXT_INVALID',
      })
    }
    for (let length = 0; length < bytes.length; length += 1) {
      const cut = bytes.subarray(0, length).toString('hex')
      expect(code(() => encryption.decrypt(cut, 'a'))).toMatchObject({ code: 'CIPHER_TEXT_INVALID' })
    }
  })

  test.for(['', 'plain', 'ABC', 'zz'.repeat(40), '{"__proto__": 1}'])('not cipher text: "%s"', async (text) => {
    const encryption = await load()
    expect(code(() => encryption.decrypt(text, 'a', 'value for key "k"'))).toMatchObject({
      code: 'CIPHER_TEXT_INVALID',
      message: expect.stringMatching(/^Unable to decrypt value for key "k": /),
    })
  })
})

describe('rotation', () => {
  test('the last key encrypts, all of them decrypt, and digests stay the same', async () => {
    const path = newPath()
    const [digestKey, one, two] = [newKey(), newKey(), newKey()]
    writeKeys(path, { digest_key: digestKey, keys: [one] })
    const encryption = await load(path)
    const older = encryption.encrypt('older', 'a')
    const digest = encryption.digest('x')

    writeKeys(path, { digest_key: digestKey, keys: [one, two] })
    await encryption.reload()
    const newer = encryption.encrypt('newer', 'a')
    expect(newer.slice(0, 10)).not.toBe(older.slice(0, 10))
    expect(encryption.decrypt(older, 'a')).toBe('older')
    expect(encryption.digest('x')).toBe(digest)

    writeKeys(path, { digest_key: digestKey, keys: [two] })
    await encryption.reload()
    expect(encryption.decrypt(newer, 'a')).toBe('newer')
    const id = older.slice(2, 10).toLowerCase()
    expect(code(() => encryption.decrypt(older, 'a'))).toMatchObject({
      code: 'CIPHER_TEXT_INVALID',
      message: `Unable to decrypt the value: it was encrypted with the key ${id}, which is not in the key file.`,
    })
  })

  test('a file that is damaged when it is read again changes nothing', async () => {
    const path = newPath()
    const encryption = await load(path)
    const sealed = encryption.encrypt('x', 'a')
    writeKeys(path, 'nothing')
    await expect(encryption.reload()).rejects.toThrow(/damaged/)
    expect(encryption.decrypt(sealed, 'a')).toBe('x')
  })
})

test('digests tell equal texts, and differ from key to key', async () => {
  const [one, other] = await Promise.all([load(), load()])
  expect(one.digest('x')).toMatch(/^[0-9a-f]{64}$/)
  expect(one.digest('x')).toBe(one.digest('x'))
  expect(one.digest('x')).not.toBe(one.digest('y'))
  expect(one.digest('x')).not.toBe(other.digest('x'))
})

describe('without a key', () => {
  test('a file that was named and is missing is not made, and counts as soon as it is there', async () => {
    const keyPath = newPath()
    const encryption = await loadEncryption({ enabled: true, keyPath, ownKeyPath: newPath() })
    for (const work of [
      () => encryption.encrypt('x', 'a', 'value for key "k"'),
      () => encryption.decrypt('01'.padEnd(100, '0'), 'a', 'value for key "k"'),
      () => encryption.digest('x', 'value for key "k"'),
    ]) {
      expect(code(work)).toMatchObject({
        kind: 'invalid',
        code: 'CRYPTO_KEY_MISSING',
        message: `Crypto key not found in ${keyPath}. Unable to encrypt / decrypt value for key "k". Put the key file there (keyvalue.encryption_key_path).`,
      })
    }
    expect(code(() => statSync(keyPath))).toMatchObject({ code: 'ENOENT' })
    writeKeys(keyPath, { digest_key: newKey(), keys: [newKey()] })
    await encryption.reload()
    expect(encryption.decrypt(encryption.encrypt('x', 'a'), 'a')).toBe('x')
  })

  test('switched off, nothing is encrypted and no file is made', async () => {
    const ownKeyPath = newPath()
    const encryption = await loadEncryption({ enabled: false, keyPath: '', ownKeyPath })
    expect(code(() => encryption.encrypt('x', 'a'))).toMatchObject({
      code: 'CRYPTO_KEY_MISSING',
      message: expect.stringContaining('Turn on keyvalue.enable_encryption.'),
    })
    expect(code(() => statSync(ownKeyPath))).toMatchObject({ code: 'ENOENT' })
  })
})

test('a new key file is one that can be used', async () => {
  const keyPath = newPath()
  await createSecretFile(keyPath, newKeyFile())
  const encryption = await loadEncryption({ enabled: true, keyPath, ownKeyPath: '' })
  expect(encryption.decrypt(encryption.encrypt('hidden', 'a'), 'a')).toBe('hidden')
})
