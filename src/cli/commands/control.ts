/** `svc start`, `stop`, `restart`, `reload` and `reopen-logs`: the server of this machine. */
import { cliProcess } from '../cli-process.ts'
import type { RunFile } from '../../core/run-file.ts'
import { CliCommand } from '../command.ts'
import { findServer, isStopping, signalServer, stopServer } from '../control/server.ts'
import { launchHere, launchOf, startInBackground, type Launch } from '../control/start.ts'
import { isService, pidOfService, tellSystemd } from '../control/systemd.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure } from '../failures.ts'
import { addServerConfigOption, loadServerConfig, loadServerSettings } from '../operator-session.ts'
import type { CommandContext } from '../session.ts'

export interface ControlFlags {
  configFile?: string[]
}

interface StopFlags extends ControlFlags {
  now?: boolean
}

const foundBy =
  'The server is found as `svc serve` finds its configuration. Run this command as root or as the account of the server.'

export function createStartCommand(context: CommandContext): CliCommand {
  return createControl(context, 'start', startServer)
    .description('Start the server in the background.')
    .notes(
      'The command waits until the server takes requests. Where `svc service install` has made a service of it, systemd starts it. Elsewhere it gets its configuration as `svc serve` would from here, and goes on when the terminal is closed; it logs to `logs/svc.log` in its base path, unless log.file says another file.',
      'It ends with 0 also when the server runs already; one that is stopping is waited for, and started again. It ends with 1 when it cannot start: its last words are printed then.',
      foundBy,
    )
    .examples('svc start', 'svc start --config-file ./svc.conf')
}

export function createStopCommand(context: CommandContext): CliCommand {
  return createControl<StopFlags>(context, 'stop', endServer)
    .description('Stop the server, and wait until it has ended.')
    .option('--now', 'running actions get no more time to finish')
    .notes(
      'Running actions may finish for as long as actionrunner.shutdown_grace_seconds says; what still runs then is ended, and its execution is abandoned. What waits goes on with the next start.',
      'It ends with 0 also when no server runs. Ctrl-C only ends the waiting.',
      foundBy,
    )
    .examples('svc stop', 'svc stop --now')
}

export function createRestartCommand(context: CommandContext): CliCommand {
  return createControl<StopFlags>(context, 'restart', restartServer)
    .description('Stop the server, and start it again as it was started.')
    .option('--now', 'running actions get no more time to finish')
    .notes(
      'A server that runs without systemd is started in the background, with the arguments, the folder and the environment that it had. The program is the one that this command belongs to: so a new version takes over.',
      'A server that does not run is started.',
      foundBy,
    )
    .examples('svc restart', 'svc restart --now')
}

export function createReloadCommand(context: CommandContext): CliCommand {
  return createControl(context, 'reload', async (flags) => {
    const server = await requireServer(flags)
    signalServer(server, 'SIGHUP')
    say(`The server, process ${server.pid}, reads its files again; what it cannot use is in its log.`)
  })
    .description('Have the server read certificates, definitions of roles and packs again.')
    .notes('Changes of the configuration itself need `svc restart`. It ends with 1 when no server runs.', foundBy)
    .examples('svc reload')
}

export function createReopenLogsCommand(context: CommandContext): CliCommand {
  return createControl(context, 'reopen-logs', async (flags) => {
    const server = await requireServer(flags)
    signalServer(server, 'SIGUSR1')
    say(`The server, process ${server.pid}, opens its log files anew.`)
  })
    .description('Have the server open its log files anew, after they have been renamed.')
    .notes('It ends with 1 when no server runs. docs/monitoring.md has an example for logrotate.', foundBy)
    .examples('svc reopen-logs')
}

function createControl<F extends ControlFlags>(
  { setExitCode }: CommandContext,
  name: string,
  work: (flags: F) => Promise<void> | void,
): CliCommand {
  return addServerConfigOption(new CliCommand(name)).action(async (flags: F) => {
    await work(flags)
    setExitCode(exitCodes.ok)
  })
}

interface Found {
  basePath: string
  /** `log.file` */
  logFile: string
  graceSeconds: number
  running: RunFile | undefined
  /** It is systemd that starts and stops it. */
  isOfSystemd: boolean
}

/** @throws ConfigProblems, CliFailure when this account may not know */
async function find({ configFile }: ControlFlags): Promise<Found> {
  const { config, files } = await loadServerSettings(configFile)
  const { base_path: basePath } = config.system
  const running = findServer(basePath)
  const isOfSystemd = running === undefined ? isService(files) : running.pid === pidOfService()
  const { shutdown_grace_seconds: graceSeconds } = config.actionrunner
  return { basePath, logFile: config.log.file, graceSeconds, running, isOfSystemd }
}

/** @throws CliFailure with its last words when it cannot start */
export async function startServer(flags: ControlFlags): Promise<void> {
  const found = await find(flags)
  const { basePath, graceSeconds, running, isOfSystemd } = found
  if (running !== undefined && !(await isStopping(running))) {
    say(`The server runs already, as process ${running.pid}.`)
  } else if (isOfSystemd) {
    tellSystemd('start')
    say('systemd has started the server.')
  } else {
    const launch = launchHere(basePath, flags.configFile ?? [])
    if (running !== undefined) await stopServer(running, { graceSeconds, isTold: true })
    await start(found, launch)
  }
}

async function start(found: Found, launch: Launch): Promise<void> {
  const { pid, greeting, logFile } = await startInBackground(found, launch)
  say(`${greeting}\nIt is process ${pid}, and logs to ${logFile}.`)
}

/** @throws CliFailure when it does not end */
export async function endServer({ now: isHurried = false, ...flags }: StopFlags): Promise<void> {
  const { basePath, graceSeconds, running, isOfSystemd } = await find(flags)
  if (running === undefined) {
    say(`No server runs with the base path ${basePath}.`)
    return
  }
  // systemd has no word for a stop without patience; it sees the end in any case.
  if (isOfSystemd && !isHurried) tellSystemd('stop')
  else await stopServer(running, { graceSeconds, isHurried })
  say(`The server, process ${running.pid}, has stopped.`)
}

/** @param meanwhile is done while none runs @throws CliFailure, and what `meanwhile` throws */
export async function restartServer(
  flags: StopFlags,
  meanwhile: () => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  const found = await find(flags)
  const { basePath, running, isOfSystemd } = found
  if (running?.pid === 1) {
    throw new CliFailure('The server is the first process of a container, which ends with it: restart the container.')
  }
  // Before anything is stopped: it may not be possible.
  const launchAgain = (): Launch =>
    running === undefined ? launchHere(basePath, flags.configFile ?? []) : launchOf(running)
  const launch = isOfSystemd ? undefined : launchAgain()
  if (running !== undefined) await endServer(flags)
  await meanwhile()
  if (launch === undefined) await startServer(flags)
  else await start(found, launch)
}

/** @throws CliFailure when it does not run */
async function requireServer({ configFile }: ControlFlags): Promise<RunFile> {
  const { base_path: basePath } = (await loadServerConfig(configFile)).system
  const server = findServer(basePath)
  if (server !== undefined) return server
  throw new CliFailure(`No server runs with the base path ${basePath}. "svc start" starts it.`)
}

function say(text: string): void {
  cliProcess().stdout.write(`${text}\n`)
}
