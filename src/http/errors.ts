/** The one place that answers errors. */
import { randomUUID } from 'node:crypto'
import type { ErrorRequestHandler, Request } from 'express'
import {
  headersTooLarge,
  httpStatusOf,
  internal,
  isAppError,
  pathUndecodable,
  requestMalformed,
  requestTimedOut,
  type AppError,
} from '../core/errors.ts'
import { type Log, type LogFields, createRepeatLimit } from '../lib/log/index.ts'
import { writeJson } from '../lib/json/index.ts'
// Importing this module reads all its exports, and one of them loads an unused HTTP client of 7 MB.
const { STATUS_CODES, maxHeaderSize } = process.getBuiltinModule('node:http')

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
    // A cut inside a character leaves a lone surrogate, which strict JSON readers refuse.
    faultstring: error.message.toWellFormed(),
    code: error.code,
    ...(conflictId === undefined ? {} : { 'conflict-id': conflictId }),
    ...(Object.keys(details).length === 0 ? {} : { details }),
  }
}

/** The server is starting, restarting or busy: each passes within seconds. */
const RETRY_AFTER_SECONDS = 5

/** @param tell returns the log for a request; `about`: who sends it, and from where */
export function createErrorResponder(tell: (request: Request) => { log: Log; about: LogFields }): ErrorRequestHandler {
  // A flood of refused requests must not flood the log.
  const refusals = createRepeatLimit(10, () => performance.now())
  // Express recognises error handlers by their four parameters.
  return (thrown: unknown, request, response, next) => {
    const error = toAppError(thrown, request)
    const { log, about } = tell(request)
    if (error.kind === 'internal') {
      log.error('request.failed', 'A request failed unexpectedly', {
        ...about,
        method: request.method,
        path: pathOf(request),
        error: error.cause ?? error,
      })
    } else if (isTemporary(error)) {
      const kept = refusals(error.code)
      if (kept !== undefined) {
        log.warning('request.refused', error.message, {
          ...about,
          code: error.code,
          error: error.cause,
          ...(kept === 0 ? {} : { lines_kept_back: kept }),
        })
      }
    } else if (error.code === 'PERMISSION_DENIED') {
      log.audit('permission.denied', error.message, {
        ...about,
        method: request.method,
        path: pathOf(request),
        ...error.details,
      })
    }
    if (response.headersSent || response.destroyed) {
      response.destroy()
      return
    }
    const { status, headers, bytes } = errorAnswer(error)
    response.writeHead(status, headers)
    response.end(bytes)
    void next
  }
}

export function errorAnswer(error: AppError): { status: number; headers: Record<string, string>; bytes: Buffer } {
  const bytes = Buffer.from(writeJson(errorBody(error)))
  return {
    status: httpStatusOf[error.kind],
    headers: {
      'Content-Type': 'application/json; charset=UTF-8',
      'Content-Length': String(bytes.length),
      ...retryAfter(error),
    },
    bytes,
  }
}

function isTemporary({ kind }: AppError): boolean {
  return kind === 'unavailable' || kind === 'storage_full'
}

function retryAfter(error: AppError): Record<string, string> {
  if (isTemporary(error)) return { 'Retry-After': String(RETRY_AFTER_SECONDS) }
  const seconds = error.details?.['retry_after']
  return typeof seconds === 'number' ? { 'Retry-After': String(seconds) } : {}
}

/** The answer to bytes that are not a request. The connection cannot be used after it. */
export const answerToUnreadable = (failure: Error & { code?: string }): string => answerUnread(unreadable(failure))

/** The answer to a request that the server does not read, as bytes. The connection is closed after it. */
export function answerUnread(error: AppError): string {
  const body = writeJson(errorBody(error))
  const status = httpStatusOf[error.kind]
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'Content-Type: application/json; charset=UTF-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...Object.entries(retryAfter(error)).map((header) => header.join(': ')),
    'X-Content-Type-Options: nosniff',
    `X-Request-ID: ${randomUUID()}`,
    'Connection: close',
    '',
    body,
  ].join('\r\n')
}

function unreadable({ code, message }: Error & { code?: string }): AppError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return headersTooLarge(maxHeaderSize)
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return requestTimedOut()
    default:
      return requestMalformed(message.replace(/^Parse Error: /, ''))
  }
}

function toAppError(thrown: unknown, request: Request): AppError {
  if (isAppError(thrown)) return thrown
  // Express throws this itself for a path variable that cannot be decoded.
  if (thrown instanceof URIError) return pathUndecodable(request.path)
  return internal(thrown)
}

/** The pattern of the route, if any: the path itself may hold a token or an API key. */
function pathOf(request: Request): string {
  const route: unknown = request.route
  const pattern = typeof route === 'object' && route !== null && 'path' in route ? route.path : undefined
  return typeof pattern === 'string' ? pattern : request.path
}
