/** Takes the records of exports over, through the API of the server. */
import {
  viewOf,
  type Decision,
  type Fields,
  type Ledger,
  type LoadedRecord,
  type LoadedRecords,
} from '../../migrate/index.ts'
import { segment } from '../connection/client.ts'
import type { Json } from '../output/print.ts'
import { progressText } from '../output/progress.ts'
import type { Session } from '../session.ts'
import { refusalOf, type Outcome, type Row } from './rows.ts'
import { createTargets, type ApiKind, type Target } from './targets.ts'

/** Records between two times that the ledger is saved. */
const SAVED_EVERY = 500

/** Before the packs, whose rules may fire for every key that appears. */
export const firstKinds: readonly ApiKind[] = ['user', 'key', 'api_key']
/** After the packs, which they may name. */
export const lastKinds: readonly ApiKind[] = ['trigger_type', 'action', 'rule', 'action_alias', 'policy', 'sensor']

export interface Manner {
  ledger: Ledger
  /** Changes nothing. */
  dryRun: boolean
  /** What to do with what differs and was not left so by an import. */
  onConflict: 'skip' | 'replace'
  readonly add: (row: Row) => void
}

export async function importRecords(
  session: Session,
  { records }: Pick<LoadedRecords, 'records'>,
  kinds: readonly ApiKind[],
  manner: Manner,
): Promise<void> {
  const targets = createTargets(session)
  const progress = session.progress('Importing')
  for (const kind of kinds) {
    const ofKind = records[kind]
    for (const [i, record] of ofKind.entries()) {
      if (i % 20 === 0) progress.update(`Importing records of the kind ${kind}: ${progressText(i, ofKind.length)}`)
      if (i % SAVED_EVERY === SAVED_EVERY - 1 && !manner.dryRun) await manner.ledger.save()
      manner.add({ kind, source: record.source, ...(await importOne(session, kind, record, targets[kind], manner)) })
    }
    if (!manner.dryRun) await manner.ledger.save()
  }
  progress.stop()
}

type Result = Pick<Row, 'name' | 'outcome' | 'why'>

function decide(
  kind: ApiKind,
  name: string,
  desired: Fields,
  current: Json | undefined,
  target: Target,
  { ledger }: Manner,
): Decision {
  const view = viewOf(kind, desired)
  if (current === undefined) return 'create'
  const decision = ledger.decide(kind, name, view, viewOf(kind, current))
  // What an import has left is compared as the server has it.
  if (decision !== 'conflict' || target.alike === undefined) return decision
  return ledger.decide(kind, name, view, viewOf(kind, target.alike(current, desired)))
}

async function importOne(
  session: Session,
  kind: ApiKind,
  { converted }: LoadedRecord,
  target: Target,
  manner: Manner,
): Promise<Result> {
  const { name } = converted
  if ('refused' in converted) return { name, outcome: 'refused', why: converted.refused }
  if ('skipped' in converted) return { name, outcome: 'skipped', why: converted.skipped }
  const { desired, fromPack } = converted
  try {
    const current = await target.read(name, desired)
    if (fromPack || isOfPack(current)) return await switchOne(session, kind, name, desired, current, manner)
    const decision = decide(kind, name, desired, current, target, manner)
    const outcome = outcomeOf(decision, manner)
    if (!manner.dryRun) {
      if (decision === 'create') await target.create(name, desired)
      else if (outcome === 'changed' || outcome === 'replaced') await target.replace(name, desired, current ?? {})
      // As the server has it, which may have filled in something.
      if (outcome !== 'conflict') {
        const now = decision === 'unchanged' ? current : await target.read(name, desired)
        if (now !== undefined) manner.ledger.note(kind, name, viewOf(kind, desired), viewOf(kind, now))
      }
    }
    return { name, outcome, ...(outcome === 'conflict' ? { why: 'another one of this name is here' } : {}) }
  } catch (error) {
    return { name, outcome: 'refused', why: refusalOf(error) }
  }
}

/** @returns what a decision leads to */
export function outcomeOf(decision: Decision, { onConflict }: Pick<Manner, 'onConflict'>): Outcome {
  if (decision === 'create') return 'imported'
  if (decision === 'update') return 'changed'
  if (decision === 'unchanged') return 'unchanged'
  return onConflict === 'replace' ? 'replaced' : 'conflict'
}

const isOfPack = (record: Json | undefined): boolean =>
  typeof record?.['metadata_file'] === 'string' && record['metadata_file'] !== ''

const paths: Partial<Record<ApiKind, string>> = {
  action: '/actions',
  rule: '/rules',
  action_alias: '/actionalias',
  policy: '/policies',
  sensor: '/sensortypes',
}

/** Its pack defines it: an export says no more than whether it is enabled. */
async function switchOne(
  session: Session,
  kind: ApiKind,
  name: string,
  { enabled }: Fields,
  current: Json | undefined,
  { ledger, dryRun }: Manner,
): Promise<Result> {
  if (current === undefined) {
    return { name, outcome: 'refused', why: 'it belongs to a pack that is not on the server, or that has it no more' }
  }
  const path = paths[kind]
  const here = current['enabled']
  if (path === undefined || typeof enabled !== 'boolean' || typeof here !== 'boolean') {
    return { name, outcome: 'skipped', why: 'it comes with its pack' }
  }
  const switchKind = `${kind}.enabled`
  if (
    enabled !== here &&
    ledger.knows(switchKind, name) &&
    ledger.decide(switchKind, name, enabled, here) === 'conflict'
  ) {
    return { name, outcome: 'conflict', why: `it has been ${here ? 'enabled' : 'disabled'} here since the last import` }
  }
  if (!dryRun) {
    if (enabled !== here) {
      await session.client.call('PUT', `${path}/${segment(name)}`, { body: { ...current, enabled } })
    }
    ledger.note(switchKind, name, enabled)
  }
  return enabled === here
    ? { name, outcome: 'unchanged', why: 'it comes with its pack' }
    : {
        name,
        outcome: 'changed',
        why: `it comes with its pack, and is ${enabled ? 'enabled' : 'disabled'} as it was there`,
      }
}
