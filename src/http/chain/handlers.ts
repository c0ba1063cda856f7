/** The end of the chain: admission, the handler of the route, and its answer. */
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { MAX_SOURCE_BYTES, sendBytes, sendPieces, type Holding, type Pieces } from '../answers.ts'
import type { AdmittedRequest, SurfaceTag } from '../admission.ts'
import { writeJson } from '../../lib/json/index.ts'
import { inDialect } from '../dialect.ts'
import { writeJsonBytesInTurns } from '../json.ts'
import { JsonText, longText } from '../list.ts'
import { mayBeRepeated, type KeyedRequest, type ReadyAnswer, type Repeats } from '../repeats.ts'
import { Reply, type ApiRequest, type JsonRoute, type StreamRoute } from '../route.ts'
import { respondWithEvents } from '../sse.ts'
import { requireAtLast, requireForStream } from './permission.ts'
import { prepareFor } from './prepare.ts'
import { hasBody, states, type HttpAppOptions, type Shared } from './state.ts'

export function jsonHandler(
  options: HttpAppOptions,
  route: JsonRoute,
  { room, answers, idleMs, repeats }: Shared,
): RequestHandler {
  const prepare = prepareFor(options, route, room)
  const isRepeatable = mayBeRepeated(route)
  return async (request: Request, response: Response, next: NextFunction) => {
    states.get(request)?.observation.routed(route)
    let leave = (): void => undefined
    try {
      const key = options.peers.addressOf(request)
      if (route.isUrgent !== true)
        checkAdmission(request, response, 'request', route.method === 'get' ? () => answers.check(key) : undefined)
      const prepared = await prepare(request, response)
      if (route.isUrgent !== true) leave = admit(request, 'request')
      const state = states.get(request)
      const keyed = isRepeatable ? repeats.keyedRequestOf(route, prepared, state?.bodyDigest ?? '') : undefined
      requireAtLast(route, prepared, keyed === undefined ? undefined : state)
      // Many requests can wait for their credentials at the same time.
      if (route.method === 'get' && route.isUrgent !== true) answers.check(key)
      const write = { holding: answers.begin(key), idleMs }
      if (keyed !== undefined) {
        await send(response, await answerOnce(repeats, route, prepared, keyed, state?.missing), write)
        return
      }
      const answer = await answerOf(route, prepared, write.holding, () => answers.check(key))
      if (!('pieces' in answer)) {
        await send(response, answer, write)
        return
      }
      if (response.headersSent || response.destroyed) return
      // The download may last as long as the client needs, so it counts as a stream.
      leave()
      leave = admit(request, 'stream')
      response.writeHead(answer.status, answer.headers)
      if (request.method === 'HEAD') response.end()
      else await sendPieces(response, answer.pieces, write)
    } catch (error) {
      next(error)
    } finally {
      afterAnswer(response, leave)
    }
  }
}

/** @param missing error: what the request names does not exist */
function answerOnce(
  repeats: Repeats,
  route: JsonRoute,
  prepared: ApiRequest,
  keyed: KeyedRequest,
  missing: unknown,
): Promise<ReadyAnswer> {
  const carryOut = async (): Promise<ReadyAnswer> => {
    if (missing !== undefined) throw missing
    return readyAnswer(route, translated(route, prepared, await route.handler(prepared)))
  }
  const again = async (subject: string | undefined): Promise<ReadyAnswer> =>
    readyAnswer(route, translated(route, prepared, await route.answerAgain?.(prepared, subject)))
  const hasAgain = route.answerAgain !== undefined || route.status === 204
  return repeats.once(keyed, carryOut, hasAgain ? again : undefined)
}

/** In the names that the client uses. Bodies that come back as they were sent, and texts, are no records. */
function translated({ rawBody, mediaType }: JsonRoute, { dialect = 'svc' }: ApiRequest, answer: unknown): unknown {
  return rawBody !== undefined || mediaType !== undefined ? answer : inDialect(dialect, answer)
}

interface LongAnswer extends Omit<ReadyAnswer, 'bytes'> {
  pieces: Pieces
}

/**
 * What the handler returned is free as soon as its bytes are made.
 *
 * @param checkRoom called before the first piece of a long answer is made: its handler may have waited
 */
async function answerOf(
  route: JsonRoute,
  prepared: ApiRequest,
  holding: Holding,
  checkRoom: () => void,
): Promise<ReadyAnswer | LongAnswer> {
  const answer = translated(route, prepared, await route.handler(prepared))
  const { body: made, status, headers } = partsOf(route, answer)
  const body = route.method === 'get' && route.mediaType === undefined ? inPieces(made) : made
  if (!isChunks(body)) return readyAnswer(route, answer)
  if (route.method === 'get') checkRoom()
  if (body instanceof JsonText) {
    const begun = body.begin()
    if ('whole' in begun) return readyAnswer(route, new Reply(begun.whole, { status, headers }))
    holding.set(MAX_SOURCE_BYTES + begun.length + body.kept)
  }
  const contentType = route.mediaType ?? (body instanceof JsonText ? json : octets)
  return { status, headers: { 'Content-Type': contentType, ...headers }, pieces: body }
}

/** The value itself if it is short. */
function inPieces(value: unknown): unknown {
  const text = isChunks(value) ? undefined : longText(value)
  return text === undefined ? value : new JsonText(text)
}

/** The body, status and headers of a handler's answer. */
function partsOf(
  route: JsonRoute,
  answer: unknown,
): { body: unknown; status: number; headers: Record<string, string> } {
  const { body, status, headers } = answer instanceof Reply ? answer : new Reply(answer)
  return { body, status: status ?? route.status ?? 200, headers }
}

/**
 * A long text is written in turns of the event loop. Long answers of reads are sent in pieces instead: hundreds of them
 * may be admitted in one turn, and each must hold what it has made before the next one is.
 */
function readyAnswer(route: JsonRoute, answer: unknown): ReadyAnswer | Promise<ReadyAnswer> {
  const { body, status, headers } = partsOf(route, answer)
  const isText = typeof body === 'string' && route.mediaType !== undefined
  const contentType = isText || Buffer.isBuffer(body) ? (route.mediaType ?? octets) : json
  const answerWith = (bytes: Buffer | undefined): ReadyAnswer => ({
    status,
    headers: {
      ...(bytes === undefined ? {} : { 'Content-Type': contentType }),
      ...(status === 204 ? {} : { 'Content-Length': String(bytes?.length ?? 0) }),
      ...headers,
    },
    bytes,
  })
  if (body === undefined || Buffer.isBuffer(body)) return answerWith(body)
  if (isText) return answerWith(Buffer.from(body))
  if (route.method === 'get') return answerWith(Buffer.from(writeJson(body)))
  return writeJsonBytesInTurns(body).then(answerWith)
}

async function send(
  response: Response,
  { status, headers, bytes }: ReadyAnswer,
  write: { holding: Holding; idleMs: number },
): Promise<void> {
  if (response.headersSent || response.destroyed) return
  response.writeHead(status, headers)
  await sendBytes(response, response.req.method === 'HEAD' ? undefined : bytes, write)
}

/** Whether a handler yields its text in pieces. The server reads it only as fast as the client accepts it. */
function isChunks(body: unknown): body is AsyncIterable<string | Uint8Array> {
  return typeof body === 'object' && body !== null && Symbol.asyncIterator in body
}

const json = 'application/json; charset=UTF-8'
const octets = 'application/octet-stream'

export function streamHandler(options: HttpAppOptions, route: StreamRoute, { room, answers }: Shared): RequestHandler {
  const prepare = prepareFor(options, route, room)
  return async (request: Request, response: Response, next: NextFunction) => {
    states.get(request)?.observation.routed(route)
    let leave = (): void => undefined
    try {
      const key = options.peers.addressOf(request)
      checkAdmission(request, response, 'stream', () => answers.check(key))
      const prepared = await prepare(request, response)
      leave = admit(request, 'stream')
      const isAllowed = requireForStream(route, prepared)
      const run = await route.handler(prepared)
      const revoked = new AbortController()
      const unwatch = options.access.watch(prepared.principal, { isAllowed, end: () => revoked.abort() })
      const holding = answers.begin(key)
      const queue = { hold: (bytes: number) => holding.set(bytes), hasRoom: () => answers.hasRoom(key) }
      await respondWithEvents(response, { ...options.events, queue }, run, revoked.signal).finally(unwatch)
    } catch (error) {
      next(error)
    } finally {
      afterAnswer(response, leave)
    }
  }
}

/** Checks the limits before the server reads a body for a request that it would refuse. @throws QUEUE_FULL */
function checkAdmission(request: Request, response: Response, kind: AdmittedRequest, checkAnswers?: () => void): void {
  const { admission, surface, socket } = request as Request & SurfaceTag // the listener set it
  try {
    admission?.check(socket, surface, kind)
    checkAnswers?.()
  } catch (error) {
    // Frees the place of the connection for other clients.
    if (!hasBody(request)) response.shouldKeepAlive = false
    throw error
  }
}

/**
 * Counts a request once its body is complete, so that slow senders take no place.
 *
 * @returns a function to call after the handler and the answer have finished. @throws QUEUE_FULL
 */
function admit(request: Request, kind: AdmittedRequest): () => void {
  const { admission, surface } = request as Request & SurfaceTag // the listener set it
  return admission?.begin(surface, kind) ?? (() => undefined)
}

/** Node emits no second `close` for a client that has already disconnected. */
function afterAnswer(response: Response, then: () => void): void {
  if (response.closed) then()
  else response.once('close', then)
}
