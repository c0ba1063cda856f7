/** Errors of a request itself: address, headers, body, query, and requests that the server cannot take now. */
import { adviceOnName } from '../compat/index.ts'
import { shown } from '../../lib/text/index.ts'
import { AppError } from './app-error.ts'

// Requests

/** Behind a message without a full stop. */
function adviceAfter(ref: string): string {
  const advice = adviceOnName('triggerType', ref)
  return advice === '' ? '' : `.${advice}`
}

export const routeUnknown = (): AppError => new AppError('ROUTE_UNKNOWN', 'The resource could not be found.')

export const methodNotAllowed = (method: string, allowed: readonly string[]): AppError =>
  new AppError('METHOD_NOT_ALLOWED', `Method ${shown(method)} is not available here; use ${allowed.join(', ')}.`, {
    details: { allowed },
  })

export const idMissing = (method: string, path: string): AppError =>
  new AppError('ROUTE_UNKNOWN', `The path ends without an id: use ${method} /v1${path}.`)

export const requestMalformed = (why: string): AppError =>
  new AppError('REQUEST_MALFORMED', `The request is not valid HTTP: ${shown(why)}`)

export const headersTooLarge = (maxBytes: number): AppError =>
  new AppError(
    'HEADERS_TOO_LARGE',
    `The address and the headers of the request together exceed ${maxBytes} bytes; shorten the query or the headers.`,
    { details: { max_bytes: maxBytes } },
  )

export const requestTimedOut = (): AppError =>
  new AppError('REQUEST_TIMED_OUT', 'The request took too long to arrive; send it again.')

export const pathUndecodable = (path: string): AppError =>
  new AppError(
    'PATH_UNDECODABLE',
    `Failed to parse request path "${shown(path)}": it is not valid percent-encoded UTF-8.`,
  )

export const bodyMalformed = (why: string): AppError =>
  new AppError('BODY_MALFORMED', `Failed to parse request body: ${why}`)

export const bodyTooLarge = (maxBytes: number): AppError =>
  new AppError('BODY_TOO_LARGE', `The request body is larger than ${maxBytes} bytes.`, {
    details: { max_bytes: maxBytes },
  })

export const contentTypeUnsupported = (type: string): AppError =>
  new AppError(
    'CONTENT_TYPE_UNSUPPORTED',
    `Failed to parse request body: Unsupported Content-Type: "${shown(type)}". Send application/json.`,
  )

export const bodyInvalid = (message: string, details?: Record<string, unknown>): AppError =>
  new AppError('BODY_INVALID', message, details === undefined ? {} : { details })

export const queryInvalid = (message: string): AppError => new AppError('QUERY_INVALID', message)

export const headerInvalid = (message: string): AppError => new AppError('HEADER_INVALID', message)

export const limitAboveMaximum = (limit: number, maximum: number): AppError =>
  new AppError('LIMIT_ABOVE_MAXIMUM', `Limit "${limit}" specified, maximum value is "${maximum}"`)

export const limitNeedsAdmin = (): AppError =>
  new AppError('LIMIT_NEEDS_ADMIN', 'Administrator access is required to retrieve all records with limit=-1.')

export const resourceNotFound = (id: string): AppError =>
  new AppError(
    'RESOURCE_NOT_FOUND',
    `Unable to identify resource with id "${shown(id)}".${adviceOnName('triggerType', id)}`,
  )

export const contentNotFound = (refOrId: string): AppError =>
  new AppError(
    'CONTENT_NOT_FOUND',
    `Resource with a reference or id "${shown(refOrId)}" not found${adviceAfter(refOrId)}`,
  )

export const namedNotFound = (nameOrId: string): AppError =>
  new AppError('NAMED_NOT_FOUND', `Resource with a name or id "${shown(nameOrId)}" not found`)

export const starting = (): AppError => new AppError('STARTING', 'The server is starting; try again in a moment.')

export const shuttingDown = (): AppError =>
  new AppError('SHUTTING_DOWN', 'The server is shutting down; try again in a moment.')

export const queueFull = (what: string, limit: number): AppError =>
  new AppError('QUEUE_FULL', `Too many ${what} are waiting (limit ${limit}); try again later.`)

export const internal = (cause: unknown): AppError => new AppError('INTERNAL', 'Internal Server Error', { cause })

/**
 * @param other what differs: `body`
 * @param subject id of what the first request created or changed
 */
export const idempotencyKeyReused = (other: string, subject: string | undefined): AppError =>
  new AppError(
    'IDEMPOTENCY_KEY_REUSED',
    `This Idempotency-Key was sent with another ${other} within the last 24 hours; choose a new key for a new request.`,
    conflictWith(subject),
  )

export const idempotencyKeyInUse = (seconds: number): AppError =>
  new AppError(
    'IDEMPOTENCY_KEY_IN_USE',
    'The first request with this Idempotency-Key has no answer yet; send the request again with the same key later.',
    { details: { retry_after: seconds } },
  )

/** @param subject as above, or nothing any more */
export const idempotencyAnswerLost = (subject: string | undefined): AppError =>
  new AppError(
    'IDEMPOTENCY_ANSWER_LOST',
    'The request with this Idempotency-Key was carried out, but its answer is not stored; read what it changed.',
    conflictWith(subject),
  )

const conflictWith = (id: string | undefined): { details?: Record<string, unknown> } =>
  id === undefined ? {} : { details: { 'conflict-id': id } }

// Browsers

export const forwardedRefused = (client: string): AppError =>
  new AppError(
    'FORWARDED_REFUSED',
    `A proxy forwards this request for "${shown(client)}", but authentication is off, so only clients on this machine are served. Set auth.enable = True, or system.allow_open_network = True if you trust everyone who can reach the proxy.`,
  )

export const originRefused = (message: string): AppError => new AppError('ORIGIN_REFUSED', message)
