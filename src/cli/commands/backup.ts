/** `svc backup`: copies of the database while the server goes on. */
import { listBackups } from '../../core/backup-files.ts'
import { size } from '../../lib/text/index.ts'
import { CliCommand } from '../command.ts'
import { listIn, recordIn, toList } from '../connection/answers.ts'
import { findServer } from '../control/server.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure } from '../failures.ts'
import {
  addOperatorOptions,
  isElsewhere,
  loadServerConfig,
  withOperatorSession,
  type OperatorFlags,
} from '../operator-session.ts'
import { cellText, formatTime, renderTable, type Json } from '../output/print.ts'
import type { CommandContext, Session } from '../session.ts'

/** A large database takes its time. */
const PATIENCE_MS = 24 * 3_600_000

export function createBackupCommand(context: CommandContext): CliCommand {
  const create = addOperatorOptions(
    new CliCommand('create')
      .description('Make a backup of the database now, into the backup directory of the server (backup.directory).')
      .notes(
        'The server goes on meanwhile. What was stored before the command was started is in the backup. It is read through once it is written; a damaged one is not kept.',
        'The database is not all that a server consists of: what else has to be kept is printed. Above all nothing that was stored as a secret can be read without the keys.',
        'Backups made in this way stay until you remove them. The server makes further ones by itself, and removes the oldest of these: section backup of the configuration.',
      )
      .examples('svc backup', 'svc backup -j', 'svc backup --config-file /etc/svc/svc.conf'),
  ).action((flags: OperatorFlags) => withOperatorSession(context, flags, make))

  const list = addOperatorOptions(
    new CliCommand('list')
      .description('List the backups in the backup directory of the server, newest first.')
      .notes('Those of this machine are also listed while no server runs, for `svc restore`.')
      .examples('svc backup list', 'svc backup list -j'),
  ).action((flags: OperatorFlags) =>
    withOperatorSession(context, flags, async (session) => show(session, await find(context, flags, session))),
  )

  return new CliCommand('backup')
    .description('Make and list backups of the database. svc backup alone makes one.')
    .addCommand(create, { isDefault: true })
    .addCommand(list)
    .examples('svc backup', 'svc backup list')
}

async function make(session: Session): Promise<number> {
  const progress = session.progress('Copying the database')
  const answer = await session.client.call('POST', '/backups', { patienceMs: PATIENCE_MS })
  progress.stop()
  const backup = recordIn(answer)
  if (session.form !== 'human') {
    await session.printMachine(backup)
    return exitCodes.ok
  }
  const elsewhere = toList(backup['not_included'])
  const width = Math.max(0, ...elsewhere.map(({ path }) => cellText(path).length))
  await session.print(
    [
      `The database is in ${cellText(backup['path'])}, ${size(Number(backup['bytes']))}.\n`,
      `SHA-256: ${cellText(backup['sha256'])}\n`,
      ...(elsewhere.length === 0 ? [] : ['\nNot in it, and to be kept elsewhere as well:\n']),
      ...elsewhere.map(({ path, what }) => `  ${cellText(path).padEnd(width)}  ${cellText(what)}\n`),
    ].join(''),
  )
  return exitCodes.ok
}

/** Whoever restores one has stopped the server. */
async function find(context: CommandContext, flags: OperatorFlags, session: Session): Promise<Json[]> {
  if (!isElsewhere(context, flags)) {
    const { backup, system } = await loadServerConfig(flags.configFile)
    if (findServer(system.base_path) === undefined) {
      const files = await listBackups(backup.directory).catch((error: Error) => {
        throw new CliFailure(`backup.directory cannot be read: ${error.message}`)
      })
      return toList(files)
    }
  }
  return listIn(await session.client.call('GET', '/backups'))
}

async function show(session: Session, files: readonly Json[]): Promise<number> {
  if (session.form !== 'human') {
    await session.printMachine(files)
    return exitCodes.ok
  }
  const cells = ({ made_at: madeAt, kind, bytes, path }: Json): string[] => [
    formatTime(madeAt, session.settings.timezone),
    cellText(kind),
    size(Number(bytes)),
    cellText(path),
  ]
  const { terminalWidth } = session
  await session.print(
    files.length === 0
      ? 'There is no backup yet.\n'
      : renderTable(['made', 'kind', 'size', 'path'], files.map(cells), { terminalWidth }),
  )
  return exitCodes.ok
}
