/** One connection to one server for several requests in sequence, for protocols that log in per connection. */
import { MAX_HEADER_BYTES, problemOf, readBody } from './exchange.ts'

/** Time a server has to accept a connection. */
const CONNECT_LIMIT_MS = 30_000
/** How long an idle connection stays open. */
const KEPT_MS = 60_000

export interface KeptRequest {
  headers: Record<string, string>
  body: string
}

export interface KeptAnswer {
  statusCode: number
  /** All values of a header, in order of arrival. */
  header(name: string): string[]
  body: Buffer
}

export interface KeptConnection {
  /** Sends a POST. @throws HttpProblem; the reason of the signal when it is aborted */
  post(request: KeptRequest, signal: AbortSignal): Promise<KeptAnswer>
  /** Call at the end, or before a new connection replaces this one: closes the socket at once. */
  close(): Promise<void>
}

export interface KeptConnectionOptions {
  verifiesCertificates: boolean
  maxBodyBytes: number
}

/** Requests do not follow redirects, and responses have to be uncompressed. */
export async function createKeptConnection(
  url: URL,
  { verifiesCertificates, maxBodyBytes }: KeptConnectionOptions,
): Promise<KeptConnection> {
  const { buildConnector, Client } = await import('./client.ts')
  const client = new Client(url.origin, {
    connect: buildConnector({ timeout: CONNECT_LIMIT_MS, rejectUnauthorized: verifiesCertificates }),
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: KEPT_MS,
    allowH2: false,
  })
  return {
    async post({ headers, body }, signal) {
      try {
        const answer = await client.request({ method: 'POST', path: url.pathname, headers, body, signal })
        const limits = { maxBodyBytes, maxBodyName: 'the limit for one answer', signal }
        const bytes = await readBody(answer.body, '', limits)
        return {
          statusCode: answer.statusCode,
          header: (name) => [answer.headers[name] ?? []].flat(),
          body: bytes,
        }
      } catch (error) {
        throw problemOf(error, url, { signal })
      }
    },
    close: () => client.destroy().catch(() => undefined),
  }
}
