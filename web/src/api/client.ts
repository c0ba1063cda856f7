/** Requests to the public API, with the credential of the session. */
import { session } from './session.ts'
import { ApiError, sendRequest, errorOf, isAbort, type QueryValues, type RequestOptions } from './transport.ts'
import { readJson } from '../json.ts'

export {
  addressOf,
  ApiError,
  errorOf,
  isAbort,
  isUnavailable,
  messageOf,
  type QueryValues,
  type RequestOptions,
} from './transport.ts'

/** One page of a list. */
export interface ListPage<T> {
  items: T[]
  /** Of all that match, on whatever page. */
  total: number
  /** Where a search of outputs continues; undefined at its end. */
  outputCursor?: string | undefined
}

/**
 * Waits for the user to sign in when the session is over, and asks again. What changes something is carried out once, however
 * often the browser sends it, which it does by itself when a connection breaks.
 *
 * @param path below the API: `executions/last`
 * @throws ApiError; DOMException `AbortError` when the signal says so
 */
export async function request(method: string, path: string, options: RequestOptions = {}): Promise<Response> {
  if (method === 'GET') return send(method, `api/v1/${path}`, options)
  const headers = { 'Idempotency-Key': newKey(), ...options.headers }
  try {
    return await send(method, `api/v1/${path}`, { ...options, headers })
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 0 || error.code !== '') throw error
    throw new ApiError(`${error.message} The server may have made the change: check before you retry.`, 0)
  }
}

/** Not `randomUUID`, which browsers have over HTTPS only. */
function newKey(): string {
  return crypto.getRandomValues(new BigUint64Array(2)).join('-')
}

/** The same for any of the server's surfaces: `stream/v1/stream`, `auth/v1/tokens`. */
export async function send(method: string, path: string, options: RequestOptions = {}): Promise<Response> {
  for (;;) {
    await session.ready(options.signal)
    const used = session.credential()
    const response = await sendRequest(method, path, options, used.headers)
    if (response.ok) {
      session.proved(used.generation)
      return response
    }
    const error = await errorOf(response)
    if (!session.isOver(error)) throw error
    await session.renewed(used.generation, error, options.signal)
  }
}

/** @throws as `request` */
export async function get<T>(path: string, query?: QueryValues, signal?: AbortSignal): Promise<T> {
  const response = await request('GET', path, { ...(query && { query }), ...(signal && { signal }) })
  return (await jsonOf(response)) as T // the caller names the record of the path
}

/** With the entity tag of the record, which `If-Match` of a change takes. @throws as `request` */
export async function getTagged<T>(
  path: string,
  signal?: AbortSignal,
): Promise<{ record: T; tag: string | undefined }> {
  const response = await request('GET', path, signal && { signal })
  return { record: (await jsonOf(response)) as T, tag: response.headers.get('ETag') ?? undefined } // as above
}

/** @throws as `request` */
export async function list<T>(path: string, query?: QueryValues, signal?: AbortSignal): Promise<ListPage<T>> {
  const response = await request('GET', path, { ...(query && { query }), ...(signal && { signal }) })
  const items = (await jsonOf(response)) as T[] // as above
  return {
    items,
    total: Number(response.headers.get('X-Total-Count') ?? items.length),
    outputCursor: response.headers.get('X-Output-Cursor') ?? undefined,
  }
}

/** Sends a body, or nothing; answers with the record that comes back, if one does. @throws as `request` */
export async function change<T>(
  method: 'POST' | 'PUT' | 'DELETE',
  path: string,
  body?: unknown,
  query?: QueryValues,
  headers?: Record<string, string>,
): Promise<T> {
  const response = await request(method, path, {
    ...(body === undefined ? {} : { body }),
    ...(query && { query }),
    ...(headers && { headers }),
  })
  return (response.status === 204 ? undefined : await jsonOf(response)) as T // as above
}

/** @throws ApiError when the connection breaks within the answer */
async function jsonOf(response: Response): Promise<unknown> {
  try {
    const text = await response.text()
    return text === '' ? undefined : readJson(text)
  } catch (error) {
    if (isAbort(error)) throw error
    throw new ApiError('Could not read the answer: the connection closed early. Retry.', 0)
  }
}
