/**
 * What the commands for operators work with. They find the server as `svc serve` finds its configuration, and ask it by its
 * control socket, which takes no credential; with an address they ask there, as every other command does.
 */
import { basename, dirname, join } from 'node:path'
import { cliProcess } from './cli-process.ts'
import type { Config, LoadedConfig } from '../config/index.ts'
import { holdFolder } from '../lib/files/index.ts'
import { controlSocketName } from '../core/run-file.ts'
import type { CliCommand } from './command.ts'
import { loadSettings, type LoadedSettings } from './connection/settings.ts'
import { addCommonOptionsWithoutFile, type CommonFlags } from './options.ts'
import { withSession, type CommandContext, type Session } from './session.ts'

/** The longest path that an address of a Unix socket has room for. */
const MAX_SOCKET_PATH_BYTES = 107

export interface OperatorFlags extends Omit<CommonFlags, 'configFile'> {
  /** Of the server. */
  configFile?: string[]
}

/** Adds what names the server of this machine. */
export function addServerConfigOption(command: CliCommand): CliCommand {
  return command.option(
    '--config-file <path>',
    'configuration file of the server; may be given several times',
    (path: string, before: string[] | undefined) => [...(before ?? []), path],
  )
}

/** Adds what every command for operators takes. */
export function addOperatorOptions(command: CliCommand): CliCommand {
  return addServerConfigOption(addCommonOptionsWithoutFile(command)).notes(
    'Run by root or the account of the server on its machine, no login is needed: the server is found as `svc serve` finds its configuration, and asked by the socket `svc.sock` in its base path. With --api-url, --url, `SVC_API_URL` or `SVC_BASE_URL` the server there is asked instead, with the credentials of an administrator.',
  )
}

/** The configuration that a server with these files would start with. @throws ConfigProblems */
export async function loadServerConfig(files: readonly string[] | undefined): Promise<Config> {
  return (await loadServerSettings(files)).config
}

/** The same with where it comes from. @throws ConfigProblems */
export async function loadServerSettings(files: readonly string[] | undefined): Promise<LoadedConfig> {
  // No other command needs what is known about options of the server.
  const { loadConfig } = await import('../config/load.ts')
  return loadConfig({ files, env: cliProcess().env, cwd: cliProcess().cwd() })
}

/** The files of that, which this account may not be able to read. */
export async function chooseServerFiles(files: readonly string[] | undefined): Promise<readonly string[]> {
  const { chooseFiles } = await import('../config/load.ts')
  return chooseFiles({ files, env: cliProcess().env, cwd: cliProcess().cwd() })
}

/** Whether another server is meant than the one of this machine that the configuration tells of. */
export function isElsewhere(context: CommandContext, flags: OperatorFlags): boolean {
  const { apiUrl, url } = { ...context.globals(), ...flags }
  const { SVC_API_URL = '', SVC_BASE_URL = '' } = cliProcess().env
  return apiUrl !== undefined || url !== undefined || SVC_API_URL !== '' || SVC_BASE_URL !== ''
}

/** Runs the action of a command for operators. @param work resolves with the exit code @throws ConfigProblems */
export async function withOperatorSession(
  context: CommandContext,
  { configFile, ...flags }: OperatorFlags,
  work: (session: Session) => Promise<number>,
): Promise<void> {
  if (isElsewhere(context, flags)) return withSession(context, flags, work)
  return withSocketSession(context, flags, (await loadServerConfig(configFile)).system.base_path, work)
}

/** The same with the server of this base path, by its control socket. @param work resolves with the exit code */
export async function withSocketSession(
  context: CommandContext,
  flags: CommonFlags,
  basePath: string,
  work: (session: Session) => Promise<number>,
): Promise<void> {
  const path = join(basePath, controlSocketName)
  if (Buffer.byteLength(path) <= MAX_SOCKET_PATH_BYTES) {
    return withSession(context, flags, work, { loaded: bySocket(flags, { path, address: path }) })
  }
  const folder = await holdFolder(dirname(path))
  try {
    const address = join(folder.path, basename(path))
    await withSession(context, flags, work, { loaded: bySocket(flags, { path, address }) })
  } finally {
    await folder.release()
  }
}

function bySocket(
  flags: CommonFlags,
  socket: { path: string; address: string },
): Pick<LoadedSettings, 'settings' | 'warnings'> {
  const { debug } = flags
  const { settings } = loadSettings(
    { ...(debug === undefined ? {} : { debug }), apiUrl: 'http://127.0.0.1/v1', skipConfig: true },
    // Neither credentials nor addresses of the environment are meant for this server.
    { SVC_CLI_TIMEZONE: cliProcess().env['SVC_CLI_TIMEZONE'] },
  )
  return { settings: { ...settings, streamUrl: 'http://127.0.0.1/stream/v1', socket }, warnings: [] }
}
