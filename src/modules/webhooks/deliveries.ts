/** Stored deliveries. svc ignores a repetition, which it detects by Idempotency-Key or delivery id. */
import { createHash } from 'node:crypto'
import type { Unit } from '../../db/index.ts'
import { formatMicros, nowMicros } from '../../core/time.ts'
import { idempotencyKeyReused } from '../../core/errors.ts'
import type { SentHeaders } from './headers.ts'
import type { HookTrigger } from './registry.ts'
import type { Proof } from './signatures.ts'
import type { DeliveryStore } from './store.ts'
import { readJson, writeJson } from '../../lib/json/index.ts'

/** Microseconds during which svc detects a repetition. */
const KEPT_MICROS = 24 * 3600 * 1_000_000

/** Identifies a delivery. */
export interface DeliveryId {
  hook: string
  caller: string
  keyHash: string
  /** Whether the client promises to mean the same request, which then runs once whatever came of it. */
  isIdempotent: boolean
  /** Undefined: repetitions can have another body. */
  bodyHash: string | undefined
}

export interface Delivery {
  traceId: string
  /** In the order of the first delivery. */
  instanceIds: readonly string[]
  /** Digest of the enabled rules that it met; empty: unknown. */
  rules: string
}

export interface Deliveries {
  /** The first delivery with this id. @throws IDEMPOTENCY_KEY_REUSED */
  find(id: DeliveryId): Delivery | undefined
  /**
   * Fails with `Conflict` if a concurrent request stored the delivery.
   *
   * @param replaced the delivery that this one repeats, and that runs again
   */
  plan(id: DeliveryId, delivery: Delivery, replaced?: Delivery): Unit
}

export function createDeliveries(store: DeliveryStore): Deliveries {
  const since = (): string => formatMicros(nowMicros() - KEPT_MICROS)
  return {
    find({ hook, caller, keyHash, bodyHash }) {
      const row = store.find({ hook, caller, key_hash: keyHash })
      if (row === undefined || row.created_at < since()) return undefined
      const instanceIds = readJson(row.trigger_instances) as string[] // written below
      if (bodyHash !== undefined && row.body_hash !== bodyHash) throw idempotencyKeyReused('body', instanceIds[0])
      return { traceId: row.trace_id, instanceIds, rules: row.rules }
    },
    plan({ hook, caller, keyHash, bodyHash }, { traceId, instanceIds, rules }, replaced) {
      const row = {
        hook,
        caller,
        key_hash: keyHash,
        body_hash: bodyHash ?? '',
        trace_id: traceId,
        trigger_instances: writeJson(instanceIds),
        created_at: formatMicros(nowMicros()),
        rules,
      }
      const before = replaced === undefined ? '' : writeJson(replaced.instanceIds)
      return { steps: store.insert(row, since(), before), facts: [] }
    },
  }
}

/** A trigger that a request can dispatch, and the proof. */
export interface AdmittedDelivery {
  trigger: HookTrigger
  /** Undefined: admitted by the permission of the caller. */
  proof: Proof | undefined
}

/**
 * The id of a delivery, if it has one. Signed ids come first: an attacker who replays a recorded request could change
 * unsigned parts, so that it looks new. A header that a trigger names replaces the unsigned one of its scheme. Triggers
 * that want each delivery have no say; `Idempotency-Key` counts for them too.
 *
 * @param body the parsed body
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
    for (const each of deduplicated) {
      const found = find(each)
      if (found !== undefined) return found
    }
    return undefined
  }
  const [oldest] = admitted
  const deduplicated = admitted.filter(({ trigger }) => trigger.isDeduplicated)
  const signer = deduplicated.find(({ proof }) => proof?.signedId !== undefined)
  const kinds: [kind: string, find: () => string | undefined][] = [
    ['signed', () => signer?.proof?.signedId?.(body)],
    ['named', () => first(({ trigger }) => valueOf(trigger.deliveryIdHeader))],
    ['idempotency', () => valueOf('idempotency-key')],
    [
      'unsigned',
      () => first(({ trigger, proof }) => (trigger.deliveryIdHeader === undefined ? proof?.unsignedId : undefined)),
    ],
  ]
  for (const [kind, find] of kinds) {
    const key = find()
    if (key === undefined) continue
    // The trigger identifies a signing sender: an added credential must not make a recorded request a new delivery.
    const setOff = kind === 'signed' ? signer : user === '' ? oldest : undefined
    return {
      hook,
      caller: setOff === undefined ? `user ${user}` : `trigger ${setOff.trigger.record.id}`,
      keyHash: digest(`${kind} ${key}`),
      isIdempotent: kind === 'idempotency',
      bodyHash: kind === 'idempotency' ? digest(sent.mediaType, sent.bytes) : undefined,
    }
  }
  return undefined
}

function digest(text: string, bytes?: Buffer): string {
  const hash = createHash('sha256').update(`${text}\n`)
  return (bytes === undefined ? hash : hash.update(bytes)).digest('hex')
}
