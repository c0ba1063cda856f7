/** `svc serve`: the server in the foreground. */
import { basename, join } from 'node:path'
import { Option } from 'commander'
import { CliCommand } from '../command.ts'
import type { App } from '../../app.ts'
import {
  collectFlags,
  configFlags,
  ConfigProblems,
  loadConfig,
  type Config,
  type LoadedConfig,
  readLogFiles,
  type LogFiles,
} from '../../config/index.ts'
import { isUtf8Locale, localeOf, quote } from '../../lib/process/index.ts'
import { describeFileError } from '../../lib/files/index.ts'
import { createLog, LogFileError, type RootLog } from '../../lib/log/index.ts'
import { keepAddonsIn } from '../../core/native-addon.ts'
import { openConsole, type ErrorLog, type Person } from '../serve/console.ts'
import { findServiceManager, type TellManager } from '../serve/service-manager.ts'
import { logStandardError } from '../serve/stderr-log.ts'
import { exitCodes } from '../exit-codes.ts'
import { SAME_SIGNAL_MS } from '../signals.ts'
import { findTerminal, TERMINAL_GONE_MS } from '../terminal.ts'

export function createServeCommand(setExitCode: (code: number) => void): CliCommand {
  const command = new CliCommand('serve')
    .description('Run the server in the foreground.')
    .option('--config-file <path>', 'configuration file; repeatable, later files override earlier ones', collect, [])
    .option('--no-color', 'print without colors at a terminal')
    .notes(
      'Without --config-file the server reads the first of `$SVC_CONFIG_FILE`, `./svc.conf` and `/etc/svc/svc.conf` that exists. A configuration file is optional.',
      'Every option of the configuration file is also a flag and an environment variable: `[api] port` is `--api-port 8101` and `SVC_API__PORT=8101`. Flags override the environment, and the environment overrides the file. A flag without a value means True. svc.conf.example documents every option with its default; `svc serve --help` lists them.',
      'At a terminal the server prints a line when an execution starts and when it ends. Of the log it shows WARNING and above there, unless `log.level` is set. AUDIT lines go to `log.audit_file`; `--log-audit` shows them too.',
      'TERM and Ctrl-C stop the server after a grace period for running actions; a second signal skips the grace period. HUP reloads certificates, role definitions and packs. USR1 reopens the log files. USR2 runs garbage collection now (section garbagecollector). The exit code is 78 when the configuration is invalid.',
    )
    .examples('svc serve', 'svc serve --config-file /etc/svc/svc.conf --api-port 8101')
  for (const { flag, key, description } of configFlags) {
    const section = key.slice(0, key.indexOf('.'))
    command.addOption(new Option(`${flag} [value]`, description).helpGroup(`Configuration, [${section}]:`))
  }
  return command.action(async (values: Record<string, unknown> & { configFile: string[]; color: boolean }) => {
    setExitCode(await serve(values.configFile, collectFlags(values), values.color))
  })
}

function collect(value: string, before: string[]): string[] {
  return [...before, value]
}

/** Resolves with the exit code once the server has stopped. */
async function serve(files: string[], flags: Record<string, string>, isColorWanted: boolean): Promise<number> {
  const signals = listenToSignals()
  const tellManager = await findServiceManager(process.env)
  let loaded: LoadedConfig
  try {
    loaded = loadConfig({ files: files.length === 0 ? undefined : files, env: process.env, flags, cwd: process.cwd() })
  } catch (error) {
    return refuseConfig(error)
  }
  const { config } = loaded
  const { log: errorLog, person } = openConsole({
    level: config.log.level,
    isLevelGiven: loaded.sources['log.level'] !== 'default',
    audit: config.log.audit,
    isColorWanted,
  })
  let log: RootLog
  let logFiles: LogFiles
  try {
    logFiles = readLogFiles(loaded)
    log = openLog(config.log, errorLog, logFiles)
  } catch (error) {
    return refuseConfig(error)
  }
  signals.onReopen(() => log.reopen())
  if (config.log.redirect_stderr) logStandardError(log)
  for (const warning of [...loaded.warnings, ...logFiles.warnings]) log.warning('config.warning', warning)
  if (!isUtf8Locale(process.env)) {
    log.warning(
      'locale.not_utf8',
      'The locale is not UTF-8: programs that actions run may fail on non-ASCII text. Set LANG=C.UTF-8 in the environment of the server',
      { locale: localeOf(process.env) },
    )
  }
  for (const note of loaded.notes) log.info('config.note', note)

  endOnFault(log)
  keepAddonsIn(join(config.system.base_path, 'cache', 'native'))
  let app: App | NodeJS.Signals
  try {
    // Loaded only here, since the help of the command needs nothing of the server.
    const starting = import('../../app.ts').then(({ startApp }) => startApp(config, log, loaded.files))
    app = await Promise.race([starting, signals.first])
  } catch (error) {
    if (error instanceof ConfigProblems) {
      await log.close()
      return refuseConfig(error)
    }
    process.stderr.write(`svc: cannot start the server: ${error instanceof Error ? error.message : String(error)}\n`)
    log.debug('server.not_started', 'The server cannot start', { error })
    await log.close()
    return exitCodes.failed
  }
  if (typeof app === 'string') {
    log.info('server.stopped_early', 'The server received a stop signal before it was ready', { signal: app })
    await log.close()
    // The start may wait for something that never comes, such as room on a full disk. As after a crash, the next start
    // finds in the rows what this one leaves.
    end(exitCodes.ok)
  }
  process.stdout.write(greeting(app, config.auth))
  if (person !== undefined) app.watchExecutions(person.executions.show)
  tellManager('READY=1')
  signals.onReload(() => app.reload())
  signals.onCollect(() => app.collect())
  return stopOnSignal(app, signals, { log, person, tellManager, grace: config.actionrunner.shutdown_grace_seconds })
}

/** Prints what is wrong with the configuration; other errors are thrown again. */
function refuseConfig(error: unknown): number {
  if (!(error instanceof ConfigProblems)) throw error
  process.stderr.write(`${error.message}\n`)
  return exitCodes.config
}

/** @throws ConfigProblems when a file cannot be written */
function openLog(
  { format, mask_secrets, mask_secrets_blacklist, excludes }: Config['log'],
  { level, audit, stream }: ErrorLog,
  { files, optionOf }: LogFiles,
): RootLog {
  try {
    return createLog({
      level,
      audit,
      ...(stream === undefined ? {} : { stream }),
      format,
      maskSecrets: mask_secrets,
      maskNames: mask_secrets_blacklist,
      excludes,
      files,
    })
  } catch (error) {
    if (!(error instanceof LogFileError)) throw error
    const { path, cause } = error
    throw new ConfigProblems([`${optionOf.get(path)}: ${path} cannot be written: ${describeFileError(path, cause)}`])
  }
}

/**
 * After an uncaught error the state in memory is unreliable. The database is reliable: the next start ends leftover
 * processes and continues with queued work.
 */
function endOnFault(log: RootLog): void {
  let hasEnded = false
  // Also handles unhandled rejections.
  process.on('uncaughtException', (error) => {
    if (hasEnded) process.exit(exitCodes.failed)
    hasEnded = true
    log.critical('server.fault', 'The server exits because of an uncaught error', { error })
    void log.close().finally(() => process.exit(exitCodes.failed))
  })
}

interface SignIn {
  enable: boolean
  mode: 'standalone' | 'proxy'
  remote_user_header: string
  backend: string
  backend_kwargs: object
}

function greeting({ urls }: App, auth: SignIn): string {
  const credential = auth.enable ? ` -H "X-Auth-Token: $TOKEN"` : ''
  // Only the password file of our own begins with this user.
  const user = auth.backend === 'flat_file' && !('file_path' in auth.backend_kwargs) ? 'admin' : '"$USER"'
  // As the web server in front will do.
  const login = auth.mode === 'proxy' ? `-H "${auth.remote_user_header || 'Remote-User'}: $USER"` : `-u ${user}`
  return [
    `svc is ready:  API ${urls.api}   auth ${urls.auth}   stream ${urls.stream}`,
    `Open ${urls.api} in a browser, or try it in a shell:`,
    ...(auth.enable
      ? [`  TOKEN=$(curl -s -X POST ${login} ${urls.auth}/tokens | sed 's/.*"token":"\\([^"]*\\)".*/\\1/')`]
      : []),
    `  curl -s ${urls.api}/v1/executions${credential} -H 'Content-Type: application/json' \\`,
    `    -d '{"action": "core.local", "parameters": {"cmd": "echo hello"}}'`,
    `  curl -s ${urls.api}/v1/executions/last/output${credential}`,
    'or:',
    `  ${auth.enable ? 'SVC_AUTH_TOKEN="$TOKEN" ' : ''}${clientCommand(urls)} run core.local 'echo hello'`,
    '',
  ].join('\n')
}

/** The command line client that asks this server, as it can be typed where the server was started. */
function clientCommand({ api, stream }: App['urls']): string {
  const program = process.argv[1] ?? 'svc'
  const name = basename(program) === 'svc' ? 'svc' : quote(program)
  const isUsual = api === 'http://127.0.0.1:9101' && stream === 'http://127.0.0.1:9102'
  return isUsual ? name : `${name} --api-url ${api}/v1 --stream-url ${stream}/v1`
}

interface Signals {
  first: Promise<NodeJS.Signals>
  /** Resolves with the second one. */
  second: Promise<NodeJS.Signals>
  /** SIGHUP that is not about the terminal; one that came before is heard now. */
  onReload(reload: () => Promise<void>): void
  /** SIGUSR1. */
  onReopen(reopen: () => Promise<void>): void
  /** SIGUSR2; one that comes before is forgotten. */
  onCollect(collect: () => Promise<void>): void
}

function listenToSignals(): Signals {
  const waiting: ((signal: NodeJS.Signals) => void)[] = []
  const next = (): Promise<NodeJS.Signals> => new Promise((resolve) => waiting.push(resolve))
  let lastAt = -SAME_SIGNAL_MS
  const onStop = (signal: NodeJS.Signals): void => {
    const at = performance.now()
    if (at - lastAt < SAME_SIGNAL_MS) return
    lastAt = at
    waiting.shift()?.(signal)
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, onStop)

  const terminal = findTerminal()
  let isReloadDue = false
  let reload: (() => Promise<void>) | undefined
  process.on('SIGHUP', () => {
    // Without its terminal, a server in the foreground could not be stopped.
    const stopWithTerminal = (): boolean => {
      if (!terminal.isGone()) return false
      onStop('SIGHUP')
      return true
    }
    if (stopWithTerminal()) return
    setTimeout(stopWithTerminal, TERMINAL_GONE_MS).unref()
    if (reload === undefined) isReloadDue = true
    else void reload()
  })
  let reopen: (() => Promise<void>) | undefined
  // Without a listener Node would open the port of its debugger.
  process.on('SIGUSR1', () => void reopen?.())

  let collect: (() => Promise<void>) | undefined
  process.on('SIGUSR2', () => void collect?.())

  return {
    first: next(),
    second: next(),
    onReload(listener) {
      reload = listener
      if (isReloadDue) void reload()
    },
    onReopen(listener) {
      reopen = listener
    },
    onCollect(listener) {
      collect = listener
    },
  }
}

/** The first signal stops in order; a second one skips the grace of running actions. */
async function stopOnSignal(
  app: App,
  signals: Signals,
  to: { log: RootLog; person: Person | undefined; tellManager: TellManager; grace: number },
): Promise<number> {
  const { log, person, tellManager, grace } = to
  const signal = await signals.first
  tellManager('STOPPING=1')
  const running = app.running()
  log.info('server.stopping', 'The server is stopping', {
    signal,
    ...(running === 0 ? {} : { running_actions: running, grace_seconds: grace }),
  })
  person?.tell(stoppingText(running, grace))
  void signals.second.then(() => {
    const left = app.running()
    if (left > 0) person?.tell(`Stopping ${counted(left)} now.`)
    app.hurry()
  })
  try {
    await app.stop()
    person?.executions.close()
    person?.tell('Stopped.')
    return exitCodes.ok
  } catch (error) {
    log.error('server.stopped_badly', 'The server did not stop cleanly', { error })
    return exitCodes.failed
  } finally {
    await log.close()
    endInTime()
  }
}

const counted = (actions: number): string => (actions === 1 ? '1 running action' : `${actions} running actions`)

function stoppingText(running: number, graceSeconds: number): string {
  if (running === 0) return 'Stopping.'
  if (graceSeconds === 0) return `Stopping, with ${counted(running)}.`
  return `Stopping: ${counted(running)} may take up to ${graceSeconds} s more. Ctrl-C again ends ${running === 1 ? 'it' : 'them'} now.`
}

/** After the stop nothing is left to be done, so the end need not wait longer for a thread that hangs. */
const END_WITHIN_MS = 2000

function endInTime(): void {
  setTimeout(() => end(Number(process.exitCode ?? exitCodes.ok)), END_WITHIN_MS).unref()
}

/**
 * A file system that does not answer holds the thread that asked it, and with the thread the end of the process, by
 * `process.exit` too. A program in its place is rid of both, and ends with the exit code. Node has it since 22.15.
 */
function end(code: number): never {
  process.execve?.('/bin/sh', ['sh', '-c', `exit ${code}`], {})
  process.exit(code)
}
