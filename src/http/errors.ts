/** The one place that answers errors. */
import type { ErrorRequestHandler, Request } from 'express'
import { httpStatusOf, internal, isAppError, pathUndecodable, type AppError } from '../errors.ts'
import type { Log } from '../log.ts'

export interface ErrorBody {
  faultstring: string
  code: string
  /** On 409: id of the object that exists. */
  'conflict-id'?: unknown
  details?: Record<string, unknown>
}

/** The body of an error answer; clients look for `conflict-id` beside the message. */
function errorBody(error: AppError): ErrorBody {
  const { 'conflict-id': conflictId, ...details } = error.details ?? {}
  return {
    faultstring: error.message,
    code: error.code,
    ...(conflictId === undefined ? {} : { 'conflict-id': conflictId }),
    ...(Object.keys(details).length === 0 ? {} : { details }),
  }
}

/** Whatever is unavailable is starting, restarting or busy. */
const RETRY_AFTER_SECONDS = 5

export function createErrorResponder(log: Log, requestIdOf: (request: Request) => string): ErrorRequestHandler {
  // Express tells error handlers from others by their four parameters.
  return (thrown: unknown, request, response, next) => {
    const error = toAppError(thrown, request)
    if (error.kind === 'internal') {
      log.error('request.failed', 'A request failed unexpectedly', {
        request_id: requestIdOf(request),
        method: request.method,
        path: pathOf(request),
        error: error.cause ?? error,
      })
    } else if (error.kind === 'unavailable') {
      log.warning('request.refused', error.message, {
        request_id: requestIdOf(request),
        code: error.code,
        error: error.cause,
      })
    }
    if (response.headersSent || response.destroyed) {
      response.destroy()
      return
    }
    const body = Buffer.from(JSON.stringify(errorBody(error)))
    response.writeHead(httpStatusOf[error.kind], {
      'Content-Type': 'application/json; charset=UTF-8',
      'Content-Length': String(body.length),
      ...(error.kind === 'unavailable' ? { 'Retry-After': String(RETRY_AFTER_SECONDS) } : {}),
    })
    response.end(body)
    void next
  }
}

function toAppError(thrown: unknown, request: Request): AppError {
  if (isAppError(thrown)) return thrown
  // Express throws this itself for a path variable that cannot be decoded.
  if (thrown instanceof URIError) return pathUndecodable(request.path)
  return internal(thrown)
}

/** The pattern of the route where there is one: the path itself may hold a token or an API key. */
function pathOf(request: Request): string {
  const route: unknown = request.route
  const pattern = typeof route === 'object' && route !== null && 'path' in route ? route.path : undefined
  return typeof pattern === 'string' ? pattern : request.path
}
