/** Automatic login: with the token of an earlier login, else with the password of the configuration file. */
import type { Client, ClientLogin } from './client.ts'
import { recordIn, textOrEmpty, type ApiResponse } from './responses.ts'
import { ConnectionFailure, HttpFailure, NotLoggedIn } from '../failures.ts'
import type { AccountSettings, ClientCredential, Settings } from './settings.ts'
import { readCachedToken, readStoredToken, writeCachedToken, type TokenPlace } from './token-cache.ts'
import { writeJson } from '../../lib/json/index.ts'

const SAME_TIME_MS = 5000

export interface LoginOptions {
  settings: Pick<Settings, 'authUrl' | 'cachesToken' | 'folder' | 'configFile'>
  account: AccountSettings
  createToken: Client['createToken']
  /** For standard error. */
  readonly warn: (text: string) => void
}

export function createLogin({ settings, account, createToken, warn }: LoginOptions): ClientLogin {
  const { authUrl, cachesToken, folder, configFile } = settings
  const { username, password } = account
  const place = { folder, user: username, authUrl }
  let found: Promise<ClientCredential | undefined> | undefined

  async function first(): Promise<ClientCredential | undefined> {
    const token = cachesToken ? readCachedToken(place, warn) : undefined
    return token === undefined ? logIn() : toCredential(token)
  }

  async function logIn(): Promise<ClientCredential | undefined> {
    if (password === undefined) return undefined
    let answer: ApiResponse
    try {
      answer = await createToken(username, password, undefined)
    } catch (error) {
      if (error instanceof ConnectionFailure) {
        warn(`Not logged in; the authentication service does not answer: ${error.message}`)
        return undefined
      }
      // Authentication is off.
      if (error instanceof HttpFailure && error.status === 404) return undefined
      if (!(error instanceof HttpFailure) || error.status !== 401) throw error
      throw new NotLoggedIn(
        `The password of ${writeJson(username)} in ${configFile?.path ?? 'the configuration file'} is refused. ` +
          `Log in again: ${loginCommand(username)}`,
      )
    }
    if (cachesToken) await storeToken(place, answer, warn)
    return toCredential(textOrEmpty(recordIn(answer)['token']))
  }

  return {
    find: () => (found ??= first()),
    renew: () => (password === undefined ? Promise.resolve(undefined) : (found = logIn())),
    get advice() {
      const kept = cachesToken ? readStoredToken(place, () => undefined) : undefined
      if (kept === undefined || kept === 'damaged' || kept.authUrl === '' || kept.authUrl === authUrl) {
        return `Log in again: ${loginCommand(username)}`
      }
      return (
        `The last login is for ${kept.authUrl} and not for ${authUrl}. Use the address of that login, ` +
        `or log in to this one: ${loginCommand(username)}`
      )
    },
  }
}

/**
 * Stores the token for the next command. A failure is only a warning, because the next command can log in again.
 *
 * @returns whether it is kept
 */
export async function storeToken(
  place: TokenPlace,
  answer: ApiResponse,
  warn: (text: string) => void,
): Promise<boolean> {
  const record = recordIn(answer)
  const expireMs = Date.parse(textOrEmpty(record['expiry'])) + clockDifferenceMs(answer)
  const expireTimestamp = Math.floor(expireMs / 1000)
  try {
    await writeCachedToken(place, textOrEmpty(record['token']), expireTimestamp)
    return true
  } catch (error) {
    warn(`Cannot store the token for later commands: ${error instanceof Error ? error.message : String(error)}`)
    return false
  }
}

/**
 * How far this clock is ahead of the server's, which decides when tokens end. A difference is taken for 0 when the
 * seconds of the header and the time the answer took can explain it.
 */
function clockDifferenceMs({ headers }: ApiResponse): number {
  const difference = Date.now() - Date.parse(headers.date ?? '')
  return Math.abs(difference) < SAME_TIME_MS || Number.isNaN(difference) ? 0 : difference
}

function toCredential(token: string): ClientCredential {
  return { header: 'X-Auth-Token', value: token }
}

function loginCommand(user: string): string {
  return `svc login ${/^[\w@.+-]+$/.test(user) ? user : '<user>'}`
}
