/**
 * The one connection that writes. Units that arrive in the same turn share a commit; a unit that is refused undoes only
 * itself. Measured: 64 units a commit give three times the rate of a commit each (docs/performance.md).
 */
import Sqlite from 'better-sqlite3'
import { storageFailed } from '../../errors.ts'
import type { Fact } from '../../bus/facts.ts'
import { Conflict, type StepResult, type Unit } from '../database.ts'
import { createStatementCache } from './statements.ts'

const MAX_UNITS_PER_COMMIT = 256
const MAX_MS_PER_COMMIT = 8

interface Waiting {
  unit: Unit
  resolve(results: StepResult[]): void
  reject(error: unknown): void
}

type Outcome = { waiting: Waiting; results: StepResult[] } | { waiting: Waiting; error: unknown }

export interface Writer {
  write(unit: Unit): Promise<StepResult[]>
  /** Commits what waits. */
  drain(): void
}

/** @param announce hears the facts of each commit, in the order of the units */
export function createWriter(connection: Sqlite.Database, announce: (facts: Fact[]) => void): Writer {
  const statement = createStatementCache(connection)
  const begin = connection.prepare('begin immediate')
  const commit = connection.prepare('commit')
  const rollback = connection.prepare('rollback')
  const savepoint = connection.prepare('savepoint unit')
  const release = connection.prepare('release unit')
  const undo = connection.prepare('rollback to unit')

  let queue: Waiting[] = []
  let flushing: NodeJS.Immediate | undefined

  function applySteps(unit: Unit): StepResult[] {
    const results: StepResult[] = []
    for (const { query, expect } of unit.steps) {
      const { sql, parameters } = query.compile()
      const prepared = statement(sql)
      const result: StepResult = prepared.reader
        ? rowsResult(prepared.all(...parameters))
        : { changes: prepared.run(...parameters).changes, rows: [] }
      if (expect !== undefined && result.changes !== expect) {
        throw new Conflict(`a step changed ${result.changes} rows instead of ${expect}`)
      }
      results.push(result)
    }
    return results
  }

  function applyUnit(unit: Unit): StepResult[] {
    // A single step that fails or changes nothing leaves nothing to undo.
    if (unit.steps.length === 1 && (unit.steps[0]?.expect ?? 1) <= 1) return applySteps(unit)
    savepoint.run()
    try {
      const results = applySteps(unit)
      release.run()
      return results
    } catch (error) {
      // A full disk rolls the whole transaction back by itself; then there is no savepoint left to return to.
      if (connection.inTransaction) {
        undo.run()
        release.run()
      }
      throw error
    }
  }

  function flush(): void {
    flushing = undefined
    const batch = queue.length <= MAX_UNITS_PER_COMMIT ? queue : queue.slice(0, MAX_UNITS_PER_COMMIT)
    queue = queue.slice(batch.length)
    if (batch.length === 0) return

    const outcomes: Outcome[] = []
    try {
      begin.run()
      const deadline = performance.now() + MAX_MS_PER_COMMIT
      for (const waiting of batch) {
        if (outcomes.length > 0 && performance.now() > deadline) break
        try {
          outcomes.push({ waiting, results: applyUnit(waiting.unit) })
        } catch (error) {
          if (!connection.inTransaction) throw error
          outcomes.push({ waiting, error: translate(error) })
        }
      }
      commit.run()
    } catch (error) {
      if (connection.inTransaction) rollback.run()
      const failure = translate(error)
      for (const waiting of batch) waiting.reject(failure)
      schedule()
      return
    }
    queue = batch.slice(outcomes.length).concat(queue)
    schedule()

    for (const outcome of outcomes) {
      if ('error' in outcome) {
        outcome.waiting.reject(outcome.error)
      } else {
        if (outcome.waiting.unit.facts.length > 0) announce(outcome.waiting.unit.facts)
        outcome.waiting.resolve(outcome.results)
      }
    }
  }

  function schedule(): void {
    if (flushing === undefined && queue.length > 0) flushing = setImmediate(flush)
  }

  return {
    write(unit) {
      return new Promise((resolve, reject) => {
        queue.push({ unit, resolve, reject })
        schedule()
      })
    },
    drain() {
      if (flushing !== undefined) clearImmediate(flushing)
      while (queue.length > 0) flush()
      if (flushing !== undefined) clearImmediate(flushing)
      flushing = undefined
    },
  }
}

function rowsResult(rows: Record<string, unknown>[]): StepResult {
  return { changes: rows.length, rows }
}

/** By driver code, never by message text. */
function translate(error: unknown): unknown {
  if (!(error instanceof Sqlite.SqliteError)) return error
  if (error.code === 'SQLITE_CONSTRAINT_UNIQUE' || error.code === 'SQLITE_CONSTRAINT_PRIMARYKEY') {
    return new Conflict('a unique key is taken', error)
  }
  if (/^SQLITE_(FULL|IOERR|BUSY|READONLY|CANTOPEN|NOMEM)/.test(error.code)) return storageFailed(error)
  return error
}
