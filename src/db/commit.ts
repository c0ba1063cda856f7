/** Read-modify-write changes: plans again when another commit was faster. */
import { conflict } from '../core/errors.ts'
import { Conflict, type Database, type Unit } from './database.ts'

/** A plan that loses more often than this has another cause than a race. */
const MAX_ATTEMPTS = 5

/**
 * Commits a plan; plans again when another commit was faster.
 *
 * @param plan reads the current state and writes nothing; a unit without steps is not committed
 * @param what names the changed object for the message: `Rule "a.b"`
 * @returns the result of the plan that was committed
 * @throws CONFLICT when every attempt has lost
 */
export async function commitPlan<T>(
  database: Pick<Database, 'write'>,
  plan: () => { unit: Unit; result: T },
  what: string,
  maxAttempts = MAX_ATTEMPTS,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const { unit, result } = plan()
    if (unit.steps.length === 0) return result
    try {
      await database.write(unit)
      return result
    } catch (error) {
      if (!(error instanceof Conflict)) throw error
      if (attempt === maxAttempts) throw conflict(what)
    }
  }
}
