/** The first steps of the chain: request id, security headers, health, state of the server, origin, address. */
import { randomUUID } from 'node:crypto'
import type { Request, RequestHandler, Response } from 'express'
import { headerInvalid, shuttingDown, starting, tlsRequired } from '../../core/errors.ts'
import { noCompat } from '../../core/compat/index.ts'
import { noMetrics } from '../../core/metrics.ts'
import type { SurfaceTag } from '../admission.ts'
import { answerHealth, isHealthPath } from '../health.ts'
import { ourPath, readDialect } from '../dialect.ts'
import { locateRoute } from '../locate.ts'
import { notObserved, observe } from '../observe.ts'
import { senderOf } from '../origin.ts'
import { hasBody, states, type HttpAppOptions, type RequestState } from './state.ts'

const securityHeaders = {
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'X-XSS-Protection': '0',
  'Referrer-Policy': 'no-referrer',
}

/**
 * Sets the request id, the CORS headers and the origin check, then rewrites the address to `/<surface><path>` for the
 * routers.
 */
export function identify(options: HttpAppOptions): RequestHandler {
  const { logs, metrics = noMetrics, peers, compat = noCompat } = options
  const addressOf = (request: Request): string => peers.addressOf(request)
  return (request, response, next) => {
    const requestId = acceptableRequestId(request.headers['x-request-id']) ?? randomUUID()
    const mark = request.url.indexOf('?')
    const rawPath = mark === -1 ? request.url : request.url.slice(0, mark)
    const { surface } = request as Request & SurfaceTag // the listener set it
    const observation = isHealthPath(rawPath)
      ? notObserved()
      : observe({ log: logs[surface], metrics, addressOf }, request, response, { requestId, surface })
    const query = new URLSearchParams(mark === -1 ? '' : request.url.slice(mark + 1))
    const state: RequestState = { requestId, query, observation, dialect: 'svc' }
    states.set(request, state)

    for (const [name, value] of Object.entries(securityHeaders)) response.setHeader(name, value)
    for (const [name, value] of Object.entries(options.origins.corsHeaders(request.headers.origin))) {
      response.setHeader(name, value)
    }
    response.setHeader('X-Request-ID', requestId)
    if (hasBody(request)) readToTheEnd(request, response)

    if (request.method === 'OPTIONS') {
      response.writeHead(200, { 'Content-Length': '0' }).end()
      return
    }
    if (answerHealth(request, response, rawPath, () => reasonsNotReady(options))) return
    if (options.isStarting?.() === true) throw starting()
    if (options.isStopping()) throw shuttingDown()
    checkHeaders(request)
    state.dialect = readDialect(compat, request, query)
    peers.refuseStranger(request)
    const { headers } = request
    options.origins.check(request.method, senderOf(headers), { host: headers.host, isSecure: peers.isSecure(request) })
    const location = locateRoute(surface, rawPath)
    if (location.surface === 'auth' && options.authNeedsTls === true && !peers.isSecure(request)) {
      throw tlsRequired()
    }
    state.endsInSlash = rawPath.endsWith('/')
    request.url = `/${location.surface}${ourPath(compat, location.path)}`
    next()
  }
}

function reasonsNotReady(options: HttpAppOptions): readonly string[] {
  if (options.isStopping()) return ['stopping']
  return options.isStarting?.() === true ? ['starting'] : (options.notReady?.() ?? []).map(({ reason }) => reason)
}

/**
 * Refuses repeated `Host` and `Content-Type` headers: each reader would have to guess which host or type counts (RFC
 * 9112, 3.2.2).
 *
 * @throws HEADER_INVALID
 */
function checkHeaders({ rawHeaders, httpVersion }: Request): void {
  let hosts = 0
  let types = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts += 1
    else if (name?.length === 12 && name.toLowerCase() === 'content-type') types += 1
  }
  if (hosts > 1) throw headerInvalid('The header Host is given more than once.')
  if (types > 1) throw headerInvalid('The header Content-Type is given more than once.')
  if (hosts === 0 && httpVersion === '1.1') throw headerInvalid('The header Host is missing; HTTP/1.1 requires it.')
}

/** Time for a client to notice that its request is already answered and to stop sending. */
const DROP_REST_MS = 5000

/**
 * Reads the rest of the body after an early answer. A connection closed at once would lose the answer, and one with
 * unread bytes could not be reused.
 */
function readToTheEnd(request: Request, response: Response): void {
  // Node closes a connection without keep-alive at once, before the rest of the body has come.
  const isLast = !response.shouldKeepAlive
  response.shouldKeepAlive = true
  const done = (): void => {
    if (isLast) request.socket.end()
  }
  response.once('finish', () => {
    if (request.complete) {
      done()
      return
    }
    request.resume()
    const cut = setTimeout(() => request.socket.destroy(), DROP_REST_MS)
    cut.unref()
    request.once('close', () => {
      clearTimeout(cut)
      done()
    })
  })
}

function acceptableRequestId(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' && /^[\x21-\x7e]{1,128}$/.test(header) ? header : undefined
}
