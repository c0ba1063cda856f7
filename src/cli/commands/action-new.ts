/** `svc action new`: a new action in a pack of files. */
import { Option } from 'commander'
import { CliCommand } from '../command.ts'
import { exitCodes } from '../exit-codes.ts'
import { addCommonOptions, type CommonFlags } from '../options.ts'
import { planAction, readParameter, runCommandOf, parameterTypes } from '../scaffold/action.ts'
import { readContentRef } from '../scaffold/names.ts'
import { findPack, placeNote } from '../scaffold/packs-folder.ts'
import { reportFiles } from '../scaffold/report.ts'
import { writeFiles } from '../scaffold/write-files.ts'
import { withSession, type CommandContext, type Session } from '../session.ts'
import { installStep } from './pack-create.ts'

interface NewFlags extends CommonFlags {
  shell?: boolean
  python?: boolean
  parameter?: string[]
  path?: string
}

export function createActionNewCommand(context: CommandContext): CliCommand {
  return addCommonOptions(new CliCommand('new'))
    .description('Create the files of an action in the folder of its pack. No server is needed.')
    .argument('<pack.name>', 'reference of the action; `svc pack create` makes a pack')
    .addOption(new Option('--shell', 'a script for the shell; the default').conflicts('python'))
    .option('--python', 'a class in Python')
    .option(
      '--parameter <name:type...>',
      `parameter of the action: name:type, or name:type=default for an optional one; types: ${Object.keys(parameterTypes).join(', ')}`,
    )
    .option('--path <folder>', 'folder that has the folder of the pack')
    .completions({ 'pack.name': [], '--parameter': [] })
    .notes(placeNote)
    .examples(
      'svc action new web.check --shell --parameter host:string tries:integer=3',
      'svc action new web.report --python --parameter token:secret',
    )
    .action((ref: string, flags: NewFlags) =>
      withSession(context, flags, (session) => createAction(session, ref, flags), { withoutLogin: true }),
    )
}

async function createAction(session: Session, ref: string, flags: NewFlags): Promise<number> {
  const { pack, name } = readContentRef(ref, 'the reference of an action')
  const parameters = (flags.parameter ?? []).map(readParameter)
  const kind = flags.python === true ? 'python' : 'shell'
  const { folder, isServed } = await findPack(pack, flags.path)
  const files = planAction(folder, { name, kind, parameters })
  await writeFiles(files)
  const next = [
    installStep(pack, folder, isServed),
    { command: runCommandOf(`${pack}.${name}`, parameters), about: 'runs it' },
  ]
  await reportFiles(session, files, next, { ref: `${pack}.${name}` })
  return exitCodes.ok
}
