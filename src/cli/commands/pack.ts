/** `svc pack`: lists, shows, installs and configures packs (contract 09, 9.3). */
import { CliCommand } from '../command.ts'
import { segment } from '../connection/client.ts'
import { listIn, textOrEmpty } from '../connection/responses.ts'
import { exitCodes } from '../exit-codes.ts'
import { NotFound } from '../failures.ts'
import { addCommonOptions, addWidthOption, type CommonFlags, type WidthFlags } from '../options.ts'
import { openFile, printFile } from '../output/raw-output.ts'
import { callOn, printList } from '../records.ts'
import { createGetCommand, createListCommand, type CliResource } from '../resources.ts'
import { withSession, type CommandContext, type Session } from '../session.ts'
import { createConfigCommand } from './pack-config.ts'
import { createPackCreateCommand } from './pack-create.ts'
import { createInstallCommand, createRegisterCommand, createUninstallCommand } from './pack-install.ts'
import { createSearchCommand, createShowCommand } from './pack-search.ts'
import { createValidateCommand, createValidateConfigCommand } from './pack-validate.ts'

const pack: CliResource = {
  name: 'Pack',
  pluralName: 'Packs',
  path: '/packs',
  columns: ['ref', 'name', 'description', 'version', 'author'],
  order: ['id', 'uid', 'ref', 'name', 'description', 'version', 'author', 'path', 'config_problem', 'files'],
  warningOf({ ref, config_problem: problem }) {
    if (typeof problem !== 'string') return undefined
    return `The configuration of pack "${textOrEmpty(ref)}" has a problem: ${problem}`
  },
}

export function createPackCommand(context: CommandContext): CliCommand {
  const list = createListCommand(context, pack).description('List packs.').examples('svc pack list')

  const get = createGetCommand(context, pack, '<ref...>', 'references or ids')
    .description('Show packs with their files.')
    .examples('svc pack get examples')

  const files = addWidthOption(addCommonOptions(new CliCommand('files')))
    .description('List the text files of a pack with their sizes in bytes. -j and -y add the content.')
    .argument('<ref>', 'reference or id')
    .notes('Files larger than 500000 bytes and binary files are left out.')
    .examples('svc pack files examples')
    .action((ref: string, flags: CommonFlags & WidthFlags) =>
      withSession(context, flags, (session) => listFiles(session, ref, flags)),
    )

  const file = addCommonOptions(new CliCommand('file'))
    .description('Print a file of a pack, byte for byte. On a terminal, control characters are escaped.')
    .argument('<ref>', 'reference or id')
    .argument('<path>', 'path of the file in the directory of the pack')
    // The file is on the server, so completion offers nothing.
    .completions({ path: [] })
    .examples('svc pack file examples actions/greet.py', 'svc pack file web icon.png > icon.png')
    .action((ref: string, path: string, flags: CommonFlags) =>
      withSession(context, flags, (session) => showFile(session, ref, path)),
    )

  return new CliCommand('pack')
    .addCommand(list)
    .addCommand(createShowCommand(context))
    .addCommand(createSearchCommand(context))
    .addCommand(get)
    .addCommand(files)
    .addCommand(file)
    .addCommand(createConfigCommand(context, pack))
    .addCommand(createInstallCommand(context, pack))
    .addCommand(createUninstallCommand(context, pack))
    .addCommand(createRegisterCommand(context))
    .addCommand(createPackCreateCommand(context))
    .addCommand(createValidateCommand(context))
    .addCommand(createValidateConfigCommand(context))
}

async function listFiles(session: Session, ref: string, { width }: WidthFlags): Promise<number> {
  const subject = { kind: pack.name, path: '/packs/views/files', id: ref }
  const records = listIn(await callOn(session, 'GET', subject)).map((record) => ({
    ...record,
    size: Buffer.byteLength(textOrEmpty(record['content'])),
  }))
  await printList(session, records, {
    columns: ['file_path', 'size'],
    widths: width,
    name: 'File',
    pluralName: 'Files',
  })
  return exitCodes.ok
}

async function showFile(session: Session, ref: string, path: string): Promise<number> {
  if (ref === '') throw new NotFound(pack.name, ref)
  // A URL cannot contain such path segments.
  if (path.split('/').some((name) => ['', '.', '..'].includes(name))) throw new NotFound('File', path)
  const address = `/packs/views/file/${segment(ref)}/${path.split('/').map(segment).join('/')}`
  const response = await openFile(session, address, (code) =>
    code === 'CONTENT_NOT_FOUND' ? new NotFound(pack.name, ref) : new NotFound('File', path),
  )
  await printFile(session, response, { pack: ref, file_path: path })
  return exitCodes.ok
}
