/** `svc pack create`: a new pack. */
import { join } from 'node:path'
import { CliCommand } from '../command.ts'
import { exitCodes } from '../exit-codes.ts'
import { addCommonOptions, type CommonFlags } from '../options.ts'
import { quote } from '../../lib/process/index.ts'
import { checkPackName } from '../scaffold/names.ts'
import { planPack } from '../scaffold/pack.ts'
import { findPacksFolder, placeNote } from '../scaffold/packs-folder.ts'
import { reportFiles, type NextStep } from '../scaffold/report.ts'
import { shownPath, writeFiles } from '../scaffold/write-files.ts'
import { withSession, type CommandContext, type Session } from '../session.ts'

interface CreateFlags extends CommonFlags {
  path?: string
}

export function createPackCreateCommand(context: CommandContext): CliCommand {
  return addCommonOptions(new CliCommand('create'))
    .description('Create a pack with an example action. No server is needed.')
    .argument('<name>', 'name of the pack: lower case letters, digits and "_"')
    .option('--path <folder>', 'folder to create the folder of the pack in')
    .completions({ name: [] })
    .notes(placeNote)
    .examples('svc pack create web', 'svc pack create web --path ~/packs')
    .action((name: string, flags: CreateFlags) =>
      withSession(context, flags, (session) => createPack(session, name, flags), { withoutLogin: true }),
    )
}

async function createPack(session: Session, name: string, { path }: CreateFlags): Promise<number> {
  const pack = checkPackName(name)
  const { path: packs, isServed } = await findPacksFolder(path)
  const folder = join(packs, pack)
  const files = planPack(folder, pack)
  await writeFiles(files)
  const next: NextStep[] = [
    installStep(pack, folder, isServed),
    { command: `svc run ${pack}.hello`, about: 'runs the example' },
    { command: `svc action new ${pack}.check --shell`, about: 'adds an action of your own' },
  ]
  await reportFiles(session, files, next, { pack, folder })
  return exitCodes.ok
}

/** The command after which a server knows the pack. */
export function installStep(pack: string, folder: string, isServed: boolean): NextStep {
  if (isServed) return { command: `svc pack register ${pack}`, about: 'makes the server read the pack now' }
  // A name without a slash would be looked for in the index.
  const shown = shownPath(folder)
  const place = shown.startsWith('/') ? shown : `./${shown}`
  return { command: `svc pack install ${quote(place)}`, about: 'copies the pack to the server' }
}
