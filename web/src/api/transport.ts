/** One request to the server that the page came from, and what is wrong when it fails. Who is calling is `session.ts`. */
import { createStore } from '../store.ts'
import { setServerTime } from './server-clock.ts'
import { writeJson } from '../json.ts'

/** The server refused, or could not be reached. `message` is for people, and says what to do where the server does. */
export class ApiError extends Error {
  /** 0: there was no answer. */
  readonly status: number
  /** What is wrong, for programs: `PARAMETERS_INVALID`. Empty when nobody said. */
  readonly code: string
  /** What the server adds for programs: `{ parameter: 'cmd' }`. */
  readonly details: Readonly<Record<string, unknown>>
  constructor(message: string, status: number, code = '', details: Readonly<Record<string, unknown>> = {}) {
    super(message)
    this.status = status
    this.code = code
    this.details = details
  }
}

/** Whether the last request had an answer of the server: one that is starting or stopping, or a proxy without it, gives none. */
export const isServerAnswering = createStore(true)

/** Of a proxy that does not reach the server, or of the server while it cannot serve. */
const unavailable: ReadonlySet<number> = new Set([502, 503, 504])

/** Whether the same request may succeed without anybody doing something about it. */
export function isUnavailable(error: unknown): boolean {
  return error instanceof ApiError && (unavailable.has(error.status) || (error.status === 0 && error.code === ''))
}

export type QueryValues = Record<string, string | number | boolean | readonly string[] | undefined>

export interface RequestOptions {
  query?: QueryValues
  body?: unknown
  /** A body of plain text, in place of `body`. */
  text?: string
  headers?: Record<string, string>
  signal?: AbortSignal
}

/** A proxy may answer anything, at any length. */
const MAX_MESSAGE = 5000

/**
 * Relative to where the page is, so that it works below any path of a proxy.
 *
 * @param path such as `api/v1/executions`
 * @throws ApiError unless it leads where its words say: a name that came from an address, such as `..`, must not make a
 *   request for one thing into one for another
 */
export function addressOf(path: string, query: QueryValues = {}): URL {
  return addressBelow(document.baseURI, path, query)
}

/** @param page address of the page. @throws as `addressOf` */
export function addressBelow(page: string, path: string, query: QueryValues = {}): URL {
  const base = new URL('./', page)
  const url = new URL(path, base)
  const [words = ''] = path.split('?', 1)
  const isThere =
    url.origin === base.origin &&
    partsIn(url.pathname) === partsIn(base.pathname) + partsIn(words) - 1 &&
    url.pathname.endsWith('/') === words.endsWith('/')
  if (!isThere || url.hash !== '') throw new ApiError('Not found: nothing has this name.', 404)
  for (const [name, value] of Object.entries(query)) {
    const text = Array.isArray(value) ? value.join(',') : String(value ?? '')
    if (text !== '') url.searchParams.set(name, text)
  }
  return url
}

function partsIn(path: string): number {
  return path.split('/').length
}

/**
 * @param credential headers that say who is calling
 * @returns the answer, whatever its status. @throws ApiError without one; DOMException `AbortError` when the signal says so
 */
export async function sendRequest(
  method: string,
  path: string,
  { query, body, text, headers, signal }: RequestOptions,
  credential: Record<string, string>,
): Promise<Response> {
  const address = addressOf(path, query)
  const mediaType = text !== undefined ? 'text/plain' : body !== undefined ? 'application/json' : undefined
  const content = text ?? (body === undefined ? undefined : writeJson(body))
  let response: Response
  try {
    response = await fetch(address, {
      method,
      headers: { ...(mediaType !== undefined && { 'Content-Type': mediaType }), ...credential, ...headers },
      ...(content !== undefined && { body: content }),
      ...(signal === undefined ? {} : { signal }),
      credentials: 'same-origin',
      // The server redirects nobody, and the token is for nobody else.
      redirect: 'manual',
    })
  } catch (error) {
    if (isAbort(error)) throw error
    isServerAnswering.set(false)
    throw new ApiError('Could not reach the server. Check the connection.', 0)
  }
  if (response.type !== 'opaqueredirect') {
    isServerAnswering.set(!unavailable.has(response.status))
    setServerTime(response)
    return response
  }
  throw new ApiError(
    'A proxy in front of the server redirected the request, perhaps to a sign-in page. Reload this page.',
    0,
    'REDIRECTED',
  )
}

/** An error of the API; a proxy may answer anything. */
interface ErrorBody {
  faultstring?: string
  code?: string
  details?: Record<string, unknown>
}

/** What the server says is wrong. */
export async function errorOf(response: Response): Promise<ApiError> {
  try {
    const { faultstring, code, details } = (await response.json()) as ErrorBody
    if (typeof faultstring === 'string') {
      return new ApiError(faultstring.slice(0, MAX_MESSAGE), response.status, String(code ?? ''), details)
    }
  } catch {
    // Something in between has answered.
  }
  const words = `${response.status} ${response.statusText.slice(0, 100)}`.trim()
  return new ApiError(`The server answered ${words}.`, response.status)
}

/** For people: of an error, whatever it is. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError'
}
