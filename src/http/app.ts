/** The one Express app behind all listeners: a route table in, answers out. */
import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import express, { type Express, type NextFunction, type Request, type RequestHandler, type Response } from 'express'
import {
  bodyInvalid,
  headerInvalid,
  methodNotAllowed,
  routeUnknown,
  shuttingDown,
  starting,
  tlsRequired,
} from '../core/errors.ts'
import type { Log } from '../lib/log/index.ts'
import { noMetrics, type Metrics } from '../core/metrics.ts'
import { compileSchema, type Check } from '../lib/schema/index.ts'
import { hasCode } from '../lib/process/index.ts'
import type { Admitted, SurfaceTag } from './admission.ts'
import { createAllowance, type Allowance } from './allowance.ts'
import { noRights, type AccessControl } from './authenticate.ts'
import { createBodyReader, type RawBody } from './body.ts'
import { createErrorResponder } from './errors.ts'
import { answerHealth, isHealthPath } from './health.ts'
import { jsonTypeOf } from './json.ts'
import { locate } from './locate.ts'
import { notObserved, observe, type Observation } from './observe.ts'
import type { OriginPolicy } from './origin.ts'
import type { Peers } from './peers.ts'
import { readQuery } from './query.ts'
import { createRepeats, mayBeRepeated, repeatKeyOf, type ReadyAnswer, type Repeats } from './repeats.ts'
import {
  Reply,
  surfaces,
  type ApiRequest,
  type JsonRoute,
  type Principal,
  type RawRequest,
  type Rights,
  type Route,
  type StreamRoute,
  type Surface,
} from './route.ts'
import { respondWithEvents, type SinkOptions } from './sse.ts'
import { isGlobalPermission, isPermission, type Resource } from '../core/permissions.ts'

export interface HttpAppOptions {
  routes: Route[]
  access: AccessControl
  origins: OriginPolicy
  peers: Peers
  maxBodyBytes: number
  events: SinkOptions
  /** By the listener that a request came by. */
  logs: Readonly<Record<Surface, Log>>
  /** Default: nobody wants to know. */
  metrics?: Metrics
  /** `auth.use_ssl`: the auth surface is for clients that came over TLS, on whatever listener; default not. */
  authNeedsTls?: boolean
  /** True until the server can answer; default never. */
  isStarting?(): boolean
  /** Why `/readyz` says no, besides starting and stopping, a word for each reason; default: nothing. */
  notReady?(): readonly string[]
  /** True once the server began to stop. */
  isStopping(): boolean
}

/** What the chain knows of a request before its route runs. */
interface RequestState {
  requestId: string
  query: URLSearchParams
  observation: Observation
}

const states = new WeakMap<Request, RequestState>()

const securityHeaders = {
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'X-XSS-Protection': '0',
  'Referrer-Policy': 'no-referrer',
}

export function createHttpApp(options: HttpAppOptions): Express {
  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  app.enable('case sensitive routing')
  app.set('query parser', false)

  app.use(identify(options))
  const shared: Shared = { room: createBodyRoom(options.maxBodyBytes), repeats: createRepeats() }
  for (const surface of surfaces) {
    app.use(`/${surface}`, createRouter(options, surface, shared))
  }
  app.use((): void => {
    throw routeUnknown()
  })
  app.use(
    createErrorResponder((request) => {
      const { requestId = '-', observation } = states.get(request) ?? {}
      const { surface } = request as Request & SurfaceTag // the listener set it
      const about = { request_id: requestId, user: observation?.user, remote_address: options.peers.addressOf(request) }
      return { log: options.logs[surface], about }
    }),
  )
  return app
}

/** Request id, CORS, origin check; then the address is rewritten to `/<surface><path>` for the routers. */
function identify(options: HttpAppOptions): RequestHandler {
  const { logs, metrics = noMetrics, peers } = options
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
    states.set(request, { requestId, query, observation })

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
    const { host, origin } = request.headers
    options.origins.check(request.method, origin, { host, isSecure: options.peers.isSecure(request) })
    const location = locate(surface, rawPath)
    if (location.surface === 'auth' && options.authNeedsTls === true && !options.peers.isSecure(request)) {
      throw tlsRequired()
    }
    request.url = `/${location.surface}${location.path}`
    next()
  }
}

function reasonsNotReady(options: HttpAppOptions): readonly string[] {
  if (options.isStopping()) return ['stopping']
  return options.isStarting?.() === true ? ['starting'] : (options.notReady?.() ?? [])
}

/**
 * With several hosts it would be for each reader to guess who is asked (RFC 9112, 3.2), and with several types, what is
 * sent.
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

function hasBody({ headers }: Request): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'
}

/** Time for a client to see that its request is answered already, and to stop sending the rest of it. */
const DROP_REST_MS = 5000

/**
 * Reads on after an answer that did not need the whole body: a connection closed at once would take the answer with it,
 * and one left unread could not be used again.
 */
function readToTheEnd(request: Request, response: Response): void {
  // For a client that asked to close the connection, Node would do so at once, rest or not.
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

function createRouter(options: HttpAppOptions, surface: Surface, shared: Shared): express.Router {
  const router = express.Router({ caseSensitive: true, strict: true })
  const byPath = new Map<string, Route[]>()
  for (const route of options.routes) {
    if (route.surface !== surface) continue
    for (const path of [route.path, ...(route.aliases ?? [])]) {
      byPath.set(path, [...(byPath.get(path) ?? []), route])
    }
  }
  // Literal segments before variables: `/executions/views/filters` is not an execution called `views`.
  const paths = [...byPath.keys()].sort((a, b) => specificity(b).localeCompare(specificity(a)))
  for (const path of paths) {
    const at = router.route(path)
    const methods: string[] = []
    for (const route of byPath.get(path) ?? []) {
      if (route.kind === 'stream') {
        // Without a body there is nothing to follow, and the response would never end.
        at.head(refuseMethod)
        at[route.method](streamHandler(options, route, shared))
      } else {
        at[route.method](jsonHandler(options, route, shared))
      }
      methods.push(route.method.toUpperCase())
    }
    at.all(refuseMethod)

    function refuseMethod(request: Request, response: Response): void {
      response.setHeader('Allow', methods.join(', '))
      throw methodNotAllowed(request.method, methods)
    }
  }
  return router
}

function specificity(path: string): string {
  return path
    .split('/')
    .map((segment) => (segment.startsWith('*') ? '0' : segment.startsWith(':') ? '1' : '2'))
    .join('')
}

const nobody: Principal = { user: '', isAdmin: false, method: 'none' }

type Prepare = (request: Request, response: Response) => Promise<ApiRequest>

/** Bodies of requests under way, in multiples of the largest allowed one. */
const MAX_BODIES = 16
/** The same of strangers who may prove themselves. */
const MAX_STRANGE_BODIES = 16
const MAX_STRANGE_BODIES_PER_ADDRESS = 2

/** Memory for bodies, until their requests are answered. */
interface BodyRoom {
  known: Allowance
  strange: Allowance
}

/** What the handlers of all listeners share. */
interface Shared {
  room: BodyRoom
  repeats: Repeats
}

function createBodyRoom(maxBodyBytes: number): BodyRoom {
  const totalBytes = MAX_BODIES * maxBodyBytes
  return {
    known: createAllowance({ what: 'bytes of requests', totalBytes, bytesPerKey: totalBytes }),
    strange: createAllowance({
      what: 'bytes of requests that are not proven yet',
      totalBytes: MAX_STRANGE_BODIES * maxBodyBytes,
      bytesPerKey: MAX_STRANGE_BODIES_PER_ADDRESS * maxBodyBytes,
    }),
  }
}

/** Before a body is read, which a request in vain should not cost. @throws QUEUE_FULL */
function checkAdmission(request: Request, response: Response, kind: Admitted): void {
  const { admission, surface, socket } = request as Request & SurfaceTag // the listener set it
  try {
    admission?.check(socket, surface, kind)
  } catch (error) {
    // Others can use the place of the connection better, until the client comes again.
    if (!hasBody(request)) response.shouldKeepAlive = false
    throw error
  }
}

/**
 * Takes in a request that has come as a whole: senders that hold back a body take no place.
 *
 * @returns takes it out again, which is due when its handler and its answer are through. @throws QUEUE_FULL
 */
function admit(request: Request, kind: Admitted): () => void {
  const { admission, surface } = request as Request & SurfaceTag // the listener set it
  return admission?.begin(surface, kind) ?? (() => undefined)
}

/** Node emits no second `close` for a client that has gone before. */
function afterAnswer(response: Response, then: () => void): void {
  if (response.closed) then()
  else response.once('close', then)
}

/** Clients that have not taken all of their answer by then are cut: it is kept in memory for them. */
const TAKE_ANSWER_MS = 300_000

function cutWhoDoesNotTake(response: Response): void {
  const cut = setTimeout(() => response.destroy(), TAKE_ANSWER_MS)
  cut.unref()
  response.once('close', () => clearTimeout(cut))
}

/**
 * The fixed chain: credentials → permission → body → both again → schema. A stranger's body is not even read, unless it may
 * be the proof of who sends it.
 */
function prepareFor(options: HttpAppOptions, route: Route, room: BodyRoom): Prepare {
  const { access, maxBodyBytes, peers } = options
  const reader = createBodyReader(maxBodyBytes)
  let check: Check | undefined
  const declared = route.query ?? {}
  const readsBody = route.body !== undefined || route.rawBody !== undefined
  return async (request, response) => {
    const state = states.get(request)
    if (state === undefined) throw routeUnknown()
    // What one caller may read, caches must not give to another; some answers are credentials themselves.
    if (route.permission !== 'public') response.setHeader('Cache-Control', 'no-store')
    const params = pathVariables(request)
    const provesItself = 'provesItself' in route && route.provesItself?.({ params, headers: request.headers }) === true
    const isStranger = provesItself && !access.hasCredential(request)
    const identify = async (): Promise<Pick<ApiRequest, 'principal' | 'rights'>> => {
      if (isStranger) return { principal: nobody, rights: noRights }
      const principal = await identifyCaller(access, route, request, response)
      state.observation.user = principal.user
      const rights = access.rightsOf(principal)
      if (!provesItself) requireGlobally(route, rights)
      return { principal, rights }
    }
    const prepared: ApiRequest = {
      ...(await identify()),
      params,
      query: readQuery(declared, state.query),
      body: undefined,
      headers: request.headers,
      requestId: state.requestId,
      remoteAddress: peers.addressOf(request),
      isSecure: peers.isSecure(request),
    }
    const requireOnResource = (): void => {
      if ('resource' in route && !provesItself) requireOn(route, prepared, () => route.resource(prepared))
    }
    if (readsBody) {
      requireOnResource()
      const share = (isStranger ? room.strange : room.known).begin(prepared.remoteAddress)
      response.once('close', () => share.end())
      const body = route.body === undefined ? undefined : await reader.read(request, share)
      const raw = route.rawBody === undefined ? undefined : await reader.readRaw(request, share)
      // A sender can hold the body back until the credential is taken away.
      if (!access.isCurrent(prepared.principal)) Object.assign(prepared, await identify())
      else if (!provesItself) requireGlobally(route, prepared.rights)
      requireOnResource()
      if (raw !== undefined) prepared.raw = rawRequest(raw, request, response)
      if (route.body !== undefined) {
        // Compiled for the first request that needs it: all of them at once would double the start-up time.
        check ??= compileSchema(route.body)
        prepared.body = checkBody(body, check)
      }
      if ('resourceOfBody' in route) requireOn(route, prepared, () => route.resourceOfBody(prepared.body, prepared))
    }
    return prepared
  }
}

function rawRequest(body: RawBody, request: Request, response: Response): RawRequest {
  return {
    ...body,
    headers: request.rawHeaders,
    onClose(listener) {
      response.once('close', listener)
      return () => response.off('close', listener)
    },
  }
}

/** @throws BODY_INVALID */
function checkBody(body: unknown, check: Check): unknown {
  const problem =
    typeof body === 'object' && body !== null && !Array.isArray(body)
      ? check(body)
      : `Input body needs to be an object, got: ${jsonTypeOf(body)}`
  if (problem !== undefined) throw bodyInvalid(problem)
  return body
}

/** What is needed whatever the request is about. @throws PERMISSION_DENIED */
function requireGlobally(route: Route, rights: Rights): void {
  const { permission } = route
  if (permission === 'administrator') rights.requireAdministrator()
  else if (isPermission(permission) && isGlobalPermission(permission) && !('resource' in route)) {
    rights.require(permission)
  }
  if ('besides' in route && route.besides !== undefined) rights.require(route.besides)
}

/**
 * The permission on the one resource a request is about. Only a caller without all rights costs the look at it.
 *
 * @throws PERMISSION_DENIED, and what finding the resource throws
 */
function requireOn({ permission }: Route, { rights }: ApiRequest, find: () => Resource): void {
  if (!isPermission(permission) || rights.may(permission)) return
  rights.require(permission, find())
}

/** For routes without a body; see `Guard`. */
function requireAtLast(route: Route, request: ApiRequest): void {
  if (route.body !== undefined || route.rawBody !== undefined || !('resource' in route)) return
  requireOn(route, request, () => route.resource(request))
}

/**
 * For answers that go on.
 *
 * @returns whether the caller still may have it
 * @throws PERMISSION_DENIED, and what finding the resource throws
 */
function requireForStream(route: StreamRoute, request: ApiRequest): () => boolean {
  const { permission } = route
  // Found once: later, `last` may be another one.
  const resource =
    'resource' in route
      ? route.resource(request)
      : 'resourceOfBody' in route
        ? route.resourceOfBody(request.body, request)
        : undefined
  const require = (): void => {
    requireGlobally(route, request.rights)
    if (resource !== undefined && isPermission(permission)) request.rights.require(permission, resource)
  }
  require()
  return () => {
    try {
      require()
      return true
    } catch {
      return false
    }
  }
}

function identifyCaller(
  access: AccessControl,
  { permission }: Route,
  request: Request,
  response: Response,
): Promise<Principal> | Principal {
  switch (permission) {
    case 'public':
      return nobody
    case 'login':
      return access.login(request, response)
    default:
      return access.authenticate(request, response)
  }
}

function pathVariables(request: Request): Record<string, string> {
  const variables: Record<string, string> = {}
  for (const [name, value] of Object.entries(request.params)) {
    variables[name] = Array.isArray(value) ? value.join('/') : value
  }
  return variables
}

function jsonHandler(options: HttpAppOptions, route: JsonRoute, { room, repeats }: Shared): RequestHandler {
  const prepare = prepareFor(options, route, room)
  const isRepeatable = mayBeRepeated(route)
  return async (request: Request, response: Response, next: NextFunction) => {
    states.get(request)?.observation.routed(route)
    let leave = (): void => undefined
    try {
      if (route.isUrgent !== true) checkAdmission(request, response, 'request')
      const prepared = await prepare(request, response)
      if (route.isUrgent !== true) leave = admit(request, 'request')
      requireAtLast(route, prepared)
      const key = isRepeatable ? repeatKeyOf(route, prepared) : undefined
      if (key !== undefined) {
        send(response, await repeats.once(key, async () => readyAnswer(route, await route.handler(prepared))))
        return
      }
      const answer: unknown = await route.handler(prepared)
      const { body, status, headers } = partsOf(route, answer)
      if (!isChunks(body)) {
        send(response, readyAnswer(route, answer))
        return
      }
      if (response.headersSent || response.destroyed) return
      // It may take as long as its reader likes.
      leave()
      leave = admit(request, 'stream')
      response.writeHead(status, { 'Content-Type': route.mediaType ?? octets, ...headers })
      await pipeline(Readable.from(body, { objectMode: true, highWaterMark: 1 }), response)
    } catch (error) {
      // A client that does not wait for the end of its answer is no failure.
      if (!hasCode(error, 'ERR_STREAM_PREMATURE_CLOSE')) next(error)
    } finally {
      afterAnswer(response, leave)
    }
  }
}

/** What a handler has answered with. */
function partsOf(
  route: JsonRoute,
  answer: unknown,
): { body: unknown; status: number; headers: Record<string, string> } {
  const { body, status, headers } = answer instanceof Reply ? answer : new Reply(answer)
  return { body, status: status ?? route.status ?? 200, headers }
}

function readyAnswer(route: JsonRoute, answer: unknown): ReadyAnswer {
  const { body, status, headers } = partsOf(route, answer)
  const isText = typeof body === 'string' && route.mediaType !== undefined
  const bytes =
    body === undefined ? undefined : Buffer.isBuffer(body) ? body : Buffer.from(isText ? body : JSON.stringify(body))
  const contentType = isText || Buffer.isBuffer(body) ? (route.mediaType ?? octets) : json
  return {
    status,
    headers: {
      ...(bytes === undefined ? {} : { 'Content-Type': contentType }),
      ...(status === 204 ? {} : { 'Content-Length': String(bytes?.length ?? 0) }),
      ...headers,
    },
    bytes,
  }
}

function send(response: Response, { status, headers, bytes }: ReadyAnswer): void {
  if (response.headersSent || response.destroyed) return
  response.writeHead(status, headers)
  response.end(bytes)
  if (response.writableLength > 0) cutWhoDoesNotTake(response)
}

/** A handler that yields its text piece by piece is read only as fast as the client takes it. */
function isChunks(body: unknown): body is AsyncIterable<string | Uint8Array> {
  return typeof body === 'object' && body !== null && Symbol.asyncIterator in body
}

const json = 'application/json; charset=UTF-8'
const octets = 'application/octet-stream'

function streamHandler(options: HttpAppOptions, route: StreamRoute, { room }: Shared): RequestHandler {
  const prepare = prepareFor(options, route, room)
  return async (request: Request, response: Response, next: NextFunction) => {
    states.get(request)?.observation.routed(route)
    let leave = (): void => undefined
    try {
      checkAdmission(request, response, 'stream')
      const prepared = await prepare(request, response)
      leave = admit(request, 'stream')
      const isAllowed = requireForStream(route, prepared)
      const run = await route.handler(prepared)
      const revoked = new AbortController()
      const unwatch = options.access.watch(prepared.principal, { isAllowed, end: () => revoked.abort() })
      await respondWithEvents(response, options.events, run, revoked.signal).finally(unwatch)
    } catch (error) {
      next(error)
    } finally {
      afterAnswer(response, leave)
    }
  }
}
