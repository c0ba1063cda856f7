/** `svc start`, `stop`, `restart`, `reload` and `reopen-logs`: the server of this machine. */
import { cliProcess } from '../cli-process.ts'
import type { RunFile } from '../../core/run-file.ts'
import { CliCommand } from '../command.ts'
import { findServer, isStopping, signalServer, stopServer } from '../control/server.ts'
import { launchHere, launchOf, startInBackground, type Launch } from '../control/start.ts'
import { isService, pidOfService, callSystemctl } from '../control/systemd.ts'
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
  'The command finds the server through its configuration, as `svc serve` does. Run it as root or as the account of the server.'

export function createStartCommand(context: CommandContext): CliCommand {
  return createControl(context, 'start', startServerCommand)
    .description('Start the server in the background.')
    .notes(
      'The command waits until the server accepts requests. If `svc service install` has installed the service, systemd starts it. Otherwise the server starts as `svc serve` would from the current directory, and keeps running when the terminal is closed. It logs to log.file (default here: `logs/svc.log` in the base path).',
      'The exit code is 0 also when the server already runs. If it is stopping, the command waits for the end and then starts it. If the server fails to start, the command prints the end of its error output and exits with 1.',
      foundBy,
    )
    .examples('svc start', 'svc start --config-file ./svc.conf')
}

export function createStopCommand(context: CommandContext): CliCommand {
  return createControl<StopFlags>(context, 'stop', endServer)
    .description('Stop the server and wait until its process has ended.')
    .option('--now', 'skip the grace period of running actions')
    .notes(
      'Running actions may finish within actionrunner.shutdown_grace_seconds. The server then ends the remaining ones, and their executions become abandoned. Queued executions run after the next start.',
      'The exit code is 0 also when no server runs. Ctrl-C ends the waiting only; the server still stops.',
      foundBy,
    )
    .examples('svc stop', 'svc stop --now')
}

export function createRestartCommand(context: CommandContext): CliCommand {
  return createControl<StopFlags>(context, 'restart', restartServer)
    .description('Stop the server and start it again with the same arguments.')
    .option('--now', 'skip the grace period of running actions')
    .notes(
      'Without systemd the server restarts in the background with its previous arguments, working directory and environment. The executable is the one of this command, so a restart after an upgrade starts the new version.',
      'If no server runs, the command starts it.',
      foundBy,
    )
    .examples('svc restart', 'svc restart --now')
}

export function createReloadCommand(context: CommandContext): CliCommand {
  return createControl(context, 'reload', async (flags) => {
    const server = await requireServer(flags)
    signalServer(server, 'SIGHUP')
    say(`The server, process ${server.pid}, reloads its files; it logs files that it cannot use.`)
  })
    .description('Make the server reload certificates, role definitions and packs.')
    .notes('Changes of the configuration need `svc restart`. The exit code is 1 when no server runs.', foundBy)
    .examples('svc reload')
}

export function createReopenLogsCommand(context: CommandContext): CliCommand {
  return createControl(context, 'reopen-logs', async (flags) => {
    const server = await requireServer(flags)
    signalServer(server, 'SIGUSR1')
    say(`The server, process ${server.pid}, reopens its log files.`)
  })
    .description('Make the server reopen its log files after log rotation.')
    .notes('The exit code is 1 when no server runs. docs/monitoring.md has an example for logrotate.', foundBy)
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
  /** systemd starts and stops it. */
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
export async function startServerCommand(flags: ControlFlags): Promise<void> {
  const found = await find(flags)
  const { basePath, graceSeconds, running, isOfSystemd } = found
  if (running !== undefined && !(await isStopping(running))) {
    say(`The server already runs (process ${running.pid}).`)
  } else if (isOfSystemd) {
    callSystemctl('start')
    say('systemd has started the server.')
  } else {
    const launch = launchHere(basePath, flags.configFile ?? [])
    if (running !== undefined) await stopServer(running, { graceSeconds, isSignaled: true })
    await start(found, launch)
  }
}

async function start(found: Found, launch: Launch): Promise<void> {
  const { pid, greeting, logFile } = await startInBackground(found, launch)
  say(`${greeting}\nThe server runs as process ${pid} and logs to ${logFile}.`)
}

/** @throws CliFailure when it does not end */
export async function endServer({ now: skipsGrace = false, ...flags }: StopFlags): Promise<void> {
  const { basePath, graceSeconds, running, isOfSystemd } = await find(flags)
  if (running === undefined) {
    say(`No server runs with the base path ${basePath}.`)
    return
  }
  // systemd cannot skip the grace period; it notices the end of the process anyway.
  if (isOfSystemd && !skipsGrace) callSystemctl('stop')
  else await stopServer(running, { graceSeconds, skipsGrace })
  say(`The server, process ${running.pid}, has stopped.`)
}

/** @param whileStopped runs while the server is stopped @throws CliFailure, and errors of `whileStopped` */
export async function restartServer(
  flags: StopFlags,
  whileStopped: () => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  const found = await find(flags)
  const { basePath, running, isOfSystemd } = found
  if (running?.pid === 1) {
    throw new CliFailure('Cannot restart the server: it is the first process of a container. Restart the container.')
  }
  // Before the stop, because this can fail.
  const launchAgain = (): Launch =>
    running === undefined ? launchHere(basePath, flags.configFile ?? []) : launchOf(running)
  const launch = isOfSystemd ? undefined : launchAgain()
  if (running !== undefined) await endServer(flags)
  await whileStopped()
  if (launch === undefined) await startServerCommand(flags)
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
