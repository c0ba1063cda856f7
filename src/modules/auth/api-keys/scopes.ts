/** Scopes of API keys: a part of what the owner may do. */
import { bodyInvalid, permissionDenied } from '../../../core/errors.ts'
import type { Principal } from '../../../http/index.ts'
import type { ApiKeyScope } from '../types.ts'
import { shown } from '../../../lib/text/index.ts'
import { isPermission, problemOfGrant, type Permission, type Scope } from '../../../core/permissions.ts'
import { readJson } from '../../../lib/json/index.ts'

/**
 * The scopes in the form in which they are stored. A permission that is needed on a resource may stand without one, and
 * then applies to every resource.
 *
 * @throws BODY_INVALID
 */
export function readScopes(given: readonly ApiKeyScope[]): Scope[] {
  return given.map(({ permission_types: types, resource_uid: uid }, index) => {
    const problem = (why: string, part: keyof ApiKeyScope) =>
      bodyInvalid(`scopes[${index}]: ${why}.`, { path: ['scopes', String(index), part] })
    const permissions = types.map((type): Permission => {
      if (!isPermission(type)) {
        throw problem(
          `Invalid permission type "${shown(type)}"; GET /v1/rbac/permission_types lists those there are`,
          'permission_types',
        )
      }
      const why = uid === undefined ? undefined : problemOfGrant(type, uid)
      if (why !== undefined) throw problem(why, 'resource_uid')
      return type
    })
    return { permission_types: permissions, ...(uid === undefined ? {} : { resource_uid: uid }) }
  })
}

/** Inverse of storing; the same frozen object then serves every request of a key. */
export function parseScopes(stored: string | null): readonly Scope[] | undefined {
  if (stored === null) return undefined
  const scopes = readJson(stored) as Scope[] // what `readScopes` made
  return Object.freeze(scopes)
}

/**
 * A key with scopes must not be a way to more than its scopes, nor the token of an action to anything that outlives the
 * run, so they have no say about credentials.
 *
 * @param what it is about to do, after "An API key with scopes cannot"
 * @throws PERMISSION_DENIED
 */
export function refuseScoped(
  { scopes, isServiceToken }: Pick<Principal, 'scopes' | 'isServiceToken'>,
  what: string,
): void {
  if (isServiceToken === true) {
    throw permissionDenied(`The token of an action that runs cannot ${what}; give the action a credential of its own.`)
  }
  if (scopes === undefined) return
  throw permissionDenied(`An API key with scopes cannot ${what}; use a token, or an API key without scopes.`)
}
