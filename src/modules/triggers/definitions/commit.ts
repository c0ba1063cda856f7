/** Commit and checks shared by changes of trigger types and of triggers. */
import { Conflict, type Database, type Unit } from '../../../db/index.ts'
import { nameTaken } from '../../../core/errors.ts'
import type { Catalogue } from './catalogue.ts'
import type { TriggerRecord, TriggerTypeRecord } from '../types.ts'

/** @param onConflict creates the error for a row that changed after it was read */
export type Commit = (unit: Unit, refs: readonly string[], onConflict: () => unknown) => Promise<void>

/** Creates a function that commits a change, then reads the given trigger types again. */
export function createCommit({ database, catalogue }: { database: Database; catalogue: Catalogue }): Commit {
  return async (unit, refs, onConflict) => {
    if (unit.steps.length === 0) return
    try {
      await database.write(unit)
    } catch (error) {
      if (error instanceof Conflict) throw onConflict()
      throw error
    } finally {
      for (const ref of refs) catalogue.refreshType(ref)
    }
  }
}

/** @throws NAME_TAKEN */
export function refuseTaken(
  catalogue: Catalogue,
  ref: string,
  what: 'Trigger type' | 'Trigger',
  exceptId?: string,
): void {
  const existing = what === 'Trigger' ? catalogue.find(ref) : catalogue.findType(ref)
  if (existing === undefined || existing.id === exceptId) return
  throw nameTaken(`${what} "${ref}"`, existing.id)
}

/** The trigger of a type without parameters. */
export function shadowTriggerOf(catalogue: Catalogue, type: TriggerTypeRecord): TriggerRecord | undefined {
  const trigger = catalogue.find(type.ref)
  return trigger?.type === type.ref ? trigger : undefined
}

export const rulesIn = (uses: number): string => (uses === 1 ? 'a rule' : `${uses} rules`)
