/**
 * Port: units of change, and reads.
 *
 * A unit is data, not a callback: many callers share one commit, and no caller's `await` ever holds a transaction open.
 */
import type { CompiledQuery, Kysely } from 'kysely'
import type { Fact } from '../bus/index.ts'
import type { AppError } from '../core/errors.ts'
import type { Tables } from './tables.ts'

/** A builder expression that compiles to one statement. */
export interface Compilable<O = unknown> {
  compile(): CompiledQuery<O>
}

/** One statement of a unit. */
export interface Step {
  query: Compilable
  /** Rows the statement must change; any other number undoes the whole unit and rejects it with `Conflict`. */
  expect?: number
}

/** Steps applied together or not at all, and the facts to announce once they are durable. */
export interface Unit {
  steps: Step[]
  facts: Fact[]
  /** Id of the record that it creates or changes for a request; see `companions.ts`. */
  subject?: string
  /** Cancels or ends something: stored also while the disk is full, from the space that is kept for that. */
  isVital?: true
  /**
   * Nobody outside has been told, and svc does right without it: its commit does not wait for the disk. A power cut may
   * lose it, with all that was committed after it: a later commit that waits for the disk keeps all earlier ones.
   */
  isUnpromised?: true
}

export interface StepResult {
  changes: number
  /** Rows of a statement with `returning`. */
  rows: Record<string, unknown>[]
}

/**
 * A unit lost against another change of the same row: a step's `expect` failed, or a unique key was taken. Callers read
 * again and decide again.
 */
export class Conflict extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'Conflict'
  }
}

/** Figures for operators. */
export interface DatabaseStats {
  /** Units that wait for a commit. */
  waitingUnits: number
  /** Scans and checkpoints that wait or run. */
  waitingScans: number
  /** Since the start. */
  commits: number
  /** Those that have waited for the disk. */
  syncs: number
  units: number
  /** Bytes of the file and its write-ahead log; 0 where the file does not exist. */
  fileBytes: number
  logBytes: number
  /** Bytes of the file that hold data. */
  usedBytes: number
  /** Unused bytes that are still to be returned to the file system; 0 while none are being returned. */
  reclaimingBytes: number
  /** Free bytes on its file system; undefined where it is not watched. */
  freeBytes: number | undefined
}

/** A copy of the database, complete and undamaged when it was made. */
export interface DatabaseCopy {
  path: string
  bytes: number
  /** Lower case hexadecimal digits. */
  sha256: string
}

export interface Database {
  /** Compiles queries; cannot execute them. */
  readonly build: Kysely<Tables>
  /** All rows of an index-backed, bounded query, read now on this thread. */
  all<O>(query: Compilable<O>): O[]
  /** First row, or undefined. */
  first<O>(query: Compilable<O>): O | undefined
  /**
   * All rows of a query whose cost grows with the table (counts over ranges, filters without an index). Runs on its own
   * thread; refuses with `QUEUE_FULL` when 32 wait.
   */
  scan<O>(query: Compilable<O>): Promise<O[]>
  /** Resolves when the commit is durable, or made where `isUnpromised` says so; rejects with `Conflict`. */
  write(unit: Unit): Promise<StepResult[]>
  /**
   * Why the server may accept no new work; undefined: it may. STORAGE_FULL while the file system has less than
   * `database.reserve_bytes` free, so that running work can finish and old records can be deleted. DATABASE_GONE while
   * a file of the database is not in its place.
   */
  shortage(): AppError | undefined
  /** Whether the server may accept new work. */
  hasRoom(): boolean
  stats(): DatabaseStats
  /**
   * Returns unused space to the file system, a few milliseconds at a time, until little is unused. Rejects when the
   * disk cannot be written.
   */
  reclaim(signal: AbortSignal): Promise<void>
  /**
   * Writes the current state to a file that is a complete database, while other work continues. A gigabyte takes about
   * ten seconds. The path must not exist; its folder must.
   *
   * @throws BACKUP_HAS_NO_ROOM, BACKUP_FAILED, the reason of the signal; it then deletes the incomplete copy
   */
  backup(path: string, signal: AbortSignal): Promise<DatabaseCopy>
  close(): Promise<void>
}

/** Nothing merged is unpromised too: it has nothing to lose. */
export function merge(...units: (Unit | undefined)[]): Unit {
  const steps: Step[] = []
  const facts: Fact[] = []
  const merged: Unit = { steps, facts }
  let isPromised = false
  for (const unit of units) {
    if (unit === undefined) continue
    steps.push(...unit.steps)
    facts.push(...unit.facts)
    if (merged.subject === undefined && unit.subject !== undefined) merged.subject = unit.subject
    if (unit.isVital === true) merged.isVital = true
    if (unit.isUnpromised !== true) isPromised = true
  }
  if (!isPromised) merged.isUnpromised = true
  return merged
}
