/** What has been delivered already: a repetition, told by its Idempotency-Key or by the id of the delivery, causes nothing. */
import { createHash } from 'node:crypto'
import type { Unit } from '../../db/index.ts'
import { formatMicros, nowMicros } from '../../core/time.ts'
import { idempotencyKeyReused } from '../../core/errors.ts'
import type { SentHeaders } from './headers.ts'
import type { HookTrigger } from './registry.ts'
import type { Proof } from './signatures.ts'
import type { DeliveryStore } from './store.ts'

/** For how long a repetition is known. */
const KEPT_MICROS = 24 * 3600 * 1_000_000

/** What tells one delivery from others. */
export interface DeliveryId {
  hook: string
  caller: string
  keyHash: string
  /** Undefined: the sender does not promise that the body is the same each time. */
  bodyHash: string | undefined
}

export interface Delivery {
  traceId: string
  /** In the order of the first time. */
  instanceIds: readonly string[]
}

export interface Deliveries {
  /** What came of it the first time. @throws IDEMPOTENCY_KEY_REUSED */
  find(id: DeliveryId): Delivery | undefined
  /** Fails with `Conflict` when it has been delivered meanwhile. */
  plan(id: DeliveryId, delivery: Delivery): Unit
}

export function createDeliveries(store: DeliveryStore): Deliveries {
  const since = (): string => formatMicros(nowMicros() - KEPT_MICROS)
  return {
    find({ hook, caller, keyHash, bodyHash }) {
      const row = store.find({ hook, caller, key_hash: keyHash })
      if (row === undefined || row.created_at < since()) return undefined
      const instanceIds = JSON.parse(row.trigger_instances) as string[] // written below
      if (bodyHash !== undefined && row.body_hash !== bodyHash) throw idempotencyKeyReused(instanceIds[0] ?? '')
      return { traceId: row.trace_id, instanceIds }
    },
    plan({ hook, caller, keyHash, bodyHash }, { traceId, instanceIds }) {
      const row = {
        hook,
        caller,
        key_hash: keyHash,
        body_hash: bodyHash ?? '',
        trace_id: traceId,
        trigger_instances: JSON.stringify(instanceIds),
        created_at: formatMicros(nowMicros()),
      }
      return { steps: store.insert(row, since()), facts: [] }
    },
  }
}

/** A trigger that a request may set off, and what proved that. */
export interface AdmittedDelivery {
  trigger: HookTrigger
  /** Undefined: the caller's permission did. */
  proof: Proof | undefined
}

/**
 * The id of a delivery, if it has one. What is signed comes first: the rest of a request that somebody has recorded could be
 * changed, to have it taken for a new one.
 *
 * @param body what was parsed of what was sent
 */
export function deliveryIdOf(
  hook: string,
  user: string,
  admitted: readonly AdmittedDelivery[],
  headers: SentHeaders,
  sent: { bytes: Buffer; mediaType: string },
  body: unknown,
): DeliveryId | undefined {
  const valueOf = (name: string | undefined): string | undefined => {
    const value = name === undefined ? undefined : headers.get(name)?.join(',').trim()
    return value === '' ? undefined : value
  }
  const first = (find: (admitted: AdmittedDelivery) => string | undefined): string | undefined => {
    for (const each of admitted) {
      const found = find(each)
      if (found !== undefined) return found
    }
    return undefined
  }
  const [oldest] = admitted
  const signer = admitted.find(({ proof }) => proof?.signedId !== undefined)
  const kinds: [kind: string, find: () => string | undefined][] = [
    ['signed', () => signer?.proof?.signedId?.(body)],
    ['named', () => first(({ trigger }) => valueOf(trigger.deliveryIdHeader))],
    ['idempotency', () => valueOf('idempotency-key')],
    ['unsigned', () => first(({ proof }) => proof?.unsignedId)],
  ]
  for (const [kind, find] of kinds) {
    const key = find()
    if (key === undefined) continue
    // Whoever signs is known by what it may set off; a credential that somebody adds to what was recorded changes nothing.
    const setOff = kind === 'signed' ? signer : user === '' ? oldest : undefined
    return {
      hook,
      caller: setOff === undefined ? `user ${user}` : `trigger ${setOff.trigger.record.id}`,
      keyHash: digest(`${kind} ${key}`),
      bodyHash: kind === 'idempotency' ? digest(sent.mediaType, sent.bytes) : undefined,
    }
  }
  return undefined
}

function digest(text: string, bytes?: Buffer): string {
  const hash = createHash('sha256').update(`${text}\n`)
  return (bytes === undefined ? hash : hash.update(bytes)).digest('hex')
}
