/** Cache of all trigger types and triggers, because each event reads them. The rows are authoritative. */
import type { Bus } from '../../../bus/index.ts'
import type { Compat } from '../../../core/compat/index.ts'
import type { Encryption } from '../../../core/encryption.ts'
import { isId } from '../../../core/ids.ts'
import type { Log } from '../../../lib/log/index.ts'
import { MASK } from '../../../lib/schema/index.ts'
import type { DefinitionStore, StoredTrigger } from './store.ts'
import { replaceSecrets } from './type-schemas.ts'
import type { TriggerRecord, TriggerTypeRecord } from '../types.ts'
import { readJson } from '../../../lib/json/index.ts'

export interface Catalogue {
  /** Reads the rows. */
  load(): void
  findType(refOrId: string): TriggerTypeRecord | undefined
  find(refOrId: string): TriggerRecord | undefined
  /** Oldest first. */
  types(): Iterable<TriggerTypeRecord>
  /** Oldest first. */
  triggers(): Iterable<TriggerRecord>
  /** Oldest first. */
  ofType(typeRef: string): readonly TriggerRecord[]
  /** Reads a type again after it was created, changed (its reference too) or deleted. */
  refreshType(ref: string): void
  /** The trigger as clients see it. */
  record(trigger: TriggerRecord): TriggerRecord
  /** The trigger with its secrets. @throws CRYPTO_KEY_MISSING, CIPHER_TEXT_INVALID */
  decrypt(stored: StoredTrigger): TriggerRecord
}

/** Encryption context of the parameters of a trigger. */
export const encryptionContext = (triggerId: string): string => `trigger:${triggerId}`

/** Subscribes first, so that later subscribers find a trigger here when its event arrives. */
export function createCatalogue(deps: {
  store: DefinitionStore
  bus: Bus
  encryption: Encryption
  log: Log
  compat: Pick<Compat, 'ours'>
}): Catalogue {
  const { store, bus, encryption, log, compat } = deps
  /** By the reference of the type, which is also that of its trigger if it takes no parameters. */
  const ours = (ref: string): string => compat.ours('triggerType', ref)
  const typesByRef = new Map<string, TriggerTypeRecord>()
  const typesById = new Map<string, TriggerTypeRecord>()
  const triggersById = new Map<string, TriggerRecord>()
  const triggersByRef = new Map<string, TriggerRecord>()
  const triggersByType = new Map<string, Map<string, TriggerRecord>>()

  function decrypt({ record, sealed }: StoredTrigger): TriggerRecord {
    if (sealed === undefined) return record
    const what = `parameters of trigger "${record.ref}"`
    const parameters = readJson(encryption.decrypt(sealed, encryptionContext(record.id), what))
    return { ...record, parameters: parameters as Record<string, unknown> } // encrypted by `service.ts`
  }

  function put(stored: StoredTrigger): void {
    let trigger: TriggerRecord
    try {
      trigger = decrypt(stored)
    } catch (error) {
      // A trigger without its secrets would accept unsigned requests.
      log.error('trigger.unreadable', 'Could not decrypt the secret parameters of a trigger; it stays inactive', {
        trigger: stored.record.ref,
        error,
      })
      return
    }
    const { id, ref, type } = trigger
    const before = triggersById.get(id)
    if (before !== undefined && before.ref !== ref) triggersByRef.delete(before.ref)
    triggersById.set(id, trigger)
    triggersByRef.set(ref, trigger)
    const ofType = triggersByType.get(type) ?? new Map<string, TriggerRecord>()
    ofType.set(id, trigger)
    triggersByType.set(type, ofType)
  }

  function remove(id: string): void {
    const trigger = triggersById.get(id)
    if (trigger === undefined) return
    triggersById.delete(id)
    if (triggersByRef.get(trigger.ref)?.id === id) triggersByRef.delete(trigger.ref)
    const ofType = triggersByType.get(trigger.type)
    ofType?.delete(id)
    if (ofType?.size === 0) triggersByType.delete(trigger.type)
  }

  function putType(type: TriggerTypeRecord): void {
    typesByRef.set(type.ref, type)
    typesById.set(type.id, type)
  }

  function refreshType(ref: string): void {
    const type = store.findType(ref)
    const before = typesByRef.get(ref)
    if (before !== undefined && before.id !== type?.id) typesById.delete(before.id)
    if (type === undefined) {
      typesByRef.delete(ref)
      return
    }
    const renamed = typesById.get(type.id)
    if (renamed !== undefined && renamed.ref !== ref) typesByRef.delete(renamed.ref)
    putType(type)
  }

  function refresh({ id, type }: { id: string; type: string }): void {
    if (!typesByRef.has(type)) refreshType(type)
    const stored = store.find(id)
    if (stored === undefined) remove(id)
    else put(stored)
  }

  bus.subscribe('trigger.created', refresh)
  bus.subscribe('trigger.updated', refresh)
  bus.subscribe('trigger.deleted', refresh)

  return {
    load() {
      for (const map of [typesByRef, typesById, triggersById, triggersByRef, triggersByType]) map.clear()
      for (const type of store.types()) putType(type)
      for (const trigger of store.triggers()) put(trigger)
    },
    findType: (refOrId) => (isId(refOrId) ? typesById.get(refOrId) : undefined) ?? typesByRef.get(ours(refOrId)),
    find: (refOrId) => (isId(refOrId) ? triggersById.get(refOrId) : undefined) ?? triggersByRef.get(ours(refOrId)),
    types: () => typesById.values(),
    triggers: () => triggersById.values(),
    ofType: (typeRef) => [...(triggersByType.get(ours(typeRef))?.values() ?? [])],
    refreshType,
    record(known) {
      const { author: _author, ...trigger } = known
      const type = typesByRef.get(trigger.type)
      // Without the type it is unknown which parameters are secret.
      if (type === undefined) return { ...trigger, parameters: {} }
      const parameters = replaceSecrets(type, trigger.parameters, () => MASK)
      return parameters === trigger.parameters ? trigger : { ...trigger, parameters }
    },
    decrypt,
  }
}
