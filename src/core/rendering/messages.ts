/** What the server and its thread for templates tell each other. */
import { TemplateError, type HostFunction, type TemplateErrorCode } from '../../lib/template/index.ts'
import type { Piece } from './pieces.ts'

/** Templates that read the same variables. */
export interface Job {
  texts: string[]
  variables: Record<string, unknown>
  filters: Record<string, HostFunction>
  /** Of each template. */
  maxSteps: number
  maxWork: number
  /** Processor time of all of them. */
  maxMilliseconds: number
  /** What the results may hold together: see `Room`. */
  room: { length: number; values: number }
}

export interface Rendered {
  values: unknown[]
  /** What is left. */
  room: Job['room']
  /** Processor time that was used. */
  milliseconds: number
}

/** `more`: the next piece of the result is wanted. `answer`: to the last question. */
export type ToThread =
  | { kind: 'job'; piece: Piece }
  | { kind: 'answer'; pieces: Piece[] }
  | { kind: 'refusal'; failure: Failure }
  | { kind: 'more' }

export type FromThread =
  | { kind: 'ready' }
  | ({ kind: 'question' } & Question)
  | { kind: 'result'; piece: Piece }
  | {
      kind: 'failed'
      failure: Failure
      /** The server has thrown it when it answered a question. */
      isOfServer: boolean
    }

/** About an object of the server; the thread waits for the answer. */
export interface Question {
  id: number
  what: 'get' | 'has' | 'value' | 'call'
  /** A name, or the arguments of a call. */
  about: Piece[]
}

export interface Failure {
  message: string
  /** Of a TemplateError. */
  code?: TemplateErrorCode
  isForeign?: boolean
}

export function failureOf(error: unknown): Failure {
  if (!(error instanceof Error)) return { message: String(error) }
  const { message } = error
  return error instanceof TemplateError ? { message, code: error.code, isForeign: error.isForeign } : { message }
}

export function errorOf({ message, code, isForeign }: Failure): Error {
  return code === undefined ? new Error(message) : new TemplateError(code, message, undefined, isForeign)
}
