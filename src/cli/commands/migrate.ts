/** `svc migrate`: moves a StackStorm installation to svc. */
import { Option } from 'commander'
import type { GivenPlaces } from '../../migrate/index.ts'
import { absolutePath } from '../cli-process.ts'
import { CliCommand } from '../command.ts'
import { exitCodes } from '../exit-codes.ts'
import { otherAccountOf } from '../../lib/process/index.ts'
import { runAgainAs } from '../control/account.ts'
import { addServerConfigOption, loadServerSettings } from '../operator-session.ts'
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
  return new CliCommand('migrate').addCommand(createCheckCommand(context)).addCommand(createImportCommand(context))
}

function createCheckCommand(context: CommandContext): CliCommand {
  return addPlaceOptions(addCommonOptionsWithoutFile(new CliCommand('check')))
    .description('Check what of a StackStorm installation will run, and what will not and why. Nothing is changed.')
    .notes(
      'A server of the command’s own registers the packs and inspects the workflows, so the verdict is that of every server. Nothing of the installation is run.',
      'It prints each pack with its content and problems, the records of exports that it refuses, what becomes of the options in st2.conf, and a percentage of what can be used. The exit code is 0 when all can be used, 1 when something cannot, and 2 when the folder has nothing of StackStorm.',
    )
    .examples('svc migrate check /mnt/old-host', 'svc migrate check . --packs /opt/stackstorm/packs -j')
    .action((folder: string, flags: PlaceFlags) => checkFolder(context, folder, flags))
}

interface ImportFlags extends PlaceFlags {
  configFile?: string[]
  dryRun?: boolean
  history?: boolean
  onConflict: 'skip' | 'replace'
  report?: string
}

function createImportCommand(context: CommandContext): CliCommand {
  return addServerConfigOption(addPlaceOptions(addCommonOptionsWithoutFile(new CliCommand('import'))))
    .description('Import a StackStorm installation into the running server of this machine.')
    .option('--dry-run', 'say what would happen, and change nothing')
    .option('--history', 'take over what has run too, such as executions and traces, to read it here')
    .addOption(
      new Option('--on-conflict <what>', 'what to do with records that differ from those of the server')
        .choices(['skip', 'replace'])
        .default('skip'),
    )
    .option('--report <file>', 'file for the report (default: in the directory migration of the base path)')
    .notes(
      'It takes over packs, their configurations, the password file, role definitions, and from exports or a folder of mongodump keys with their secrets, API keys, service accounts, rules, actions, aliases, policies and trigger types. Records get the names of svc, such as core.svc.webhook; files of packs stay as they are.',
      'Running it again changes nothing, or takes over what has changed in the source. A record that was changed on the server since, or that no import has made, is a conflict and stays, unless --on-conflict replace is given.',
      'With --history, executions that have ended and traces keep their ids and times. Nothing follows from them: no rule, notification or policy. The cleanup counts them by their own times.',
      'Run it as the account of the server or as root. As root it switches to that account, which must be able to read the folder. It finds the server through its configuration, as `svc serve` does, and writes a report in JSON, and a proposed configuration file made from st2.conf. The exit code is 1 when something was refused or is in conflict, or a pack has content that svc cannot use.',
    )
    .examples('svc migrate import /mnt/old-host --dry-run', 'svc migrate import /mnt/old-host')
    .action(async (folder: string, { configFile, ...flags }: ImportFlags) => {
      const { config, files } = await loadServerSettings(configFile)
      const account = otherAccountOf(config.system.base_path)
      if (account !== undefined) return context.setExitCode(runAgainAs(account, files))
      const [{ importInstallation, exitCodeOf }, { printImport }] = await Promise.all([
        import('../migrate/import.ts'),
        import('../migrate/print-import.ts'),
      ])
      const { onConflict, dryRun = false, history = false, report } = flags
      const options = {
        given: givenOf(flags),
        dryRun,
        history,
        onConflict,
        report: report === undefined ? undefined : absolutePath(report),
      }
      await importInstallation(context, absolutePath(folder), config, options, flags, async (session, summary) => {
        if (session.form === 'human') await printImport(session, summary)
        else await session.printMachine(summary)
        return exitCodeOf(summary)
      })
    })
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
  await checkInstallation(context, absolutePath(folder), givenOf(flags), flags, async (session, report) => {
    if (session.form === 'human') await printCheck(session, report)
    else await session.printMachine(report)
    const isFine =
      report.problems.length === 0 &&
      report.refused_records.length === 0 &&
      report.packs.every(({ state }) => state === 'ready' || state === 'included')
    return isFine ? exitCodes.ok : exitCodes.failed
  })
}

function givenOf({ packs, configs, conf, export: exports, keyFile: keyFiles }: PlaceFlags): GivenPlaces {
  return Object.fromEntries(
    Object.entries({ packs, configs, conf, exports, keyFiles }).filter(([, paths]) => paths !== undefined),
  )
}
