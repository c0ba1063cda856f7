/** Errors of client commands. Each is printed as a message, never as a stack trace (contract 09, 9.1). */
import { escapeUnprintable } from '../lib/log/index.ts'
import { exitCodes } from './exit-codes.ts'

/** `message` is printed after `ERROR: `. */
export class CliFailure extends Error {
  readonly exitCode: number

  constructor(message: string, exitCode: number = exitCodes.failed) {
    super(message)
    this.exitCode = exitCode
  }
}

/** Something named on the command line does not exist; `kind` is its display name, such as `Action Execution`. */
export class NotFound extends CliFailure {
  /** What may have been meant, for standard error; may be empty. */
  readonly suggestion: string

  constructor(kind: string, id: string, suggestion = '') {
    super(`${kind} "${escapeUnprintable(id)}" is not found.`, exitCodes.usage)
    this.suggestion = suggestion
  }
}

/** An unknown command. The place that reports it adds suggestions. */
export class UnknownCommand extends CliFailure {
  /** What stands before it, such as `svc execution`. */
  readonly path: string
  readonly word: string
  readonly rest: readonly string[]
  /** What could stand there. */
  readonly known: readonly string[]

  constructor(path: string, [word = '', ...rest]: readonly string[], known: readonly string[]) {
    super(`unknown command '${escapeUnprintable(word)}'`, exitCodes.usage)
    this.path = path
    this.word = word
    this.rest = rest
    this.known = known
  }
}

/** The server answered with an error. */
export class HttpFailure extends CliFailure {
  readonly status: number
  /** The server's own name for the error; empty when the answer was none of ours. */
  readonly code: string
  /** The sentence of the server. */
  readonly faultstring: string

  constructor(status: number, reason: string, faultstring: string, code: string, url: string) {
    const side = status < 500 ? 'Client' : 'Server'
    super(`${status} ${side} Error: ${reason}\nMESSAGE: ${faultstring} for url: ${url}`)
    this.status = status
    this.code = code
    this.faultstring = faultstring
  }
}

/** No complete answer came; asking again may help. */
export class ConnectionFailure extends CliFailure {}

/** The name and password that the client logs in with are refused. */
export class NotLoggedIn extends CliFailure {}

/** Ctrl-C. */
export class Interrupted extends Error {}
