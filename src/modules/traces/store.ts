/** Tables `traces` and `trace_components`. */
import type { Database, Step } from '../../db/database.ts'
import type { TraceTable } from '../../db/tables.ts'
import type { CausedBy, TraceMember } from './types.ts'

export interface TraceStore {
  find(id: string): TraceTable | undefined
  /** The newest trace with this tag. */
  findByTag(tag: string): TraceTable | undefined
  insert(trace: TraceTable): Step
  addMember(traceId: string, member: TraceMember, causedBy: CausedBy | undefined, at: string): Step
}

export function createTraceStore(database: Database): TraceStore {
  const { build } = database
  return {
    find: (id) => database.first(build.selectFrom('traces').selectAll().where('id', '=', id)),
    findByTag: (tag) =>
      database.first(
        build.selectFrom('traces').selectAll().where('trace_tag', '=', tag).orderBy('id', 'desc').limit(1),
      ),
    insert: (trace) => ({ query: build.insertInto('traces').values(trace) }),
    addMember: (traceId, member, causedBy, at) => ({
      query: build.insertInto('trace_components').values({
        trace_id: traceId,
        ...member,
        updated_at: at,
        caused_by_type: causedBy?.type ?? null,
        caused_by_id: causedBy?.id ?? null,
      }),
    }),
  }
}
