/**
 * Sessions of operator commands. They find the server through its configuration, as `svc serve` does, and use its
 * control socket, which needs no credential. With an address they connect there, as every other command does.
 */
import { basename, dirname, join } from 'node:path'
import { cliProcess } from './cli-process.ts'
import type { Config, LoadedConfig } from '../config/index.ts'
import { openFolder } from '../lib/files/index.ts'
import { controlSocketName } from '../core/run-file.ts'
import type { CliCommand } from './command.ts'
import { loadSettings, type LoadedSettings } from './connection/settings.ts'
import { isCalledAs } from './program-names.ts'
import { addCommonOptionsWithoutFile, type CommonFlags } from './options.ts'
import { withSession, type CommandContext, type Session } from './session.ts'

/** The longest path that the address of a Unix socket can hold. */
const MAX_SOCKET_PATH_BYTES = 107

export interface OperatorFlags extends Omit<CommonFlags, 'configFile'> {
  /** Of the server. */
  configFile?: string[]
}

/** Adds the option for the configuration file of the server on this machine. */
export function addServerConfigOption(command: CliCommand): CliCommand {
  return command.option(
    '--config-file <path>',
    'configuration file of the server; repeatable, later files override earlier ones',
    (path: string, before: string[] | undefined) => [...(before ?? []), path],
  )
}

/** Adds the options of every operator command. */
export function addOperatorOptions(command: CliCommand): CliCommand {
  return addServerConfigOption(addCommonOptionsWithoutFile(command)).notes(
    'Root and the account of the server need no login on the machine of the server. The command finds the server through its configuration, as `svc serve` does, and connects to the socket `svc.sock` in the base path. With --api-url, --url, `SVC_API_URL` or `SVC_BASE_URL` it connects to that address and needs the credentials of an administrator.',
  )
}

/** The configuration that a server with these files would start with. @throws ConfigProblems */
export async function loadServerConfig(files: readonly string[] | undefined): Promise<Config> {
  return (await loadServerSettings(files)).config
}

/** The same with its sources. @throws ConfigProblems */
export async function loadServerSettings(files: readonly string[] | undefined): Promise<LoadedConfig> {
  // Loaded here only: no other command needs the server's options.
  const { loadConfig } = await import('../config/load.ts')
  return loadConfig({ files, env: cliProcess().env, cwd: cliProcess().cwd() })
}

/** The configuration files of the server; this account may lack permission to read them. */
export async function chooseServerFiles(files: readonly string[] | undefined): Promise<readonly string[]> {
  const { chooseFiles } = await import('../config/load.ts')
  return chooseFiles({ files, env: cliProcess().env, cwd: cliProcess().cwd() })
}

/** Whether the command names a server by address rather than the one on this machine. */
export function isElsewhere(context: CommandContext, flags: OperatorFlags): boolean {
  const { apiUrl, url } = { ...context.globals(), ...flags }
  const { SVC_API_URL = '', SVC_BASE_URL = '' } = cliProcess().env
  return apiUrl !== undefined || url !== undefined || SVC_API_URL !== '' || SVC_BASE_URL !== ''
}

/** Runs an operator command. @param work resolves with the exit code @throws ConfigProblems */
export async function withOperatorSession(
  context: CommandContext,
  { configFile, ...flags }: OperatorFlags,
  work: (session: Session) => Promise<number>,
): Promise<void> {
  if (isElsewhere(context, flags)) return withSession(context, flags, work)
  return withSocketSession(context, flags, (await loadServerConfig(configFile)).system.base_path, work)
}

/**
 * For a command that is also a program of its own, which operators call: by the name of that program, its `--config-file`
 * is that of the server. By another name it is a command of the client. @param work resolves with the exit code
 */
export async function withProgramSession(
  program: string,
  context: CommandContext,
  flags: CommonFlags,
  work: (session: Session) => Promise<number>,
): Promise<void> {
  const { configFile, ...others } = flags
  if (configFile === undefined || !isCalledAs(program)) return withSession(context, flags, work)
  return withOperatorSession(context, { ...others, configFile: [configFile] }, work)
}

/** The same over the control socket in this base path. @param work resolves with the exit code */
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
  const folder = await openFolder(dirname(path))
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
    // Credentials and addresses in the environment are for other servers.
    { SVC_CLI_TIMEZONE: cliProcess().env['SVC_CLI_TIMEZONE'] },
  )
  return { settings: { ...settings, streamUrl: 'http://127.0.0.1/stream/v1', socket }, warnings: [] }
}
