/** The permission that a route declares: on everything, or on the one resource that a request is about. */
import { isGlobalPermission, isPermission, type Resource } from '../../core/permissions.ts'
import type { ApiRequest, Rights, Route, StreamRoute } from '../route.ts'

/** What is needed whatever the request is about. @throws PERMISSION_DENIED */
export function requireGlobally(route: Route, rights: Rights): void {
  const { permission } = route
  if (permission === 'administrator') rights.requireAdministrator()
  else if (isPermission(permission) && isGlobalPermission(permission) && !('resource' in route)) {
    rights.require(permission)
  }
  if ('besides' in route && route.besides !== undefined) rights.require(route.besides)
}

/**
 * The permission on the one resource a request is about. Only a caller without all rights costs the look at it.
 *
 * @throws PERMISSION_DENIED, and what finding the resource throws
 */
export function requireOn({ permission }: Route, { rights }: ApiRequest, find: () => Resource): void {
  if (!isPermission(permission) || rights.may(permission)) return
  rights.require(permission, find())
}

/** For routes without a body; see `Guard`. */
export function requireAtLast(route: Route, request: ApiRequest): void {
  if (route.body !== undefined || route.rawBody !== undefined || !('resource' in route)) return
  requireOn(route, request, () => route.resource(request))
}

/**
 * For answers that go on.
 *
 * @returns whether the caller still may have it
 * @throws PERMISSION_DENIED, and what finding the resource throws
 */
export function requireForStream(route: StreamRoute, request: ApiRequest): () => boolean {
  const { permission } = route
  // Found once: later, `last` may be another one.
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
