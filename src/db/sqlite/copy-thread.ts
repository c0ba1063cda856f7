/** The thread behind `copy.ts` and `check.ts`: reads whole database files. */
import { createHash } from 'node:crypto'
import { closeSync, fstatSync, fsyncSync, openSync, readSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'
import Sqlite from 'better-sqlite3'
import { answerQuestions } from '../../core/thread.ts'
import { appliedMigrations } from '../applied-migrations.ts'
import { openDatabaseConnection } from './connection.ts'
import { isDamage } from './damage.ts'

/** 4 MiB; the thread can be stopped between two steps. */
const PAGES_PER_STEP = 1024
const MAX_DAMAGE = 100
const CHUNK_BYTES = 1_048_576

export type CopyTask =
  | { kind: 'copy'; from: string; to: string }
  | { kind: 'unite'; path: string }
  | { kind: 'compact'; from: string; to: string }
  | { kind: 'check'; path: string; thorough: boolean }

/** What a full read of a file has found. */
export interface CopyOutcome {
  /** Problems of the file, at most 100 sentences; empty: none. */
  damage: string[]
  /** Applied migrations; undefined: not a database of this product. */
  migrations: string[] | undefined
  /** For an undamaged copy only. */
  written?: { bytes: number; sha256: string }
}

if (!isMainThread) {
  answerQuestions(async (task: CopyTask): Promise<CopyOutcome> => {
    try {
      if (task.kind === 'check') return look(task.path, task.thorough)
      if (task.kind === 'compact') return compact(task.from, task.to)
      if (task.kind === 'copy') await copy(task.from, task.to)
      const path = task.kind === 'copy' ? task.to : task.path
      return { ...unite(path), written: finish(path) }
    } catch (error) {
      // Too damaged to read.
      if (!isDamage(error)) throw error
      return { damage: [error.message], migrations: undefined }
    }
  })
}

async function copy(from: string, to: string): Promise<void> {
  // Created here with mode 0600, so that other accounts can never read it.
  closeSync(openSync(to, 'wx', 0o600))
  const source = openDatabaseConnection({ path: from, readonly: true, synchronous: 'normal' })
  try {
    // One snapshot for the whole copy: otherwise each commit by the server would restart it.
    source.exec('begin')
    appliedMigrations(source)
    await source.backup(to, { progress: () => PAGES_PER_STEP })
  } finally {
    source.close()
  }
}

/** Other programs cannot change the database until the new file is complete. */
function compact(from: string, to: string): CopyOutcome {
  closeSync(openSync(to, 'wx', 0o600))
  const source = new Sqlite(from, { fileMustExist: true })
  try {
    source.pragma('main.locking_mode = exclusive')
    source.exec('begin exclusive; commit')
    // Also for a file that another tool has made, so that the server can shrink it later.
    source.pragma('auto_vacuum = incremental')
    source.prepare('vacuum into ?').run(to)
    return { ...unite(to), written: finish(to) }
  } finally {
    source.close()
  }
}

/** Merges the log into an otherwise unused file, so that one file holds the whole database. */
function unite(path: string): CopyOutcome {
  const connection = new Sqlite(path, { fileMustExist: true })
  try {
    connection.pragma('journal_mode = delete')
    return findIn(connection, true)
  } finally {
    connection.close()
  }
}

function look(path: string, thorough: boolean): CopyOutcome {
  const connection = openDatabaseConnection({ path, readonly: true, synchronous: 'normal' })
  try {
    return findIn(connection, thorough)
  } finally {
    connection.close()
  }
}

function findIn(connection: Sqlite.Database, thorough: boolean): CopyOutcome {
  const migrations = appliedMigrations(connection)
  const check = thorough ? 'integrity_check' : 'quick_check'
  const rows = connection.pragma(`${check}(${MAX_DAMAGE})`) as Record<string, string>[] // a text column
  const lines = rows.map((row) => row[check] ?? '')
  return { damage: lines.filter((line) => line !== 'ok'), migrations }
}

/** Syncs the file to disk. */
function finish(path: string): { bytes: number; sha256: string } {
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
    const hash = createHash('sha256')
    const chunk = Buffer.alloc(CHUNK_BYTES)
    for (let length = readSync(file, chunk); length > 0; length = readSync(file, chunk)) {
      hash.update(chunk.subarray(0, length))
    }
    return { bytes: fstatSync(file).size, sha256: hash.digest('hex') }
  } finally {
    closeSync(file)
  }
}
