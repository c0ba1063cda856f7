/**
 * The only connection that writes. Units that arrive in the same turn of the event loop share a commit; a refused unit
 * undoes only itself. Measured: 64 units per commit triple the rate of one commit each (docs/performance.md).
 */
import Sqlite from 'better-sqlite3'
import type { Clock } from '../../core/clock.ts'
import { storageFailed, storageFull } from '../../core/errors.ts'
import type { Fact } from '../../bus/index.ts'
import { Conflict, type DatabaseStats, type StepResult, type Unit } from '../database.ts'
import { isDamage } from './damage.ts'
import { createStatementCache } from './statements.ts'

const MAX_UNITS_PER_COMMIT = 256
const MAX_MS_PER_COMMIT = 8
/** A checkpoint waits for the disk, so it runs while no unit waits. */
const CHECKPOINT_AFTER_IDLE_MS = 1000

interface Waiting {
  unit: Unit
  resolve(results: StepResult[]): void
  reject(error: unknown): void
}

type Outcome = { waiting: Waiting; results: StepResult[] } | { waiting: Waiting; error: unknown }

export interface Writer {
  write(unit: Unit): Promise<StepResult[]>
  stats(): Pick<DatabaseStats, 'waitingUnits' | 'commits' | 'units'>
  /** Commits the waiting units. */
  drain(): void
  /** Returns unused pages to the file system, in a separate commit. @throws errors of the disk */
  vacuum(pages: number): void
}

/** A refused unit could not be undone alone, so its whole commit is rolled back. */
class UndoFailed extends Error {}

export interface WriterHooks {
  /** Receives the facts of each commit, in the order of the units; must not throw. */
  announce: (facts: Fact[]) => void
  /** Called after each commit; must not throw. */
  committed: () => void
  /** Called when no write has happened for a while and the checkpoint has copied what it can. */
  idle: () => void
  /** Whether the disk is full. */
  isDiskFull: () => boolean
  /** Called when the file is damaged; must not throw. */
  damaged: (error: Error) => void
}

export function createWriter(
  connection: Sqlite.Database,
  clock: Pick<Clock, 'monotonic'>,
  { announce, committed, idle: rest, isDiskFull, damaged }: WriterHooks,
): Writer {
  const statement = createStatementCache(connection)
  const begin = connection.prepare('begin immediate')
  const commit = connection.prepare('commit')
  const rollback = connection.prepare('rollback')
  const savepoint = connection.prepare('savepoint unit')
  const release = connection.prepare('release unit')
  const undo = connection.prepare('rollback to unit')

  let queue: Waiting[] = []
  /** How many of the next units get separate commits. */
  let alone = 0
  let commits = 0
  let units = 0
  let flushing: NodeJS.Immediate | undefined
  let idle: NodeJS.Timeout | undefined

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
    // SQLite undoes a single failed statement.
    if (unit.steps.length === 1 && unit.steps[0]?.expect === undefined) return applySteps(unit)
    savepoint.run()
    try {
      const results = applySteps(unit)
      release.run()
      return results
    } catch (error) {
      // A full disk rolls back the whole transaction, and its savepoints with it.
      if (connection.inTransaction) undoUnit()
      throw error
    }
  }

  function undoUnit(): void {
    try {
      undo.run()
      release.run()
    } catch (cause) {
      throw new UndoFailed('a unit could not be undone', { cause })
    }
  }

  function flush(): void {
    clearImmediate(flushing)
    flushing = undefined
    const maxUnits = alone > 0 ? 1 : MAX_UNITS_PER_COMMIT
    const batch = queue.length <= maxUnits ? queue : queue.slice(0, maxUnits)
    queue = queue.slice(batch.length)
    if (batch.length === 0) return
    alone = Math.max(0, alone - 1)

    const outcomes: Outcome[] = []
    try {
      rollBack()
      begin.run()
      const deadline = clock.monotonic() + MAX_MS_PER_COMMIT
      for (const waiting of batch) {
        if (outcomes.length > 0 && clock.monotonic() > deadline) break
        try {
          outcomes.push({ waiting, results: applyUnit(waiting.unit) })
        } catch (error) {
          if (!connection.inTransaction || error instanceof UndoFailed) throw error
          outcomes.push({ waiting, error: translate(error) })
        }
      }
      commit.run()
    } catch (error) {
      const failure = translate(error instanceof UndoFailed ? error.cause : error)
      try {
        rollBack()
      } catch {
        // The next flush starts with this unit.
      }
      if (batch.length > 1 && failure instanceof Sqlite.SqliteError) {
        // A unit that reads a damaged page fails its whole commit: commit each alone to find it.
        alone = batch.length
        queue = batch.concat(queue)
      } else {
        for (const waiting of batch) waiting.reject(failure)
      }
      schedule()
      return
    }
    commits += 1
    units += outcomes.length
    checkpointWhenIdle()
    committed()
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

  /** By driver code, never by message text. */
  function translate(error: unknown): unknown {
    if (!(error instanceof Sqlite.SqliteError)) return error
    const { code } = error
    if (code === 'SQLITE_CONSTRAINT_UNIQUE' || code === 'SQLITE_CONSTRAINT_PRIMARYKEY') {
      return new Conflict('a unique key is taken', error)
    }
    // On a full disk some calls report an I/O error.
    if (/^SQLITE_(FULL|IOERR)/.test(code) && (isDiskFull() || code === 'SQLITE_FULL')) return storageFull(error)
    if (/^SQLITE_(IOERR|BUSY|READONLY|CANTOPEN|NOMEM)/.test(code)) return storageFailed(error)
    if (isDamage(error)) damaged(error)
    return error
  }

  function rollBack(): void {
    if (connection.inTransaction) rollback.run()
  }

  function checkpointWhenIdle(): void {
    if (idle !== undefined) {
      idle.refresh()
      return
    }
    idle = setTimeout(() => {
      idle = undefined
      try {
        connection.pragma('wal_checkpoint(passive)')
        rest()
      } catch {
        // The log keeps what the disk had no space for; the next checkpoint copies it.
      }
    }, CHECKPOINT_AFTER_IDLE_MS)
    idle.unref()
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
    stats: () => ({ waitingUnits: queue.length, commits, units }),
    vacuum(pages) {
      try {
        rollBack()
        connection.pragma(`incremental_vacuum(${pages})`)
      } catch (error) {
        throw translate(error)
      }
      checkpointWhenIdle()
      committed()
    },
    drain() {
      while (queue.length > 0) flush()
      clearTimeout(idle)
      idle = undefined
    },
  }
}

function rowsResult(rows: Record<string, unknown>[]): StepResult {
  return { changes: rows.length, rows }
}
