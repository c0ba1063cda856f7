/** Stores the token of a login for the next command: `~/.svc/token-<user>` (contract 09, 9.7). */
import { createHash } from 'node:crypto'
import { unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { readBoundedFileSync, replaceSecretFile } from '../../lib/files/index.ts'
import { hasCode, quote } from '../../lib/process/index.ts'
import { CliFailure } from '../failures.ts'
import { isCredentialText } from './settings.ts'
import { readJson, writeJson } from '../../lib/json/index.ts'
const MAX_BYTES = 64 * 1024
/** A token that ends while a request is under way is of no use. */
const EARLY_SECONDS = 15
/** The last moment that a Date can hold. */
const LATEST_SECONDS = 8.64e12
/** File systems take 255 bytes. */
const MAX_NAME_LENGTH = 200

/** The user and the storage place of a token. */
export interface TokenPlace {
  /** The client's own. */
  folder: string
  user: string
  /** The server that created the token; no other server may get it. */
  authUrl: string
}

export interface StoredToken {
  token: string
  /** Epoch seconds. */
  expireTimestamp: number
  /** Empty in the file of another client, which does not keep it. */
  authUrl: string
}

/** Any name makes a file of its own in the folder. */
export function tokenPath({ folder, user }: Pick<TokenPlace, 'folder' | 'user'>): string {
  const name = encodeURIComponent(user.toWellFormed())
  const shortName = name.length <= MAX_NAME_LENGTH ? name : createHash('sha256').update(user).digest('hex')
  return join(folder, `token-${shortName}`)
}

/**
 * Undefined when there is no valid one for this address.
 *
 * @throws CliFailure when the file is damaged
 */
export function readCachedToken(
  place: TokenPlace,
  warn: (text: string) => void,
  nowSeconds: number = Date.now() / 1000,
): string | undefined {
  const cached = readStoredToken(place, warn)
  if (cached === undefined) return undefined
  if (cached === 'damaged') {
    const path = tokenPath(place)
    throw new CliFailure(`The token file ${path} is damaged. Delete it and try again: rm ${quote(path)}`)
  }
  const isOfServer = cached.authUrl === '' || cached.authUrl === place.authUrl
  return isOfServer && cached.expireTimestamp - EARLY_SECONDS > nowSeconds ? cached.token : undefined
}

/** The stored token for any server, even an expired one; undefined when there is none. */
export function readStoredToken(
  place: Pick<TokenPlace, 'folder' | 'user'>,
  warn: (text: string) => void,
): StoredToken | 'damaged' | undefined {
  const path = tokenPath(place)
  const file = readBoundedFileSync(path, MAX_BYTES)
  if ('problem' in file) {
    // One of another account, as sudo makes them, must not stand in the way of a new one.
    if (!file.isMissing) warn(`The token file ${path} ${file.problem}. Check its owner.`)
    return undefined
  }
  if ((file.mode & 0o077) !== 0) warn(`${path} is open to other users; close it with: chmod 600 ${quote(path)}`)
  return parse(file.bytes.toString('utf8')) ?? 'damaged'
}

/** @returns whether there was one. @throws the failure of the file system */
export async function removeStoredToken(place: Pick<TokenPlace, 'folder' | 'user'>): Promise<boolean> {
  try {
    await unlink(tokenPath(place))
    return true
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false
    throw error
  }
}

/** @param expireTimestamp epoch seconds. @throws the failure of the file system */
export async function writeCachedToken(place: TokenPlace, token: string, expireTimestamp: number): Promise<void> {
  const content = { token, expire_timestamp: expireTimestamp, auth_url: place.authUrl }
  await replaceSecretFile(tokenPath(place), `${writeJson(content)}\n`)
}

function parse(text: string): StoredToken | undefined {
  let value: unknown
  try {
    value = readJson(text)
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null) return undefined
  const { token, expire_timestamp, auth_url = '' }: Record<string, unknown> = { ...value }
  if (typeof token !== 'string' || !isCredentialText(token)) return undefined
  if (typeof expire_timestamp !== 'number' || typeof auth_url !== 'string') return undefined
  if (Math.abs(expire_timestamp) > LATEST_SECONDS) return undefined
  if (auth_url !== '' && !URL.canParse(auth_url)) return undefined
  return { token, expireTimestamp: expire_timestamp, authUrl: auth_url }
}
