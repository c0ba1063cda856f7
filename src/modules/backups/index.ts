/** Backups of the database: on request, and by a schedule. */
import { existsSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { Config } from '../../config/index.ts'
import type { BackupFile } from '../../core/backup-record.ts'
import type { BackupKind } from '../../core/backup-name.ts'
import { type Database, removePartialBackups } from '../../db/index.ts'
import { backupFailed, backupUnderWay, isAppError, shuttingDown, type AppError } from '../../core/errors.ts'
import { aboutCaller, type Caller } from '../../http/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { Gauge, Module } from '../../core/module.ts'
import { describeFileError, reasonOfFileError } from '../../lib/files/index.ts'
import { now } from '../../core/time.ts'
import { createBackupFolder } from './folder.ts'
import { createBackupRoutes } from './routes.ts'
import type { NotIncluded, Backup } from './types.ts'

export interface BackupsDeps {
  database: Pick<Database, 'backup'>
  log: Log
  config: Config['backup']
  /** Other parts of the server; missing paths are left out of answers. */
  notIncluded: readonly NotIncluded[]
}

/** Earliest scheduled backup after the start. */
const FIRST_AFTER_SECONDS = 600
const AGAIN_AFTER_SECONDS = 3600
/** The clock can change and the machine can sleep, so the next time is computed again after this wait. */
const MAX_WAIT_SECONDS = 3600
/** Maximum wait for the file system when the server stops. */
const MAX_STOP_MS = 3000

export function createBackups({ database, log, config, notIncluded }: BackupsDeps): Module {
  const folder = createBackupFolder(config.directory)
  const stopping = new AbortController()
  const { signal } = stopping
  let running: Promise<unknown> | undefined
  let schedule: Promise<void> | undefined
  let looking: Promise<void> | undefined
  /** Milliseconds since the epoch. */
  let lastMadeAt: number | undefined

  /** @throws BACKUP_UNDER_WAY, BACKUP_HAS_NO_ROOM, BACKUP_FAILED */
  function make(kind: BackupKind, caller?: Caller): Promise<Backup> {
    if (running !== undefined) return Promise.reject(backupUnderWay())
    const making = makeAlone(kind, caller).finally(() => (running = undefined))
    running = making.catch(() => undefined)
    return making
  }

  async function makeAlone(kind: BackupKind, caller: Caller | undefined): Promise<Backup> {
    const startedAt = now()
    await looking
    try {
      const { path, bytes, sha256 } = await database.backup(await folder.prepare(kind), signal)
      const removed = kind === 'scheduled' ? await folder.rotate(config.keep) : []
      const files = await folder.list()
      const file = files.find((each) => each.path === path)
      if (file === undefined) throw backupFailed('another process deleted it right after it was complete.')
      lastMadeAt = Date.parse(file.made_at)
      const fields = { kind, path, bytes, removed }
      if (caller === undefined) log.info('backup.made', 'Backup of the database completed', fields)
      else log.audit('backup.made', 'A backup of the database was made.', { ...fields, ...aboutCaller(caller) })
      return {
        ...file,
        sha256,
        started_at: startedAt,
        ended_at: now(),
        removed,
        not_included: notIncluded.filter((each) => existsSync(each.path)),
      }
    } catch (error) {
      if (signal.aborted) throw error
      const failure = translate(error)
      log.error('backup.failed', failure.message, { kind, directory: config.directory, error })
      throw failure
    }
  }

  /** Runs in the background at the start. */
  async function look(): Promise<void> {
    try {
      await removePartialBackups(config.directory)
      const [newest] = await folder.list()
      if (newest !== undefined) lastMadeAt = Date.parse(newest.made_at)
    } catch (error) {
      const { directory } = config
      const message = `backup.directory: ${directory} cannot be used: ${describeFileError(directory, error)}. Create the directory or change the option; until then no backups are made`
      log.error('backup.failed', message, { directory })
    }
  }

  async function list(): Promise<BackupFile[]> {
    try {
      return await folder.list()
    } catch (error) {
      throw translate(error)
    }
  }

  async function keepMaking(): Promise<void> {
    let notBefore = Date.now() + Math.min(config.interval, FIRST_AFTER_SECONDS) * 1000
    while (!signal.aborted) {
      const dueAt = Math.max(notBefore, await nextAt())
      const waitMs = Math.min(dueAt - Date.now(), MAX_WAIT_SECONDS * 1000)
      if (waitMs > 0) {
        await delay(waitMs, undefined, { signal, ref: false }).catch(() => undefined)
        continue
      }
      await running
      // The failure is in the log already.
      await make('scheduled').catch(() => {
        notBefore = Date.now() + Math.min(config.interval, AGAIN_AFTER_SECONDS) * 1000
      })
    }
  }

  /** Backups with a time in the future are ignored. */
  async function nextAt(): Promise<number> {
    const files = await folder.list().catch((): BackupFile[] => [])
    const times = files.flatMap(({ kind, made_at }) => (kind === 'scheduled' ? [Date.parse(made_at)] : []))
    const last = times.find((time) => time <= Date.now())
    return last === undefined ? 0 : last + config.interval * 1000
  }

  const gauges: Gauge[] = [
    {
      key: 'backup.last_age_seconds',
      about: 'Seconds since the start of the newest backup in the backup directory.',
      read() {
        if (lastMadeAt === undefined) throw new Error('there is no backup')
        return Math.round((Date.now() - lastMadeAt) / 1000)
      },
    },
  ]

  return {
    name: 'backups',
    gauges,
    routes: createBackupRoutes({ make: (caller) => make('requested', caller), list }),
    start() {
      looking = look()
      if (config.interval > 0) schedule = keepMaking()
      return Promise.resolve()
    },
    async stop() {
      stopping.abort(shuttingDown())
      const late = new AbortController()
      const limit = delay(MAX_STOP_MS, undefined, { signal: late.signal }).catch(() => undefined)
      await Promise.race([Promise.all([looking, schedule, running]), limit])
      late.abort()
    },
  }
}

/** Errors of the file system become BACKUP_FAILED. */
function translate(error: unknown): AppError {
  if (isAppError(error)) return error
  return backupFailed(`the backup directory cannot be used: ${reasonOfFileError(error)}.`, error)
}

export { notIncluded } from './not-included.ts'
