/** What can be done with API keys (contract 01, 1.9). */
import { setImmediate } from 'node:timers/promises'
import { problemOfUserName } from '../../../core/account-rules.ts'
import { Conflict, type Database, type Step, type ApiKeyTable } from '../../../db/index.ts'
import { apiKeyNotFound, bodyInvalid, conflict, nameTaken } from '../../../core/errors.ts'
import { aboutCaller, type Caller, type Page, type ApiRequest, type Principal } from '../../../http/index.ts'
import { isId, newId } from '../../../core/ids.ts'
import type { Log, LogFields } from '../../../lib/log/index.ts'
import { MASK } from '../../../lib/schema/index.ts'
import { formatMicros, parseTimestamp } from '../../../core/time.ts'
import type { AuthStore } from '../store.ts'
import { hashKey, makeKey } from './key.ts'
import type { ApiKeyRequest, ApiKeyScope } from '../types.ts'
import { readScopes, refuseScoped } from './scopes.ts'
import type { ApiKeyChanges, ApiKeyStore } from './store.ts'
import { shown } from '../../../lib/text/index.ts'
import { apiKeyResource, userResource } from '../../../core/permissions.ts'
import { writeJson } from '../../../lib/json/index.ts'

/** Also what the caller may do. */
export type ApiKeyCaller = Caller & Pick<ApiRequest, 'rights'>

export interface ApiKeyService {
  /** @throws API_KEY_NOT_FOUND */
  find(idOrKey: string): ApiKeyTable
  /** Ids of the keys that the caller may see, in the order in which they were made, and how many those are in all. */
  list(
    user: string | undefined,
    ids: readonly string[] | undefined,
    page: Page,
    caller: ApiKeyCaller,
  ): Promise<{ ids: string[]; total: number }>
  /**
   * @returns `key` is the plain value, which no later answer shows; null if the request has a digest
   * @throws BODY_INVALID, NAME_TAKEN, PERMISSION_DENIED
   */
  create(request: ApiKeyRequest, caller: ApiKeyCaller): Promise<{ row: ApiKeyTable; key: string | null }>
  /** Absent attributes stay. @throws API_KEY_NOT_FOUND, BODY_INVALID, PERMISSION_DENIED, CONFLICT */
  update(idOrKey: string, request: ApiKeyRequest, caller: ApiKeyCaller): Promise<ApiKeyTable>
  /** @throws API_KEY_NOT_FOUND, PERMISSION_DENIED, CONFLICT */
  delete(idOrKey: string, caller: ApiKeyCaller): Promise<void>
}

const MAX_METADATA_BYTES = 65_536
/** Rights looked at in one turn. */
const HEADS_PER_TURN = 1000

export interface ApiKeyServiceOptions {
  database: Database
  store: ApiKeyStore
  users: Pick<AuthStore, 'insertUser' | 'requireUser'>
  log: Log
  /** Microseconds since the epoch. */
  readonly now: () => number
}

export function createApiKeyService({ database, store, users, log, now }: ApiKeyServiceOptions): ApiKeyService {
  function find(idOrKey: string): ApiKeyTable {
    const row = (isId(idOrKey) ? store.find(idOrKey) : undefined) ?? store.findByHash(hashKey(idOrKey))
    if (row === undefined) throw apiKeyNotFound(isId(idOrKey) ? idOrKey : undefined)
    return row
  }

  /** @throws PERMISSION_DENIED */
  function requireToActFor(owner: string, { principal, rights }: ApiKeyCaller): void {
    if (owner !== principal.user) rights.require('user_impersonate', userResource(owner))
  }

  /** A user deleted at the same time must not keep a key. Who did not log in need not have a record. */
  function stillThere({ method, user }: Principal): Step[] {
    return method === 'none' || method === 'control_socket' ? [] : [users.requireUser(user)]
  }

  /** @throws BODY_INVALID, NAME_TAKEN */
  function readNewId(given: string | undefined, at: number): string {
    if (given === undefined) return newId(at)
    if (!isId(given)) {
      throw bodyInvalid('id must have 24 lower-case hexadecimal characters; leave it out to get one', { path: ['id'] })
    }
    if (store.find(given) !== undefined) throw nameTaken(`An API key with id "${given}"`, given, ['id'])
    return given
  }

  return {
    find,

    async list(user, wanted, page, { rights }) {
      if (rights.may('api_key_view') && wanted === undefined) {
        const [ids, total] = await Promise.all([store.pageOfIds(user, page.offset, page.limit), store.count(user)])
        return { ids, total }
      }
      const visible: string[] = []
      for (const [index, head] of (await store.heads(user)).entries()) {
        if (index % HEADS_PER_TURN === HEADS_PER_TURN - 1) await setImmediate()
        if (wanted?.includes(head.id) === false) continue
        if (rights.may('api_key_view', apiKeyResource(head))) visible.push(head.id)
      }
      const { offset, limit = visible.length } = page
      return { ids: visible.slice(offset, offset + limit), total: visible.length }
    },

    async create(request, caller) {
      refuseScoped(caller.principal, 'create API keys')
      const owner = readOwner(request.user) ?? caller.principal.user
      requireToActFor(owner, caller)
      const at = now()
      const key = request.key_hash === undefined ? makeKey() : null
      const keyHash = key === null ? readKeyHash(request.key_hash) : hashKey(key)
      const expiresAt = readExpiry(request.expires_at) ?? null
      // One that was brought along may have expired where it comes from.
      if (key !== null && expiresAt !== null && expiresAt <= formatMicros(at)) {
        throw bodyInvalid(`expires_at: ${expiresAt} has passed already; leave it out for a key that does not expire`, {
          path: ['expires_at'],
        })
      }
      const row: ApiKeyTable = {
        id: readNewId(request.id, at),
        user: owner,
        key_hash: keyHash,
        metadata: readMetadata(request.metadata ?? {}),
        created_at: formatMicros(at),
        enabled: request.enabled === false ? 0 : 1,
        expires_at: expiresAt,
        scopes: storedScopes(request.scopes ?? null),
        last_used_at: null,
      }
      const refuseTaken = (): void => {
        const existing = store.findByHash(keyHash)
        if (existing !== undefined) throw nameTaken('An API key with this key_hash', existing.id)
        if (store.find(row.id) !== undefined) throw nameTaken(`An API key with id "${row.id}"`, row.id)
      }
      refuseTaken()
      try {
        const results = await database.write({
          steps: [...stillThere(caller.principal), users.insertUser(owner, row.created_at), store.insert(row)],
          facts: [],
          subject: row.id,
        })
        if (results.at(-2)?.changes === 1) reportNewUser(owner, caller)
      } catch (error) {
        if (!(error instanceof Conflict)) throw error
        refuseTaken()
        throw conflict(`User "${shown(caller.principal.user)}"`)
      }
      log.audit('api_key.created', `ApiKey created. ApiKey.id=${row.id}`, aboutKey(row, caller))
      return { row, key }
    },

    async update(idOrKey, request, caller) {
      refuseScoped(caller.principal, 'change API keys')
      const row = find(idOrKey)
      // It may have changed hands while the body was read.
      caller.rights.require('api_key_modify', apiKeyResource(row))
      refuseOtherKey(row, request)
      const owner = readOwner(request.user) ?? row.user
      const changes: ApiKeyChanges = { user: owner }
      if (request.metadata !== undefined) changes.metadata = readMetadata(request.metadata)
      if (request.enabled !== undefined) changes.enabled = request.enabled ? 1 : 0
      if (request.expires_at !== undefined) changes.expires_at = readExpiry(request.expires_at) ?? null
      if (request.scopes !== undefined) changes.scopes = storedScopes(request.scopes)
      const updated: ApiKeyTable = { ...row, ...changes }
      // Otherwise a holder of the key could extend its permissions.
      const isNewPower =
        owner !== row.user ||
        updated.scopes !== row.scopes ||
        updated.expires_at !== row.expires_at ||
        updated.enabled > row.enabled
      if (isNewPower) requireToActFor(owner, caller)
      try {
        const [newUser] = await database.write({
          steps: [users.insertUser(owner, formatMicros(now())), store.update(row.id, row.user, changes)],
          facts: [{ name: 'api_key.changed', payload: { id: row.id } }],
        })
        if (newUser?.changes === 1) reportNewUser(owner, caller)
      } catch (error) {
        throw error instanceof Conflict ? conflict(`API key "${row.id}"`) : error
      }
      log.audit('api_key.updated', `API Key updated. ApiKey.id=${row.id}.`, {
        ...aboutKey(updated, caller),
        enabled: updated.enabled === 1,
        ...(owner === row.user ? {} : { owner_before: row.user }),
      })
      return updated
    },

    async delete(idOrKey, caller) {
      refuseScoped(caller.principal, 'delete API keys')
      const row = find(idOrKey)
      try {
        await database.write({
          steps: [store.delete(row.id, row.user)],
          facts: [{ name: 'api_key.changed', payload: { id: row.id } }],
        })
      } catch (error) {
        if (!(error instanceof Conflict)) throw error
        throw store.find(row.id) === undefined ? apiKeyNotFound(row.id) : conflict(`API key "${row.id}"`)
      }
      log.audit('api_key.deleted', `ApiKey deleted. ApiKey.id=${row.id}`, aboutKey(row, caller))
    },
  }

  function reportNewUser(name: string, caller: Caller): void {
    log.audit('user.registered', `Registered new user "${name}".`, aboutCaller(caller))
  }
}

/** Undefined: not given. @throws BODY_INVALID */
function readOwner(given: string | null | undefined): string | undefined {
  if (given === undefined || given === null || given === '') return undefined
  const problem = problemOfUserName(given)
  if (problem !== undefined) throw bodyInvalid(`user ${problem}`, { path: ['user'] })
  return given
}

/** The message does not repeat the value, which can be a key in the wrong place. @throws BODY_INVALID */
function readKeyHash(given: string | null | undefined): string {
  if (given === MASK) {
    throw bodyInvalid(
      `key_hash is masked (${MASK}), so nothing can be restored from it; list the keys with show_secrets=true and send what that gives`,
      { path: ['key_hash'] },
    )
  }
  if (typeof given !== 'string' || !/^[0-9a-f]{128}$/i.test(given)) {
    throw bodyInvalid(
      'key_hash must be the SHA-512 digest of a key: 128 hexadecimal characters; leave it out to get a key',
      { path: ['key_hash'] },
    )
  }
  return given.toLowerCase()
}

/** @throws BODY_INVALID */
function refuseOtherKey(row: ApiKeyTable, { id, key_hash: keyHash }: ApiKeyRequest): void {
  if (id !== undefined && id !== row.id) {
    throw bodyInvalid(`id "${shown(id)}" is not the one of this API key, "${row.id}"; the id cannot be changed`, {
      path: ['id'],
    })
  }
  if (keyHash === undefined || keyHash === null || keyHash === '' || keyHash === MASK) return
  if (keyHash.toLowerCase() !== row.key_hash) {
    throw bodyInvalid('Update of key_hash is not allowed. Leave it out, and make another API key for another value.', {
      path: ['key_hash'],
    })
  }
}

/** Wire form; null: never; undefined: not given. @throws BODY_INVALID */
function readExpiry(given: string | null | undefined): string | null | undefined {
  if (given === undefined || given === null) return given
  const expiry = parseTimestamp(given)
  if (expiry !== undefined) return expiry
  throw bodyInvalid(`expires_at must be a time in UTC such as 2030-01-31T12:00:00.000000Z, not "${shown(given)}"`, {
    path: ['expires_at'],
  })
}

/** @throws BODY_INVALID */
function readMetadata(metadata: Record<string, unknown>): string {
  const text = writeJson(metadata)
  if (Buffer.byteLength(text) <= MAX_METADATA_BYTES) return text
  throw bodyInvalid(`metadata may have ${MAX_METADATA_BYTES} bytes as JSON; it has ${Buffer.byteLength(text)}`, {
    path: ['metadata'],
  })
}

function storedScopes(given: readonly ApiKeyScope[] | null): string | null {
  return given === null ? null : writeJson(readScopes(given))
}

function aboutKey({ id, user }: ApiKeyTable, caller: Caller): LogFields {
  return { ...aboutCaller(caller), api_key_id: id, owner: user }
}
