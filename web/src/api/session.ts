/**
 * Who is signed in.
 *
 * The token is kept in memory, and by the browser in a cookie that no script can read, which the server sets with the first
 * answer to it: that is what a reload goes on with. It is never a part of an address.
 */
import { createStore } from '../store.ts'

export interface User {
  name: string
  /** Undefined: authentication is off. */
  method: 'token' | 'api_key' | undefined
  /** Wire timestamp, of a token. */
  expiry: string | undefined
  roles: readonly string[]
  isAdmin: boolean
  /** Whether roles decide who may do what. */
  hasAccessControl: boolean
}

export interface SessionState {
  /** `unknown` until the server has said who is calling. */
  phase: 'unknown' | 'signed_in' | 'signed_out'
  /** The last one, also while the session is over. */
  user: User | undefined
  /** Why signing in is needed. */
  reason: string | undefined
}

/** `GET /user` */
interface CurrentUser {
  username: string
  authentication: { method: string | null; token_expire?: string }
  rbac: { enabled: boolean; roles: string[]; is_admin: boolean }
}

const state = createStore<SessionState>({ phase: 'unknown', user: undefined, reason: undefined })

let token: string | undefined
/** Counts the times somebody has signed in: what was refused before that is worth another try. */
let generation = 0
let signedIn = Promise.withResolvers<void>()

export const session = {
  state,

  /** For one request. */
  credential(): { headers: Record<string, string>; generation: number } {
    return { headers: token === undefined ? {} : { 'X-Auth-Token': token }, generation }
  },

  /**
   * Asks for signing in, unless that has been done since.
   *
   * @param used generation of the credential that was refused
   * @returns when somebody has signed in. @throws AbortError
   */
  async renewed(used: number, reason: string, signal?: AbortSignal): Promise<void> {
    if (used !== generation) return
    token = undefined
    const { user, phase } = state.value
    if (phase !== 'signed_out')
      state.set({ phase: 'signed_out', user, reason: user === undefined ? undefined : reason })
    await Promise.race([signedIn.promise, aborted(signal)])
  },

  /**
   * By the cookie of an earlier visit, or because nobody needs anything.
   *
   * @throws Error when the server gives no answer that says who is calling
   */
  async resume(): Promise<void> {
    const response = await fetch(new URL('api/v1/user', document.baseURI), { credentials: 'same-origin' })
    if (response.status === 401) {
      state.set({ phase: 'signed_out', user: undefined, reason: undefined })
      return
    }
    if (!response.ok) throw new Error(await faultOf(response))
    accept(userOf((await response.json()) as CurrentUser)) // the answer of this path
  },

  /**
   * Exchanges name and password for a token, or asks for one of whom a trusted web server in front has signed in.
   *
   * @throws Error with what the server says
   */
  async signIn(name: string, password: string): Promise<void> {
    const basic = btoa(String.fromCharCode(...new TextEncoder().encode(`${name}:${password}`)))
    const answer = await fetch(new URL('auth/v1/tokens', document.baseURI), {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        ...(name === '' && password === '' ? {} : { Authorization: `Basic ${basic}` }),
      },
      body: '{}',
      // The browser would ask for name and password itself when they are refused.
      credentials: 'omit',
    })
    if (!answer.ok) throw new Error(await faultOf(answer))
    const issued = (await answer.json()) as { token: string } // the answer of this path
    // The first answer to the token brings the cookie.
    const response = await fetch(new URL('api/v1/user', document.baseURI), {
      headers: { 'X-Auth-Token': issued.token },
      credentials: 'same-origin',
    })
    if (!response.ok) throw new Error(await faultOf(response))
    token = issued.token
    accept(userOf((await response.json()) as CurrentUser)) // as above
  },

  /** @throws Error with what the server says; then nothing has changed */
  async signOut(): Promise<void> {
    const response = await fetch(new URL('auth/v1/tokens/current', document.baseURI), {
      method: 'DELETE',
      headers: session.credential().headers,
      credentials: 'same-origin',
    })
    if (!response.ok && response.status !== 401) throw new Error(await faultOf(response))
    token = undefined
    // What is on the page is of somebody who has gone.
    location.reload()
  },
}

function accept(user: User): void {
  const earlier = state.value.user
  if (earlier !== undefined && earlier.name !== user.name) {
    // The page shows what somebody else was allowed to see.
    location.reload()
    return
  }
  generation += 1
  state.set({ phase: 'signed_in', user, reason: undefined })
  signedIn.resolve()
  signedIn = Promise.withResolvers()
}

function userOf({ username, authentication: { method, token_expire: expiry }, rbac }: CurrentUser): User {
  return {
    name: username,
    method: method === null ? undefined : method === 'API key' ? 'api_key' : 'token',
    expiry,
    roles: rbac.roles,
    isAdmin: rbac.is_admin,
    hasAccessControl: rbac.enabled,
  }
}

async function faultOf(response: Response): Promise<string> {
  const body: unknown = await response.json().catch(() => undefined)
  const fault = typeof body === 'object' && body !== null && 'faultstring' in body ? body.faultstring : undefined
  return typeof fault === 'string' ? fault : `The server answered with ${response.status}.`
}

function aborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    const abort = (): void => reject(new DOMException('The request is not needed any more.', 'AbortError'))
    if (signal?.aborted === true) abort()
    signal?.addEventListener('abort', abort, { once: true })
  })
}
