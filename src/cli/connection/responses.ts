/** Typed access to server responses, which may come from a server other than svc. */
import type { IncomingHttpHeaders } from 'node:http'
import { CliFailure } from '../failures.ts'
import type { Json } from '../output/print.ts'
import { JsonNumber, readJson } from '../../lib/json/index.ts'

export interface ApiResponse {
  status: number
  headers: IncomingHttpHeaders
  /** Undefined when there was none. */
  body: unknown
}

export function toObject(value: unknown): Json {
  return isPlain(value) ? { ...value } : {}
}

function isPlain(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof JsonNumber)
}

export function toList(value: unknown): Json[] {
  return Array.isArray(value) ? value.map(toObject) : []
}

/** The record in the response. @throws CliFailure when there is none */
export function recordIn({ body }: ApiResponse): Json {
  if (isPlain(body)) return { ...body }
  throw foreignAnswer('a record')
}

/** The list in the response. @throws CliFailure when there is none */
export function listIn({ body }: ApiResponse): Json[] {
  if (Array.isArray(body)) return body.map(toObject)
  throw foreignAnswer('a list')
}

/** @param what the server should have sent: `a record` */
export function foreignAnswer(what: string): CliFailure {
  return new CliFailure(`The server did not return ${what}. Check that --api-url is the API of an svc server.`)
}

/** Deeper ones could not be printed. */
export const MAX_DEPTH = 1000

/** Undefined for text that is not JSON, or is nested too deep. */
export function parseJson(text: string): { value: unknown } | undefined {
  try {
    const value = readJson(text)
    return isDeeper(value, MAX_DEPTH) ? undefined : { value }
  } catch {
    return undefined
  }
}

/** Whether a value has more levels than that. */
export function isDeeper(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return depth === 0 || Object.values(value).some((inner) => isDeeper(inner, depth - 1))
}

export function textOrEmpty(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
