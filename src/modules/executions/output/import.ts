/** Takes over the output of imported executions with the ids of its records, as it was written. */
import type { ImportOutcomes } from '../../../core/import-outcomes.ts'
import { createRecordImport, Skipped } from '../../../core/record-import.ts'
import { parseTimestamp } from '../../../core/time.ts'
import { merge, type Database, type Unit } from '../../../db/index.ts'
import { aboutCaller } from '../../../http/index.ts'
import type { Log } from '../../../lib/log/index.ts'
import { isObject, MASK } from '../../../lib/schema/index.ts'
import type { ExecutionCaller } from '../request/draft.ts'
import type { ResultSecrets } from '../secrets/results.ts'
import type { ExecutionStore } from '../store.ts'
import { isFinal } from '../state.ts'
import type { Execution, OutputImport, OutputRecord } from '../types.ts'
import { noPlace, placeBehind } from './place.ts'
import type { OutputEnd } from './output.ts'
import type { OutputStore } from './store.ts'

export type ImportOutput = (caller: ExecutionCaller, body: OutputImport) => Promise<ImportOutcomes>

type Imported = OutputImport['output'][number]

/** What a batch knows of an execution. */
interface Known {
  execution: Execution
  end: OutputEnd
  ids: ReadonlySet<string>
}

export function createOutputImport({
  store,
  executions,
  results,
  database,
  log,
}: {
  store: Pick<OutputStore, 'insertOutput' | 'lastOutput' | 'outputIds'>
  executions: Pick<ExecutionStore, 'find'>
  results: Pick<ResultSecrets, 'maskReport'>
  database: Pick<Database, 'write'>
  log: Log
}): ImportOutput {
  function look(id: string): Known | undefined {
    const execution = executions.find(id)
    if (execution === undefined || !isFinal(execution.status)) return undefined
    const last = store.lastOutput(id)
    const end = last === undefined ? { seq: 0, place: noPlace } : { seq: last.seq, place: placeBehind(last, last) }
    return { execution, end, ids: new Set(store.outputIds(id)) }
  }

  const importAll = createRecordImport<Imported, Unit, ExecutionCaller>({
    begin(isDry) {
      const known = new Map<string, Known | undefined>()
      return ({ id, execution_id, output_type, data: text, timestamp: given }) => {
        const timestamp = parseTimestamp(given)
        if (timestamp === undefined) return 'its time is not ISO 8601'
        const found = known.get(execution_id) ?? look(execution_id)
        known.set(execution_id, found)
        // In a dry run it may be among those that would have come before.
        if (found === undefined)
          return isDry ? { steps: [], facts: [] } : new Skipped('its execution is not here, or has not ended')
        if (found.ids.has(id)) return undefined
        const { result } = results.maskReport(found.execution, { data: text })
        const data = isObject(result) && typeof result['data'] === 'string' ? result['data'] : MASK
        const seq = found.end.seq + 1
        const record: OutputRecord = { id, execution_id, seq, output_type, data, timestamp, host: null }
        const step = store.insertOutput(record, found.end.place)
        found.end = { seq, place: placeBehind(record, found.end.place) }
        return { steps: [step], facts: [] }
      }
    },
    async write(units, caller) {
      await database.write(merge(...units))
      log.audit('execution_output.imported', 'Output of executions imported.', {
        count: units.length,
        ...aboutCaller(caller),
      })
    },
  })
  return (caller, { output, dry_run: isDry = false }) => importAll(caller, output, isDry)
}
