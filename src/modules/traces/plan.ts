/** Which trace something belongs to, and the steps that put it there (contract 07, 7.3). */
import { createHash } from 'node:crypto'
import { traceUnknown } from '../../core/errors.ts'
import { isId, newId } from '../../core/ids.ts'
import { microsOf } from '../../core/time.ts'
import type { Unit } from '../../db/index.ts'
import type { TraceStore } from './store.ts'
import type { Cause, TraceMember } from './types.ts'

export interface TracePlan {
  trace_id: string
  unit: Unit
}

/**
 * A unit that starts a trace for a given tag fails with `Conflict` when another one did so first; planned again, it joins.
 *
 * @throws TRACE_UNKNOWN when a request names a trace that does not exist
 */
export function planTrace(store: TraceStore, cause: Cause, member: TraceMember, at: string): TracePlan {
  if (cause.kind === 'inherited') {
    return joined(store, cause.trace_id, member, cause.caused_by, at)
  }
  if (cause.trace_id !== undefined) {
    if (!isId(cause.trace_id) || store.find(cause.trace_id) === undefined) throw traceUnknown(cause.trace_id)
    return joined(store, cause.trace_id, member, cause.caused_by, at)
  }
  const existing = cause.trace_tag === undefined ? undefined : store.findByTag(cause.trace_tag)
  if (existing !== undefined) return joined(store, existing.id, member, cause.caused_by, at)

  // Lists are in the order of ids.
  const id = newId(microsOf(at))
  const tag = cause.trace_tag ?? cause.default_tag
  const plan = joined(store, id, member, cause.caused_by, at)
  const trace = { id, uid: traceUid(tag, id, at), trace_tag: tag, start_timestamp: at }
  plan.unit.steps.unshift(cause.trace_tag === undefined ? store.insert(trace) : store.insertFirst(trace))
  return plan
}

export const traceUid = (tag: string, id: string, at: string): string =>
  `trace:${createHash('md5').update(`${tag}:${id}:${at}`).digest('hex')}`

function joined(
  store: TraceStore,
  traceId: string,
  member: TraceMember,
  causedBy: Parameters<TraceStore['addMember']>[2],
  at: string,
): TracePlan {
  return {
    trace_id: traceId,
    unit: {
      steps: [store.addMember(traceId, member, causedBy, at)],
      facts: [{ name: 'trace.grown', payload: { id: traceId } }],
    },
  }
}
