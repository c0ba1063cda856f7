/**
 * Requests that use StackStorm's names, and their answers (docs/compatibility.md): the rest of the server knows our names
 * only. A request speaks StackStorm's dialect when it uses one of its names, or says so in the header `Svc-Dialect`.
 */
import type { Request } from 'express'
import {
  adviceOnName,
  jsonWithTheirNames,
  namesOf,
  ourText,
  withOurNames,
  withTheirNames,
} from '../core/compat/index.ts'
import type { Compat, Dialect } from '../core/compat/index.ts'
import { headerInvalid } from '../core/errors.ts'
import { shown } from '../lib/text/index.ts'
import { JsonText } from './list.ts'
import { Reply, type QueryValue } from './route.ts'

const DIALECT_HEADER = 'svc-dialect'

/**
 * Gives the headers, the query and the path of the generic webhook our names, before anything reads them.
 *
 * @param query of the request; changed in place
 * @returns the dialect as far as it is known before the route is
 */
export function readDialect(compat: Compat, request: Request, query: URLSearchParams): Dialect {
  if (!compat.isOn) return 'svc'
  let usesTheirs = false
  for (const [theirs, ours] of namesOf('header')) {
    if (request.headers[theirs] === undefined) continue
    usesTheirs = true
    const { [theirs]: given, [ours]: own } = request.headers
    // Two different values are one that is not valid, as for a header that is sent twice.
    request.headers[ours] = own === undefined || own === given ? given : [own, given].flat().join(', ')
    delete request.headers[theirs]
    const raw = request.rawHeaders
    for (let i = 0; i < raw.length; i += 2) if (raw[i]?.toLowerCase() === theirs) raw[i] = ours
  }
  for (const [theirs, ours] of namesOf('query')) {
    if (!query.has(theirs)) continue
    usesTheirs = true
    for (const value of query.getAll(theirs)) query.append(ours, value)
    query.delete(theirs)
    // Credentials are read from there.
    const mark = request.originalUrl.indexOf('?')
    request.originalUrl = `${request.originalUrl.slice(0, mark)}?${query.toString()}`
  }
  const said = request.headers[DIALECT_HEADER]
  if (said === undefined) return usesTheirs ? 'stackstorm' : 'svc'
  if (said !== 'svc' && said !== 'stackstorm') {
    throw headerInvalid(`The header Svc-Dialect must be svc or stackstorm, not "${shown(String(said))}".`)
  }
  return said
}

/** The path of a route with our name of the generic webhook: `/webhooks/st2` is `/webhooks/svc`. */
export function ourPath(compat: Compat, path: string): string {
  const hook = '/webhooks/'
  return path.startsWith(hook) ? `${hook}${compat.ours('hook', path.slice(hook.length))}` : path
}

/** What a request names, with our names. */
export interface Named<T> {
  value: T
  /** Whether StackStorm's were among them. */
  usesTheirs: boolean
}

/** @param path of the route */
export function ourQuery(path: string, query: Record<string, QueryValue>): Named<Record<string, QueryValue>> {
  let usesTheirs = false
  const change = (name: string, text: string): string => {
    const own = ourText(path, name, text)
    if (own !== text) usesTheirs = true
    return own
  }
  const value = Object.fromEntries(
    Object.entries(query).map(([name, given]) => [
      name,
      typeof given === 'string'
        ? change(name, given)
        : Array.isArray(given)
          ? given.map((item) => change(name, item))
          : given,
    ]),
  )
  return { value, usesTheirs }
}

export function ourBody(body: unknown): Named<unknown> {
  const value = withOurNames(body)
  return { value, usesTheirs: value !== body }
}

/** What a handler has answered, in the dialect of the request. */
export function inDialect(dialect: Dialect, answer: unknown): unknown {
  if (dialect === 'svc') return answer
  if (!(answer instanceof Reply)) return withTheirNames(answer)
  const { body, status, headers } = answer
  if (body instanceof JsonText) {
    body.change(withTheirNames, jsonWithTheirNames)
    return answer
  }
  return new Reply(withTheirNames(body), { headers, ...(status === undefined ? {} : { status }) })
}

/** What to add to the refusal of a request without a credential that it knows. */
export function adviceOnCredentials({ headers, originalUrl }: Pick<Request, 'headers' | 'originalUrl'>): string {
  if (headers['st2-api-key'] !== undefined) return adviceOnName('header', 'st2-api-key')
  return /[?&]st2-api-key=/.test(originalUrl) ? adviceOnName('query', 'st2-api-key') : ''
}
