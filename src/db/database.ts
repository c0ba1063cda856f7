/**
 * Port: units of change, and reads.
 *
 * A unit is data, not a callback: many callers share one commit, and no caller's `await` ever holds a transaction open.
 */
import type { CompiledQuery, Kysely } from 'kysely'
import type { Fact } from '../bus/index.ts'
import type { Tables } from './tables.ts'

/** Anything of the builder that compiles to one statement. */
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
}

export interface StepResult {
  changes: number
  /** Rows of a statement with `returning`. */
  rows: Record<string, unknown>[]
}

/**
 * A unit lost against another change of the same row: a step's `expect` failed, or a unique key was taken.
 * Callers read again and decide anew.
 */
export class Conflict extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'Conflict'
  }
}

/** What operators watch. */
export interface DatabaseStats {
  /** Units that no commit has taken yet. */
  waitingUnits: number
  /** Scans and checkpoints that wait for their thread, and the one that it is at. */
  waitingScans: number
  /** Since the start. */
  commits: number
  units: number
  /** Bytes of the file, and of the write-ahead log beside it; 0 where there is none. */
  fileBytes: number
  logBytes: number
  /** Of the file, what something is in. */
  usedBytes: number
  /** Bytes that its file system has left; undefined where that is not watched. */
  freeBytes: number | undefined
}

/** A copy of the database, complete and without damage when it was made. */
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
   * All rows of a query whose cost grows with the table (counts over ranges, filters without an index). Runs on a
   * thread of its own; more than 32 waiting are refused with `QUEUE_FULL`.
   */
  scan<O>(query: Compilable<O>): Promise<O[]>
  /** Resolves after the commit; rejects with `Conflict`. */
  write(unit: Unit): Promise<StepResult[]>
  /**
   * Whether new work may be taken on: not while the file system has less room than `database.reserve_bytes`, so that what
   * runs can be finished, and old records be deleted, before it is full.
   */
  hasRoom(): boolean
  stats(): DatabaseStats
  /**
   * Gives room that is no longer used back to the disk, a few milliseconds at a time, until little of it is left. Rejects
   * when the disk cannot be written.
   */
  reclaim(signal: AbortSignal): Promise<void>
  /**
   * Writes the state of this moment to a file, which can be used as a database by itself, while everything else goes on. A
   * gigabyte takes some ten seconds. Nothing may be at the path; its folder must exist.
   *
   * @throws BACKUP_HAS_NO_ROOM, BACKUP_FAILED, the reason of the signal; then nothing is left behind
   */
  backup(path: string, signal: AbortSignal): Promise<DatabaseCopy>
  close(): Promise<void>
}

export function merge(...units: (Unit | undefined)[]): Unit {
  const steps: Step[] = []
  const facts: Fact[] = []
  for (const unit of units) {
    if (unit === undefined) continue
    steps.push(...unit.steps)
    facts.push(...unit.facts)
  }
  return { steps, facts }
}
