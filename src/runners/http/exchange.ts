/** Sends one request and follows redirects, within size limits and to allowed addresses only (decision 13). */
import { constants, createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'
import type { Duplex, Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Agent, buildConnector, Dispatcher, FormData, ProxyAgent } from 'undici'
import { codeOf } from '../../lib/process/index.ts'
import { AddressRefused, type Addresses } from './addresses.ts'

export interface HttpRequest {
  method: string
  /** Without credentials. */
  url: URL
  headers: Map<string, string>
  body: string | Uint8Array | FormData | undefined
  followsRedirects: boolean
  verifiesCertificates: boolean
  /** The proxy for a URL. @throws HttpProblem */
  proxyFor(url: URL): RequestProxy | undefined
  /** Called for each URL before its request. @throws HttpProblem */
  checkUrl(url: URL): void
}

export interface RequestProxy {
  /** With credentials. */
  url: URL
  /** Whether it may be anywhere, because the operator has named it. */
  isTrusted: boolean
}

export interface HttpAnswer {
  statusCode: number
  /** Names as received; repeated headers have their values joined. */
  headers: Record<string, string>
  /** Of the header `Content-Type`. */
  contentType: string | undefined
  /** Decompressed. */
  body: Buffer
}

export interface ExchangeLimits {
  addresses: Addresses
  maxBodyBytes: number
  /** What sets `maxBodyBytes`, for messages. */
  maxBodyName: string
  signal: AbortSignal
}

/** Why there is no response, as text for the user: without credentials, server paths and queries. */
export class HttpProblem extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'HttpProblem'
  }
}

const MAX_REDIRECTS = 10
export const MAX_HEADER_BYTES = 65_536
const ACCEPTED_ENCODINGS = 'gzip, deflate, br'
/** Request headers that may go to another origin. */
const HARMLESS_HEADERS = new Set(['accept', 'accept-encoding', 'accept-language', 'content-type', 'user-agent'])

/** @throws HttpProblem; the reason of the signal when it is aborted */
export async function exchange(request: HttpRequest, limits: ExchangeLimits): Promise<HttpAnswer> {
  const connections = createConnections(await import('./client.ts'), request, limits.addresses)
  try {
    let next = { ...request, headers: new Map(request.headers) }
    if (!next.headers.has('accept-encoding')) next.headers.set('accept-encoding', ACCEPTED_ENCODINGS)
    for (let redirects = 0; ; redirects++) {
      const answer = await send(connections, next, limits)
      const target = request.followsRedirects ? redirectTarget(answer, next.url) : undefined
      if (target === undefined) return await finish(answer, next, limits)
      answer.body.on('error', () => undefined).destroy()
      if (redirects === MAX_REDIRECTS) {
        throw new HttpProblem(`${shownUrl(request.url)} redirects more than ${MAX_REDIRECTS} times`)
      }
      next = redirected(next, answer.statusCode, target)
    }
  } finally {
    await connections.close()
  }
}

type Answer = Dispatcher.ResponseData & { rawHeaders: [string, string][]; header(name: string): string | undefined }

async function send(connections: Connections, request: HttpRequest, limits: ExchangeLimits): Promise<Answer> {
  const { url, method, headers, body } = request
  request.checkUrl(url)
  const proxy = request.proxyFor(url)
  try {
    limits.addresses.checkLiteral(url.hostname)
    const answer = await (
      await connections.to(url, proxy)
    ).request({
      origin: url.origin,
      path: url.pathname + url.search,
      // The type lists the common ones; any token may be sent.
      method: method as Dispatcher.HttpMethod,
      headers: Object.fromEntries(headers),
      body: body ?? null,
      responseHeaders: 'raw',
      signal: limits.signal,
      headersTimeout: 0,
      bodyTimeout: 0,
    })
    const rawHeaders = pairs(answer.headers)
    const header = (name: string): string | undefined => rawHeaders.find(([given]) => given.toLowerCase() === name)?.[1]
    return Object.assign(answer, { rawHeaders, header })
  } catch (error) {
    throw problemOf(error, url, limits, proxy?.url)
  }
}

async function finish(answer: Answer, { url, method }: HttpRequest, limits: ExchangeLimits): Promise<HttpAnswer> {
  const hasBody = method !== 'HEAD' && answer.statusCode !== 204 && answer.statusCode !== 304
  const encoding = hasBody ? (answer.header('content-encoding') ?? '').trim().toLowerCase() : ''
  try {
    const body = await readBody(answer.body, encoding, limits)
    return {
      statusCode: answer.statusCode,
      headers: Object.fromEntries(joined(answer.rawHeaders)),
      contentType: answer.header('content-type'),
      body,
    }
  } catch (error) {
    throw problemOf(error, url, limits)
  }
}

export async function readBody(
  body: Readable,
  encoding: string,
  limits: Pick<ExchangeLimits, 'maxBodyBytes' | 'maxBodyName' | 'signal'>,
): Promise<Buffer> {
  const { maxBodyBytes, maxBodyName, signal } = limits
  const chunks: Buffer[] = []
  let bytes = 0
  const collect = async (source: AsyncIterable<Buffer>): Promise<void> => {
    for await (const chunk of source) {
      bytes += chunk.length
      if (bytes > maxBodyBytes) {
        throw new HttpProblem(`The response body is longer than ${maxBodyName} (${maxBodyBytes})`)
      }
      chunks.push(chunk)
    }
  }
  const decoder = decoderOf(encoding)
  if (decoder === undefined) await pipeline(body, collect, { signal })
  else await pipeline(body, decoder, collect, { signal })
  return Buffer.concat(chunks, bytes)
}

/** @returns undefined when no decoding is needed */
function decoderOf(encoding: string): Duplex | undefined {
  switch (encoding) {
    case '':
    case 'identity':
      return undefined
    case 'gzip':
    case 'x-gzip':
      return createGunzip()
    case 'deflate':
      return createInflate()
    case 'br':
      return createBrotliDecompress({ params: { [constants.BROTLI_DECODER_PARAM_LARGE_WINDOW]: 0 } })
    default:
      throw new HttpProblem(`The response has the unsupported encoding "${encoding.slice(0, 50)}"`)
  }
}

// Redirects

function redirectTarget(answer: Answer, from: URL): URL | undefined {
  const location = answer.header('location')
  if (![301, 302, 303, 307, 308].includes(answer.statusCode) || location === undefined) return undefined
  let target: URL
  try {
    target = new URL(location, from)
  } catch {
    throw new HttpProblem(`${shownUrl(from)} redirects to something that is not a URL`)
  }
  if (target.protocol !== 'http:' && target.protocol !== 'https:') {
    throw new HttpProblem(`${shownUrl(from)} redirects to a ${target.protocol} URL; only http and https are supported`)
  }
  if (from.protocol === 'https:' && target.protocol === 'http:') {
    throw new HttpProblem(`${shownUrl(from)} redirects from https to http, which svc refuses`)
  }
  target.username = ''
  target.password = ''
  target.hash = ''
  return target
}

function redirected(request: HttpRequest, statusCode: number, target: URL): HttpRequest {
  const headers = new Map(request.headers)
  headers.delete('host')
  // As browsers and other clients do.
  const becomesGet =
    (statusCode === 303 && request.method !== 'HEAD') || (statusCode <= 302 && request.method === 'POST')
  if (becomesGet) headers.delete('content-type')
  if (target.origin !== request.url.origin) {
    // Headers of any name may contain credentials.
    for (const name of headers.keys()) if (!HARMLESS_HEADERS.has(name)) headers.delete(name)
  }
  return { ...request, url: target, headers, ...(becomesGet ? { method: 'GET', body: undefined } : {}) }
}

// Connections

interface Connections {
  /** @throws AddressRefused */
  to(url: URL, proxy: RequestProxy | undefined): Promise<Dispatcher>
  close(): Promise<void>
}

type Connect = buildConnector.connector

function createConnections(
  undici: typeof import('./client.ts'),
  request: HttpRequest,
  addresses: Addresses,
): Connections {
  const sockets = new Set<Duplex>()
  const dispatchers = new Map<string, Agent | ProxyAgent>()
  let isClosed = false
  const tls = { rejectUnauthorized: request.verifiesCertificates }

  /** All connections, also those to a proxy, are made here; `lookup` checks the names. */
  function guard(connect: Connect, trusted?: string): Connect {
    return (options, done) => {
      try {
        if (isClosed) throw new Error('closed')
        if (options.hostname !== trusted) addresses.checkLiteral(options.hostname)
      } catch (error) {
        done(error instanceof Error ? error : new Error(String(error)), null)
        return
      }
      const socket: unknown = connect(options, done)
      if (isDuplex(socket)) {
        sockets.add(socket)
        socket.once('close', () => sockets.delete(socket))
      }
    }
  }

  // Only the time limit of the action applies.
  const connecting = { lookup: addresses.lookup, timeout: 0, ...tls }
  const common = { maxHeaderSize: MAX_HEADER_BYTES, headersTimeout: 0, bodyTimeout: 0, allowH2: false }

  function direct(): Agent {
    return new undici.Agent({ ...common, connect: guard(undici.buildConnector(connecting)) })
  }

  function through({ url: proxy, isTrusted }: RequestProxy): ProxyAgent {
    const guarded = (origin: URL | string, options: object): Dispatcher => {
      const { connect } = options as { connect?: Connect | object }
      const own =
        typeof connect === 'function'
          ? { connect: guard(connect as Connect, isTrusted ? proxy.hostname : undefined) }
          : {}
      return new undici.Pool(origin, { ...options, ...common, ...own })
    }
    return new undici.ProxyAgent({
      ...common,
      uri: proxy.href,
      proxyTunnel: false,
      proxyTls: isTrusted ? { ...tls, timeout: 0 } : connecting,
      requestTls: { ...tls, timeout: 0 } as buildConnector.BuildOptions,
      clientFactory: guarded,
      factory: guarded,
    })
  }

  return {
    async to(url, proxy) {
      if (proxy !== undefined) {
        if (!proxy.isTrusted) addresses.checkLiteral(proxy.url.hostname)
        await addresses.checkName(url.hostname)
      }
      const key = proxy?.url.href ?? ''
      const dispatcher = dispatchers.get(key) ?? (proxy === undefined ? direct() : through(proxy))
      dispatchers.set(key, dispatcher)
      return dispatcher
    },
    async close() {
      isClosed = true
      await Promise.all([...dispatchers.values()].map((dispatcher) => dispatcher.destroy().catch(() => undefined)))
      for (const socket of sockets) socket.on('error', () => undefined).destroy()
    },
  }
}

function isDuplex(value: unknown): value is Duplex {
  return typeof value === 'object' && value !== null && 'destroy' in value && 'once' in value
}

// Headers

function pairs(raw: unknown): [string, string][] {
  if (!Array.isArray(raw)) return []
  const texts = raw.map((item: unknown) => (Buffer.isBuffer(item) ? item.toString('latin1') : String(item)))
  return Array.from({ length: Math.floor(texts.length / 2) }, (_, n) => [texts[2 * n] ?? '', texts[2 * n + 1] ?? ''])
}

function joined(raw: readonly [string, string][]): Map<string, string> {
  const names = new Map<string, string>()
  const values = new Map<string, string>()
  for (const [given, value] of raw) {
    const name = names.get(given.toLowerCase()) ?? given
    names.set(given.toLowerCase(), name)
    const before = values.get(name)
    values.set(name, before === undefined ? value : `${before}, ${value}`)
  }
  return values
}

// Problems

/** The URL without parts that may be secret: credentials, query, fragment. */
export function shownUrl(url: URL): string {
  return `"${url.origin}${url.pathname.slice(0, 200)}"`
}

const reasons: Record<string, string> = {
  ENOTFOUND: 'the host name does not exist',
  EAI_AGAIN: 'the host name lookup failed for now',
  ECONNREFUSED: 'the host refused the connection',
  ECONNRESET: 'the connection was reset',
  EPIPE: 'the connection was closed',
  ETIMEDOUT: 'the connection timed out',
  EHOSTUNREACH: 'no route to the host',
  ENETUNREACH: 'no route to the network',
  UND_ERR_SOCKET: 'the connection was closed before the response was complete',
  UND_ERR_HEADERS_OVERFLOW: `the response headers are longer than ${MAX_HEADER_BYTES} bytes`,
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'the response is shorter than its Content-Length',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is self-signed',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate is signed by an authority that is not trusted',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate is signed by an authority that is not trusted',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its certificate is signed by an authority that is not trusted',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
  Z_DATA_ERROR: 'the response body does not match its encoding',
  Z_BUF_ERROR: 'the response body ends too early',
}

export function problemOf(error: unknown, url: URL, { signal }: Pick<ExchangeLimits, 'signal'>, proxy?: URL): unknown {
  if (signal.aborted) return signal.reason
  if (error instanceof HttpProblem) return error
  const refused = causes(error).find((cause) => cause instanceof AddressRefused)
  if (refused !== undefined) return new HttpProblem(`${shownUrl(url)} is refused: ${refused.message}`)
  const codes = causes(error).flatMap((cause) => codeOf(cause) ?? [])
  const code = codes.find((known) => reasons[known] !== undefined) ?? codes[0]
  const why = code === undefined ? 'the request failed' : (reasons[code] ?? 'the request failed')
  const way = proxy === undefined ? '' : ` through the proxy "${proxy.origin}"`
  return new HttpProblem(`No response from ${shownUrl(url)}${way}: ${why}${code === undefined ? '' : ` (${code})`}`)
}

/** The error itself and its causes. */
function causes(error: unknown, depth = 0): Error[] {
  if (!(error instanceof Error) || depth > 5) return []
  const inner = [...(error instanceof AggregateError ? error.errors : []), error.cause]
  return [error, ...inner.flatMap((one) => causes(one, depth + 1))]
}
