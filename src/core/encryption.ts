/**
 * Secrets at rest: AES-256-GCM with the keys of one file (decisions #15).
 *
 * The file is JSON, `{"digest_key": "…", "keys": ["…", …]}`: each key is 32 bytes in base64, the last of `keys` encrypts,
 * all of them decrypt. To rotate, add a key at the end. Remove a key only when it no longer encrypts any value.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createSecretKey,
  randomBytes,
  type KeyObject,
} from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readBoundedFile, createSecretFileSync } from '../lib/files/index.ts'
import { cipherTextInvalid, cryptoKeyMissing, storageFailed } from './errors.ts'
import { isObject } from '../lib/schema/index.ts'
import { readJson, writeJson } from '../lib/json/index.ts'

export interface Encryption {
  /** `keyvalue.enable_encryption`; otherwise nothing can be encrypted. */
  readonly enabled: boolean
  /**
   * Cipher text in upper-case hexadecimal digits: version, key id, nonce, data, tag.
   *
   * @param context owner of the value; decrypting needs the same text
   * @param what for messages: `value for key "a"`
   * @throws CRYPTO_KEY_MISSING; STORAGE_FAILED when the key file cannot be created
   */
  encrypt(plain: string, context: string, what?: string): string
  /** @throws CRYPTO_KEY_MISSING, CIPHER_TEXT_INVALID */
  decrypt(cipherText: string, context: string, what?: string): string
  /**
   * HMAC-SHA256 in hexadecimal digits, to compare secrets without storing them. Does not change when keys are rotated.
   *
   * @throws as `encrypt`
   */
  digest(text: string, what?: string): string
  /** Reads the key file again. @throws Error as `loadEncryption`; the keys read before stay in use then */
  reload(): Promise<void>
}

export interface EncryptionSettings {
  /** `keyvalue.enable_encryption` */
  enabled: boolean
  /** `keyvalue.encryption_key_path`, absolute; empty: the server's own file, created at first use. */
  keyPath: string
  /** Absolute path of the server's own file. */
  ownKeyPath: string
}

const VERSION = 1
const KEY_BYTES = 32
const KEY_ID_BYTES = 4
const NONCE_BYTES = 12
const TAG_BYTES = 16
const HEAD_BYTES = 1 + KEY_ID_BYTES + NONCE_BYTES
const MAX_FILE_BYTES = 65_536
const MAX_KEYS = 100

interface KeyRing {
  /** By key id in hexadecimal digits. */
  all: ReadonlyMap<string, KeyObject>
  newest: { id: Buffer; key: KeyObject }
  digestKey: KeyObject
}

/** @throws Error with one line when the key file is damaged, cannot be read, or other accounts can use it */
export async function loadEncryption({ enabled, keyPath, ownKeyPath }: EncryptionSettings): Promise<Encryption> {
  const path = keyPath === '' ? ownKeyPath : keyPath
  const load = async (): Promise<KeyRing | undefined> => (enabled ? readKeys(path) : undefined)
  let ring = await load()

  const requireRing = (what: string): KeyRing => {
    if (ring !== undefined) return ring
    const help =
      keyPath === '' ? 'Bring it back from a backup.' : 'Put the key file there (keyvalue.encryption_key_path).'
    throw cryptoKeyMissing(path, what, enabled ? help : 'Turn on keyvalue.enable_encryption.')
  }
  const requireOrMakeRing = (what: string): KeyRing => {
    if (enabled && keyPath === '') ring ??= makeKeys(path)
    return requireRing(what)
  }

  return {
    enabled,
    encrypt(plain, context, what = 'the value') {
      const { newest } = requireOrMakeRing(what)
      const nonce = randomBytes(NONCE_BYTES)
      const head = Buffer.concat([Buffer.of(VERSION), newest.id, nonce])
      const cipher = createCipheriv('aes-256-gcm', newest.key, nonce, { authTagLength: TAG_BYTES })
      cipher.setAAD(Buffer.from(context))
      const data = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()])
      return Buffer.concat([head, data, cipher.getAuthTag()]).toString('hex').toUpperCase()
    },

    decrypt(cipherText, context, what = 'the value') {
      // Ends before the first other character; a pattern takes a tenth of a second for a long text.
      const bytes = Buffer.from(cipherText, 'hex')
      if (cipherText === '' || bytes.length * 2 !== cipherText.length) {
        throw cipherTextInvalid(what, 'cipher text is an even number of hexadecimal digits')
      }
      if (bytes.length < HEAD_BYTES + TAG_BYTES) throw cipherTextInvalid(what, 'the cipher text is too short')
      if (bytes[0] !== VERSION) throw cipherTextInvalid(what, 'it is not cipher text of this server')
      const id = bytes.subarray(1, 1 + KEY_ID_BYTES).toString('hex')
      const key = requireRing(what).all.get(id)
      if (key === undefined) {
        throw cipherTextInvalid(what, `it was encrypted with the key ${id}, which is not in the key file`)
      }
      const nonce = bytes.subarray(1 + KEY_ID_BYTES, HEAD_BYTES)
      const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES })
      decipher.setAAD(Buffer.from(context))
      decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
      try {
        return Buffer.concat([decipher.update(bytes.subarray(HEAD_BYTES, -TAG_BYTES)), decipher.final()]).toString()
      } catch {
        throw cipherTextInvalid(what, 'the cipher text has been changed, or was made for something else')
      }
    },

    digest: (text, what = 'the value') =>
      createHmac('sha256', requireOrMakeRing(what).digestKey).update(text).digest('hex'),

    async reload() {
      ring = await load()
    },
  }
}

async function readKeys(path: string): Promise<KeyRing | undefined> {
  const file = await readBoundedFile(path, MAX_FILE_BYTES)
  if ('problem' in file) {
    if (file.isMissing) return undefined
    throw new Error(`The key file ${path} ${file.problem}`)
  }
  // The group can have read access, others none.
  if ((file.mode & 0o037) !== 0) {
    const shown = (file.mode & 0o777).toString(8).padStart(4, '0')
    throw new Error(`The key file ${path} has mode ${shown}, so other accounts can use it; run: chmod 600 ${path}`)
  }
  return parseKeys(path, file.bytes.toString())
}

function parseKeys(path: string, text: string): KeyRing {
  const damaged = (why: string): Error =>
    new Error(
      `The key file ${path} is damaged: ${why}; bring it back from a backup, since what was encrypted cannot be read without it`,
    )
  let content: unknown
  try {
    content = readJson(text)
  } catch {
    // The message of the parser would contain parts of the file.
    throw damaged('it is not JSON')
  }
  if (!isObject(content)) throw damaged('it is not an object')
  const { digest_key: digestKey, keys } = content
  if (!Array.isArray(keys) || keys.length === 0 || keys.length > MAX_KEYS) {
    throw damaged(`"keys" is not a list of 1 to ${MAX_KEYS} keys`)
  }
  const all = new Map<string, KeyObject>()
  let newest: KeyRing['newest'] | undefined
  for (const [i, item] of keys.entries()) {
    const bytes = readKey(item)
    if (bytes === undefined) throw damaged(`key ${i + 1} of "keys" is not ${KEY_BYTES} bytes in base64`)
    newest = { id: keyIdOf(bytes), key: createSecretKey(bytes) }
    const id = newest.id.toString('hex')
    if (all.has(id)) throw damaged(`key ${i + 1} of "keys" is there twice`)
    all.set(id, newest.key)
  }
  const digestBytes = readKey(digestKey)
  if (digestBytes === undefined) throw damaged(`"digest_key" is not ${KEY_BYTES} bytes in base64`)
  if (newest === undefined) throw damaged('there is no key')
  return { all, newest, digestKey: createSecretKey(digestBytes) }
}

function readKey(item: unknown): Buffer | undefined {
  if (typeof item !== 'string' || !/^[A-Za-z0-9+/_-]{43}=?$/.test(item)) return undefined
  return Buffer.from(item, 'base64')
}

/** A name for the key that reveals nothing about it. */
function keyIdOf(key: Buffer): Buffer {
  return createHash('sha256').update('svc key id\0').update(key).digest().subarray(0, KEY_ID_BYTES)
}

/** The content of a key file with one new key. */
export function newKeyFile(): string {
  const newKey = (): string => randomBytes(KEY_BYTES).toString('base64url')
  return `${writeJson({ digest_key: newKey(), keys: [newKey()] }, 2)}\n`
}

/** @throws STORAGE_FAILED */
function makeKeys(path: string): KeyRing {
  const text = newKeyFile()
  try {
    const isOurs = createSecretFileSync(path, text)
    return parseKeys(path, isOurs ? text : readFileSync(path, 'utf8'))
  } catch (error) {
    throw storageFailed(error)
  }
}
