/** `svc serve`: the server in the foreground. */
import { Command, Option } from 'commander'
import { startApp, type App } from '../../app.ts'
import { collectFlags, configFlags, ConfigProblems, loadConfig, type LoadedConfig } from '../../config/load.ts'
import { createLog, type RootLog } from '../../log.ts'
import { exitCodes } from '../exit-codes.ts'

export function createServeCommand(setExitCode: (code: number) => void): Command {
  const command = new Command('serve')
    .description('Run the server in the foreground.')
    .option('--config-file <path>', 'configuration file; may be given several times, later ones win', collect, [])
    .addHelpText('after', '\nExample:\n  svc serve --config-file /etc/svc/svc.conf --api-port 8101\n')
  for (const { flag, description } of configFlags) command.addOption(new Option(`${flag} [value]`, description))
  return command.action(async (values: Record<string, unknown> & { configFile: string[] }) => {
    setExitCode(await serve(values.configFile, collectFlags(values)))
  })
}

function collect(value: string, before: string[]): string[] {
  return [...before, value]
}

/** Resolves with the exit code once the server has stopped. */
async function serve(files: string[], flags: Record<string, string>): Promise<number> {
  let loaded: LoadedConfig
  try {
    loaded = loadConfig({ files: files.length === 0 ? undefined : files, env: process.env, flags, cwd: process.cwd() })
  } catch (error) {
    if (!(error instanceof ConfigProblems)) throw error
    process.stderr.write(`${error.message}\n`)
    return exitCodes.config
  }
  const { config } = loaded
  const log = createLog({
    level: config.log.level,
    format: config.log.format,
    maskSecrets: config.log.mask_secrets,
    maskNames: config.log.mask_secrets_blacklist,
  })
  for (const warning of loaded.warnings) log.warning('config.warning', warning)
  for (const note of loaded.notes) log.info('config.note', note)

  endOnFault(log)
  const signals = waitForSignals()
  let app: App | NodeJS.Signals
  try {
    app = await Promise.race([startApp(config, log), signals.first])
  } catch (error) {
    process.stderr.write(`svc: the server cannot start: ${error instanceof Error ? error.message : String(error)}\n`)
    log.debug('server.not_started', 'The server cannot start', { error })
    await log.close()
    return exitCodes.failed
  }
  if (typeof app === 'string') {
    log.info('server.stopped_early', 'The server was told to stop before it was ready', { signal: app })
    await log.close()
    // The start may wait for something that never comes, such as room on a full disk. As after a crash, the next start
    // finds in the rows what this one leaves.
    process.exit(exitCodes.ok)
  }
  process.stdout.write(greeting(app, config.auth.enable))
  return stopOnSignal(app, signals, log)
}

/**
 * After an error that nobody caught nothing in memory can be relied on. The rows can, so the next start ends the processes
 * that are left and goes on with what waits.
 */
function endOnFault(log: RootLog): void {
  let hasEnded = false
  // Hears rejections that nobody handles, too.
  process.on('uncaughtException', (error) => {
    if (hasEnded) process.exit(exitCodes.failed)
    hasEnded = true
    log.critical('server.fault', 'The server ends because of an error that nobody caught', { error })
    void log.close().finally(() => process.exit(exitCodes.failed))
  })
}

function greeting({ urls }: App, needsToken: boolean): string {
  const credential = needsToken ? ` -H "X-Auth-Token: $TOKEN"` : ''
  return [
    `svc is ready:  API ${urls.api}   auth ${urls.auth}   stream ${urls.stream}`,
    'Try it:',
    ...(needsToken
      ? [`  TOKEN=$(curl -s -X POST -u admin ${urls.auth}/tokens | sed 's/.*"token":"\\([^"]*\\)".*/\\1/')`]
      : []),
    `  curl -s ${urls.api}/v1/executions${credential} -H 'Content-Type: application/json' \\`,
    `    -d '{"action": "core.local", "parameters": {"cmd": "echo hello"}}'`,
    `  curl -s ${urls.api}/v1/executions/last/output${credential}`,
    '',
  ].join('\n')
}

interface Signals {
  first: Promise<NodeJS.Signals>
  /** Resolves with the second one. */
  second: Promise<NodeJS.Signals>
}

/** One key press reaches the server from the terminal, and once more from whatever started it. */
const SAME_SIGNAL_MS = 1000

function waitForSignals(): Signals {
  const waiting: ((signal: NodeJS.Signals) => void)[] = []
  const next = (): Promise<NodeJS.Signals> => new Promise((resolve) => waiting.push(resolve))
  const signals = { first: next(), second: next() }
  let lastAt = -SAME_SIGNAL_MS
  const onSignal = (signal: NodeJS.Signals): void => {
    const at = performance.now()
    if (at - lastAt < SAME_SIGNAL_MS) return
    lastAt = at
    waiting.shift()?.(signal)
  }
  // SIGHUP: the terminal is gone, and with it whoever could stop the server.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, onSignal)
  return signals
}

/** The first signal stops in order; a second one skips the grace of running actions. */
async function stopOnSignal(app: App, signals: Signals, log: RootLog): Promise<number> {
  const signal = await signals.first
  log.info('server.stopping', 'The server is stopping', { signal })
  void signals.second.then(() => app.hurry())
  try {
    await app.stop()
    return exitCodes.ok
  } catch (error) {
    log.error('server.stopped_badly', 'The server did not stop cleanly', { error })
    return exitCodes.failed
  } finally {
    await log.close()
    endInTime()
  }
}

/** After the stop nothing is owed any more, so the end need not wait longer. */
const END_WITHIN_MS = 2000

/**
 * A file system that does not answer holds the thread that asked it, and with the thread the end of the process, by
 * `process.exit` too. A program in its place is rid of both, and ends with the same exit code. Node has it since 22.15.
 */
function endInTime(): void {
  const end = (): void => process.execve?.('/bin/sh', ['sh', '-c', `exit ${process.exitCode ?? 0}`], {})
  setTimeout(end, END_WITHIN_MS).unref()
}
