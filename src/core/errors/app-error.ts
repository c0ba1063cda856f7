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

/**
 * Runs `check`, and puts `prefix` before the `details.path` of an error that it throws: `details.path` is the path of the
 * refused field from the root of the request body, but a check sees only a part of the body.
 */
export function within<T>(prefix: readonly string[], check: () => T): T {
  try {
    return check()
  } catch (error) {
    const path = error instanceof AppError ? error.details?.['path'] : undefined
    if (!(error instanceof AppError) || !Array.isArray(path)) throw error
    throw new AppError(error.code, error.message, {
      details: { ...error.details, path: [...prefix, ...path] },
      cause: error.cause,
    })
  }
}

/** The same error with a sentence after its message. */
export function withSentence({ code, message, details, cause }: AppError, sentence: string): AppError {
  return new AppError(code, `${message}${/[.!?]$/.test(message) ? '' : '.'} ${sentence}`, {
    ...(details === undefined ? {} : { details }),
    cause,
  })
}

export function isAppError(error: unknown): error is AppError {
  return error instanceof AppError
}
