/** Checks the permission that a route declares: globally, or on the one resource of a request. */
import { isGlobalPermission, isPermission, type Resource } from '../../core/permissions.ts'
import type { ApiRequest, Rights, Route, StreamRoute } from '../route.ts'
import type { RequestState } from './state.ts'

/** Requires the permissions that do not depend on a resource. @throws PERMISSION_DENIED */
export function requireGlobally(route: Route, rights: Rights): void {
  const { permission } = route
  if (permission === 'administrator') rights.requireAdministrator()
  else if (isPermission(permission) && isGlobalPermission(permission) && !('resource' in route)) {
    rights.require(permission)
  }
  if ('alsoRequires' in route && route.alsoRequires !== undefined) rights.require(route.alsoRequires)
}

/**
 * Requires the permission on the resource of the request. It looks the resource up only for callers without every
 * permission.
 *
 * @param state receives the error of the lookup as `missing` instead: what a repetition names may be gone by now
 * @throws PERMISSION_DENIED, and the errors of the lookup
 */
export function requireOn(
  { permission }: Route,
  { rights }: ApiRequest,
  find: () => Resource,
  state?: Pick<RequestState, 'missing'>,
): void {
  if (!isPermission(permission) || rights.may(permission)) return
  let resource: Resource
  try {
    resource = find()
  } catch (error) {
    if (state === undefined) throw error
    state.missing ??= error
    return
  }
  rights.require(permission, resource)
}

/** Checks routes without a body in the same turn as the handler; see `Guard`. */
export function requireAtLast(route: Route, request: ApiRequest, state?: Pick<RequestState, 'missing'>): void {
  if (route.body !== undefined || route.rawBody !== undefined || !('resource' in route)) return
  // The handler decides then.
  if (route.provesItself?.(request) === true) return
  requireOn(route, request, () => route.resource(request), state)
}

/**
 * Checks the permission for an answer that lasts.
 *
 * @returns whether the caller still has the permission
 * @throws PERMISSION_DENIED, and the errors of the lookup
 */
export function requireForStream(route: StreamRoute, request: ApiRequest): () => boolean {
  const { permission } = route
  // Looked up once: `last` may later name another execution.
  const resource =
    'resource' in route
      ? route.resource(request)
      : 'resourceOfBody' in route
        ? route.resourceOfBody(request.body, request)
        : undefined
  const require = (): void => {
    requireGlobally(route, request.rights)
    if (resource !== undefined && isPermission(permission)) request.rights.require(permission, resource)
  }
  require()
  return () => {
    try {
      require()
      return true
    } catch {
      return false
    }
  }
}
