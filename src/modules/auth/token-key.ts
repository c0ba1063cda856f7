/** The key that signs tokens: made at the first start with authentication on, kept in `<base_path>/keys/token.key`. */
import { createSecretKey, randomBytes, type KeyObject } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { createSecretFile } from '../../lib/files/index.ts'
import { hasCode } from '../../lib/process/index.ts'

const KEY_BYTES = 48
/** At least 32 bytes as URL-safe base64 text. */
const keyPattern = /^[A-Za-z0-9_-]{43,1024}$/

/** @throws Error, in one line, if the key cannot be read, is none, or other accounts can read it */
export async function loadTokenKey(path: string): Promise<KeyObject> {
  const text = (await readKey(path)) ?? (await makeKey(path))
  if (!keyPattern.test(text)) {
    throw new Error(`${path} holds no token key; remove it and a new one is made (all tokens then become invalid)`)
  }
  return createSecretKey(text, 'base64url')
}

async function readKey(path: string): Promise<string | undefined> {
  try {
    const stats = await stat(path)
    const { mode } = stats
    // A pipe without a writer would keep the start waiting for ever.
    if (!stats.isFile()) throw new Error(`${path} is not a file; remove it and a new token key is made`)
    if ((mode & 0o007) !== 0) {
      const shown = (mode & 0o777).toString(8).padStart(4, '0')
      throw new Error(`${path} has mode ${shown}, so every account can sign tokens with it; run: chmod 600 ${path}`)
    }
    return (await readFile(path, 'utf8')).trim()
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}

async function makeKey(path: string): Promise<string> {
  const text = randomBytes(KEY_BYTES).toString('base64url')
  const isOurs = await createSecretFile(path, `${text}\n`)
  // Another process was faster: use its key.
  return isOurs ? text : ((await readKey(path)) ?? '')
}
