/**
 * The middle of the chain: credentials → permission → body → both again → schema → permission on what the body names.
 */
import { createHash } from 'node:crypto'
import type { Request, Response } from 'express'
import { bodyInvalid, routeUnknown } from '../../core/errors.ts'
import { compileSchema, fieldOf, nearestDeclared, type Schema, type SchemaCheck } from '../../lib/schema/index.ts'
import { noCompat } from '../../core/compat/index.ts'
import { noRights, type AccessControl } from '../authenticate.ts'
import { createBodyReader } from '../body.ts'
import { jsonTypeOf } from '../json.ts'
import { readQuery } from '../query.ts'
import { ourBody, ourQuery, type Named } from '../dialect.ts'
import { hasRepeatKey, mayBeRepeated } from '../repeats.ts'
import { queryWarning } from '../warnings.ts'
import type { ApiRequest, Principal, Route } from '../route.ts'
import type { BodyRoom } from './body-room.ts'
import { requireGlobally, requireOn } from './permission.ts'
import { states, type HttpAppOptions } from './state.ts'

const nobody: Principal = { user: '', isAdmin: false, method: 'none' }

type Prepare = (request: Request, response: Response) => Promise<ApiRequest>

/**
 * Checks in a fixed order: credentials → permission → body → both again → schema. It reads the body of a request
 * without a credential only when the body may prove the sender.
 */
export function prepareFor(options: HttpAppOptions, route: Route, room: BodyRoom): Prepare {
  const { access, maxBodyBytes, peers, compat = noCompat } = options
  const reader = createBodyReader(maxBodyBytes)
  let check: SchemaCheck | undefined
  const declared = route.query ?? {}
  const isRepeatable = mayBeRepeated(route)
  const readsBody = route.body !== undefined || route.rawBody !== undefined
  return async (request, response) => {
    const state = states.get(request)
    if (state === undefined) throw routeUnknown()
    // Caches must not give one caller's answer to another; some answers are credentials themselves.
    if (route.permission !== 'public') response.setHeader('Cache-Control', 'no-store')
    const ours = <T>({ value, usesTheirs }: Named<T>): T => {
      if (usesTheirs && request.headers['svc-dialect'] === undefined) state.dialect = 'stackstorm'
      return value
    }
    const given = pathVariables(request)
    const params = compat.isOn ? (ours(ourQuery(route.path, given)) as typeof given) : given // texts stay texts
    const provesItself = 'provesItself' in route && route.provesItself?.({ params, headers: request.headers }) === true
    const isStranger = provesItself && !access.hasCredential(request)
    const identify = async (): Promise<Pick<ApiRequest, 'principal' | 'rights'>> => {
      if (isStranger) return { principal: nobody, rights: noRights }
      const principal = await identifyCaller(access, route, request, response)
      state.observation.user = principal.user
      const rights = access.rightsOf(principal)
      if (!provesItself) requireGlobally(route, rights)
      return { principal, rights }
    }
    const who = await identify()
    const query = readQuery(declared, state.query)
    const warning = queryWarning(route.path, declared, state.query, compat.isOn)
    if (warning !== undefined) response.setHeader('Warning', warning)
    const prepared: ApiRequest = {
      ...who,
      params,
      query: compat.isOn ? ours(ourQuery(route.path, query)) : query,
      body: undefined,
      headers: request.headers,
      requestId: state.requestId,
      remoteAddress: peers.addressOf(request),
      isSecure: peers.isSecure(request),
      onClose(listener) {
        if (response.closed) listener()
        response.once('close', listener)
        return () => response.off('close', listener)
      },
    }
    const isKeyed = isRepeatable && hasRepeatKey(request.headers)
    const requireOnResource = (): void => {
      if ('resource' in route && !provesItself)
        requireOn(route, prepared, () => route.resource(prepared), isKeyed ? state : undefined)
    }
    if (readsBody) {
      requireOnResource()
      const share = (isStranger ? room.strange : room.known).begin(prepared.remoteAddress)
      response.once('close', () => share.end())
      const digest = isKeyed ? createHash('sha256') : undefined
      const body = route.body === undefined ? undefined : await reader.read(request, share, digest)
      if (digest !== undefined) state.bodyDigest = digest.digest('hex')
      const raw = route.rawBody === undefined ? undefined : await reader.readRaw(request, share)
      // A sender can hold back the body until the credential has been revoked.
      if (!access.isCurrent(prepared.principal)) Object.assign(prepared, await identify())
      else if (!provesItself) requireGlobally(route, prepared.rights)
      requireOnResource()
      if (raw !== undefined) prepared.raw = { ...raw, headers: request.rawHeaders }
      if (route.body !== undefined) {
        // Compiled for the first request that needs it: compiling every schema at start would double the start-up time.
        check ??= compileSchema(route.body)
        prepared.body = checkBody(compat.isOn ? ours(ourBody(body)) : body, check, route.body)
      }
      if ('resourceOfBody' in route)
        requireOn(route, prepared, () => route.resourceOfBody(prepared.body, prepared), isKeyed ? state : undefined)
    }
    prepared.dialect = state.dialect
    return prepared
  }
}

/** @throws BODY_INVALID */
function checkBody(body: unknown, check: SchemaCheck, schema: Schema): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw bodyInvalid(`Input body needs to be an object, got: ${jsonTypeOf(body)}`)
  }
  const problem = check.find(body)
  if (problem !== undefined) throw bodyInvalid(problem.message, { path: fieldOf(problem) })
  return nearestDeclared(body as Record<string, unknown>, schema) // it passed the check
}

function identifyCaller(
  access: AccessControl,
  { permission }: Route,
  request: Request,
  response: Response,
): Promise<Principal> | Principal {
  switch (permission) {
    case 'public':
      return nobody
    case 'login':
      return access.login(request, response)
    default:
      return access.authenticate(request, response)
  }
}

function pathVariables(request: Request): Record<string, string> {
  const variables: Record<string, string> = {}
  for (const [name, value] of Object.entries(request.params)) {
    variables[name] = Array.isArray(value) ? value.join('/') : value
  }
  return variables
}
