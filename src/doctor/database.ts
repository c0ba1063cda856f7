/** The database file. */
import { existsSync } from 'node:fs'
import { missingMigrations, SchemaTooNew, checkDatabase } from '../db/index.ts'
import { ok, failedCheck, skipped, warning, type HealthCheck } from './check.ts'

export const database: HealthCheck = {
  name: 'database',
  async run({ loaded: { config }, running }) {
    const { path } = config.database
    if (!existsSync(path)) return [skipped(`${path} does not exist yet; the server creates it at the first start.`)]
    if (running !== undefined) {
      return [
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
      if (missing.length === 0) return [ok(`${path} is valid and of this release.`)]
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
