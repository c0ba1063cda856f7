/** What runners are told: by the configuration, or by their defaults. */
import type { CommonSettings, Config } from '../config/index.ts'
import type { HttpRequestSettings } from './http-request.ts'
import type { PackManager } from './pack-manager.ts'
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
}

/** What runners ask of modules; `app.ts` says who answers. */
export interface RunnersPorts {
  /** What is done with packs; without it there is no runner for that. */
  packManager?: PackManager
}

export interface RunnerSettings extends RunnersPorts {
  launcher: Launcher
  /** `actionrunner.max_result_bytes`, for each of stdout and stderr. */
  maxResultBytes: number
  /** `actionrunner.decode_json_output`; default: not. */
  decodeJsonOutput?: boolean
  /** `system.base_path`, where virtual environments and the bytecode of Python are kept; default: a temporary folder. */
  basePath?: string
  /** `system_user.user`. */
  systemUser: string
  /** Account the server runs under; default: asked of the system. */
  processUser?: string
  /** What is not said is as the options have it by default. */
  python?: Partial<PythonSettings>
  /** The server's environment; default `process.env`. Overrides of configuration are left out for the children. */
  env?: NodeJS.ProcessEnv
  /** Missing ones: as their options are by default, and no host is known. */
  ssh?: Partial<SshSettings>
  /** Default: no private networks, answers of 10 MiB. */
  http?: HttpRequestSettings
  /** Told about processes that could not be ended. */
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
}

export const defaultSsh: SshSettings = {
  knownHostsFile: '',
  hostKeyChecking: 'strict',
  keyFile: '',
  configPath: undefined,
  connectTimeoutSeconds: 60,
  remoteDir: '/tmp',
  allowPartialFailure: false,
  maxParallel: 50,
}

export function runnersSettings(
  config: Pick<Config, 'actionrunner' | 'packs' | 'ssh_runner' | 'http_runner' | 'system_user'>,
  common: CommonSettings,
): Omit<RunnerSettings, 'launcher' | 'packManager' | 'warn'> {
  const { actionrunner, packs, ssh_runner: ssh, http_runner: http, system_user: system } = config
  return {
    maxResultBytes: actionrunner.max_result_bytes,
    decodeJsonOutput: actionrunner.decode_json_output,
    basePath: common.basePath,
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
    },
  }
}
