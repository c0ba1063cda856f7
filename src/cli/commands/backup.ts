/** `svc backup`: backups of the database while the server runs. */
import { listBackups } from '../../core/backup-files.ts'
import { size } from '../../lib/text/index.ts'
import { CliCommand } from '../command.ts'
import { listIn, recordIn, toList } from '../connection/responses.ts'
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

/** A large database takes long to copy. */
const TIMEOUT_MS = 24 * 3_600_000

export function createBackupCommand(context: CommandContext): CliCommand {
  const create = addOperatorOptions(
    new CliCommand('create')
      .description('Create a backup of the database in the backup directory of the server (backup.directory).')
      .notes(
        'The server keeps working. The backup holds everything stored before the command started. The server verifies the written backup and deletes a damaged one.',
        'A backup holds the database only; the command lists the other files to keep. Without the encryption keys, stored secrets cannot be decrypted.',
        'Backups of this command stay until you delete them. The server also creates scheduled backups and deletes the oldest of those (section backup of the configuration).',
      )
      .examples('svc backup', 'svc backup -j', 'svc backup --config-file /etc/svc/svc.conf'),
  ).action((flags: OperatorFlags) => withOperatorSession(context, flags, make))

  const list = addOperatorOptions(
    new CliCommand('list')
      .description('List the backups in the backup directory of the server, newest first.')
      .notes('Backups on this machine are also listed while no server runs, for `svc restore`.')
      .examples('svc backup list', 'svc backup list -j'),
  ).action((flags: OperatorFlags) =>
    withOperatorSession(context, flags, async (session) => show(session, await find(context, flags, session))),
  )

  return new CliCommand('backup')
    .description('Create and list backups of the database. Without a sub-command, svc backup creates one.')
    .addCommand(create, { isDefault: true })
    .addCommand(list)
    .examples('svc backup', 'svc backup list')
}

async function make(session: Session): Promise<number> {
  const progress = session.progress('Copying the database')
  const answer = await session.client.call('POST', '/backups', { timeoutMs: TIMEOUT_MS })
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
      `Backup: ${cellText(backup['path'])}, ${size(Number(backup['bytes']))}\n`,
      `SHA-256: ${cellText(backup['sha256'])}\n`,
      ...(elsewhere.length === 0 ? [] : ['\nNot in the backup; keep copies of these as well:\n']),
      ...elsewhere.map(({ path, what }) => `  ${cellText(path).padEnd(width)}  ${cellText(what)}\n`),
    ].join(''),
  )
  return exitCodes.ok
}

/** Backups are also needed while the server is stopped, for a restore. */
async function find(context: CommandContext, flags: OperatorFlags, session: Session): Promise<Json[]> {
  if (!isElsewhere(context, flags)) {
    const { backup, system } = await loadServerConfig(flags.configFile)
    if (findServer(system.base_path) === undefined) {
      const files = await listBackups(backup.directory).catch((error: Error) => {
        throw new CliFailure(`Cannot read backup.directory: ${error.message}`)
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
      ? 'No backups yet.\n'
      : renderTable(['made', 'kind', 'size', 'path'], files.map(cells), { terminalWidth }),
  )
  return exitCodes.ok
}
