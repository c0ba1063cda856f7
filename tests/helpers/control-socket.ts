/** Requests by the control socket of a server. */
import { once } from 'node:events'
import { request, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'

export interface SocketAnswer<T> {
  status: number | undefined
  headers: IncomingHttpHeaders
  body: T
}

export async function askBySocket<T = Record<string, unknown>>(
  socketPath: string,
  method: string,
  path: string,
  body?: unknown,
): Promise<SocketAnswer<T>> {
  const sent = request({ socketPath, method, path, headers: { 'Content-Type': 'application/json' } })
  sent.end(body === undefined ? undefined : JSON.stringify(body))
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  return {
    status: response.statusCode,
    headers: response.headers,
    // The caller says what the answer is; the assertion that follows finds out.
    body: JSON.parse((await text(response)) || '{}') as T,
  }
}
