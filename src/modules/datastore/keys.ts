/** Resolves the items that a request names (contract 05, 5.11). */
import { bodyInvalid, keyScopeInvalid, keyScopeUnknown, keyUserRefused, queryInvalid } from '../../core/errors.ts'
import type { Principal } from '../../http/index.ts'
import type { ItemKey, KeyScope } from './types.ts'
import { shown } from '../../lib/text/index.ts'

export const MAX_NAME_LENGTH = 1024

const scopeNames: ReadonlyMap<string, KeyScope> = new Map([
  ['system', 'svckv.system'],
  ['svckv.system', 'svckv.system'],
  ['user', 'svckv.user'],
  ['svckv.user', 'svckv.user'],
])
const allowed: readonly string[] = ['all', ...scopeNames.keys()]

/** Scope and user of a request; absent and empty are the same. */
export interface Named {
  scope?: string | null | undefined
  user?: string | null | undefined
}

export interface KeyCaller {
  principal: Pick<Principal, 'user' | 'isAdmin' | 'method'>
  /** `rbac.enable` */
  isAccessControlled: boolean
}

/**
 * The item to read. A given user implies the user scope.
 *
 * @throws KEY_SCOPE_UNKNOWN, PERMISSION_DENIED, QUERY_INVALID
 */
export function keyToRead(name: string, named: Named, caller: KeyCaller): ItemKey {
  const owner = ownerOf(named.user, caller)
  return keyOf(name, isGiven(named.user) ? 'svckv.user' : scopeOf(named.scope), owner)
}

/**
 * The item to change. A user is allowed only with the user scope.
 *
 * @throws KEY_SCOPE_UNKNOWN, PERMISSION_DENIED, QUERY_INVALID, BODY_INVALID
 */
export function keyToChange(name: string, named: Named, caller: KeyCaller): ItemKey {
  const owner = ownerOf(named.user, caller)
  const scope = scopeOf(named.scope)
  if (isGiven(named.user) && scope !== 'svckv.user') {
    throw bodyInvalid('"user" is only for items of the user scope; also send "scope": "user".')
  }
  return keyOf(name, scope, owner)
}

/** Sections of a list in output order. @throws KEY_SCOPE_UNKNOWN, PERMISSION_DENIED */
export function sectionsToList(named: Named, caller: KeyCaller): Pick<ItemKey, 'scope' | 'user'>[] {
  const owner = ownerOf(named.user, caller)
  const system = { scope: 'svckv.system', user: '' } as const
  const own = { scope: 'svckv.user', user: owner } as const
  if (isGiven(named.user)) return [own]
  if (!isGiven(named.scope)) return [system]
  if (named.scope === 'all') return [system, own]
  const scope = scopeNames.get(named.scope)
  if (scope === undefined) throw keyScopeInvalid(named.scope, allowed)
  return [scope === 'svckv.user' ? own : system]
}

function isGiven(value: string | null | undefined): value is string {
  return value !== undefined && value !== null && value !== ''
}

function scopeOf(given: string | null | undefined): KeyScope {
  // For a single item, `all` means the system scope.
  if (!isGiven(given) || given === 'all') return 'svckv.system'
  const scope = scopeNames.get(given)
  if (scope === undefined) throw keyScopeUnknown(given, allowed)
  return scope
}

/** @throws PERMISSION_DENIED */
function ownerOf(given: string | null | undefined, { principal, isAccessControlled }: KeyCaller): string {
  if (!isGiven(given) || given === principal.user) return principal.user
  // Who can open the control socket can read the database and its keys.
  if (principal.method === 'control_socket') return given
  if (!isAccessControlled || !principal.isAdmin) throw keyUserRefused(isAccessControlled)
  return given
}

function keyOf(name: string, scope: KeyScope, owner: string): ItemKey {
  const problem = problemOfName(name)
  if (problem !== undefined) throw queryInvalid(`The name of the key ${problem}: "${shown(name)}".`)
  return { scope, user: scope === 'svckv.user' ? owner : '', name }
}

/** Problem of a name, as the end of a sentence; undefined: none. */
export function problemOfName(name: string): string | undefined {
  if (name === '') return 'is empty'
  if (name.length > MAX_NAME_LENGTH) return `is longer than ${MAX_NAME_LENGTH} characters`
  if (name.includes('\0')) return 'has a NUL character'
  return name.isWellFormed() ? undefined : 'is not valid Unicode'
}
