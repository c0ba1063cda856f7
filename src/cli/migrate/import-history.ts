/** Takes over what has run, in batches, so that memory does not grow with the number of records. */
import { readHistory, type Fields, type HistoryLookups, type ImportedHistoryKind } from '../../migrate/index.ts'
import { writeJson } from '../../lib/json/index.ts'
import { recordIn, textOrEmpty, toList } from '../connection/responses.ts'
import type { Session } from '../session.ts'
import type { Manner } from './import-records.ts'
import { refusalOf, type Outcome, type Row } from './rows.ts'

/** Records of one request, and characters of them. */
const MAX_BATCH = 100
const MAX_BATCH_CHARACTERS = 2 * 1024 * 1024

const targets = {
  execution: { path: '/executions/import', key: 'executions' },
  execution_output: { path: '/executions/output/import', key: 'output' },
  trigger_instance: { path: '/triggerinstances/import', key: 'trigger_instances' },
  rule_enforcement: { path: '/ruleenforcements/import', key: 'rule_enforcements' },
  trace: { path: '/traces/import', key: 'traces' },
} as const satisfies Record<ImportedHistoryKind, unknown>

interface Waiting {
  name: string
  source: string
  desired: Fields
}

export async function importHistory(
  session: Session,
  kind: ImportedHistoryKind,
  files: readonly string[],
  lookups: HistoryLookups,
  { dryRun, add }: Pick<Manner, 'dryRun' | 'add'>,
): Promise<void> {
  const { path, key } = targets[kind]
  const progress = session.progress('Importing the history')
  let batch: Waiting[] = []
  let characters = 0
  let count = 0

  async function send(records: readonly Waiting[]): Promise<void> {
    if (records.length === 0) return
    try {
      const body = { [key]: records.map(({ desired }) => desired), dry_run: dryRun }
      const answer = recordIn(await session.client.call('POST', path, { body }))
      for (const [i, { outcome, why }] of toList(answer['outcomes']).entries()) {
        const { name = '', source = '' } = records[i] ?? {}
        const row: Row = { kind, name, source, outcome: textOrEmpty(outcome) as Outcome } // it has no others
        add(typeof why === 'string' ? { ...row, why } : row)
      }
    } catch (error) {
      const why = refusalOf(error)
      const [first, ...others] = records
      if (first === undefined) return
      if (others.length === 0) add({ kind, name: first.name, source: first.source, outcome: 'refused', why })
      // The server refuses all of them for one.
      else for (const record of records) await send([record])
    }
  }

  async function flush(): Promise<void> {
    await send(batch)
    batch = []
    characters = 0
  }

  for await (const item of readHistory(kind, files, lookups)) {
    count += 1
    if (count % 100 === 0) progress.update(`Importing the history: ${count} of the kind ${kind}`)
    const { converted, source } = item
    const { name } = converted
    if ('refused' in converted) add({ kind, name, source, outcome: 'refused', why: converted.refused })
    else if ('skipped' in converted) add({ kind, name, source, outcome: 'skipped', why: converted.skipped })
    else {
      const { length } = writeJson(converted.desired)
      if (batch.length >= MAX_BATCH || characters + length > MAX_BATCH_CHARACTERS) await flush()
      batch.push({ name, source, desired: converted.desired })
      characters += length
    }
  }
  await flush()
  progress.stop()
}
