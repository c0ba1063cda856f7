/** Replaces a database that no server uses with a backup. */
import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  linkSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  type Stats,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { syncFolder } from '../../lib/files/index.ts'
import { codeOf, hasCode } from '../../lib/process/index.ts'
import { missingMigrations } from '../migrate.ts'
import { readWhole } from './check.ts'
import { lockDatabase } from './lock.ts'
import { makeDatabaseFolder } from './make-folder.ts'

export { SchemaTooNew } from '../migrate.ts'
export { DatabaseInUse } from './lock.ts'

const copySuffixes = ['', '-wal', '-shm', '-journal'] as const

/** The dry run needs disk space beside the named database, so another path can be given. */
const elsewhere = 'try the backup in another place: SVC_DATABASE__PATH=/tmp/try/svc.db svc restore <file> --dry-run'

/** The backup cannot be used or installed. The database is unchanged. */
export class RestoreRefused extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'RestoreRefused'
  }
}

export interface RestoreOptions {
  /** The backup; it is not changed. */
  from: string
  /** The database; it may be missing or damaged. */
  to: string
  /** Does everything except replacing the database. */
  dryRun: boolean
}

export interface Restored {
  /** New path of the previous database; undefined: there was none. */
  keptAs: string | undefined
  bytes: number
  /** Migrations that the next start applies, because an older release made the backup. */
  missingMigrations: string[]
}

/**
 * Copies the backup and its write-ahead log, if any, beside the database and reads it completely. The copy then
 * replaces the database, which is kept under another name. At every point one of the two is complete. The new file
 * belongs to the caller's account.
 *
 * @throws DatabaseInUse, SchemaTooNew, RestoreRefused
 */
export async function restoreDatabase({ from, to, dryRun }: RestoreOptions): Promise<Restored> {
  try {
    const source = statOf(from)
    if (source === undefined) throw new RestoreRefused(`${from} does not exist.`)
    if (!source.isFile()) throw new RestoreRefused(`${from} is not a file.`)
    makeDatabaseFolder(dirname(to))
    const path = existsSync(to) ? realpathSync(to) : to
    const present = statOf(path)
    if (present !== undefined && !present.isFile()) throw new RestoreRefused(`${path} exists and is not a file.`)
    if (present !== undefined && present.dev === source.dev && present.ino === source.ino) {
      throw new RestoreRefused(`${from} is the database itself; name the backup that replaces it.`)
    }
    const lock = lockDatabase(path, dryRun ? `Stop it first, or ${elsewhere}` : 'Stop it first (svc stop).')
    try {
      return await exchange({ from, path, dryRun })
    } finally {
      lock.release()
    }
  } catch (error) {
    if (codeOf(error) === undefined) throw error
    throw new RestoreRefused(describe(error, from, to), error)
  }
}

const nameOfStaged = (path: string): string => `${path}.restoring`

/** Deletes what a killed run has left beside the database. The caller holds its lock. @returns whether there was something */
export function removePartialRestore(path: string): boolean {
  const staged = nameOfStaged(path)
  const isThere = copySuffixes.some((suffix) => existsSync(`${staged}${suffix}`))
  removeAll(staged)
  return isThere
}

interface Exchange {
  from: string
  path: string
  dryRun: boolean
}

async function exchange({ from, path, dryRun }: Exchange): Promise<Restored> {
  const staged = nameOfStaged(path)
  removeAll(staged)
  try {
    for (const suffix of ['', '-wal', '-journal']) {
      // The files beside a database have its name as their prefix.
      if (suffix === '' || existsSync(`${from}${suffix}`)) stage(`${from}${suffix}`, `${staged}${suffix}`)
    }
    const { damage, migrations, written } = await readWhole({ kind: 'unite', path: staged }, undefined)
    const [first] = damage
    if (first !== undefined) throw new RestoreRefused(`${from} is damaged: ${first}. Use another backup.`)
    if (migrations === undefined || written === undefined) throw new RestoreRefused(`${from} is not a database of svc.`)
    const missing = missingMigrations(migrations)
    if (dryRun) return { keptAs: undefined, bytes: written.bytes, missingMigrations: missing }
    const keptAs = [path, `${path}-wal`].some((file) => existsSync(file)) ? setAside(path) : undefined
    // SQLite would apply the log of the previous database to this one.
    removeAll(path, ['-wal', '-shm', '-journal'])
    await syncFolder(dirname(path))
    renameSync(staged, path)
    await syncFolder(dirname(path))
    return { keptAs, bytes: written.bytes, missingMigrations: missing }
  } finally {
    removeAll(staged)
  }
}

function stage(from: string, to: string): void {
  closeSync(openSync(to, 'wx', 0o600))
  copyFileSync(from, to, constants.COPYFILE_FICLONE)
  chmodSync(to, 0o600)
}

/** Moves the database with its logs, which may hold its last changes. @returns its new name */
function setAside(path: string): string {
  const kept = freeName(path)
  // The original name stays until another file replaces it, so that a database exists at any time.
  try {
    linkSync(path, kept)
  } catch (error) {
    // The database may be missing while its log remains.
    if (!hasCode(error, 'EPERM', 'ENOTSUP', 'ENOSYS', 'ENOENT')) throw error
    if (existsSync(path)) renameSync(path, kept)
  }
  for (const suffix of ['-wal', '-journal']) {
    if (existsSync(`${path}${suffix}`)) renameSync(`${path}${suffix}`, `${kept}${suffix}`)
  }
  return kept
}

/** `svc.db.before-restore-20300102T030405Z`. */
function freeName(path: string): string {
  const stamp = new Date().toISOString().replace(/[-:]|\.\d+/g, '')
  const name = join(dirname(path), `${basename(path)}.before-restore-${stamp}`)
  for (let n = 2; ; n++) {
    const tried = n === 2 ? name : `${name}-${n}`
    if (!existsSync(tried)) return tried
  }
}

function removeAll(path: string, suffixes: readonly string[] = copySuffixes): void {
  for (const suffix of suffixes) rmSync(`${path}${suffix}`, { force: true })
}

const statOf = (path: string): Stats | undefined => statSync(path, { throwIfNoEntry: false })

function describe(error: unknown, from: string, to: string): string {
  const reason = error instanceof Error ? error.message : String(error)
  if (hasCode(error, 'EACCES', 'EPERM')) {
    return `Cannot restore ${from} to ${to}: ${reason}. Run it as root or as the account of the server, which must be able to read the backup.`
  }
  return hasCode(error, 'ENOSPC', 'EDQUOT', 'SQLITE_FULL')
    ? `Not enough disk space for the backup in ${dirname(to)}: svc copies it there before it replaces the database. Free some space and restore again.`
    : `Cannot restore ${from} to ${to}: ${reason}`
}
