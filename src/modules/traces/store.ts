/** Tables `traces` and `trace_components`. */
import type { Database, Step } from '../../db/database.ts'
import { columnsOf, prepared } from '../../db/prepared.ts'
import type { TraceComponentTable, TraceTable } from '../../db/tables.ts'
import type { CausedBy, TraceMember } from './types.ts'

export interface TraceStore {
  find(id: string): TraceTable | undefined
  /** The newest trace with this tag. */
  findByTag(tag: string): TraceTable | undefined
  insert(trace: TraceTable): Step
  /** Fails with `Conflict` when a trace with this tag has been made meanwhile. */
  insertFirst(trace: TraceTable): Step
  addMember(traceId: string, member: TraceMember, causedBy: CausedBy | undefined, at: string): Step
}

export function createTraceStore(database: Database): TraceStore {
  const { build } = database
  const trace: TraceTable = { id: '', uid: '', trace_tag: '', start_timestamp: '' }
  const component: TraceComponentTable = {
    trace_id: '',
    kind: '',
    object_id: '',
    ref: '',
    updated_at: '',
    caused_by_type: '',
    caused_by_id: '',
  }
  const insertTrace = prepared(build.insertInto('traces').values(trace), columnsOf(trace))
  const insertFirstTrace = prepared(
    build
      .insertInto('traces')
      .columns(['id', 'uid', 'trace_tag', 'start_timestamp'])
      .expression(
        build
          .selectNoFrom((on) => [on.val('').as('id'), on.val('').as('uid'), on.val('').as('tag'), on.val('').as('at')])
          .where((on) => on.not(on.exists(build.selectFrom('traces').select('id').where('trace_tag', '=', '')))),
      ),
    (row: TraceTable) => [row.id, row.uid, row.trace_tag, row.start_timestamp, row.trace_tag],
  )
  const insertComponent = prepared(build.insertInto('trace_components').values(component), columnsOf(component))
  return {
    find: (id) => database.first(build.selectFrom('traces').selectAll().where('id', '=', id)),
    findByTag: (tag) =>
      database.first(
        build.selectFrom('traces').selectAll().where('trace_tag', '=', tag).orderBy('id', 'desc').limit(1),
      ),
    insert: (row) => ({ query: insertTrace(row) }),
    insertFirst: (row) => ({ query: insertFirstTrace(row), expect: 1 }),
    addMember: (traceId, member, causedBy, at) => ({
      query: insertComponent({
        trace_id: traceId,
        ...member,
        updated_at: at,
        caused_by_type: causedBy?.type ?? null,
        caused_by_id: causedBy?.id ?? null,
      }),
    }),
  }
}
