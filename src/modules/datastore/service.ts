/** Reads and changes datastore items (contract 05, 5.11). Callers check permissions. */
import { bodyInvalid, cipherTextOfOther, isAppError, keyNotFound, preEncryptedRefused } from '../../core/errors.ts'
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
import { writeJson } from '../../lib/json/index.ts'

/** Expired rows that each change deletes. */
const EXPIRED_PER_WRITE = 4
const SWEPT_AT_ONCE = 200

export interface PutRequest {
  value: string
  /** Undefined: unchanged. */
  description?: string | null | undefined
  secret: boolean
  /** The value is cipher text. */
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
  /** Decrypts the value without an audit event. @throws CRYPTO_KEY_MISSING, CIPHER_TEXT_INVALID */
  reveal(item: KeyValuePair): string
  /** Decrypts the value. Undefined, with a log line, if that fails. */
  tryReveal(item: KeyValuePair): string | undefined
  /**
   * Writes the audit event of decrypted secrets.
   *
   * @param by the caller, or the user for whom a template was rendered
   * @param names name of one item, or names of a list
   */
  auditDecryption(
    by: Caller | { user: string; execution_id: string | undefined },
    names: string | readonly string[],
  ): void
  /** Deletes expired rows in batches. */
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
  // Changes of one item run one after another.
  const withLock = createKeyedLock()

  const reveal = (item: KeyValuePair): string =>
    item.encrypted ? encryption.decrypt(item.value, contextOf(item), whatOf(item)) : item.value

  /** The value as stored: encrypted if secret. */
  function encryptValue(key: ItemKey, request: PutRequest, isAdmin: boolean): Pick<KeyValuePair, 'value' | 'secret'> {
    if (request.isPreEncrypted) {
      if (!isAdmin) throw preEncryptedRefused()
      checkPlain(decryptGiven(request.value, key))
      return { value: request.value.toUpperCase(), secret: true }
    }
    checkPlain(request.value)
    if (!request.secret) return { value: request.value, secret: false }
    return { value: encryption.encrypt(request.value, contextOf(key), whatOf(key)), secret: true }
  }

  /** @throws CRYPTO_KEY_MISSING, CIPHER_TEXT_INVALID */
  function decryptGiven(value: string, key: ItemKey): string {
    try {
      return encryption.decrypt(value, contextOf(key), whatOf(key))
    } catch (error) {
      throw isAppError(error) && error.code === 'CIPHER_TEXT_INVALID' ? cipherTextOfOther(error.message) : error
    }
  }

  /** Whether a reader of the item gets another value than before. */
  function differs(before: KeyValuePair, after: KeyValuePair): boolean {
    if (before.value === after.value && before.encrypted === after.encrypted) return false
    try {
      return reveal(before) !== reveal(after)
    } catch (error) {
      // The encryption key of the old value can be lost.
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

  /** The only possible conflict is an item that expires at that moment. @throws CONFLICT */
  function commit<T>(name: string, plan: (at: string) => { unit: Unit; result: T }): Promise<T> {
    const planAll = (): { unit: Unit; result: T } => {
      const at = now()
      const { unit, result } = plan(at)
      return { unit: merge(unit, { steps: [store.deleteExpired(at, EXPIRED_PER_WRITE)], facts: [] }), result }
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
          const { value, secret } = encryptValue(key, request, caller.principal.isAdmin)
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
  if (!value.isWellFormed()) throw bodyInvalid('value: not valid Unicode (lone surrogate).', { path: ['value'] })
  const bytes = Buffer.byteLength(value)
  if (bytes > MAX_VALUE_BYTES) {
    throw bodyInvalid(`value: ${bytes} bytes are more than the maximum of ${MAX_VALUE_BYTES}.`, {
      path: ['value'],
    })
  }
}

/** Encryption context: cipher text of one item cannot be decrypted for another. */
function contextOf({ scope, user, name }: ItemKey): string {
  return writeJson(['key_value_pair', scope, user, name])
}

function whatOf({ name }: ItemKey): string {
  return `value for key ${shown(name)}`
}

function auditFields({ scope, user, secret }: KeyValuePair): Record<string, unknown> {
  return { scope, ...(user === '' ? {} : { owner: user }), encrypted: secret }
}

/** @param value decrypted value to show instead of the stored one */
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
