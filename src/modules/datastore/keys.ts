/** Which item, or items, a request is about (contract 05, 5.11). */
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

/** What clients may name, absent or empty: not said. */
export interface Named {
  scope?: string | null | undefined
  user?: string | null | undefined
}

export interface KeyCaller {
  principal: Pick<Principal, 'user' | 'isAdmin'>
  /** `rbac.enable` */
  isAccessControlled: boolean
}

/**
 * The item that is asked for: a user named implies the user scope.
 *
 * @throws KEY_SCOPE_UNKNOWN, PERMISSION_DENIED, QUERY_INVALID
 */
export function keyToRead(name: string, named: Named, caller: KeyCaller): ItemKey {
  const owner = ownerOf(named.user, caller)
  return keyOf(name, isGiven(named.user) ? 'svckv.user' : scopeOf(named.scope), owner)
}

/**
 * The item that is changed: a user is named with the user scope only.
 *
 * @throws KEY_SCOPE_UNKNOWN, PERMISSION_DENIED, QUERY_INVALID, BODY_INVALID
 */
export function keyToChange(name: string, named: Named, caller: KeyCaller): ItemKey {
  const owner = ownerOf(named.user, caller)
  const scope = scopeOf(named.scope)
  if (isGiven(named.user) && scope !== 'svckv.user') {
    throw bodyInvalid('"user" belongs to items of the user scope; send "scope": "user" as well.')
  }
  return keyOf(name, scope, owner)
}

/** Of a list, in their order. @throws KEY_SCOPE_UNKNOWN, PERMISSION_DENIED */
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
  // On one item `all` means the system scope.
  if (!isGiven(given) || given === 'all') return 'svckv.system'
  const scope = scopeNames.get(given)
  if (scope === undefined) throw keyScopeUnknown(given, allowed)
  return scope
}

/** @throws PERMISSION_DENIED */
function ownerOf(given: string | null | undefined, { principal, isAccessControlled }: KeyCaller): string {
  if (!isGiven(given) || given === principal.user) return principal.user
  if (!isAccessControlled || !principal.isAdmin) throw keyUserRefused(isAccessControlled)
  return given
}

function keyOf(name: string, scope: KeyScope, owner: string): ItemKey {
  const problem = problemOfName(name)
  if (problem !== undefined) throw queryInvalid(`The name of the key ${problem}: "${shown(name)}".`)
  return { scope, user: scope === 'svckv.user' ? owner : '', name }
}

/** The rest of a sentence about the name; undefined: any text may be one. */
export function problemOfName(name: string): string | undefined {
  if (name === '') return 'is empty'
  if (name.length > MAX_NAME_LENGTH) return `is longer than ${MAX_NAME_LENGTH} characters`
  if (name.includes('\0')) return 'has a NUL character'
  return name.isWellFormed() ? undefined : 'is not valid Unicode'
}
