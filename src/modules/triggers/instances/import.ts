/** Takes over trigger instances of another server with their ids, as a history to read: no rule is evaluated for them. */
import type { ImportOutcomes } from '../../../core/import-outcomes.ts'
import { createRecordImport } from '../../../core/record-import.ts'
import { parseTimestamp } from '../../../core/time.ts'
import { merge, type Database, type Unit } from '../../../db/index.ts'
import { aboutCaller, type Caller } from '../../../http/index.ts'
import { writeJson } from '../../../lib/json/index.ts'
import type { Log } from '../../../lib/log/index.ts'
import { webhookTypeRef } from '../builtin/types.ts'
import type { Catalogue } from '../definitions/catalogue.ts'
import type { TriggerInstanceImport } from '../types.ts'
import { maskHeaders } from './credential-headers.ts'
import type { SealedHeaders } from './sealed-headers.ts'
import type { InstanceStore } from './store.ts'

export type ImportInstances = (caller: Caller, body: TriggerInstanceImport) => Promise<ImportOutcomes>

type Imported = TriggerInstanceImport['trigger_instances'][number]

export function createInstanceImport({
  store,
  catalogue,
  sealedHeaders,
  database,
  log,
}: {
  store: Pick<InstanceStore, 'insert' | 'typeOf'>
  catalogue: Pick<Catalogue, 'find'>
  sealedHeaders: Pick<SealedHeaders, 'seal'>
  database: Pick<Database, 'write'>
  log: Log
}): ImportInstances {
  function plan({
    id,
    trigger,
    trigger_type: given,
    payload: whole = {},
    occurrence_time,
    status,
  }: Imported): Unit | string {
    const at = parseTimestamp(occurrence_time)
    if (at === undefined) return 'its time is not ISO 8601'
    const known = catalogue.find(trigger)
    const type = given ?? known?.type ?? trigger
    const { payload, credentials } =
      type === webhookTypeRef ? maskHeaders(whole) : { payload: whole, credentials: undefined }
    const step = store.insert({
      id,
      trigger,
      trigger_id: known?.id ?? '',
      trigger_type: type,
      occurrence_time: at,
      status: status ?? 'processed',
      // Traces name their trigger instances.
      trace_id: '',
      payloadText: writeJson(payload),
      ...(credentials === undefined ? {} : { sealed_headers: sealedHeaders.seal(id, credentials) }),
    })
    return { steps: [step], facts: [] }
  }

  const importAll = createRecordImport<Imported, Unit, Caller>({
    isHere: (id) => store.typeOf(id) !== undefined,
    begin: () => plan,
    async write(units, caller) {
      await database.write(merge(...units))
      log.audit('trigger_instance.imported', 'Trigger instances imported.', {
        count: units.length,
        ...aboutCaller(caller),
      })
    },
  })
  return (caller, { trigger_instances: records, dry_run: isDry = false }) => importAll(caller, records, isDry)
}
