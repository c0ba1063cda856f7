/** `svc restore`: a backup takes the place of the database, while no server runs. */
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
    .description('Put a backup in the place of the database. The server has to be stopped.')
    .argument('<file>', 'the backup; a name without folders is also looked for in the backup directory')
    .option('--dry-run', 'only try whether the backup can be used')
  return addServerConfigOption(command)
    .notes(
      'The backup is copied beside the database and read as a whole before anything is changed: a damaged one, one that is no database of svc, and one of a newer release are refused. The database that is there, be it damaged, stays under a name that is printed.',
      'Run it as the account of the server, or as root, who does it as that account, too: it has to be able to read the backup. Any copy of a database that SQLite could open can be restored, with the `-wal` file beside it if there is one.',
      'The server then goes on from the time of the backup: what waited to run then is run, be it once more; what was running is abandoned; tokens and API keys are those of that time. docs/backup.md tells what else is to be brought back, and how.',
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
    const older = 'The backup is of an older release; the next start brings it to this one.\n'
    return [
      dryRun
        ? `${from} is whole, ${size(bytes)}, and can be restored to ${to}.\n`
        : `${from} is restored to ${to}, ${size(bytes)}.\n`,
      keptAs === undefined ? '' : `The database that was there is kept as ${keptAs}.\n`,
      missingMigrations.length === 0 ? '' : older,
      dryRun ? '' : 'Start the server: it goes on from the time of the backup.\n',
    ].join('')
  } catch (error) {
    if ([DatabaseInUse, SchemaTooNew, RestoreRefused].some((kind) => error instanceof kind)) {
      throw new CliFailure(error instanceof Error ? error.message : String(error))
    }
    throw error
  }
}
