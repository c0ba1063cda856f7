import { errorCodes, type ErrorCode, type ErrorKind } from './codes.ts'

/**
 * An error with a stable `code`, a message that says what to do, and a private cause.
 *
 * The message is sent to the client as `faultstring`. It never holds a stack, a path of the server, a query or a
 * secret.
 */
export class AppError extends Error {
  readonly kind: ErrorKind
  readonly code: ErrorCode
  readonly details: Record<string, unknown> | undefined

  constructor(code: ErrorCode, message: string, more: { details?: Record<string, unknown>; cause?: unknown } = {}) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause })
    this.name = 'AppError'
    this.kind = errorCodes[code].kind
    this.code = code
    this.details = more.details
  }
}

export function isAppError(error: unknown): error is AppError {
  return error instanceof AppError
}
