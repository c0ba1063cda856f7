/** `svc compact`: shrinks the database file while no server runs. */
import { cliProcess } from '../cli-process.ts'
import { otherAccountOf } from '../../lib/process/index.ts'
import { size } from '../../lib/text/index.ts'
import { CliCommand } from '../command.ts'
import { runAgainAs } from '../control/account.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure } from '../failures.ts'
import { addServerConfigOption, loadServerSettings } from '../operator-session.ts'
import { printable } from '../output/print.ts'
import { createProgressLine } from '../output/progress.ts'
import type { CommandContext } from '../session.ts'

interface CompactFlags {
  configFile?: string[]
}

export function createCompactCommand(context: CommandContext): CliCommand {
  const command = new CliCommand('compact')
    .description('Shrink the database file to the size of its content. Stop the server first.')
    .notes(
      'A running server returns unused space by itself, a few milliseconds at a time. This command returns all of it at once, for example after most of a large history was deleted.',
      'The command writes the content to a new file beside the database, verifies it, and lets it replace the database. The disk needs as much free space as the content has. If the command is interrupted, the database is unchanged; the next run or the next start of the server deletes the incomplete file.',
      'Run it as the account of the server or as root. As root it switches to that account.',
    )
    .examples('svc compact', 'svc compact --config-file /etc/svc/svc.conf')
  return addServerConfigOption(command).action(async (flags: CompactFlags) => {
    const { config, files } = await loadServerSettings(flags.configFile)
    const { path } = config.database
    const account = otherAccountOf(path)
    if (account !== undefined) return context.setExitCode(runAgainAs(account, files))
    cliProcess().stdout.write(printable(await compact(path)))
    context.setExitCode(exitCodes.ok)
  })
}

/** @throws CliFailure */
async function compact(path: string): Promise<string> {
  const { stderr, env } = cliProcess()
  const { compactDatabase, CompactRefused, DatabaseInUse } = await import('../../db/sqlite/compact.ts')
  const line = createProgressLine(stderr, env)
  const task = line.start(`Compacting ${path}`)
  try {
    const { bytesBefore, bytesAfter } = await compactDatabase({
      path,
      progress(written, expected) {
        task.update(
          written < expected
            ? `Compacting ${path}: ${size(written)} of ${size(expected)} written`
            : `Compacting ${path}: verifying the new file`,
        )
      },
    })
    return `Compacted ${path}: ${size(bytesBefore)} before, ${size(bytesAfter)} now.\nStart the server.\n`
  } catch (error) {
    if (error instanceof DatabaseInUse || error instanceof CompactRefused) throw new CliFailure(error.message)
    throw error
  } finally {
    task.stop()
    line.close()
  }
}
