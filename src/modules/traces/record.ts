/** Traces as clients see them (contract 07, 7.1): however long, in pieces, and as they were when the first was made. */
import type { TraceTable } from '../../db/index.ts'
import type { Projection } from '../../http/index.ts'
import type { ComponentRow, TraceStore } from './store.ts'
import type {
  CausedBy,
  TraceComponent,
  TraceMemberKind,
  TraceMemberRecord,
  TraceRecord,
  TraceSummary,
} from './types.ts'
import { writeJson } from '../../lib/json/index.ts'

const COMPONENTS_TOGETHER = 250

const arrays = [
  ['action_executions', 'execution'],
  ['rules', 'rule'],
  ['trigger_instances', 'trigger_instance'],
] as const satisfies (readonly [keyof TraceRecord, TraceMemberKind])[]

export const traceAttributes = [
  'id',
  'uid',
  'trace_tag',
  'start_timestamp',
  ...arrays.map(([name]) => name),
] as const satisfies (keyof TraceRecord)[]

/** For who asks for them by name. */
export const summaryAttributes = ['origin', 'component_count'] as const satisfies (keyof TraceSummary)[]

const MAX_COUNTED = 1000

const summaries: { [N in keyof TraceSummary]: (store: TraceStore, id: string) => TraceSummary[N] } = {
  origin(store, id) {
    const range = { traceId: id, after: 0, before: Number.MAX_SAFE_INTEGER, isDescending: false, limit: 1 }
    const [first] = store.members(range)
    return first === undefined ? null : toMember(first)
  },
  component_count: (store, id) => store.countComponents([id], MAX_COUNTED),
}

/** The JSON text of the attributes that are wanted, `id` always among them. */
export function* writeTrace(store: TraceStore, trace: TraceTable, wanted: Projection): Generator<string> {
  const upTo = store.lastComponent()
  yield writeJson(wanted.apply({ ...trace })).slice(0, -1)
  for (const [name, kind] of arrays) {
    if (wanted.needed?.has(name) === false) continue
    yield `,"${name}":[`
    let separator = ''
    for (let after = 0; ;) {
      const rows = store.components({ traceId: trace.id, kind, after, upTo, limit: COMPONENTS_TOGETHER })
      if (rows.length > 0) {
        yield separator + rows.map((row) => writeJson(wanted.apply({ [name]: toComponent(row) })[name])).join()
      }
      if (rows.length < COMPONENTS_TOGETHER) break
      separator = ','
      after = rows.at(-1)?.n ?? upTo
    }
    yield ']'
  }
  for (const name of summaryAttributes) {
    if (wanted.needed?.has(name) !== true) continue
    yield `,"${name}":${writeJson(wanted.apply({ [name]: summaries[name](store, trace.id) })[name])}`
  }
  yield '}'
}

export function toMember(row: ComponentRow): TraceMemberRecord {
  // Only `addMember` writes kinds.
  return { seq: row.n, kind: row.kind as TraceMemberKind, ...toComponent(row) }
}

function toComponent(row: ComponentRow): TraceComponent {
  const { caused_by_type: type, caused_by_id: id } = row
  return {
    object_id: row.object_id,
    ref: row.ref,
    updated_at: row.updated_at,
    // Only `addMember` writes types.
    caused_by: type === null || id === null ? {} : { type: type as CausedBy['type'], id },
  }
}
