/** The database file. */
import { existsSync, readdirSync, readlinkSync, realpathSync } from 'node:fs'
import { dirname, basename, join } from 'node:path'
import { missingMigrations, readFileSpace, SchemaTooNew, checkDatabase } from '../db/index.ts'
import { size } from '../lib/text/index.ts'
import { ok, failedCheck, skipped, warning, type HealthCheck, type Result } from './check.ts'

/** Less than this is not worth a stop of the server. */
const MIN_UNUSED_BYTES = 16 * 1024 * 1024

export const database: HealthCheck = {
  name: 'database',
  async run({ loaded: { config }, running, status }) {
    const { path } = config.database
    if (running !== undefined) {
      const missing = missingFile(path, running.pid)
      if (missing !== undefined) {
        return [
          failedCheck(
            `${missing} was deleted, moved or replaced while the server runs (process ${running.pid}): it accepts no new work.`,
            missing === path
              ? 'Put the file back, or stop the server and restore a backup with "svc restore".'
              : 'Restart the server; the database itself has everything that was stored.',
          ),
        ]
      }
    }
    if (!existsSync(path)) return [skipped(`${path} does not exist yet; the server creates it at the first start.`)]
    const space = await checkSpace(path, (running === undefined ? undefined : await status())?.reclaimingBytes)
    if (running !== undefined) {
      return [
        ...space,
        skipped(
          'Skipped while the server runs, because reading the whole file slows it down; "svc backup" verifies its copy.',
        ),
      ]
    }
    const { damage, migrations } = await checkDatabase(path)
    const [first] = damage
    if (first !== undefined) {
      const more = damage.length === 1 ? '' : `, and ${damage.length - 1} more`
      return [
        failedCheck(
          `${path} is damaged: ${first}${more}.`,
          'Keep a copy of the file and restore a backup with "svc restore" (docs/backup.md).',
        ),
      ]
    }
    if (migrations === undefined) {
      return [
        failedCheck(`${path} is not an svc database.`, 'Set database.path to the database, or move the file away.'),
      ]
    }
    try {
      const missing = missingMigrations(migrations)
      if (missing.length === 0) return [ok(`${path} is valid and of this release.`), ...space]
      if (config.backup.before_migration) {
        return [ok(`${path} is valid and of an older release: the next start creates a backup and migrates it.`)]
      }
      return [
        warning(
          `${path} is valid and of an older release: the next start migrates it without a backup.`,
          'Set backup.before_migration = True, or copy the file before the start.',
        ),
      ]
    } catch (error) {
      if (!(error instanceof SchemaTooNew)) throw error
      return [
        failedCheck(`${path}: ${error.message}`, 'Install the newer release, or restore a backup made before it.'),
      ]
    }
  },
}

/** Unused space that is being returned, or cannot be. */
async function checkSpace(path: string, reclaimingBytes = 0): Promise<Result[]> {
  const space = await readFileSpace(path)
  if (space === undefined) return []
  if (reclaimingBytes > 0) {
    return [
      ok(
        `The server is shrinking ${path}: ${size(reclaimingBytes)} of ${size(space.fileBytes)} are still to return. "svc compact" does it faster while no server runs.`,
      ),
    ]
  }
  if (space.canShrink || space.unusedBytes < MIN_UNUSED_BYTES) return []
  return [
    warning(
      `${path} has ${size(space.unusedBytes)} of unused space and cannot shrink while the server runs, because another tool made it without auto_vacuum.`,
      'Stop the server, run "svc compact" once, and start the server.',
    ),
  ]
}

/** The file of the database that is not the one that the server has open; undefined: none, or that cannot be told. */
function missingFile(path: string, pid: number): string | undefined {
  let open: Set<string>
  try {
    const folder = `/proc/${pid}/fd`
    open = new Set(readdirSync(folder).flatMap((fd) => linkOf(join(folder, fd))))
  } catch {
    return existsSync(path) ? undefined : path
  }
  const folder = existsSync(dirname(path)) ? realpathSync(dirname(path)) : dirname(path)
  const real = existsSync(path) ? realpathSync(path) : join(folder, basename(path))
  for (const suffix of ['', '-wal', '-shm']) if (!open.has(`${real}${suffix}`)) return `${path}${suffix}`
  return undefined
}

function linkOf(fd: string): string[] {
  try {
    return [readlinkSync(fd)]
  } catch {
    // It was closed meanwhile.
    return []
  }
}
