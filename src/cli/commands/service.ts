/** `svc service`: the server as a service of systemd. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { absolutePath, cliProcess } from '../cli-process.ts'
import { isSingleExecutable, locate, readPart } from '../../core/bundle.ts'
import { CliCommand } from '../command.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure } from '../failures.ts'
import { printable } from '../output/print.ts'
import { openHost, type Host } from '../service/host.ts'
import { install, links, uninstall, type Report } from '../service/installation.ts'
import { accountName, makeConfiguration, paths, unitName, unitText } from '../service/unit.ts'
import type { CommandContext } from '../session.ts'

interface InstallFlags {
  root: string
  dryRun?: boolean
}

interface UninstallFlags {
  root: string
  purge?: boolean
}

const rootOption = ['--root <dir>', 'change what is below this folder, as for the image of a machine', '/'] as const

export function createServiceCommand(context: CommandContext): CliCommand {
  const installCommand = new CliCommand('install')
    .description('Install or upgrade svc as a service of systemd.')
    .option('--dry-run', 'only print what would be written')
    .option(...rootOption)
    .notes(
      `Run by root, it copies the executable to \`${paths.program}\`, puts links for its further names beside it, makes the account \`${accountName}\`, writes \`${paths.unit}\`, and \`${paths.configuration}\` unless there is one. The service keeps everything in \`${paths.state}\`, and its audit file in \`${paths.logs}\`.`,
      'Run with a newer executable it upgrades: the service goes on as it is until `systemctl restart svc`.',
      'Only the single executable can be installed so; docs/install.md tells about it, and about drop-ins for actions that need more than the unit allows.',
    )
    .examples('svc service install', 'svc service install --dry-run', 'svc service install --root /srv/image')
    .action(async ({ root, dryRun }: InstallFlags) => {
      const configuration = makeConfiguration((await readPart(example)).toString('utf8'))
      if (dryRun === true) cliProcess().stdout.write(describe(configuration))
      else installOn(root, configuration)
      context.setExitCode(exitCodes.ok)
    })
  const uninstallCommand = new CliCommand('uninstall')
    .description('Stop the service and remove it; what the server keeps stays.')
    .option('--purge', 'also remove its configuration, its data, its audit file and its account')
    .option(...rootOption)
    .examples('svc service uninstall', 'svc service uninstall --purge')
    .action(({ root, purge }: UninstallFlags) => {
      uninstall(openFor(root), purge === true, report)
      context.setExitCode(exitCodes.ok)
    })
  return new CliCommand('service').addCommand(installCommand).addCommand(uninstallCommand)
}

const example = locate('../../../svc.conf.example', './svc.conf.example', import.meta.url)

function installOn(root: string, configuration: string): void {
  if (!isSingleExecutable()) {
    throw new CliFailure(
      'Only the single executable can be installed as a service: make it with "npm run build:binary" and run "dist/bin/svc service install". With --dry-run the unit is printed, for one of your own.',
    )
  }
  const host = openFor(root)
  // By this name also while a newer one is at its path.
  const executable = existsSync('/proc/self/exe') ? '/proc/self/exe' : process.execPath
  const isChanged = install({ host, executable, configuration, report })
  if (!host.hasSystemd) {
    cliProcess().stdout.write(`\nOn the machine that this becomes: systemctl enable --now ${unitName}\n`)
  } else if (host.systemctl('is-active', '--quiet', unitName)) {
    const next = isChanged ? 'The service still runs as it was: systemctl restart svc' : 'The service runs as it is.'
    cliProcess().stdout.write(`\n${next}\n`)
  } else {
    cliProcess().stdout.write(
      `\nStart it, now and with the machine:         systemctl enable --now svc\nThe password of the user "admin" is then in: ${paths.state}/initial-admin-password (until it is changed)\n`,
    )
  }
}

/** @throws CliFailure when this account, or this machine, cannot have such a service */
function openFor(root: string): Host {
  if (process.getuid?.() !== 0) throw new CliFailure('Only root can do this: try "sudo svc service …".')
  const folder = absolutePath(root)
  if (!existsSync(`${folder}/.`)) {
    throw new CliFailure(`--root: ${printable(folder)} is not a folder.`)
  }
  if (!existsSync(join(folder, 'etc/passwd'))) {
    throw new CliFailure(
      `--root: ${printable(folder)} is not the root of a system: there is no etc/passwd, which the account of the service is added to.`,
    )
  }
  const host = openHost(folder)
  if (folder === '/' && !host.hasSystemd) {
    throw new CliFailure(
      'systemd does not run this machine (there is no /run/systemd/system). Let whatever runs it start "svc serve" as an account of its own, with TERM to stop it; or prepare the image of another machine with --root.',
    )
  }
  return host
}

const report: Report = (part, what) => cliProcess().stdout.write(`${what.padEnd(10)} ${part}\n`)

function describe(configuration: string): string {
  const file = (path: string, about: string, text: string): string => `==> ${path} (${about}) <==\n${text}\n`
  return [
    `==> ${paths.program} (mode 0755): a copy of this executable <==\n`,
    ...links.map((path) => `==> ${path}: a link to svc <==\n`),
    `==> account ${accountName}, in a group of its own, home ${paths.state}, no login <==\n\n`,
    file(paths.unit, 'mode 0644', unitText),
    file(paths.configuration, `mode 0640, group ${accountName}; only if there is none`, configuration),
  ].join('')
}
