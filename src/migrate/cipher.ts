/**
 * Secrets as StackStorm keeps them (contract 05, 5.11): hexadecimal digits of a header of 5 bytes, an initialization
 * vector of 16, AES-CBC data, and an HMAC-SHA1 of all that comes before.
 */
import { createDecipheriv, createHmac, timingSafeEqual } from 'node:crypto'
import { readBoundedFile } from '../lib/files/index.ts'
import { readJson } from '../lib/json/index.ts'
import { isObject } from '../lib/schema/index.ts'
import { shown } from '../lib/text/index.ts'

const HEADER_BYTES = 5
const VECTOR_BYTES = 16
const MAC_BYTES = 20
const MAX_KEY_FILE_BYTES = 65_536
const AES_BYTES: ReadonlySet<number> = new Set([16, 24, 32])

export interface DatastoreKey {
  aes: Buffer
  hmac: Buffer
  /** Of the file, for messages. */
  path: string
}

/** Decrypts a value, or says why not; the text never repeats the value. */
export type Decrypt = (cipherText: string) => { plain: string } | { problem: string }

/** @returns or a sentence that says what is wrong with the file */
export async function readDatastoreKey(path: string): Promise<DatastoreKey | { problem: string }> {
  const file = await readBoundedFile(path, MAX_KEY_FILE_BYTES)
  if ('problem' in file) return { problem: `The key file ${shown(path)} ${file.problem}.` }
  let content: unknown
  try {
    content = readJson(file.bytes.toString())
  } catch {
    // The message of the parser would contain parts of the key.
    return { problem: `The key file ${shown(path)} is not JSON.` }
  }
  const hmacPart = isObject(content) ? content['hmacKey'] : undefined
  const aes = isObject(content) ? bytesOf(content['aesKeyString']) : undefined
  const hmac = isObject(hmacPart) ? bytesOf(hmacPart['hmacKeyString']) : undefined
  if (aes === undefined || hmac === undefined || !AES_BYTES.has(aes.length) || hmac.length === 0) {
    return { problem: `The key file ${shown(path)} is not one of StackStorm: aesKeyString or hmacKey is missing.` }
  }
  const mode = isObject(content) ? content['mode'] : undefined
  if (mode !== undefined && mode !== 'CBC') return { problem: `The key file ${shown(path)} is not for the mode CBC.` }
  return { aes, hmac, path }
}

/** Base64 with the alphabet for URLs, with or without padding. */
function bytesOf(text: unknown): Buffer | undefined {
  if (typeof text !== 'string' || !/^[\w-]+={0,2}$/.test(text)) return undefined
  return Buffer.from(text, 'base64url')
}

/** Tries the keys one after the other. */
export function createDecrypt(keys: readonly DatastoreKey[]): Decrypt {
  return (cipherText) => {
    if (keys.length === 0) return { problem: 'no key file was found; name it with --key-file' }
    if (!/^(?:[0-9a-f]{2})+$/i.test(cipherText.slice(0, 64)) || cipherText.length % 2 !== 0) {
      return { problem: 'it is not cipher text: hexadecimal digits are expected' }
    }
    const bytes = Buffer.from(cipherText, 'hex')
    if (bytes.length * 2 !== cipherText.length)
      return { problem: 'it is not cipher text: hexadecimal digits are expected' }
    const dataBytes = bytes.length - HEADER_BYTES - VECTOR_BYTES - MAC_BYTES
    if (dataBytes < VECTOR_BYTES || dataBytes % VECTOR_BYTES !== 0) return { problem: 'the cipher text is cut off' }
    const key = keys.find(({ hmac }) => isGenuine(bytes, hmac))
    if (key === undefined) {
      const files = keys.map(({ path }) => shown(path)).join(', ')
      return { problem: `it was encrypted with another key, or has been changed (key files: ${files})` }
    }
    return decryptWith(key, bytes)
  }
}

function isGenuine(bytes: Buffer, key: Buffer): boolean {
  const mac = createHmac('sha1', key).update(bytes.subarray(0, -MAC_BYTES)).digest()
  return timingSafeEqual(mac, bytes.subarray(-MAC_BYTES))
}

function decryptWith({ aes }: DatastoreKey, bytes: Buffer): ReturnType<Decrypt> {
  const vector = bytes.subarray(HEADER_BYTES, HEADER_BYTES + VECTOR_BYTES)
  const decipher = createDecipheriv(`aes-${aes.length * 8}-cbc`, aes, vector)
  try {
    const data = bytes.subarray(HEADER_BYTES + VECTOR_BYTES, -MAC_BYTES)
    const plain = Buffer.concat([decipher.update(data), decipher.final()])
    return { plain: new TextDecoder('utf-8', { fatal: true }).decode(plain) }
  } catch {
    return { problem: 'the cipher text does not hold text' }
  }
}
