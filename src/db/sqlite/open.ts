/** The database port on one SQLite file. */
import { accessSync, closeSync, constants, existsSync, openSync, readdirSync, realpathSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type Sqlite from 'better-sqlite3'
import { DummyDriver, Kysely, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler, type CompiledQuery } from 'kysely'
import { readBackupName } from '../../core/backup-name.ts'
import type { Fact } from '../../bus/index.ts'
import { databaseGone, isAppError, shuttingDown, storageFull, type AppError } from '../../core/errors.ts'
import { describeFileError, syncFolderSync } from '../../lib/files/index.ts'
import { hasCode } from '../../lib/process/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { Database, StepResult, Unit } from '../database.ts'
import { appliedMigrations } from '../applied-migrations.ts'
import { migrate, missingMigrations, SchemaTooNew } from '../migrate.ts'
import type { Tables } from '../tables.ts'
import { openDatabaseConnection } from './connection.ts'
import { DatabaseInUse, lockDatabase } from './lock.ts'
import { changedAt, copyBeforeMigration, NotMigrated } from './before-migration.ts'
import { createBackground } from './background.ts'
import { createBallast } from './ballast.ts'
import { removePartialCompaction } from './compact.ts'
import { copyDatabase } from './copy.ts'
import { isDamage } from './damage.ts'
import { watchPlace } from './place.ts'
import { removePartialRestore } from './restore.ts'
import { createSpace } from './space.ts'
import { createStatementCache } from './statements.ts'
import { watchWriteAheadLog } from './write-ahead-log.ts'
import { makeDatabaseFolder } from './make-folder.ts'
import { watchRoom } from './room.ts'
import { createWriter } from './writer.ts'

/** Returning more than this takes a while, so its start and end are logged. */
const LONG_RECLAIM_BYTES = 16 * 1024 * 1024
/** A longer log is truncated once writing has stopped. */
const MAX_IDLE_LOG_BYTES = 1024 * 1024

export interface SqliteOptions {
  path: string
  synchronous: 'normal' | 'full'
  /** Receives the facts of each commit. */
  announce: (facts: Fact[]) => void
  /** `database.reserve_bytes`; default none. */
  reserveBytes?: number
  /** Where the copy before a migration goes. Default: no copy. */
  backupDirectory?: string
  /** Default: a full disk or a damaged file is not logged. */
  log?: Log
  /** Keeps a file on the disk whose space the ends of executions get when the disk is full. Default: no. */
  keepBallast?: boolean
  /** Called when the thread that writes has ended by itself. Default: an uncaught error, which ends the process. */
  ended?: (error: Error) => void
}

/** The file cannot be opened or created, or is not a database of svc. */
export class DatabaseUnusable extends Error {
  constructor(path: string, cause: unknown) {
    // A missing file would have been created.
    const reason = hasCode(cause, 'ENOENT') ? 'it cannot be created there' : describeFileError(path, cause)
    const advice = isDamage(cause)
      ? '. It is damaged; svc did not change it. Restore a backup with svc restore, see docs/backup.md.'
      : ''
    super(`database.path (svc.db in system.base_path unless given): ${path} cannot be used: ${reason}${advice}`, {
      cause,
    })
    this.name = 'DatabaseUnusable'
  }
}

/**
 * Opens or creates the file for this process alone, and migrates it.
 *
 * @throws DatabaseInUse, SchemaTooNew, NotMigrated, DatabaseUnusable
 */
export async function openSqlite(options: SqliteOptions): Promise<Database> {
  try {
    return await open(options)
  } catch (error) {
    if ([DatabaseInUse, SchemaTooNew, NotMigrated].some((kind) => error instanceof kind)) throw error
    throw new DatabaseUnusable(options.path, error)
  }
}

async function open(options: SqliteOptions): Promise<Database> {
  makeDatabaseFolder(dirname(options.path))
  // Parameters and output may hold secrets; SQLite gives the files beside it the same mode. An existing file is not
  // opened: closing it would drop the locks of this process's other connections.
  if (!existsSync(options.path)) closeSync(openSync(options.path, 'a', 0o600))
  // One lock and one log per database, also when links lead to it.
  const path = realpathSync(options.path)
  if (statSync(path).isDirectory()) throw new Error('it is a directory, not a file')
  // SQLite reports missing write permission less clearly.
  for (const place of [path, dirname(path)]) accessSync(place, constants.R_OK | constants.W_OK)
  const undo: (() => void)[] = []
  try {
    const lock = lockDatabase(path, '"svc stop" stops it; to have both, give each a system.base_path of its own.')
    undo.push(() => lock.release())
    removePartialCompaction(path)
    if (removePartialRestore(path)) {
      options.log?.warning(
        'database.restore_interrupted',
        'A svc restore was interrupted before it replaced the database; svc deleted its incomplete copy. The database is the one from before: if the backup is still wanted, stop the server and run svc restore again',
        { path },
      )
    }
    const isNew = statSync(path).size === 0
    // SQLite would delete the log, which may be all that remains of the database.
    if (isNew && sizeOf(`${path}-wal`) > 0) {
      throw new Error(
        `it is missing or empty, but its log ${path}-wal exists. Put the file back, restore a backup with svc restore, or remove the log to start with an empty database`,
      )
    }
    const lastChange = changedAt(path)
    const writing = openDatabaseConnection({ path, readonly: false, synchronous: options.synchronous, cacheKib: 4096 })
    const endMigrating = (): void => void writing.close()
    undo.push(endMigrating)
    if (isNew) warnIfLost(options)
    await copyIfMigrating(writing, lastChange, { ...options, path })
    await migrate(writing)
    if (isNew) syncFolderSync(dirname(path))
    const reading = openDatabaseConnection({ path, readonly: true, synchronous: options.synchronous, cacheKib: 8192 })
    undo.push(() => reading.close())
    // Its shared lock keeps the log and its index, which the last connection deletes.
    appliedMigrations(reading)
    undo.splice(undo.indexOf(endMigrating), 1)
    endMigrating()
    return assemble({ ...options, path, reading, lock })
  } catch (error) {
    for (const step of undo.toReversed()) step()
    throw error
  }
}

function warnIfLost({ path, backupDirectory, log }: SqliteOptions): void {
  if (backupDirectory === undefined || !existsSync(backupDirectory)) return
  if (!readdirSync(backupDirectory).some((name) => readBackupName(name) !== undefined)) return
  log?.warning(
    'database.new',
    'svc created a new database, but backups of an earlier one exist. If that database was lost, stop the server and restore a backup with svc restore',
    { path, backup_directory: backupDirectory },
  )
}

/** A new file needs no copy. @throws SchemaTooNew, NotMigrated */
async function copyIfMigrating(writing: Sqlite.Database, lastChange: number, options: SqliteOptions): Promise<void> {
  const { path, backupDirectory: directory, log } = options
  const applied = appliedMigrations(writing)
  if (applied === undefined || directory === undefined) return
  const missing = missingMigrations(applied)
  if (missing.length === 0) return
  const copy = await copyBeforeMigration({ path, directory, missing, changedAt: lastChange })
  if (copy !== undefined) {
    log?.info('backup.made', 'svc made a backup of the database before it migrates the schema', {
      kind: 'before-migration',
      ...copy,
      migrations: missing,
    })
  }
}

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

/** Runs every step, even after a failure. @throws the first error */
async function runAll(steps: readonly (() => unknown)[]): Promise<void> {
  const errors: unknown[] = []
  for (const step of steps) {
    try {
      await step()
    } catch (error) {
      errors.push(error)
    }
  }
  if (errors.length > 0) throw errors[0]
}

interface Parts extends SqliteOptions {
  reading: Sqlite.Database
  lock: { release(): void }
}

function assemble(parts: Parts): Database {
  const { path, synchronous, reading, lock, announce, reserveBytes = 0, log, ended = endProcess } = parts
  const statement = createStatementCache(reading)
  const background = createBackground(path)
  const frames = watchWriteAheadLog(path, async () => {
    // A new connection would open other files.
    if (place.problem === undefined) await background.checkpoint()
    // What was written meanwhile: the log then starts again at its beginning, where a sync costs half as much.
    await writer.checkpoint().catch(() => undefined)
  })
  const ballast = parts.keepBallast === true ? createBallast(`${path}-reserve`) : undefined
  const room = watchRoom({
    path,
    reserveBytes,
    changed: tellRoom,
    seen: (freeBytes) => void ballast?.restore(freeBytes - reserveBytes),
  })
  void ballast?.restore(room.freeBytes)
  const place = watchPlace(path, tellPlace)
  let isDamageTold = false
  let isFixedTold = false
  const writer = createWriter(
    { path, synchronous },
    {
      announce,
      committed() {
        frames.check()
        room.check()
      },
      idle: () => void tidyLog(),
      isDiskFull: () => room.isGone(),
      damaged: tellDamage,
      ended,
    },
  )
  const space = createSpace(reading, (pages) => writer.vacuum(pages))
  let closed: Promise<void> | undefined

  const build = new Kysely<Tables>({
    dialect: {
      createAdapter: () => new SqliteAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (db) => new SqliteIntrospector(db),
      createQueryCompiler: () => new SqliteQueryCompiler(),
    },
  })

  // The type of a query describes its rows: the builder and the migrations define the same tables.
  const rowsOf = <O>({ sql, parameters }: CompiledQuery<O>): O[] =>
    noticing(() => statement(sql).all(...parameters) as O[])
  const rowOf = <O>({ sql, parameters }: CompiledQuery<O>): O | undefined =>
    noticing(() => statement(sql).get(...parameters) as O | undefined)

  function noticing<T>(read: () => T): T {
    try {
      return read()
    } catch (error) {
      if (isDamage(error)) tellDamage(error)
      throw error
    }
  }

  /** Logged once: requests that read the damaged part fail, and all others continue. */
  function tellDamage(error: Error): void {
    if (isDamageTold) return
    isDamageTold = true
    log?.critical(
      'database.damaged',
      'The database file is damaged: requests that read the damaged part fail. Stop the server, keep a copy of the file, and restore a backup with svc restore; see docs/backup.md',
      { path, error },
    )
  }

  /** While no unit is written. */
  async function tidyLog(): Promise<void> {
    try {
      // A long checkpoint would keep units waiting.
      if (frames.isLong() && place.problem === undefined) await background.checkpoint()
      else await writer.checkpoint()
      if (sizeOf(`${path}-wal`) > MAX_IDLE_LOG_BYTES && writer.stats().waitingUnits === 0) await writer.cutLog()
    } catch {
      // The log keeps what the disk had no space for; the next checkpoint copies it.
    }
  }

  function tellPlace(problem: string | undefined): void {
    if (problem === undefined) {
      log?.warning('database.back', 'The files of the database are in their place again; svc accepts new work', {
        path,
      })
      return
    }
    log?.critical('database.gone', `svc accepts no new work: ${problem}`, { path })
    // Where only the log is gone, the connection that has it open can still copy it into the database.
    void writer.checkpoint().catch(() => undefined)
  }

  function shortage(): AppError | undefined {
    if (place.problem !== undefined) return databaseGone(place.problem)
    return room.isShort() || ballast?.isSpent === true ? storageFull() : undefined
  }

  async function write(unit: Unit): Promise<StepResult[]> {
    if (closed !== undefined) throw shuttingDown()
    if (unit.isVital !== true) {
      if (place.problem !== undefined) throw databaseGone(place.problem)
      if (ballast?.isSpent === true && !isDeletion(unit)) throw storageFull()
      return writer.write(unit)
    }
    try {
      return await writer.write(unit)
    } catch (error) {
      if (!isAppError(error) || error.code !== 'STORAGE_FULL' || ballast?.release() !== true) throw error
      log?.warning(
        'database.ballast_used',
        'The disk of the database is full: svc deleted the file that it keeps for this case, to store which executions were canceled and ended',
        { path },
      )
      return writer.write(unit)
    }
  }

  async function reclaim(signal: AbortSignal): Promise<void> {
    const before = space.fileBytes()
    const unused = before - space.usedBytes()
    if (unused < LONG_RECLAIM_BYTES) return space.reclaim(signal)
    if (!space.canShrink) return tellFixed(before, unused)
    log?.info('database.shrinking', 'svc returns unused space of the database file to the file system', {
      path,
      file_bytes: before,
      unused_bytes: unused,
    })
    const startedAt = performance.now()
    try {
      await space.reclaim(signal)
    } finally {
      log?.info('database.shrunk', 'svc has returned unused space of the database file', {
        path,
        file_bytes: space.fileBytes(),
        returned_bytes: before - space.fileBytes(),
        seconds: Number(((performance.now() - startedAt) / 1000).toFixed(1)),
      })
    }
  }

  /** Logged once: it stays so until the file is compacted. */
  function tellFixed(fileBytes: number, unusedBytes: number): void {
    if (isFixedTold) return
    isFixedTold = true
    log?.warning(
      'database.cannot_shrink',
      'The database file has unused space, but it cannot shrink while the server runs: another tool made it without auto_vacuum. Stop the server and run svc compact once',
      { path, file_bytes: fileBytes, unused_bytes: unusedBytes },
    )
  }

  function tellRoom(isShort: boolean, freeBytes: number): void {
    const fields = { path, free_bytes: freeBytes, reserve_bytes: reserveBytes }
    if (isShort) {
      log?.warning(
        'database.disk_full',
        'The disk of the database has less free space than database.reserve_bytes: svc accepts no new work. Free space: the server then continues by itself',
        fields,
      )
    } else
      log?.info(
        'database.disk_has_room',
        'The disk of the database has enough free space again; svc accepts new work',
        fields,
      )
  }

  return {
    build,
    all: (query) => rowsOf(query.compile()),
    first: (query) => rowOf(query.compile()),
    async scan<O>(query: { compile(): CompiledQuery<O> }) {
      if (place.problem !== undefined) throw databaseGone(place.problem)
      const { sql, parameters } = query.compile()
      return (await background.scan(sql, parameters)) as O[] // as above
    },
    stats: () => ({
      ...writer.stats(),
      waitingScans: background.waitingCount,
      fileBytes: sizeOf(path),
      logBytes: sizeOf(`${path}-wal`),
      usedBytes: space.usedBytes(),
      reclaimingBytes: space.reclaimingBytes,
      freeBytes: Number.isFinite(room.freeBytes) ? room.freeBytes : undefined,
    }),
    shortage,
    hasRoom: () => shortage() === undefined,
    write,
    reclaim: (signal) => (closed === undefined ? reclaim(signal) : Promise.resolve()),
    backup: async (to, signal) => {
      if (place.problem !== undefined) throw databaseGone(place.problem)
      return copyDatabase({ from: path, to, keepFreeBytes: reserveBytes, signal, damaged: tellDamage })
    },
    close: () => (closed ??= close()),
  }

  async function close(): Promise<void> {
    room.stop()
    place.stop()
    await ballast?.restore(0)
    await writer.drain()
    await background.stop()
    await runAll([
      () => reading.close(),
      // The last connection: it deletes the log.
      () => writer.close(),
      () => lock.release(),
      // Last: closing its file drops the locks that the connections of this process hold on it.
      () => frames.close(),
    ])
  }
}

/** Deletions make room. */
function isDeletion({ steps }: Unit): boolean {
  return steps.every(({ query }) => /^\s*delete\b/i.test(query.compile().sql))
}

function endProcess(error: Error): void {
  process.nextTick(() => {
    throw error
  })
}
