/** Steps that are committed together with the first unit of a piece of work, without the work knowing of them. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { merge, type Database, type Unit } from './database.ts'

export interface Companions {
  /** Writes as the given one, with the companions. */
  database: Database
  /**
   * Starts the work in this turn. The first unit that it commits also applies the unit of `plan`: both are stored or
   * neither.
   *
   * @param plan gets the subject of the unit
   */
  accompany<T>(plan: (subject: string | undefined) => Unit, work: () => Promise<T>): Accompanied<T>
}

export interface Accompanied<T> {
  result: Promise<T>
  /** Whether the work has committed something. */
  readonly hasCommitted: () => boolean
}

interface Companion {
  readonly plan: (subject: string | undefined) => Unit
  /** `over`: the work has ended. What it has started in the background commits without the companion. */
  state: 'waits' | 'writes' | 'committed' | 'over'
}

export function createCompanions(database: Database): Companions {
  const current = new AsyncLocalStorage<Companion>()
  return {
    database: {
      ...database,
      async write(unit) {
        const companion = current.getStore()
        if (companion?.state !== 'waits') return database.write(unit)
        companion.state = 'writes'
        try {
          const results = await database.write(merge(unit, companion.plan(unit.subject)))
          companion.state = 'committed'
          // Callers find the results of their own steps by place.
          return results.slice(0, unit.steps.length)
        } catch (error) {
          companion.state = 'waits'
          throw error
        }
      },
    },
    accompany(plan, work) {
      const companion: Companion = { plan, state: 'waits' }
      const end = (): void => {
        if (companion.state === 'waits') companion.state = 'over'
      }
      return {
        result: current.run(companion, work).finally(end),
        hasCommitted: () => companion.state === 'committed',
      }
    },
  }
}
