/**
 * Groups units into commits, in the order in which they came. A refused unit undoes only itself. Measured: 64 units per
 * commit triple the rate of one commit each (docs/performance.md).
 */
import Sqlite from 'better-sqlite3'
import type { Clock } from '../../core/clock.ts'
import { createStatementCache } from './statements.ts'

const MAX_UNITS_PER_COMMIT = 256
const MAX_MS_PER_COMMIT = 8
/** What SQLite calls `synchronous = full`. */
const FULL = 2

/** A compiled step; `expect` as in `Step`. */
export type PlainStep = readonly [sql: string, parameters: readonly unknown[], expect?: number | undefined]
export interface PlainUnit {
  steps: readonly PlainStep[]
  /** As in `Unit`. */
  isUnpromised?: true
}

type Row = Record<string, unknown>

/** What each step did: the number of changed rows, or the rows that it returned. */
export type PlainResults = (number | Row[])[]

/** Why a unit was refused. */
export interface Refusal {
  name: string
  message: string
  /** Of the driver. */
  code: string | undefined
}

/** Of some units, in their order. */
export interface Answer {
  outcomes: (PlainResults | Refusal)[]
  /** False: nothing was written, and all outcomes are refusals. */
  isCommitted: boolean
  /** The commit has waited for the disk. */
  isSynced: boolean
}

export interface Commits {
  readonly waitingCount: number
  add(units: readonly PlainUnit[]): void
  /** Commits the next units. Undefined: none wait, or they failed together and each is tried alone next. */
  commitNext(): Answer | undefined
  /** Begins a transaction whose commit does not wait for the disk. @throws errors of the disk */
  beginUnpromised(): void
}

/** A step changed another number of rows than expected. */
export class UnexpectedRows extends Error {
  constructor(changed: number, expected: number) {
    super(`a step changed ${changed} rows instead of ${expected}`)
    this.name = 'UnexpectedRows'
  }
}

/** A refused unit could not be undone alone, so its whole commit is rolled back. */
class UndoFailed extends Error {}

/** Failures of the disk and taken keys. Another failure may be the fault of one unit of a commit. */
const NO_FAULT_OF_ONE = /^SQLITE_(CONSTRAINT_UNIQUE|CONSTRAINT_PRIMARYKEY|FULL|IOERR|BUSY|READONLY|CANTOPEN|NOMEM)/

/** @param connection its `synchronous` says whether commits of promised units wait for the disk */
export function createCommits(connection: Sqlite.Database, clock: Pick<Clock, 'monotonic'>): Commits {
  const statement = createStatementCache(connection)
  const begin = connection.prepare('begin immediate')
  const commit = connection.prepare('commit')
  const rollback = connection.prepare('rollback')
  const savepoint = connection.prepare('savepoint unit')
  const release = connection.prepare('release unit')
  const undo = connection.prepare('rollback to unit')

  const maySync = connection.pragma('synchronous', { simple: true }) === FULL
  let syncs = maySync

  /** Outside a transaction only: SQLite refuses it inside. */
  function setSync(wanted: boolean): void {
    if (wanted === syncs) return
    connection.pragma(wanted ? 'synchronous = full' : 'synchronous = normal')
    syncs = wanted
  }

  let queue: PlainUnit[] = []
  /** How many of the next units get separate commits. */
  let alone = 0

  function applySteps(steps: PlainUnit['steps']): PlainResults {
    const results: PlainResults = []
    for (const [sql, parameters, expect] of steps) {
      const prepared = statement(sql)
      const result = prepared.reader ? prepared.all(...parameters) : prepared.run(...parameters).changes
      const changed = typeof result === 'number' ? result : result.length
      if (expect !== undefined && changed !== expect) throw new UnexpectedRows(changed, expect)
      results.push(result)
    }
    return results
  }

  function applyUnit({ steps }: PlainUnit): PlainResults {
    // SQLite undoes a single failed statement.
    if (steps.length === 1 && steps[0]?.[2] === undefined) return applySteps(steps)
    savepoint.run()
    try {
      const results = applySteps(steps)
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

  function rollBack(): void {
    if (connection.inTransaction) rollback.run()
  }

  function beginTransaction(isPromised: boolean): void {
    // What could not be ended before.
    rollBack()
    setSync(maySync && isPromised)
    begin.run()
  }

  function applyAll(batch: readonly PlainUnit[]): Answer['outcomes'] {
    const outcomes: Answer['outcomes'] = []
    beginTransaction(batch.some(({ isUnpromised }) => isUnpromised !== true))
    const deadline = clock.monotonic() + MAX_MS_PER_COMMIT
    for (const unit of batch) {
      if (outcomes.length > 0 && clock.monotonic() > deadline) break
      try {
        outcomes.push(applyUnit(unit))
      } catch (error) {
        if (!connection.inTransaction || error instanceof UndoFailed) throw error
        outcomes.push(refusalOf(error))
      }
    }
    commit.run()
    return outcomes
  }

  return {
    get waitingCount() {
      return queue.length
    },
    add(units) {
      // Not spread into the arguments of one call: their number has a limit.
      queue = queue.length === 0 ? [...units] : queue.concat(units)
    },
    commitNext() {
      const batch = queue.slice(0, alone > 0 ? 1 : MAX_UNITS_PER_COMMIT)
      if (batch.length === 0) return undefined
      alone = Math.max(0, alone - 1)
      try {
        const outcomes = applyAll(batch)
        queue = queue.slice(outcomes.length)
        return { outcomes, isCommitted: true, isSynced: syncs }
      } catch (error) {
        const failure = error instanceof UndoFailed ? error.cause : error
        try {
          rollBack()
        } catch {
          // The next commit starts with this.
        }
        if (batch.length > 1 && failure instanceof Sqlite.SqliteError && !NO_FAULT_OF_ONE.test(failure.code)) {
          // A unit that reads a damaged page fails its whole commit: commit each alone to find it.
          alone = batch.length
          return undefined
        }
        queue = queue.slice(batch.length)
        const refusal = refusalOf(failure)
        return { outcomes: batch.map(() => refusal), isCommitted: false, isSynced: false }
      }
    },
    beginUnpromised: () => beginTransaction(false),
  }
}

export function refusalOf(error: unknown): Refusal {
  if (!(error instanceof Error)) return { name: 'Error', message: String(error), code: undefined }
  const code = error instanceof Sqlite.SqliteError ? error.code : undefined
  return { name: error.name, message: error.message, code }
}
