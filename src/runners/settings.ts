/** Settings of the runners, from the configuration or their defaults. */
import type { Clock } from '../core/clock.ts'
import { isTheirPython } from '../core/compat/index.ts'
import { packFolders, type CommonSettings, type Config } from '../config/index.ts'
import type { HttpRequestSettings } from './http-request.ts'
import type { PackVersions } from './content-version.ts'
import type { PackManager } from './pack-manager.ts'
import type { BackgroundChoice } from './process/run-command.ts'
import type { Launcher } from './process/launcher.ts'
import type { SshSettings } from './ssh/create-ssh.ts'

export interface PythonSettings {
  /** `actionrunner.python_binary`; empty: `python3` in the PATH. */
  binary: string
  /** `actionrunner.python_pool_size` */
  poolSize: number
  /** `actionrunner.python_runner_log_level` */
  logLevel: string
  /** `packs.enable_common_libs` */
  enableCommonLibs: boolean
  /** `actionrunner.virtualenv_opts` */
  virtualenvOpts: readonly string[]
  /** `actionrunner.pip_opts` */
  pipOpts: readonly string[]
  /** `api.max_page_size` */
  maxPageSize: number
  /** `content.system_packs_base_path`, then `content.packs_base_paths`; absolute. */
  packsPaths: readonly string[]
}

/** Ports to modules; `app.ts` implements them. */
export interface RunnersPorts {
  /** Pack operations; without it there is no pack-manager runner. */
  packManager?: PackManager
  /** Revisions of packs; without it there are none. */
  packVersions?: PackVersions
}

export interface RunnerSettings extends RunnersPorts {
  launcher: Launcher
  /** `actionrunner.max_result_bytes`, for each of stdout and stderr. */
  maxResultBytes: number
  /** `actionrunner.background` and `actionrunner.background_grace_seconds`; default: wait, 5 seconds. */
  background?: BackgroundChoice
  /** `actionrunner.decode_json_output`; default: off. */
  decodeJsonOutput?: boolean
  /** `system.base_path`, which holds virtual environments and Python bytecode; default: a temporary folder. */
  basePath?: string
  /** `system_user.user`. */
  systemUser: string
  /** Account of the server; default: looked up. */
  processUser?: string
  /** Options left out have their defaults. */
  python?: Partial<PythonSettings>
  /** The server's environment; default `process.env`. Children do not inherit configuration overrides. */
  env?: NodeJS.ProcessEnv
  /** `actionrunner.pass_environment`; default: none. */
  passEnvironment?: readonly string[]
  /** Options left out have their defaults; without a file no host is known. */
  ssh?: Partial<SshSettings>
  /** Default: no private networks, responses of at most 10 MiB. */
  http?: HttpRequestSettings
  /** The words that start the interpreter that a script names by this path; default: the path. */
  readonly interpreterAt?: (path: string) => readonly string[]
  /** Default: that of the machine. */
  clock?: Pick<Clock, 'now'>
  /** Reports processes that could not be stopped. */
  warn?: (message: string, fields: Record<string, unknown>) => void
}

export const pythonDefaults: PythonSettings = {
  binary: '',
  poolSize: 2,
  logLevel: 'DEBUG',
  enableCommonLibs: false,
  virtualenvOpts: ['--system-site-packages'],
  pipOpts: [],
  maxPageSize: 100,
  packsPaths: [],
}

export const defaultSsh: SshSettings = {
  knownHostsFile: '',
  hostKeyChecking: 'strict',
  keyFile: '',
  configPath: undefined,
  connectTimeoutSeconds: 60,
  startLimitSeconds: 20,
  remoteDir: '/tmp',
  allowPartialFailure: false,
  maxParallel: 50,
}

/** @param binary `actionrunner.python_binary` */
const wordsOfPython = (binary: string): readonly string[] => (binary === '' ? ['/usr/bin/env', 'python3'] : [binary])

export function runnersSettings(
  config: Pick<Config, 'actionrunner' | 'content' | 'packs' | 'ssh_runner' | 'http_runner' | 'system_user'>,
  common: CommonSettings,
): Omit<RunnerSettings, 'launcher' | 'packManager' | 'warn'> {
  const { actionrunner, packs, ssh_runner: ssh, http_runner: http, system_user: system } = config
  return {
    maxResultBytes: actionrunner.max_result_bytes,
    passEnvironment: actionrunner.pass_environment,
    background: { mode: actionrunner.background, graceSeconds: actionrunner.background_grace_seconds },
    decodeJsonOutput: actionrunner.decode_json_output,
    basePath: common.basePath,
    interpreterAt: (path) =>
      common.compat.isOn && isTheirPython(path)
        ? wordsOfPython(actionrunner.python_binary)
        : [common.compat.path(common.basePath, path)],
    systemUser: common.systemUser,
    ssh: {
      knownHostsFile: ssh.known_hosts_file,
      hostKeyChecking: ssh.host_key_checking,
      keyFile: system.ssh_key_file,
      configPath: ssh.use_ssh_config ? ssh.ssh_config_file_path : undefined,
      connectTimeoutSeconds: ssh.ssh_connect_timeout,
      remoteDir: ssh.remote_dir,
      allowPartialFailure: ssh.allow_partial_failure,
      maxParallel: ssh.max_parallel_actions,
    },
    http: { allowedPrivateNetworks: http.allowed_private_networks, maxBodyBytes: http.max_body_bytes },
    python: {
      binary: actionrunner.python_binary,
      poolSize: actionrunner.python_pool_size,
      logLevel: actionrunner.python_runner_log_level,
      enableCommonLibs: packs.enable_common_libs,
      virtualenvOpts: actionrunner.virtualenv_opts,
      pipOpts: actionrunner.pip_opts,
      maxPageSize: common.maxPageSize,
      packsPaths: packFolders(config),
    },
  }
}
