/** The thread behind `copy.ts` and `check.ts`: reads whole database files. */
import { createHash } from 'node:crypto'
import { closeSync, fstatSync, fsyncSync, openSync, readSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'
import Sqlite from 'better-sqlite3'
import { answerQuestions } from '../../core/thread.ts'
import { appliedMigrations } from '../applied-migrations.ts'
import { openConnection } from './connection.ts'
import { isDamage } from './damage.ts'

/** 4 MiB; between two such steps the thread can be ended. */
const PAGES_PER_STEP = 1024
const MAX_DAMAGE = 100
const CHUNK_BYTES = 1_048_576

export type CopyTask =
  | { kind: 'copy'; from: string; to: string }
  | { kind: 'unite'; path: string }
  | { kind: 'check'; path: string; thorough: boolean }

/** What is known of a file after it has been read. */
export interface Found {
  /** What is wrong with it, at most 100 sentences; empty: nothing. */
  damage: string[]
  /** Those that it has seen; undefined: it is no database of this product. */
  migrations: string[] | undefined
  /** Of an undamaged copy alone. */
  written?: { bytes: number; sha256: string }
}

if (!isMainThread) {
  answerQuestions(async (task: CopyTask): Promise<Found> => {
    try {
      if (task.kind === 'check') return look(task.path, task.thorough)
      if (task.kind === 'copy') await copy(task.from, task.to)
      const path = task.kind === 'copy' ? task.to : task.path
      return { ...unite(path), written: finish(path) }
    } catch (error) {
      // Too damaged to be looked at.
      if (!isDamage(error)) throw error
      return { damage: [error.message], migrations: undefined }
    }
  })
}

async function copy(from: string, to: string): Promise<void> {
  // Made here, so that nobody else may read it from the beginning on.
  closeSync(openSync(to, 'wx', 0o600))
  const source = openConnection({ path: from, readonly: true, synchronous: 'normal' })
  try {
    // One state of the database from the beginning to the end: otherwise each commit meanwhile would begin the copy anew.
    source.exec('begin')
    appliedMigrations(source)
    await source.backup(to, { progress: () => PAGES_PER_STEP })
  } finally {
    source.close()
  }
}

/** Of a file that nobody else uses: a database with everything in the one file, whatever lay in a log beside it. */
function unite(path: string): Found {
  const connection = new Sqlite(path, { fileMustExist: true })
  try {
    connection.pragma('journal_mode = delete')
    return findIn(connection, true)
  } finally {
    connection.close()
  }
}

function look(path: string, thorough: boolean): Found {
  const connection = openConnection({ path, readonly: true, synchronous: 'normal' })
  try {
    return findIn(connection, thorough)
  } finally {
    connection.close()
  }
}

function findIn(connection: Sqlite.Database, thorough: boolean): Found {
  const migrations = appliedMigrations(connection)
  const check = thorough ? 'integrity_check' : 'quick_check'
  const rows = connection.pragma(`${check}(${MAX_DAMAGE})`) as Record<string, string>[] // a text column
  const lines = rows.map((row) => row[check] ?? '')
  return { damage: lines.filter((line) => line !== 'ok'), migrations }
}

/** All of it is on the disk. */
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
