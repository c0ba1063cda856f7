/** Every runner there is. To add one, write its file and list it here. */
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { commandOf, locateCode, pathOnDisk } from '../core/bundle.ts'
import type { MaintenanceTask } from '../core/module.ts'
import { removeOldFiles } from './python/old-files.ts'
import { createAnnouncement } from './announcement.ts'
import { inheritedEnvironment } from './environment.ts'
import { createInquirer } from './inquirer.ts'
import { createHttpRequest, type HttpRequestSettings } from './http-request.ts'
import { createLocalShellCmd } from './local-shell-cmd.ts'
import { createLocalShellScript } from './local-shell-script.ts'
import { createLocalShell } from './local-shell.ts'
import { decodingJson } from './json-output.ts'
import { createNoop } from './noop.ts'
import { createPythonScript } from './python-script.ts'
import { createFindPython } from './python/find-python.ts'
import { createInterpreters, startScript } from './python/interpreters.ts'
import { createVirtualenvs, type Virtualenvs } from './python/virtualenv.ts'
import { createPackManagerRunner, type PackManager } from './pack-manager.ts'
import { createDirectoryCheck } from './process/directory-check.ts'
import { createProcessTrees } from './process/kill-tree.ts'
import type { Launcher } from './process/launcher.ts'
import { decideSystemUser, type SystemUserDecision } from './process/system-user.ts'
import { readBootId } from './process/process-table.ts'
import { createRemoteShellCmd } from './remote-shell-cmd.ts'
import { createRemoteShellScript } from './remote-shell-script.ts'
import type { RecordedProcess, Runner } from './runner.ts'
import { createSsh, type SshSettings } from './ssh/create-ssh.ts'

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

const pythonDefaults: PythonSettings = {
  binary: '',
  poolSize: 2,
  logLevel: 'DEBUG',
  enableCommonLibs: false,
  virtualenvOpts: ['--system-site-packages'],
  pipOpts: [],
  maxPageSize: 100,
}

export interface RunnerSettings {
  launcher: Launcher
  /** `actionrunner.max_result_bytes`, for each of stdout and stderr. */
  maxResultBytes: number
  /** `actionrunner.decode_json_output`; default: not. */
  decodeJsonOutput?: boolean
  /** `system.base_path`, where virtual environments and the bytecode of Python are kept; default: a temporary folder. */
  basePath?: string
  /** `system_user.user`. */
  systemUser: string
  /** What is done with packs; without it there is no runner for that. */
  packManager?: PackManager
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

/** What is still in use then is compiled once more. */
const BYTECODE_KEPT_MS = 30 * 86_400_000

const defaultSsh: SshSettings = {
  knownHostsFile: '',
  hostKeyChecking: 'strict',
  keyFile: '',
  configPath: undefined,
  connectTimeoutSeconds: 60,
  remoteDir: '/tmp',
  allowPartialFailure: false,
  maxParallel: 50,
}

export interface Runners {
  list: Runner[]
  /** Old bytecode of Python goes. */
  maintenance: readonly MaintenanceTask[]
  /** Of packs with Python requirements. */
  virtualenvs: Virtualenvs
  /** How commands reach the system user; its `reason`, when there is one, is worth a WARNING at start. */
  systemUser: SystemUserDecision
  /** Belongs to the identities of processes that are recorded now. */
  bootId: string
  /** Ends what a server that died has left behind. Answers how many processes it killed. */
  sweep(leftovers: { executionId: string; process: RecordedProcess | undefined }[]): Promise<number>
  /** After the last run has ended; idempotent. */
  stop(): Promise<void>
}

export async function createRunners(settings: RunnerSettings): Promise<Runners> {
  const { launcher, maxResultBytes, packManager, warn = () => undefined } = settings
  const inheritedEnv = inheritedEnvironment(settings.env)
  const trees = createProcessTrees({ launcher })
  const systemUser = await decideSystemUser(launcher, settings.systemUser, inheritedEnv, settings.processUser)
  const bootId = readBootId()
  const directoryCheck = createDirectoryCheck()
  const { basePath = join(tmpdir(), `svc-runners-${process.pid}`) } = settings
  const processes = { launcher, trees, directoryCheck, maxResultBytes, warn }
  const python = { ...pythonDefaults, ...settings.python }
  const findPython = createFindPython(processes, { binary: python.binary, env: inheritedEnv })
  const cacheFolder = join(basePath, 'cache', 'python')
  const interpreters = createInterpreters({
    launcher,
    size: python.poolSize,
    env: inheritedEnv,
    startFile: pathOnDisk(startScript, join(basePath, 'cache')),
    cacheFolder,
  })
  const virtualenvs = createVirtualenvs(processes, {
    folder: join(basePath, 'virtualenvs'),
    findPython,
    env: inheritedEnv,
    virtualenvOpts: python.virtualenvOpts,
    pipOpts: python.pipOpts,
    changed: (program) => interpreters.forget(program),
  })
  const shell = createLocalShell({ launcher, trees, directoryCheck, maxResultBytes, systemUser, inheritedEnv, warn })

  const ofShell = (runner: Runner): Runner => (settings.decodeJsonOutput === true ? decodingJson(runner) : runner)
  const ssh = createSsh({ ...defaultSsh, ...settings.ssh }, { maxResultBytes, warn, systemUser: settings.systemUser })

  return {
    list: [
      ofShell(createLocalShellCmd(shell)),
      ofShell(createLocalShellScript(shell, { name: 'core', env: programs })),
      createNoop(),
      createAnnouncement(),
      createInquirer(),
      ofShell(createRemoteShellCmd(ssh)),
      ofShell(createRemoteShellScript(ssh)),
      createHttpRequest(settings.http ?? { allowedPrivateNetworks: [], maxBodyBytes: 10_485_760 }),
      createPythonScript({ ...processes, findPython, interpreters, virtualenvs, inheritedEnv, settings: python }),
      ...(packManager === undefined ? [] : [createPackManagerRunner({ ...processes, inheritedEnv, packManager })]),
    ] satisfies Runner[],
    maintenance: [
      {
        name: 'old bytecode of Python',
        everySeconds: 86_400,
        run: async (signal) => {
          await removeOldFiles(cacheFolder, Date.now() - BYTECODE_KEPT_MS, signal)
        },
      },
    ],
    virtualenvs,
    systemUser,
    bootId,
    sweep: async (leftovers) => {
      const { isRoot, sudoProgram } = systemUser
      const { killed, survivors } = await trees.sweep(
        leftovers.map(({ executionId, process: recorded }) => ({
          marker: executionId,
          // Nothing outlives a boot, and pid and start time may be a stranger's after it.
          ...(recorded?.bootId === bootId ? { identity: recorded } : {}),
        })),
        isRoot || sudoProgram === undefined
          ? {}
          : { sudo: { program: sudoProgram, env: inheritedEnv, user: settings.systemUser } },
      )
      if (survivors.length > 0) warn('Processes of an earlier run could not be ended.', { pids: survivors })
      return killed
    },
    stop: async () => {
      await Promise.all([ssh.stop(), interpreters.stop()])
      await trees.stop()
    },
  }
}

/** How scripts that come with the program start what they need of it. */
const [SVC_ACTION_NODE, SVC_ACTION_SEND_MAIL] = commandOf(locateCode('./send-mail', import.meta.url))
const programs = { SVC_ACTION_NODE, SVC_ACTION_SEND_MAIL }

export { inquirerName } from './inquirer.ts'
export type { PackManager, PackOutcome, PackWork, ProgramEnd } from './pack-manager.ts'
export { createLauncher } from './process/create-launcher.ts'
export { createProcessReader, type ProcessReader } from './process/process-reader.ts'
export { listPids, type ProcessRow } from './process/process-table.ts'
export type {
  OutputType,
  RecordedProcess,
  RunContext,
  RunResult,
  RunStatus,
  Runner,
  RunnerTypeDefinition,
  StopReason,
} from './runner.ts'
