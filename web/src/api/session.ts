/**
 * Who is signed in.
 *
 * The token is kept in memory, and by the browser in a cookie that no script can read, which the server sets with the first
 * answer to it: that is what a reload goes on with. It is never a part of an address, and nothing else keeps it.
 *
 * A browser has one cookie for all its pages, and for whatever else listens at this host. So requests say whose it should
 * be, and pages of one browser tell each other when somebody signs in or out. They tell no secrets.
 */
import { createStore } from '../store.ts'
import type { CurrentUser, IssuedToken } from './records.ts'
import { ApiError, sendRequest, errorOf } from './transport.ts'

export interface SessionUser {
  name: string
  /** Undefined: authentication is off. */
  method: 'token' | 'api_key' | undefined
  /** Of a token: when it ends, in milliseconds since the epoch by the clock of this browser, whatever that shows. */
  endsAt: number | undefined
  roles: readonly string[]
  isAdmin: boolean
  /** Whether roles decide who may do what. */
  hasAccessControl: boolean
}

export interface SessionState {
  /** `unknown` until the server has said who is calling. */
  phase: 'unknown' | 'signed_in' | 'signed_out'
  /** The last one, also while the session is over. */
  user: SessionUser | undefined
  /** Why signing in is needed, in words. */
  reason: string | undefined
  /** Whose cookie the browser has, when that is somebody else than this page shows. */
  other: string | undefined
  /** What is on the page is not to be seen: its user has signed out, on another page of this browser. */
  isHidden: boolean
  /** The user asked for signing in before the session is over. */
  isRenewing: boolean
}

const signedOut: SessionState = {
  phase: 'signed_out',
  user: undefined,
  reason: undefined,
  other: undefined,
  isHidden: false,
  isRenewing: false,
}

const state = createStore<SessionState>({ ...signedOut, phase: 'unknown' })

let token: string | undefined
/** Counts the times somebody has signed in: what was refused before that is worth another try. */
let generation = 0
let signedIn = Promise.withResolvers<void>()
let recovery: Promise<Recovery> | undefined
/** The credential was found without asking anybody, and nothing has been answered with it yet. */
let isUnproved = false

/** Codes that signing in helps against; the signature of a webhook, for one, is none of the session. */
const sessionIsOver: ReadonlySet<string> = new Set([
  'CREDENTIALS_MISSING',
  'TWO_CREDENTIALS',
  'TOKEN_INVALID',
  'TOKEN_EXPIRED',
  'TOKEN_USER_DISABLED',
  'USER_CHANGED',
])

const reasons: Readonly<Record<string, string>> = {
  TOKEN_EXPIRED: 'it expired.',
  TOKEN_USER_DISABLED: 'the user was disabled.',
  USER_CHANGED: 'another user signed in with this browser.',
}
const someReason = 'you or an administrator revoked it.'

type Message = 'signed_in' | 'signed_out'

/** Between the pages of this server in this browser. */
const pages = new BroadcastChannel(`svc session of ${new URL('./', document.baseURI).pathname}`)
pages.addEventListener('message', ({ data }: MessageEvent<Message>) => {
  if (data === 'signed_out') void leave()
  else if (state.value.phase === 'signed_out') void lookAgain()
  else if (token !== undefined) void giveUpToken()
})
// Somebody may have signed in while nobody looked at this page.
document.addEventListener('visibilitychange', () => {
  if (!document.hidden && state.value.phase === 'signed_out') void lookAgain()
})

export const session = {
  state,

  /** For one request. */
  credential(): { headers: Record<string, string>; generation: number } {
    return { headers: { ...expected(), ...(token === undefined ? {} : { 'X-Auth-Token': token }) }, generation }
  },

  /** Whether what the server says means that somebody has to sign in. */
  isOver: ({ status, code }: ApiError): boolean => status === 401 && sessionIsOver.has(code),

  /** While somebody has to sign in, nothing needs to be asked in vain. @throws AbortError */
  async ready(signal?: AbortSignal): Promise<void> {
    if (state.value.phase === 'signed_out') await untilSignedIn(signal)
  },

  /** Something was answered with this credential. */
  proved(used: number): void {
    if (used === generation) isUnproved = false
  },

  /**
   * Asks for signing in, unless that has been done since, here or on another page of this browser.
   *
   * @param used generation of the credential that was refused
   * @returns when somebody has signed in. @throws AbortError
   */
  async renewed(used: number, { code }: ApiError, signal?: AbortSignal): Promise<void> {
    if (used !== generation) return
    // A session that is found again over and over is none.
    const found = state.value.phase === 'signed_in' && !isUnproved ? await recover() : undefined
    if (used !== generation) return
    token = undefined
    const { user, phase } = state.value
    if (phase !== 'signed_out') {
      const reason = user === undefined ? undefined : (reasons[code] ?? someReason)
      state.set({ ...signedOut, user, reason, other: found?.other })
    }
    await untilSignedIn(signal)
  },

  /**
   * By the cookie of an earlier visit, or because nobody needs anything, or because the web server in front says who it is.
   *
   * @throws ApiError when the server gives no answer that says who is calling
   */
  async resume(): Promise<void> {
    const response = await sendRequest('GET', USER, {}, {})
    if (response.ok) accept(await userOf(response))
    else if (response.status !== 401) throw await errorOf(response)
    else {
      const obtained = await obtainByProxy()
      if (obtained === undefined) state.set({ ...signedOut, user: state.value.user })
      else accept(obtained.user, obtained.token)
    }
  },

  /**
   * Exchanges name and password for a token, or asks for one of whom a trusted web server in front has signed in.
   *
   * @param login undefined: the web server knows who it is
   * @throws ApiError
   */
  async signIn(login: Login | undefined): Promise<void> {
    const issued = await obtain(login)
    rememberProxy(login === undefined)
    accept(issued.user, issued.token)
  },

  /**
   * Whether the browser goes on after a reload. It keeps no cookie that is for TLS alone but came over plain HTTP.
   *
   * @throws ApiError
   */
  async isKept(): Promise<boolean> {
    return (await sendRequest('GET', USER, {}, expected())).ok
  },

  /** Before the session is over: nothing on the page has to wait for it. */
  startRenewing(): void {
    state.set({ ...state.value, isRenewing: true })
  },

  stopRenewing(): void {
    state.set({ ...state.value, isRenewing: false })
  },

  /** On all pages of this browser. @throws ApiError; then nothing has changed */
  async signOut(): Promise<void> {
    const response = await sendRequest('DELETE', 'auth/v1/tokens/current', {}, session.credential().headers)
    // What is no token any more needs no end.
    if (!response.ok && ![401, 404].includes(response.status)) throw await errorOf(response)
    token = undefined
    rememberProxy(false)
    pages.postMessage('signed_out' satisfies Message)
    // What is on the page is of somebody who has gone.
    location.reload()
  },

  /** Continues as the user of the browser's cookie. The state of the page is lost. */
  goOnAsOther(): void {
    location.reload()
  },
}

const USER = 'api/v1/user'

/**
 * Whom the page shows: with a cookie of somebody else its requests do nothing. Also of a page that nobody had to sign in to:
 * authentication may have been switched on since.
 */
function expected(): Record<string, string> {
  const { user } = state.value
  return user === undefined ? {} : { 'Svc-Expected-User': encodeURIComponent(user.name.toWellFormed()) }
}

interface Login {
  name: string
  password: string
}

interface Obtained {
  user: SessionUser
  token: string
}

interface Recovery {
  hasSucceeded: boolean
  /** Somebody else is signed in with this browser. */
  other?: string
}

/** @throws ApiError */
async function obtain(login: Login | undefined): Promise<Obtained> {
  const answer = await sendRequest(
    'POST',
    'auth/v1/tokens',
    { body: {} },
    login === undefined ? {} : { Authorization: basic(login) },
  )
  if (!answer.ok) throw await errorOf(answer)
  const issued = (await answer.json()) as IssuedToken // the answer of this path
  // The first answer to the token brings the cookie.
  const response = await sendRequest('GET', USER, {}, { 'X-Auth-Token': issued.token })
  if (!response.ok) throw await errorOf(response)
  const user = await userOf(response)
  pages.postMessage('signed_in' satisfies Message)
  return { user, token: issued.token }
}

/**
 * Goes on without asking anybody: by the cookie, when another page has signed in the same user, or because the web server
 * in front says that it is. Never rejects.
 */
function recover(): Promise<Recovery> {
  recovery ??= recoverOnce().finally(() => {
    recovery = undefined
  })
  return recovery
}

async function recoverOnce(): Promise<Recovery> {
  const { user } = state.value
  const asked = generation
  if (user === undefined) return { hasSucceeded: false }
  try {
    const response = await sendRequest('GET', USER, {}, {})
    const found = response.ok ? { user: await userOf(response), token: undefined } : await obtainByProxy()
    if (asked !== generation) return { hasSucceeded: true }
    if (found === undefined) return { hasSucceeded: false }
    // Whether that costs what is on the page is the user's to say.
    if (found.user.name !== user.name) return { hasSucceeded: false, other: found.user.name }
    accept(found.user, found.token)
    isUnproved = true
    return { hasSucceeded: true }
  } catch {
    // Asking for the password is right then, too: its answer will say what is wrong.
    return { hasSucceeded: false }
  }
}

/** When that has worked before in this browser. Never rejects. */
async function obtainByProxy(): Promise<Obtained | undefined> {
  if (!remembersProxy()) return undefined
  try {
    return await obtain(undefined)
  } catch {
    rememberProxy(false)
    return undefined
  }
}

/** While this page asks for signing in: somebody may have, on another page. */
async function lookAgain(): Promise<void> {
  if (state.value.user === undefined) {
    // The page asks already.
    await session.resume().catch(() => undefined)
    return
  }
  const { hasSucceeded, other } = await recover()
  if (!hasSucceeded && state.value.phase === 'signed_out') state.set({ ...state.value, other })
}

/**
 * Another page has signed somebody in: from now on the cookie is theirs, and this page goes on by it, so that signing out
 * anywhere means all pages. Where the cookie is of another server on this host, the token stays.
 */
async function giveUpToken(): Promise<void> {
  const used = token
  try {
    const response = await sendRequest('GET', USER, {}, {})
    if (response.ok && token === used) token = undefined
  } catch {
    // The token is still good.
  }
}

async function untilSignedIn(signal: AbortSignal | undefined): Promise<void> {
  await Promise.race([signedIn.promise, aborted(signal)])
}

/** Another page has signed its user out, and means this one, too. */
async function leave(): Promise<void> {
  const { user, phase } = state.value
  if (phase === 'unknown' || user?.method === undefined) return
  const own = session.credential().headers
  const hasToken = token !== undefined
  token = undefined
  state.set({ ...signedOut, user, reason: 'you signed out on another page of this browser.', isHidden: true })
  // A token of this page alone.
  if (hasToken) await sendRequest('DELETE', 'auth/v1/tokens/current', {}, own).catch(() => undefined)
}

function accept(user: SessionUser, ownToken?: string): void {
  const earlier = state.value.user
  if (earlier !== undefined && earlier.name !== user.name) {
    // The page shows what somebody else was allowed to see. Whatever still waits, waits until the page is gone.
    location.reload()
    return
  }
  token = ownToken
  isUnproved = false
  generation += 1
  state.set({ ...signedOut, phase: 'signed_in', user })
  signedIn.resolve()
  signedIn = Promise.withResolvers()
}

function basic({ name, password }: Login): string {
  return `Basic ${btoa(String.fromCharCode(...new TextEncoder().encode(`${name}:${password}`)))}`
}

/** That the web server in front signs users in is no secret. Browsers can be told to keep nothing. */
const PROXY_MEMORY = 'svc-signed-in-by-proxy'

function remembersProxy(): boolean {
  try {
    return localStorage.getItem(PROXY_MEMORY) !== null
  } catch {
    return false
  }
}

function rememberProxy(isSo: boolean): void {
  try {
    if (isSo) localStorage.setItem(PROXY_MEMORY, 'yes')
    else localStorage.removeItem(PROXY_MEMORY)
  } catch {
    // Then the user has to say so each time.
  }
}

async function userOf(response: Response): Promise<SessionUser> {
  const { username, authentication, rbac } = (await response.json()) as CurrentUser // the answer of this path
  const { method, token_expire: expiry } = authentication
  return {
    name: username,
    method: method === null ? undefined : method === 'API key' ? 'api_key' : 'token',
    endsAt: expiry === undefined ? undefined : endOf(expiry, response.headers.get('Date')),
    roles: rbac.roles,
    isAdmin: rbac.is_admin,
    hasAccessControl: rbac.enabled,
  }
}

/** @param date of the answer, by the clock that decides when the token ends */
function endOf(expiry: string, date: string | null): number {
  const serverNow = date === null ? Number.NaN : Date.parse(date)
  return Number.isNaN(serverNow) ? Date.parse(expiry) : Date.now() + Date.parse(expiry) - serverNow
}

function aborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    const abort = (): void => reject(new DOMException('The page no longer needs this request.', 'AbortError'))
    if (signal?.aborted === true) abort()
    signal?.addEventListener('abort', abort, { once: true })
  })
}
