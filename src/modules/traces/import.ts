/** Takes over traces of another server with the ids of their components. Nothing follows from them. */
import type { ImportOutcomes } from '../../core/import-outcomes.ts'
import { createRecordImport } from '../../core/record-import.ts'
import { parseTimestamp } from '../../core/time.ts'
import { merge, type Database, type Unit } from '../../db/index.ts'
import { aboutCaller, type Caller } from '../../http/index.ts'
import type { Log } from '../../lib/log/index.ts'
import { traceUid } from './plan.ts'
import type { TraceStore } from './store.ts'
import type { CausedBy, TraceComponent, TraceImport, TraceMemberKind } from './types.ts'

type Imported = TraceImport['traces'][number]

const kinds = {
  trigger_instances: 'trigger_instance',
  rules: 'rule',
  action_executions: 'execution',
} as const satisfies Record<string, TraceMemberKind>

export type ImportTraces = (caller: Caller, body: TraceImport) => Promise<ImportOutcomes>

export function createTraceImport({
  store,
  database,
  log,
}: {
  store: TraceStore
  database: Pick<Database, 'write'>
  log: Log
}): ImportTraces {
  /** @returns the unit that stores it, or why it cannot be */
  function plan(trace: Imported): Unit | string {
    const { id, trace_tag: tag } = trace
    const start = parseTimestamp(trace.start_timestamp)
    if (start === undefined) return 'its time is not ISO 8601'
    const members = Object.entries(kinds).flatMap(([attribute, kind]) =>
      (trace[attribute as keyof typeof kinds] ?? []).map((component) => ({
        // its own keys
        kind,
        component,
        at: parseTimestamp(component.updated_at) ?? start,
      })),
    )
    // Components are numbered in the order in which they were added; a cause comes before what it causes.
    members.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0))
    return {
      steps: [
        store.insert({ id, uid: traceUid(tag, id, start), trace_tag: tag, start_timestamp: start }),
        ...members.map(({ kind, component, at }) =>
          store.addMember(
            id,
            { kind, object_id: component.object_id, ref: component.ref },
            causeOf(component.caused_by),
            at,
          ),
        ),
      ],
      facts: [],
    }
  }

  const importAll = createRecordImport<Imported, Unit, Caller>({
    isHere: (id) => store.find(id) !== undefined,
    begin: () => plan,
    async write(units, caller) {
      await database.write(merge(...units))
      log.audit('trace.imported', 'Traces imported.', { count: units.length, ...aboutCaller(caller) })
    },
  })
  return (caller, { traces, dry_run: isDry = false }) => importAll(caller, traces, isDry)
}

function causeOf({ type, id }: TraceComponent['caused_by']): CausedBy | undefined {
  return type === undefined || id === undefined ? undefined : { type, id }
}
