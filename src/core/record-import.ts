/** Taking over records of another server with their ids, as a history to read. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createKeyedLock } from '../lib/concurrency/index.ts'
import type { ImportOutcome, ImportOutcomes } from './import-outcomes.ts'

/** A record that belongs to something that is not here. */
export class Skipped {
  readonly why: string
  constructor(why: string) {
    this.why = why
  }
}

/**
 * @param begin starts a batch. What it returns plans the storing of one record: a unit, or why it is refused; undefined:
 * it is here
 * @param write stores units and audits them
 * @returns takes over a batch; a record whose id is here already stays as it is
 */
export function createRecordImport<R extends { id: string }, U extends object, C>({
  isHere,
  begin,
  write,
}: {
  readonly isHere?: (id: string) => boolean
  readonly begin: (isDry: boolean) => (record: R) => Promise<U | string> | U | string | Skipped | undefined
  readonly write: (units: readonly U[], caller: C) => Promise<void>
}): (caller: C, records: readonly R[], isDry: boolean) => Promise<ImportOutcomes> {
  // What one import finds missing may not be stored by another before it does so.
  const lock = createKeyedLock()
  return (caller, records, isDry) =>
    lock('import', async () => {
      const outcomes: ImportOutcome[] = []
      const units: U[] = []
      const seen = new Set<string>()
      const plan = begin(isDry)
      for (const record of records) {
        await nextTurn()
        const { id } = record
        const planned = seen.has(id) || isHere?.(id) === true ? undefined : await plan(record)
        if (planned === undefined) outcomes.push({ id, outcome: 'unchanged' })
        else if (planned instanceof Skipped) outcomes.push({ id, outcome: 'skipped', why: planned.why })
        else if (typeof planned === 'string') outcomes.push({ id, outcome: 'refused', why: planned })
        else {
          seen.add(id)
          units.push(planned)
          outcomes.push({ id, outcome: 'imported' })
        }
      }
      if (units.length > 0 && !isDry) await write(units, caller)
      return { outcomes }
    })
}
