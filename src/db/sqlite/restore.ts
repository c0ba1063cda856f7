/** Putting a backup in the place of a database that no server uses. */
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
import { codeOf, hasCode } from '../../lib/process/index.ts'
import { missingMigrations } from '../migrate.ts'
import { readWhole } from './check.ts'
import { syncFolder } from './copy.ts'
import { lockDatabase } from './lock.ts'
import { makeFolder } from './make-folder.ts'

export { SchemaTooNew } from '../migrate.ts'
export { DatabaseInUse } from './lock.ts'

/** The copy that is tried takes room on the disk of whichever database is named. */
const elsewhere = 'try the backup in another place: SVC_DATABASE__PATH=/tmp/try/svc.db svc restore <file> --dry-run'

/** The backup cannot be used, or cannot be put there. The database is what it was before. */
export class RestoreRefused extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'RestoreRefused'
  }
}

export interface RestoreOptions {
  /** The backup. It is not changed. */
  from: string
  /** The database. It may be missing or damaged. */
  to: string
  /** Does everything but the exchange. */
  dryRun: boolean
}

export interface Restored {
  /** Where the database now is that was there before; undefined: none was. */
  keptAs: string | undefined
  bytes: number
  /** What the next start adds to it, because the backup was made by an older release. */
  missingMigrations: string[]
}

/**
 * The backup is copied beside the database, with the write-ahead log that may lie beside it, and read as a whole; then it
 * takes the place of the database, which stays under another name. Whatever happens on the way, one of the two is complete.
 * The new file belongs to whoever calls.
 *
 * @throws DatabaseInUse, SchemaTooNew, RestoreRefused
 */
export async function restoreDatabase({ from, to, dryRun }: RestoreOptions): Promise<Restored> {
  try {
    const source = statOf(from)
    if (source === undefined) throw new RestoreRefused(`${from} is not there.`)
    if (!source.isFile()) throw new RestoreRefused(`${from} is no file.`)
    makeFolder(dirname(to))
    const path = existsSync(to) ? realpathSync(to) : to
    const present = statOf(path)
    if (present !== undefined && !present.isFile()) throw new RestoreRefused(`${path} is there, and is no file.`)
    if (present !== undefined && present.dev === source.dev && present.ino === source.ino) {
      throw new RestoreRefused(`${from} is the database itself; name the backup that is to take its place.`)
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

interface Exchange {
  from: string
  path: string
  dryRun: boolean
}

async function exchange({ from, path, dryRun }: Exchange): Promise<Restored> {
  const staged = `${path}.restoring`
  removeAll(staged)
  try {
    for (const suffix of ['', '-wal', '-journal']) {
      // The names of what lies beside a database begin with its own.
      if (suffix === '' || existsSync(`${from}${suffix}`)) stage(`${from}${suffix}`, `${staged}${suffix}`)
    }
    const { damage, migrations, written } = await readWhole({ kind: 'unite', path: staged }, undefined)
    const [first] = damage
    if (first !== undefined) throw new RestoreRefused(`${from} is damaged: ${first}. Use another backup.`)
    if (migrations === undefined || written === undefined) throw new RestoreRefused(`${from} is no database of svc.`)
    const missing = missingMigrations(migrations)
    if (dryRun) return { keptAs: undefined, bytes: written.bytes, missingMigrations: missing }
    const keptAs = [path, `${path}-wal`].some((file) => existsSync(file)) ? setAside(path) : undefined
    // A log of the database that was there would be taken for one of this.
    removeAll(path, ['-wal', '-shm', '-journal'])
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

/** With its logs, of which it may need what is in them. @returns its new name */
function setAside(path: string): string {
  const kept = freeName(path)
  // Its own name stays until another file takes it, so that there is a database at any time.
  try {
    linkSync(path, kept)
  } catch (error) {
    // Of one that is missing the log may be left.
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

function removeAll(path: string, suffixes: readonly string[] = ['', '-wal', '-shm', '-journal']): void {
  for (const suffix of suffixes) rmSync(`${path}${suffix}`, { force: true })
}

const statOf = (path: string): Stats | undefined => statSync(path, { throwIfNoEntry: false })

function describe(error: unknown, from: string, to: string): string {
  const reason = error instanceof Error ? error.message : String(error)
  if (hasCode(error, 'EACCES', 'EPERM')) {
    return `${from} cannot be restored to ${to}: ${reason}. It takes root or the account of the server, and that account has to be able to read the backup.`
  }
  return hasCode(error, 'ENOSPC', 'EDQUOT', 'SQLITE_FULL')
    ? `There is no room for the backup in ${dirname(to)}: it is copied there while the database that is there stays. Make room, and restore again.`
    : `${from} cannot be restored to ${to}: ${reason}`
}
