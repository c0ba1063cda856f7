/** `svc service`: the server as a service of systemd. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { absolutePath, cliProcess } from '../cli-process.ts'
import { isSingleExecutable, locatePart, readPart } from '../../core/bundle.ts'
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

const rootOption = [
  '--root <dir>',
  'root directory of the system to change, such as a mounted machine image',
  '/',
] as const

export function createServiceCommand(context: CommandContext): CliCommand {
  const installCommand = new CliCommand('install')
    .description('Install or upgrade svc as a systemd service.')
    .option('--dry-run', 'print what would be written, and change nothing')
    .option(...rootOption)
    .notes(
      `Needs root. It copies the executable to \`${paths.program}\`, links its other names, creates the account \`${accountName}\` and writes \`${paths.unit}\`. It writes \`${paths.configuration}\` only if the file does not exist. The service stores its data in \`${paths.state}\` and its audit log in \`${paths.logs}\`.`,
      'A newer executable upgrades the installation. The running service changes only after `systemctl restart svc`.',
      'This works with the single executable only. docs/install.md describes it, and drop-ins for actions that need more than the unit allows.',
    )
    .examples('svc service install', 'svc service install --dry-run', 'svc service install --root /srv/image')
    .action(async ({ root, dryRun }: InstallFlags) => {
      const configuration = makeConfiguration((await readPart(example)).toString('utf8'))
      if (dryRun === true) cliProcess().stdout.write(describe(configuration))
      else installOn(root, configuration)
      context.setExitCode(exitCodes.ok)
    })
  const uninstallCommand = new CliCommand('uninstall')
    .description('Stop and remove the service. Its configuration and data stay.')
    .option('--purge', 'also remove the configuration, the data, the audit log and the account')
    .option(...rootOption)
    .examples('svc service uninstall', 'svc service uninstall --purge')
    .action(({ root, purge }: UninstallFlags) => {
      uninstall(openFor(root), purge === true, report)
      context.setExitCode(exitCodes.ok)
    })
  return new CliCommand('service').addCommand(installCommand).addCommand(uninstallCommand)
}

const example = locatePart('../../../svc.conf.example', './svc.conf.example', import.meta.url)

function installOn(root: string, configuration: string): void {
  if (!isSingleExecutable()) {
    throw new CliFailure(
      'Only the single executable can be installed as a service. Build it with "npm run build:binary" and run "dist/bin/svc service install". For a unit of your own, print this one with --dry-run.',
    )
  }
  const host = openFor(root)
  // By this name also while a newer one is at its path.
  const executable = existsSync('/proc/self/exe') ? '/proc/self/exe' : process.execPath
  const isChanged = install({ host, executable, configuration, report })
  if (!host.hasSystemd) {
    cliProcess().stdout.write(`\nOn the target machine, run: systemctl enable --now ${unitName}\n`)
  } else if (host.systemctl('is-active', '--quiet', unitName)) {
    const next = isChanged
      ? 'The service still runs the previous version. To restart it: systemctl restart svc'
      : 'The running service is up to date.'
    cliProcess().stdout.write(`\n${next}\n`)
  } else {
    cliProcess().stdout.write(
      `\nStart it now and at boot:                   systemctl enable --now svc\nInitial password of the user "admin":        ${paths.state}/initial-admin-password (removed when it is changed)\n`,
    )
  }
}

/** @throws CliFailure when this account, or this machine, cannot have such a service */
function openFor(root: string): Host {
  if (process.getuid?.() !== 0) throw new CliFailure('This command needs root. Run: sudo svc service …')
  const folder = absolutePath(root)
  if (!existsSync(`${folder}/.`)) {
    throw new CliFailure(`--root: ${printable(folder)} is not a directory.`)
  }
  if (!existsSync(join(folder, 'etc/passwd'))) {
    throw new CliFailure(
      `--root: ${printable(folder)} is not the root directory of a system: it has no etc/passwd, which the account is added to.`,
    )
  }
  const host = openHost(folder)
  if (folder === '/' && !host.hasSystemd) {
    throw new CliFailure(
      'This machine does not run systemd (no /run/systemd/system). Make its service manager start "svc serve" under an account of its own and stop it with TERM, or prepare another system with --root.',
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
    file(paths.configuration, `mode 0640, group ${accountName}; only if it does not exist`, configuration),
  ].join('')
}
