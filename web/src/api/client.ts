/** Requests to the public API, with the credential of the session. */
import { session } from './session.ts'

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

export type QueryValues = Record<string, string | number | boolean | readonly string[] | undefined>

export interface RequestOptions {
  query?: QueryValues
  body?: unknown
  headers?: Record<string, string>
  signal?: AbortSignal
}

/** One page of a list. */
export interface Page<T> {
  items: T[]
  /** Of all that match, on whatever page. */
  total: number
}

/**
 * Relative to where the page is, so that it works below any path of a proxy.
 *
 * @param path such as `api/v1/executions`
 */
export function addressOf(path: string, query: QueryValues = {}): URL {
  const url = new URL(path, document.baseURI)
  url.hash = ''
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === '') continue
    url.searchParams.set(name, Array.isArray(value) ? value.join(',') : String(value))
  }
  return url
}

/**
 * Waits for the user to sign in when the session is over, and asks again.
 *
 * @param path below the API: `executions/last`
 * @throws ApiError; DOMException `AbortError` when the signal says so
 */
export function request(method: string, path: string, options: RequestOptions = {}): Promise<Response> {
  return send(method, `api/v1/${path}`, options)
}

/** The same for any of the server's surfaces: `stream/v1/stream`, `auth/v1/tokens`. */
export async function send(method: string, path: string, options: RequestOptions = {}): Promise<Response> {
  for (;;) {
    const used = session.credential()
    const response = await fetchOnce(method, path, options, used.headers)
    if (response.ok) return response
    const error = await errorOf(response)
    if (response.status !== 401) throw error
    await session.renewed(used.generation, error.message, options.signal)
  }
}

async function fetchOnce(
  method: string,
  path: string,
  { query, body, headers, signal }: RequestOptions,
  credential: Record<string, string>,
): Promise<Response> {
  try {
    return await fetch(addressOf(path, query), {
      method,
      headers: { ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...credential, ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
      credentials: 'same-origin',
    })
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error
    throw new ApiError('The server cannot be reached.', 0)
  }
}

/** Of the API; whoever stands in between may say anything. */
interface ErrorBody {
  faultstring?: string
  code?: string
  details?: Record<string, unknown>
}

/** What the server says is wrong. */
export async function errorOf(response: Response): Promise<ApiError> {
  try {
    const { faultstring, code, details } = (await response.json()) as ErrorBody
    if (typeof faultstring === 'string') return new ApiError(faultstring, response.status, code, details)
  } catch {
    // Something in between has answered.
  }
  return new ApiError(`The server answered with ${response.status} ${response.statusText}.`.trim(), response.status)
}

/** @throws as `request` */
export async function get<T>(path: string, query?: QueryValues, signal?: AbortSignal): Promise<T> {
  const response = await request('GET', path, { ...(query && { query }), ...(signal && { signal }) })
  return (await response.json()) as T // the caller names the record of the path
}

/** @throws as `request` */
export async function list<T>(path: string, query?: QueryValues, signal?: AbortSignal): Promise<Page<T>> {
  const response = await request('GET', path, { ...(query && { query }), ...(signal && { signal }) })
  const items = (await response.json()) as T[] // as above
  return { items, total: Number(response.headers.get('X-Total-Count') ?? items.length) }
}

/** Sends a body, or nothing; answers with the record that comes back, if one does. @throws as `request` */
export async function change<T>(
  method: 'POST' | 'PUT' | 'DELETE',
  path: string,
  body?: unknown,
  query?: QueryValues,
): Promise<T> {
  const response = await request(method, path, { ...(body === undefined ? {} : { body }), ...(query && { query }) })
  const text = await response.text()
  return (text === '' ? undefined : JSON.parse(text)) as T // as above
}

/** For people: of an error, whatever it is. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError'
}
