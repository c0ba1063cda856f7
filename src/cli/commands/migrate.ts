/** `svc migrate`: moves a StackStorm installation to svc. */
import { absolutePath } from '../cli-process.ts'
import { CliCommand } from '../command.ts'
import { exitCodes } from '../exit-codes.ts'
import { addCommonOptionsWithoutFile, type CommonFlags } from '../options.ts'
import type { CommandContext } from '../session.ts'

export interface PlaceFlags extends Omit<CommonFlags, 'configFile'> {
  packs?: string[]
  configs?: string[]
  conf?: string[]
  export?: string[]
  keyFile?: string[]
}

export function createMigrateCommand(context: CommandContext): CliCommand {
  return new CliCommand('migrate').addCommand(createCheckCommand(context))
}

function createCheckCommand(context: CommandContext): CliCommand {
  return addPlaceOptions(addCommonOptionsWithoutFile(new CliCommand('check')))
    .description('Check what of a StackStorm installation will run, and what will not and why. Nothing is changed.')
    .notes(
      'A server of the command’s own registers the packs and inspects the workflows, so the verdict is that of every server. Nothing of the installation is run.',
      'It prints each pack with its content and problems, what becomes of the options in st2.conf, and a percentage of what can be used. The exit code is 0 when all can be used, 1 when something cannot, and 2 when the folder has nothing of StackStorm.',
    )
    .examples('svc migrate check /mnt/old-host', 'svc migrate check . --packs /opt/stackstorm/packs -j')
    .action((folder: string, flags: PlaceFlags) => checkFolder(context, folder, flags))
}

/** Adds the folder and the options that name its parts. */
export function addPlaceOptions(command: CliCommand): CliCommand {
  const several = (path: string, before: string[] | undefined): string[] => [...(before ?? []), absolutePath(path)]
  return command
    .argument('<folder>', 'copy of a machine, folder of packs, or folder of exports; svc finds the parts in it')
    .completions({ folder: 'file' })
    .option('--packs <folder>', 'folder of packs, in place of those in the folder; repeatable', several)
    .option('--configs <folder>', 'folder of pack configurations; repeatable', several)
    .option('--conf <file>', 'st2.conf; repeatable', several)
    .option('--export <file>', 'export, .json, .yaml or .bson; repeatable', several)
    .option('--key-file <file>', 'key file of the datastore; repeatable', several)
}

/** The check, also as `svc doctor --from-st2`. */
export async function checkFolder(context: CommandContext, folder: string, flags: PlaceFlags): Promise<void> {
  const [{ checkInstallation }, { printCheck }] = await Promise.all([
    import('../migrate/check.ts'),
    import('../migrate/print-check.ts'),
  ])
  const given = {
    ...(flags.packs === undefined ? {} : { packs: flags.packs }),
    ...(flags.configs === undefined ? {} : { configs: flags.configs }),
    ...(flags.conf === undefined ? {} : { conf: flags.conf }),
    ...(flags.export === undefined ? {} : { exports: flags.export }),
    ...(flags.keyFile === undefined ? {} : { keyFiles: flags.keyFile }),
  }
  await checkInstallation(context, absolutePath(folder), given, flags, async (session, report) => {
    if (session.form === 'human') await printCheck(session, report)
    else await session.printMachine(report)
    const isFine =
      report.problems.length === 0 && report.packs.every(({ state }) => state === 'ready' || state === 'included')
    return isFine ? exitCodes.ok : exitCodes.failed
  })
}
