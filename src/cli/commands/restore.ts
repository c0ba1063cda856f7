/** `svc restore`: replaces the database with a backup while no server runs. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { absolutePath, pathToOpen, cliProcess } from '../cli-process.ts'
import { otherAccountOf } from '../../lib/process/index.ts'
import { CliCommand } from '../command.ts'
import { runAgainAs } from '../control/account.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure } from '../failures.ts'
import { addServerConfigOption, loadServerSettings } from '../operator-session.ts'
import { printable } from '../output/print.ts'
import { size } from '../../lib/text/index.ts'
import type { CommandContext } from '../session.ts'

interface RestoreFlags {
  configFile?: string[]
  dryRun?: boolean
}

export function createRestoreCommand(context: CommandContext): CliCommand {
  const command = new CliCommand('restore')
    .description('Replace the database with a backup. Stop the server first.')
    .argument('<file>', 'backup file; a name without a directory is also searched in the backup directory')
    .option('--dry-run', 'check whether the backup can be restored, and change nothing')
  return addServerConfigOption(command)
    .notes(
      'The command copies the backup beside the database and verifies the copy before it changes anything. It refuses a damaged backup, a file that is not an svc database, and a backup of a newer release. The previous database stays under another name, which the command prints.',
      'Run it as the account of the server or as root. As root it switches to that account, which must be able to read the backup. Any copy of a database that SQLite can open works, together with its `-wal` file if there is one.',
      'The server then continues from the time of the backup. Executions that were queued then run, possibly a second time. Executions that were running become abandoned. Tokens and API keys are those of that time. docs/backup.md describes what else to restore.',
    )
    .examples('svc restore svc-20300102T030405.678Z.db', 'svc restore /mnt/backups/svc.db --dry-run')
    .action(async (file: string, flags: RestoreFlags) => {
      const { config, files } = await loadServerSettings(flags.configFile)
      const places = { backups: config.backup.directory, to: config.database.path }
      const account = otherAccountOf(places.to)
      if (account !== undefined) return context.setExitCode(runAgainAs(account, files))
      cliProcess().stdout.write(printable(await restore(file, places, flags)))
      context.setExitCode(exitCodes.ok)
    })
}

interface Places {
  /** `backup.directory` */
  backups: string
  /** `database.path` */
  to: string
}

/** @throws CliFailure */
async function restore(file: string, { backups, to }: Places, { dryRun = false }: RestoreFlags): Promise<string> {
  const listed = join(backups, file)
  const isHere = existsSync(pathToOpen(file))
  const from = !isHere && !file.includes('/') && existsSync(listed) ? listed : absolutePath(file)
  const { restoreDatabase, DatabaseInUse, RestoreRefused, SchemaTooNew } = await import('../../db/sqlite/restore.ts')
  try {
    const { keptAs, bytes, missingMigrations } = await restoreDatabase({ from, to, dryRun })
    const older = 'The backup is of an older release; the next start upgrades it.\n'
    return [
      dryRun
        ? `${from} (${size(bytes)}) is valid and can be restored to ${to}.\n`
        : `Restored ${from} (${size(bytes)}) to ${to}.\n`,
      keptAs === undefined ? '' : `The previous database is kept as ${keptAs}.\n`,
      missingMigrations.length === 0 ? '' : older,
      dryRun ? '' : 'Start the server; it continues from the time of the backup.\n',
    ].join('')
  } catch (error) {
    if ([DatabaseInUse, SchemaTooNew, RestoreRefused].some((kind) => error instanceof kind)) {
      throw new CliFailure(error instanceof Error ? error.message : String(error))
    }
    throw error
  }
}
