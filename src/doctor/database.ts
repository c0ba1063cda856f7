/** The database file. */
import { existsSync } from 'node:fs'
import { missingMigrations, SchemaTooNew, checkDatabase } from '../db/index.ts'
import { ok, problem, skipped, warning, type Check } from './check.ts'

export const database: Check = {
  name: 'database',
  async look({ loaded: { config }, running }) {
    const { path } = config.database
    if (!existsSync(path)) return [skipped(`${path} is made at the first start.`)]
    if (running !== undefined) {
      return [
        skipped(
          'The server runs, and reading the whole file would slow it down; "svc backup" checks the copy that it makes.',
        ),
      ]
    }
    const { damage, migrations } = await checkDatabase(path)
    const [first] = damage
    if (first !== undefined) {
      const more = damage.length === 1 ? '' : `, and ${damage.length - 1} more`
      return [
        problem(
          `${path} is damaged: ${first}${more}.`,
          'Keep a copy of the file and restore a backup: svc restore. docs/backup.md tells how.',
        ),
      ]
    }
    if (migrations === undefined) {
      return [problem(`${path} is no database of svc.`, 'Set database.path to the database, or move the file away.')]
    }
    try {
      const missing = missingMigrations(migrations)
      if (missing.length === 0) return [ok(`${path} is undamaged, and of this release.`)]
      if (config.backup.before_migration) {
        return [ok(`${path} is undamaged, and of an older release: the next start makes a backup and changes it.`)]
      }
      return [
        warning(
          `${path} is undamaged, and of an older release: the next start changes it, and there is no way back.`,
          'Set backup.before_migration = True, or copy the file before the server is started.',
        ),
      ]
    } catch (error) {
      if (!(error instanceof SchemaTooNew)) throw error
      return [problem(`${path}: ${error.message}`, 'Install the newer release, or restore a backup made before it.')]
    }
  },
}
