/** Reading and changing items of the datastore (contract 05, 5.11). Whether the caller may is asked elsewhere. */
import { bodyInvalid, isAppError, keyNotFound, preEncryptedRefused } from '../../core/errors.ts'
import { commitPlan, merge, type Database, type Unit } from '../../db/index.ts'
import type { Encryption } from '../../core/encryption.ts'
import { aboutCaller, type Caller } from '../../http/index.ts'
import { newId } from '../../core/ids.ts'
import type { Log } from '../../lib/log/index.ts'
import { MASK } from '../../lib/schema/index.ts'
import { formatMicros, nowMicros, now } from '../../core/time.ts'
import { createKeyedLock } from '../../lib/concurrency/index.ts'
import type { KeyStore } from './store.ts'
import { MAX_VALUE_BYTES } from './types.ts'
import type { ItemKey, KeyValuePair, KeyValuePairRecord } from './types.ts'
import { shown } from '../../lib/text/index.ts'
import type { PlanEvent } from './ports.ts'
import { keyResource } from '../../core/permissions.ts'

/** Expired rows that go with each change. */
const SWEPT_BY_WRITES = 4
const SWEPT_AT_ONCE = 200

export interface PutRequest {
  value: string
  /** Undefined: as it was. */
  description?: string | null | undefined
  secret: boolean
  /** The value is cipher text already. */
  isPreEncrypted: boolean
  ttlSeconds?: number | undefined
}

export interface DatastoreService {
  find(key: ItemKey): KeyValuePair | undefined
  /** @throws KEY_NOT_FOUND */
  get(key: ItemKey): KeyValuePair
  /** @throws BODY_INVALID, PERMISSION_DENIED, CRYPTO_KEY_MISSING, CIPHER_TEXT_INVALID, CONFLICT */
  put(key: ItemKey, request: PutRequest, caller: Caller): Promise<KeyValuePair>
  /** @throws KEY_NOT_FOUND, CONFLICT */
  delete(key: ItemKey, caller: Caller): Promise<void>
  /** The plain value. Without an audit line. @throws CRYPTO_KEY_MISSING, CIPHER_TEXT_INVALID */
  reveal(item: KeyValuePair): string
  /** Undefined, and a word in the log, when it cannot be decrypted. */
  tryReveal(item: KeyValuePair): string | undefined
  /**
   * Says in the audit log who has seen which secrets.
   *
   * @param by who asked, or in whose name a template was rendered
   * @param names of one item, or those of a list
   */
  auditDecryption(
    by: Caller | { user: string; execution_id: string | undefined },
    names: string | readonly string[],
  ): void
  /** Removes rows that have expired, in slices. */
  sweep(signal: AbortSignal): Promise<void>
}

export function createDatastoreService(deps: {
  database: Database
  store: KeyStore
  encryption: Encryption
  log: Log
  readonly planEvent: PlanEvent
}): DatastoreService {
  const { database, store, encryption, log, planEvent } = deps
  // Of changes of one item each sees what the one before has left.
  const withLock = createKeyedLock()

  const reveal = (item: KeyValuePair): string =>
    item.encrypted ? encryption.decrypt(item.value, contextOf(item), whatOf(item)) : item.value

  /** What the value is to be stored as. */
  function seal(key: ItemKey, request: PutRequest, isAdmin: boolean): Pick<KeyValuePair, 'value' | 'secret'> {
    if (request.isPreEncrypted) {
      if (!isAdmin) throw preEncryptedRefused()
      checkPlain(encryption.decrypt(request.value, contextOf(key), whatOf(key)))
      return { value: request.value.toUpperCase(), secret: true }
    }
    checkPlain(request.value)
    if (!request.secret) return { value: request.value, secret: false }
    return { value: encryption.encrypt(request.value, contextOf(key), whatOf(key)), secret: true }
  }

  /** Whether somebody who reads the item gets something else than before. */
  function differs(before: KeyValuePair, after: KeyValuePair): boolean {
    if (before.value === after.value && before.encrypted === after.encrypted) return false
    try {
      return reveal(before) !== reveal(after)
    } catch (error) {
      // The key of the old value may be gone.
      if (isAppError(error)) return true
      throw error
    }
  }

  function planEvents(before: KeyValuePair | undefined, after: KeyValuePair): Unit {
    const object = maskedRecord(after)
    if (before === undefined) return merge(planEvent('core.svc.key_value_pair.create', { object }))
    return merge(
      planEvent('core.svc.key_value_pair.update', { object }),
      differs(before, after)
        ? planEvent('core.svc.key_value_pair.value_change', { old_object: maskedRecord(before), new_object: object })
        : undefined,
    )
  }

  /** Somebody else can be faster only by what runs out at that moment. @throws CONFLICT */
  function commit<T>(name: string, plan: (at: string) => { unit: Unit; result: T }): Promise<T> {
    const planAll = (): { unit: Unit; result: T } => {
      const at = now()
      const { unit, result } = plan(at)
      return { unit: merge(unit, { steps: [store.deleteExpired(at, SWEPT_BY_WRITES)], facts: [] }), result }
    }
    return commitPlan(database, planAll, `Key "${shown(name)}"`)
  }

  const find = (key: ItemKey): KeyValuePair | undefined => store.find(key, now())

  function get(key: ItemKey): KeyValuePair {
    const item = find(key)
    if (item === undefined) throw keyNotFound(key.name, key.scope)
    return item
  }

  return {
    find,
    get,
    reveal,

    tryReveal(item) {
      try {
        return reveal(item)
      } catch (error) {
        if (!isAppError(error)) throw error
        log.error('key_value_pair.undecryptable', error.message, { id: item.id })
        return undefined
      }
    },

    async put(key, request, caller) {
      const item = await withLock(contextOf(key), () =>
        commit(key.name, (at) => {
          const micros = nowMicros()
          const before = store.find(key, at)
          const { value, secret } = seal(key, request, caller.principal.isAdmin)
          const { ttlSeconds } = request
          const after: KeyValuePair = {
            ...key,
            id: before?.id ?? newId(),
            description: request.description === undefined ? (before?.description ?? null) : request.description,
            value,
            secret,
            encrypted: secret,
            expire_timestamp: ttlSeconds === undefined ? null : formatMicros(micros + ttlSeconds * 1_000_000),
          }
          const steps = before === undefined ? store.insert(after, at) : [store.update(after, at)]
          return { unit: merge({ steps, facts: [] }, planEvents(before, after)), result: after }
        }),
      )
      log.audit('key_value_pair.set', `PUT /v1/keys/${shown(key.name)} succeeded id=${item.id}`, {
        ...aboutCaller(caller),
        ...auditFields(item),
      })
      return item
    },

    async delete(key, caller) {
      const item = await withLock(contextOf(key), () =>
        commit(key.name, (at) => {
          const found = get(key)
          const unit = merge(
            { steps: [store.delete(found.id, at)], facts: [] },
            planEvent('core.svc.key_value_pair.delete', { object: maskedRecord(found) }),
          )
          return { unit, result: found }
        }),
      )
      log.audit('key_value_pair.deleted', `DELETE /v1/keys/${shown(key.name)} succeeded id=${item.id}`, {
        ...aboutCaller(caller),
        ...auditFields(item),
      })
    },

    auditDecryption(by, names) {
      const about = 'principal' in by ? aboutCaller(by) : by
      const what =
        typeof names === 'string' ? `value ${shown(names)}` : `values [${names.map((name) => shown(name)).join(', ')}]`
      log.audit('key_value_pair.decrypted', `User ${shown(about['user'])} decrypted the ${what}`, about)
    },

    async sweep(signal) {
      while (!signal.aborted) {
        const unit: Unit = { steps: [store.deleteExpired(now(), SWEPT_AT_ONCE)], facts: [] }
        const [result] = await database.write(unit)
        if ((result?.changes ?? 0) < SWEPT_AT_ONCE) return
      }
    },
  }
}

/** @throws BODY_INVALID */
function checkPlain(value: string): void {
  if (!value.isWellFormed()) throw bodyInvalid('value: it is not valid Unicode (a surrogate stands alone).')
  const bytes = Buffer.byteLength(value)
  if (bytes > MAX_VALUE_BYTES) {
    throw bodyInvalid(`value: it has ${bytes} bytes, at most ${MAX_VALUE_BYTES} are allowed.`)
  }
}

/** What cipher text is bound to: it is of no use for another item. */
function contextOf({ scope, user, name }: ItemKey): string {
  return JSON.stringify(['key_value_pair', scope, user, name])
}

function whatOf({ name }: ItemKey): string {
  return `value for key ${shown(name)}`
}

function auditFields({ scope, user, secret }: KeyValuePair): Record<string, unknown> {
  return { scope, ...(user === '' ? {} : { owner: user }), encrypted: secret }
}

/** @param value in place of the stored one, which then is not encrypted */
export function keyRecordOf(item: KeyValuePair, value?: string): KeyValuePairRecord {
  return {
    id: item.id,
    uid: keyResource(item).uid,
    name: item.name,
    scope: item.scope,
    ...(item.user === '' ? {} : { user: item.user }),
    ...(item.description === null ? {} : { description: item.description }),
    value: value ?? item.value,
    secret: item.secret,
    encrypted: item.encrypted && value === undefined,
    ...(item.expire_timestamp === null ? {} : { expire_timestamp: item.expire_timestamp }),
  }
}

function maskedRecord(item: KeyValuePair): KeyValuePairRecord {
  return item.secret ? { ...keyRecordOf(item), value: MASK } : keyRecordOf(item)
}
