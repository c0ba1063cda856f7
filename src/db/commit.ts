/** Changes that are decided by what is there: one way to try again when it has changed meanwhile. */
import { conflict } from '../core/errors.ts'
import { Conflict, type Database, type Unit } from './database.ts'

/** Whoever keeps losing loses for another reason. */
const MAX_ATTEMPTS = 5

/**
 * Commits what is planned; plans again when somebody else was faster.
 *
 * @param plan reads what is there and writes nothing; a unit without steps is not committed
 * @param what is being changed, for the message: `Rule "a.b"`
 * @returns the result of the plan that was committed
 * @throws CONFLICT when each of so many attempts has lost
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
