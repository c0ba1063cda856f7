/** The end of the chain: admission, the handler of the route, and its answer. */
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { hasCode } from '../../lib/process/index.ts'
import type { AdmittedRequest, SurfaceTag } from '../admission.ts'
import { mayBeRepeated, repeatKeyOf, type ReadyAnswer } from '../repeats.ts'
import { Reply, type JsonRoute, type StreamRoute } from '../route.ts'
import { respondWithEvents } from '../sse.ts'
import { requireAtLast, requireForStream } from './permission.ts'
import { prepareFor } from './prepare.ts'
import { hasBody, states, type HttpAppOptions, type Shared } from './state.ts'
import { writeJson } from '../../lib/json/index.ts'

export function jsonHandler(options: HttpAppOptions, route: JsonRoute, { room, repeats }: Shared): RequestHandler {
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
      // The download may last as long as the client needs, so it counts as a stream.
      leave()
      leave = admit(request, 'stream')
      response.writeHead(status, { 'Content-Type': route.mediaType ?? octets, ...headers })
      await pipeline(Readable.from(body, { objectMode: true, highWaterMark: 1 }), response)
    } catch (error) {
      // A client that disconnects before the end of its answer is not a failure.
      if (!hasCode(error, 'ERR_STREAM_PREMATURE_CLOSE')) next(error)
    } finally {
      afterAnswer(response, leave)
    }
  }
}

/** The body, status and headers of a handler's answer. */
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
    body === undefined ? undefined : Buffer.isBuffer(body) ? body : Buffer.from(isText ? body : writeJson(body))
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

/** Whether a handler yields its text in pieces. The server reads it only as fast as the client accepts it. */
function isChunks(body: unknown): body is AsyncIterable<string | Uint8Array> {
  return typeof body === 'object' && body !== null && Symbol.asyncIterator in body
}

const json = 'application/json; charset=UTF-8'
const octets = 'application/octet-stream'

export function streamHandler(options: HttpAppOptions, route: StreamRoute, { room }: Shared): RequestHandler {
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

/** Checks the limits before the server reads a body for a request that it would refuse. @throws QUEUE_FULL */
function checkAdmission(request: Request, response: Response, kind: AdmittedRequest): void {
  const { admission, surface, socket } = request as Request & SurfaceTag // the listener set it
  try {
    admission?.check(socket, surface, kind)
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

/** Answers wait in memory; the server cuts a client that has not read its answer after this time. */
const TAKE_ANSWER_MS = 300_000

function cutWhoDoesNotTake(response: Response): void {
  const cut = setTimeout(() => response.destroy(), TAKE_ANSWER_MS)
  cut.unref()
  response.once('close', () => clearTimeout(cut))
}
