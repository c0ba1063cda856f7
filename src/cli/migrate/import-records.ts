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
import { HttpFailure } from '../failures.ts'
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

interface BeforePack {
  /** Undefined: it was not there. */
  enabled: boolean | undefined
  /** Somebody has enabled or disabled it here since the last import. */
  isSwitchedHere: boolean
}

export interface Manner {
  ledger: Ledger
  /** Changes nothing. */
  dryRun: boolean
  /** What to do with what differs and was not left so by an import. */
  onConflict: 'skip' | 'replace'
  /** Kind and name of what packs define → as it was before this import registered its pack. */
  before: Map<string, BeforePack>
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
    if (error instanceof HttpFailure && error.code === 'AUTHENTICATION_OFF')
      return { name, outcome: 'skipped', why: 'auth.enable is off: import again when it is on, to take the user over' }
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

/** Kinds that packs define and somebody can enable and disable: where they are, and what registration calls them. */
const switched = {
  action: { path: '/actions', plural: 'actions' },
  rule: { path: '/rules', plural: 'rules' },
  action_alias: { path: '/actionalias', plural: 'aliases' },
  policy: { path: '/policies', plural: 'policies' },
  sensor: { path: '/sensortypes', plural: 'sensors' },
} as const satisfies Partial<Record<ApiKind, unknown>>
type SwitchedKind = keyof typeof switched

const isSwitched = (kind: ApiKind): kind is SwitchedKind => Object.hasOwn(switched, kind)
const switchesIn = (kind: ApiKind): string => `${kind}.enabled`

/** Whether somebody has enabled or disabled it here since the last import. */
function isSwitchedHere(kind: ApiKind, name: string, here: boolean, { ledger }: Pick<Manner, 'ledger'>): boolean {
  const ofKind = switchesIn(kind)
  return ledger.knows(ofKind, name) && !ledger.isNoted(ofKind, name, here)
}

/**
 * What of a pack is to be enabled and disabled when it is registered: as exports say, except where that was changed here.
 *
 * @param isThere whether the server has the pack
 */
export async function switchesOf(
  session: Session,
  { records }: Pick<LoadedRecords, 'records'>,
  pack: string,
  isThere: boolean,
  manner: Manner,
): Promise<Record<string, Record<string, boolean>>> {
  const targets = createTargets(session)
  const found: Record<string, Record<string, boolean>> = {}
  for (const kind of Object.keys(switched) as SwitchedKind[]) {
    for (const { converted } of records[kind]) {
      if (!('desired' in converted) || !converted.fromPack || !converted.name.startsWith(`${pack}.`)) continue
      const { name, desired } = converted
      const { enabled } = desired
      if (typeof enabled !== 'boolean') continue
      const here = isThere ? (await targets[kind].read(name, desired))?.['enabled'] : undefined
      const known = typeof here === 'boolean' ? here : undefined
      const isHere = known !== undefined && isSwitchedHere(kind, name, known, manner)
      manner.before.set(`${kind} ${name}`, { enabled: known, isSwitchedHere: isHere })
      if (!isHere || manner.onConflict === 'replace') (found[switched[kind].plural] ??= {})[name] = enabled
    }
  }
  return found
}

/** Its pack defines it: an export says no more than whether it is enabled. */
async function switchOne(
  session: Session,
  kind: ApiKind,
  name: string,
  { enabled }: Fields,
  current: Json | undefined,
  manner: Manner,
): Promise<Result> {
  const before = manner.before.get(`${kind} ${name}`)
  const isComing = current === undefined && manner.dryRun && before !== undefined
  if (current === undefined && !isComing) {
    return { name, outcome: 'refused', why: 'it belongs to a pack that is not on the server, or that has it no more' }
  }
  const here = isComing ? enabled : current?.['enabled']
  if (!isSwitched(kind) || typeof enabled !== 'boolean' || typeof here !== 'boolean') {
    return { name, outcome: 'skipped', why: 'it comes with its pack' }
  }
  const isOther = enabled !== here
  const isConflict = isOther && isSwitchedHere(kind, name, here, manner)
  if (isConflict && manner.onConflict === 'skip') {
    return { name, outcome: 'conflict', why: `it has been ${here ? 'enabled' : 'disabled'} here since the last import` }
  }
  if (!manner.dryRun) {
    if (isOther) {
      await session.client.call('PUT', `${switched[kind].path}/${segment(name)}`, { body: { ...current, enabled } })
    }
    manner.ledger.note(switchesIn(kind), name, enabled)
  }
  // Packs hardly ever disable what they bring.
  const wasOther = before !== undefined && (before.enabled ?? true) !== enabled
  if (!isOther && !wasOther) {
    return { name, outcome: 'unchanged', why: 'it comes with its pack' }
  }
  return {
    name,
    outcome: isConflict || (wasOther && before.isSwitchedHere) ? 'replaced' : 'changed',
    why: `it comes with its pack, and is ${enabled ? 'enabled' : 'disabled'} as it was there`,
  }
}
