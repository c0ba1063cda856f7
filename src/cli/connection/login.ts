/** Logging in by itself: with the token of an earlier login, else with the password of the configuration file. */
import type { Client, Login } from './client.ts'
import { recordIn, textOf, type Answer } from './answers.ts'
import { ConnectionFailure, HttpFailure, NotLoggedIn } from '../failures.ts'
import type { Account, Credential, Settings } from './settings.ts'
import { readCachedToken, readKeptToken, writeCachedToken, type TokenPlace } from './token-cache.ts'

const SAME_TIME_MS = 5000

export interface LoginOptions {
  settings: Pick<Settings, 'authUrl' | 'cachesToken' | 'folder' | 'configFile'>
  account: Account
  createToken: Client['createToken']
  /** For standard error. */
  readonly warn: (text: string) => void
}

export function createLogin({ settings, account, createToken, warn }: LoginOptions): Login {
  const { authUrl, cachesToken, folder, configFile } = settings
  const { username, password } = account
  const place = { folder, user: username, authUrl }
  let found: Promise<Credential | undefined> | undefined

  async function first(): Promise<Credential | undefined> {
    const token = cachesToken ? readCachedToken(place, warn) : undefined
    return token === undefined ? logIn() : toCredential(token)
  }

  async function logIn(): Promise<Credential | undefined> {
    if (password === undefined) return undefined
    let answer: Answer
    try {
      answer = await createToken(username, password, undefined)
    } catch (error) {
      if (error instanceof ConnectionFailure) {
        warn(`Not logged in, since the authentication service does not answer: ${error.message}`)
        return undefined
      }
      // Authentication is off: nobody asks.
      if (error instanceof HttpFailure && error.status === 404) return undefined
      if (!(error instanceof HttpFailure) || error.status !== 401) throw error
      throw new NotLoggedIn(
        `The password of ${JSON.stringify(username)} in ${configFile?.path ?? 'the configuration file'} is refused; ` +
          `log in again: ${loginCommand(username)}`,
      )
    }
    if (cachesToken) await keepToken(place, answer, warn)
    return toCredential(textOf(recordIn(answer)['token']))
  }

  return {
    find: () => (found ??= first()),
    renew: () => (password === undefined ? Promise.resolve(undefined) : (found = logIn())),
    get advice() {
      const kept = cachesToken ? readKeptToken(place, () => undefined) : undefined
      if (kept === undefined || kept === 'damaged' || kept.authUrl === '' || kept.authUrl === authUrl) {
        return `Log in again: ${loginCommand(username)}`
      }
      return (
        `The last login was at ${kept.authUrl}, and is not used at ${authUrl}. Name the address that it was made with, ` +
        `or log in with this one: ${loginCommand(username)}`
      )
    },
  }
}

/**
 * Keeps the token for the next command. A failure is only warned of, since the next command can log in again.
 *
 * @returns whether it is kept
 */
export async function keepToken(place: TokenPlace, answer: Answer, warn: (text: string) => void): Promise<boolean> {
  const record = recordIn(answer)
  const expireMs = Date.parse(textOf(record['expiry'])) + clockDifferenceMs(answer)
  const expireTimestamp = Math.floor(expireMs / 1000)
  try {
    await writeCachedToken(place, textOf(record['token']), expireTimestamp)
    return true
  } catch (error) {
    warn(`The token cannot be kept for the next command: ${error instanceof Error ? error.message : String(error)}`)
    return false
  }
}

/**
 * How far this clock is ahead of the server's, which decides when tokens end. A difference is taken for 0 when the
 * seconds of the header and the time the answer took can explain it.
 */
function clockDifferenceMs({ headers }: Answer): number {
  const difference = Date.now() - Date.parse(headers.date ?? '')
  return Math.abs(difference) < SAME_TIME_MS || Number.isNaN(difference) ? 0 : difference
}

function toCredential(token: string): Credential {
  return { header: 'X-Auth-Token', value: token }
}

function loginCommand(user: string): string {
  return `svc login ${/^[\w@.+-]+$/.test(user) ? user : '<user>'}`
}
