/** Takes over rule enforcements of another server with their ids, as a history to read. */
import type { ImportOutcomes } from '../../../core/import-outcomes.ts'
import { createRecordImport } from '../../../core/record-import.ts'
import { parseTimestamp } from '../../../core/time.ts'
import { merge, type Database, type Unit } from '../../../db/index.ts'
import { aboutCaller, type Caller } from '../../../http/index.ts'
import type { Log } from '../../../lib/log/index.ts'
import type { RuleEnforcementImport } from '../types.ts'
import type { EnforcementStore } from './store.ts'

export type ImportEnforcements = (caller: Caller, body: RuleEnforcementImport) => Promise<ImportOutcomes>

type Imported = RuleEnforcementImport['rule_enforcements'][number]

export function createEnforcementImport({
  store,
  database,
  log,
}: {
  store: Pick<EnforcementStore, 'find' | 'insert'>
  database: Pick<Database, 'write'>
  log: Log
}): ImportEnforcements {
  function plan({ enforced_at: given, rule, execution_id, failure_reason, ...record }: Imported): Unit | string {
    const at = parseTimestamp(given)
    if (at === undefined) return 'its time is not ISO 8601'
    const hasFailed = execution_id === undefined
    const step = store.insert({
      ...record,
      enforced_at: at,
      rule: { ref: rule.ref, uid: rule.uid ?? `rule:${rule.ref.replace('.', ':')}`, id: rule.id ?? '' },
      // Another server skips none.
      status: hasFailed ? 'failed' : 'succeeded',
      ...(hasFailed ? {} : { execution_id }),
      ...(failure_reason === undefined ? {} : { failure_reason }),
    })
    return { steps: [step], facts: [] }
  }

  const importAll = createRecordImport<Imported, Unit, Caller>({
    isHere: (id) => store.find(id) !== undefined,
    begin: () => plan,
    async write(units, caller) {
      await database.write(merge(...units))
      log.audit('rule_enforcement.imported', 'Rule enforcements imported.', {
        count: units.length,
        ...aboutCaller(caller),
      })
    },
  })
  return (caller, { rule_enforcements: records, dry_run: isDry = false }) => importAll(caller, records, isDry)
}
