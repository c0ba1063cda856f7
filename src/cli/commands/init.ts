/** `svc init`: a folder with all that a server of one's own needs. */
import { basename } from 'node:path'
import { CliCommand } from '../command.ts'
import { exitCodes } from '../exit-codes.ts'
import { addCommonOptions, type CommonFlags } from '../options.ts'
import { planFolder } from '../scaffold/init.ts'
import { checkPackName, packNameFrom } from '../scaffold/names.ts'
import { reportFiles } from '../scaffold/report.ts'
import { pathOf, shownPath, writeFiles } from '../scaffold/write-files.ts'
import { quote } from '../../lib/process/index.ts'
import { cliProcess } from '../cli-process.ts'
import { withSession, type CommandContext, type Session } from '../session.ts'

interface InitFlags extends CommonFlags {
  pack?: string
}

export function createInitCommand(context: CommandContext): CliCommand {
  return addCommonOptions(new CliCommand('init'))
    .description('Create a folder with a pack, a configuration and a README. No server is needed.')
    .argument('[folder]', 'folder to create or to fill; default: the current folder')
    .option('--pack <name>', 'name of the pack; default: made from the name of the folder')
    .completions({ '--pack': [] })
    .notes(
      'The folder gets svc.conf, README.md, .gitignore and packs/<pack> with an example action. `svc serve`, started in the folder, keeps its data in data/. Files that exist are never replaced: the command names them and writes nothing.',
    )
    .examples('svc init jobs', 'svc init . --pack web')
    .action((folder: string | undefined, flags: InitFlags) =>
      withSession(context, flags, (session) => init(session, folder ?? '.', flags), { withoutLogin: true }),
    )
}

async function init(session: Session, given: string, { pack: name }: InitFlags): Promise<number> {
  const folder = pathOf(given)
  const pack = name === undefined ? packNameFrom(basename(folder), 'jobs') : checkPackName(name)
  const files = planFolder(folder, pack)
  await writeFiles(files)
  const next = [
    ...(folder === cliProcess().cwd()
      ? []
      : [{ command: `cd ${quote(shownPath(folder))}`, about: 'go to the folder' }]),
    { command: 'svc serve', about: 'starts the server' },
    { command: `svc run ${pack}.hello`, about: 'in a second terminal: runs the example' },
  ]
  await reportFiles(session, files, next, { folder, pack })
  return exitCodes.ok
}
