/**
 * Stores what sensors dispatch, each dispatch once: the trigger instance and the id of the dispatch are one unit, and a
 * repetition of the id has no effect.
 */
import { setTimeout } from 'node:timers/promises'
import { isAppError } from '../../../core/errors.ts'
import { commitPlan, merge, type Database, type Unit } from '../../../db/index.ts'
import { canonical, isObject } from '../../../lib/schema/index.ts'
import { shown } from '../../../lib/text/index.ts'
import type { Cause } from '../../traces/types.ts'
import type { Triggers } from '../../triggers/index.ts'
import type { TriggerRecord } from '../../triggers/types.ts'
import type { Sensor } from '../types.ts'
import type { RunStore } from './store.ts'

export interface Dispatch {
  /** Undefined: a repetition cannot be recognised. */
  id: string | undefined
  /** Reference of a trigger or trigger type, or an object that names a trigger. */
  trigger: unknown
  payload: unknown
  trace_tag: string | undefined
  trace_id: string | undefined
}

export type DispatchOutcome = { instance: string; isRepeated: boolean } | { problem: string }

interface StoreOptions {
  signal: AbortSignal
  readonly mask: (text: string) => string
}

export interface Dispatches {
  /**
   * Waits while the server takes no events: its disk is full, or too many wait for rules. Rejects with the reason of the
   * signal. A problem repeats parts of the dispatch.
   *
   * @param options.mask removes secrets of what is cut in a problem
   */
  store(sensor: Sensor, dispatch: Dispatch, options: StoreOptions): Promise<DispatchOutcome>
}

/** Ids that are remembered for each sensor. */
const MAX_REMEMBERED_IDS = 10_000
/** Dispatches between two removals of older ids. */
const REMOVE_EVERY = 500
const MAX_ID_LENGTH = 255
/** The same limit as in execution contexts. */
const MAX_TAG_LENGTH = 1024
/** Time between two looks whether the server takes events again. */
const LOOK_AGAIN_MS = 200

export function createDispatches(deps: {
  database: Database
  store: RunStore
  triggers: Pick<Triggers, 'find' | 'findType' | 'ofType' | 'problemOfPayload' | 'planDispatch' | 'pendingCount'>
  /** `actionrunner.queue_limit` */
  queueLimit: number
}): Dispatches {
  const { database, store, triggers, queueLimit } = deps
  /** Being stored, by sensor and id. */
  const open = new Map<string, Promise<DispatchOutcome>>()
  /** Stored since the last removal, by sensor. */
  const stored = new Map<string, number>()

  async function waitForRoom(signal: AbortSignal): Promise<void> {
    while (!database.hasRoom() || triggers.pendingCount() >= queueLimit) {
      await setTimeout(LOOK_AGAIN_MS, undefined, { signal, ref: false })
    }
  }

  function removalFor(sensorId: string): Unit {
    const count = (stored.get(sensorId) ?? REMOVE_EVERY) + 1
    stored.set(sensorId, count >= REMOVE_EVERY ? 0 : count)
    return { steps: count >= REMOVE_EVERY ? [store.deleteOldDispatches(sensorId, MAX_REMEMBERED_IDS)] : [], facts: [] }
  }

  async function storeNew(
    sensor: Sensor,
    dispatch: Dispatch,
    { signal, mask }: StoreOptions,
  ): Promise<DispatchOutcome> {
    const trigger = findTrigger(triggers, dispatch.trigger, mask)
    if (typeof trigger === 'string') return { problem: trigger }
    const { id, payload, trace_tag: tag, trace_id: trace } = dispatch
    if (!isObject(payload)) return { problem: 'the payload is no object' }
    if (tag !== undefined && tag.length > MAX_TAG_LENGTH)
      return { problem: `the trace tag has more than ${MAX_TAG_LENGTH} characters` }
    const wrong = triggers.problemOfPayload(trigger.type, payload)
    if (wrong !== undefined) return { problem: `the payload does not fit trigger type "${trigger.type}": ${wrong}` }
    const origin: Cause | undefined =
      tag === undefined && trace === undefined
        ? undefined
        : {
            kind: 'request',
            default_tag: sensor.ref,
            ...(trace === undefined ? {} : { trace_id: trace }),
            ...(tag === undefined ? {} : { trace_tag: tag }),
          }
    for (;;) {
      await waitForRoom(signal)
      const instance = id === undefined ? undefined : store.findDispatch(sensor.id, id)
      if (instance !== undefined) return { instance, isRepeated: true }
      try {
        const plan = (): { result: DispatchOutcome; unit: Unit } => {
          const { instance, unit } = triggers.planDispatch(trigger, payload, origin)
          const result = { instance: instance.id, isRepeated: false }
          if (id === undefined) return { result, unit }
          const ofId: Unit = { steps: [store.insertDispatch(sensor.id, id, instance.id)], facts: [] }
          return { result, unit: merge(unit, ofId, removalFor(sensor.id)) }
        }
        return await commitPlan(database, plan, 'The trace')
      } catch (error) {
        if (!isAppError(error)) throw error
        // Wrong input, such as an unknown trace; what else there is passes.
        if (error.kind === 'invalid' || error.kind === 'not_found') return { problem: error.message }
        await setTimeout(LOOK_AGAIN_MS, undefined, { signal, ref: false })
      }
    }
  }

  return {
    store(sensor, dispatch, options) {
      const { id } = dispatch
      if (id === undefined) return storeNew(sensor, dispatch, options)
      if (id === '' || id.length > MAX_ID_LENGTH)
        return Promise.resolve({ problem: `the id must have 1 to ${MAX_ID_LENGTH} characters` })
      const key = `${sensor.id} ${id}`
      const known = open.get(key)
      if (known !== undefined) return known.then((outcome) => ({ ...outcome, isRepeated: true }))
      const instance = store.findDispatch(sensor.id, id)
      if (instance !== undefined) return Promise.resolve({ instance, isRepeated: true })
      const work = storeNew(sensor, dispatch, options).finally(() => open.delete(key))
      open.set(key, work)
      return work
    },
  }
}

/** The trigger that a sensor names, or why there is none. */
function findTrigger(
  triggers: Pick<Triggers, 'find' | 'findType' | 'ofType'>,
  named: unknown,
  mask: StoreOptions['mask'],
): TriggerRecord | string {
  const problemOf = (name: string): string => {
    const said = shown(mask(name))
    return triggers.findType(name) === undefined
      ? `there is no trigger "${said}"`
      : `trigger type "${said}" takes parameters: dispatch a trigger that add_trigger got`
  }
  if (typeof named === 'string') return triggers.find(named) ?? problemOf(named)
  if (!isObject(named)) return 'the trigger is neither a reference nor an object'
  const { id, ref, pack, name, type, parameters } = named
  const found = typeof id === 'string' ? triggers.find(id) : undefined
  if (found !== undefined) return found
  if (typeof type === 'string' && isObject(parameters)) {
    const wanted = canonical(parameters)
    const same = triggers.ofType(type).find((trigger) => canonical(trigger.parameters) === wanted)
    if (same !== undefined) return same
  }
  const reference =
    typeof ref === 'string' ? ref : typeof pack === 'string' && typeof name === 'string' ? `${pack}.${name}` : undefined
  if (reference === undefined) return 'the object names no trigger by id, ref, pack and name, or type and parameters'
  return triggers.find(reference) ?? problemOf(reference)
}
