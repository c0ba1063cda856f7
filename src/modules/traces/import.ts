/** Takes over traces of another server with the ids of their components. Nothing follows from them. */
import type { ImportOutcome, ImportOutcomes } from '../../core/import-outcomes.ts'
import { parseTimestamp } from '../../core/time.ts'
import { merge, type Database, type Unit } from '../../db/index.ts'
import { aboutCaller, type Caller } from '../../http/index.ts'
import { createKeyedLock } from '../../lib/concurrency/index.ts'
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
  // What one import finds missing may not be stored by another before it does so.
  const lock = createKeyedLock()

  /** @returns undefined when a time is none */
  function plan(trace: Imported): Unit | undefined {
    const { id, trace_tag: tag } = trace
    const start = parseTimestamp(trace.start_timestamp)
    if (start === undefined) return undefined
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

  return (caller, { traces, dry_run: isDry = false }) =>
    lock('import', async () => {
      const outcomes: ImportOutcome[] = []
      const units: Unit[] = []
      const seen = new Set<string>()
      for (const trace of traces) {
        const { id } = trace
        if (seen.has(id) || store.find(id) !== undefined) {
          outcomes.push({ id, outcome: 'unchanged' })
          continue
        }
        const unit = plan(trace)
        if (unit === undefined) outcomes.push({ id, outcome: 'refused', why: 'its time is not ISO 8601' })
        else {
          seen.add(id)
          units.push(unit)
          outcomes.push({ id, outcome: 'imported' })
        }
      }
      if (units.length > 0 && !isDry) {
        await database.write(merge(...units))
        log.audit('trace.imported', 'Traces imported.', { count: units.length, ...aboutCaller(caller) })
      }
      return { outcomes }
    })
}

function causeOf({ type, id }: TraceComponent['caused_by']): CausedBy | undefined {
  return type === undefined || id === undefined ? undefined : { type, id }
}
