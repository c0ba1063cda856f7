/** All runners. To add one, write its file and list it here. */
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { commandOf, locateCode, pathOnDisk } from '../core/bundle.ts'
import type { MaintenanceTask } from '../core/module.ts'
import { removeExpiredFiles } from './python/expired-files.ts'
import { createAnnouncement } from './announcement.ts'
import { actionEnvironment, inheritedEnvironment } from './environment.ts'
import { withContentVersion } from './content-version.ts'
import { createInquirer } from './inquirer.ts'
import { createHttpRequest } from './http-request.ts'
import { createHttpGet, type HttpGet } from './http/get.ts'
import { createHttpPost, type HttpPost } from './http/post.ts'
import { createLocalShellCmd } from './local-shell-cmd.ts'
import { createLocalShellScript } from './local-shell-script.ts'
import { createLocalShell } from './local-shell.ts'
import { decodingJson } from './json-output.ts'
import { createNoop } from './noop.ts'
import { createPythonScript } from './python-script.ts'
import { createFindPython } from './python/find-python.ts'
import { createInterpreters, startScript } from './python/interpreters.ts'
import { createVirtualenvs, type Virtualenvs } from './python/virtualenv.ts'
import { createPackManagerRunner } from './pack-manager.ts'
import { createBackgroundRuns } from './process/background-runs.ts'
import { createDirectoryCheck } from './process/directory-check.ts'
import { machineClock } from '../core/clock.ts'
import { createProcessTrees } from './process/kill-tree.ts'
import { createRunHelper, type RunHelper } from './process/run-helper.ts'
import {
  commandAccountOf,
  decideSystemUser,
  type CommandAccount,
  type SystemUserDecision,
} from './process/system-user.ts'
import { readBootId } from './process/process-table.ts'
import { createRemoteShellCmd } from './remote-shell-cmd.ts'
import { createSensorProcesses, type SensorProcesses } from './sensor-process.ts'
import { createRemoteShellScript } from './remote-shell-script.ts'
import { createWinrmCmd } from './winrm-cmd.ts'
import { createWinrmPsCmd } from './winrm-ps-cmd.ts'
import { createWinrmPsScript } from './winrm-ps-script.ts'
import type { RecordedProcess, Runner } from './runner.ts'
import { defaultBackground } from './process/run-command.ts'
import { defaultSsh, pythonDefaults, type RunnerSettings } from './settings.ts'
import { createSsh } from './ssh/create-ssh.ts'

/** How long bytecode may stay unused; newer uses compile it again. */
const BYTECODE_KEPT_MS = 30 * 86_400_000

export interface Runners {
  list: Runner[]
  /** Removes old bytecode of Python. */
  maintenance: readonly MaintenanceTask[]
  /** Virtual environments of packs with Python requirements. */
  virtualenvs: Virtualenvs
  /** How commands reach the system user; log its `reason`, if any, as a WARNING at start. */
  systemUser: SystemUserDecision
  commandAccount: CommandAccount
  /** Processes of sensors. */
  sensors: SensorProcesses
  /** For requests of the server itself. */
  get: HttpGet
  /** The same, to addresses of its administrator. */
  post: HttpPost
  /** For programs of the server itself. */
  runHelper: RunHelper
  /** The boot id that belongs to process identities recorded now. */
  bootId: string
  /** Stops processes that a crashed server left behind. Returns the number of killed processes. */
  killOrphans(orphans: { executionId: string; process: RecordedProcess | undefined }[]): Promise<number>
  /** Call after the last run has ended; idempotent. */
  stop(): Promise<void>
}

export async function createRunners(settings: RunnerSettings): Promise<Runners> {
  const { launcher, maxResultBytes, packManager, warn = () => undefined } = settings
  const inheritedEnv = inheritedEnvironment(settings.env)
  const actionEnv = actionEnvironment(inheritedEnv, settings.passEnvironment ?? [])
  const trees = createProcessTrees({ launcher })
  const systemUser = await decideSystemUser(launcher, settings.systemUser, inheritedEnv, settings.processUser)
  const bootId = readBootId()
  const directoryCheck = createDirectoryCheck()
  const { basePath = join(tmpdir(), `svc-runners-${process.pid}`) } = settings
  const background = createBackgroundRuns({ launcher, warn })
  const backgroundDefault = settings.background ?? defaultBackground
  const processes = { launcher, trees, background, directoryCheck, maxResultBytes, warn }
  const python = { ...pythonDefaults, ...settings.python }
  const findPython = createFindPython(processes, { binary: python.binary, env: inheritedEnv })
  const cacheFolder = join(basePath, 'cache', 'python')
  const startFile = pathOnDisk(startScript, join(basePath, 'cache'))
  const interpreters = createInterpreters({
    launcher,
    size: python.poolSize,
    env: actionEnv,
    startFile,
    cacheFolder,
  })
  const virtualenvs = createVirtualenvs(processes, {
    folder: join(basePath, 'virtualenvs'),
    findPython,
    env: inheritedEnv,
    virtualenvOpts: python.virtualenvOpts,
    pipOpts: python.pipOpts,
    changed: (program) => interpreters.forget(program),
    clock: settings.clock ?? machineClock,
  })
  const shell = createLocalShell({ ...processes, systemUser, inheritedEnv: actionEnv, backgroundDefault })

  const ofShell = (runner: Runner): Runner => (settings.decodeJsonOutput === true ? decodingJson(runner) : runner)
  const ofVersion = (runner: Runner): Runner =>
    withContentVersion({ ...processes, inheritedEnv }, settings.packVersions, runner)
  const ssh = createSsh(
    { ...defaultSsh, ...settings.ssh },
    {
      maxResultBytes,
      warn,
      systemUser: settings.systemUser,
      background: backgroundDefault,
    },
  )

  return {
    list: [
      ofShell(createLocalShellCmd(shell)),
      ofVersion(ofShell(createLocalShellScript(shell, { name: 'core', env: programs }, settings.interpreterAt))),
      createNoop(),
      createAnnouncement(),
      createInquirer(),
      ofShell(createRemoteShellCmd(ssh)),
      ofVersion(ofShell(createRemoteShellScript(ssh))),
      ofShell(createWinrmCmd({ maxResultBytes, warn })),
      ofShell(createWinrmPsCmd({ maxResultBytes, warn })),
      ofVersion(ofShell(createWinrmPsScript({ maxResultBytes, warn, directoryCheck }))),
      createHttpRequest(settings.http ?? { allowedPrivateNetworks: [], maxBodyBytes: 10_485_760 }),
      ofVersion(
        createPythonScript({
          ...processes,
          findPython,
          interpreters,
          virtualenvs,
          inheritedEnv: actionEnv,
          backgroundDefault,
          settings: python,
        }),
      ),
      ...(packManager === undefined ? [] : [createPackManagerRunner({ ...processes, inheritedEnv, packManager })]),
    ] satisfies Runner[],
    maintenance: [
      {
        name: 'old bytecode of Python',
        everySeconds: 86_400,
        run: async (signal) => {
          await removeExpiredFiles(cacheFolder, Date.now() - BYTECODE_KEPT_MS, signal)
        },
      },
    ],
    virtualenvs,
    sensors: createSensorProcesses({
      launcher,
      trees,
      virtualenvs,
      inheritedEnv: actionEnv,
      startFile,
      cacheFolder,
      logLevel: python.logLevel,
      packsPaths: python.packsPaths,
      maxPageSize: python.maxPageSize,
    }),
    systemUser,
    commandAccount: commandAccountOf(systemUser),
    get: createHttpGet(settings.http?.allowedPrivateNetworks ?? [], settings.env ?? process.env),
    post: createHttpPost(settings.env ?? process.env),
    runHelper: createRunHelper(launcher, inheritedEnv),
    bootId,
    killOrphans: async (orphans) => {
      const { isRoot, sudoProgram } = systemUser
      const { killed, survivors } = await trees.killOrphans(
        orphans.map(({ executionId, process: recorded }) => ({
          marker: executionId,
          // No process survives a boot; afterwards pid and start time may be those of an unrelated process.
          ...(recorded?.bootId === bootId ? { identity: recorded } : {}),
        })),
        isRoot || sudoProgram === undefined
          ? {}
          : { sudo: { program: sudoProgram, env: inheritedEnv, user: settings.systemUser } },
      )
      if (survivors.length > 0) warn('Could not stop processes of an earlier run.', { pids: survivors })
      return killed
    },
    stop: async () => {
      await Promise.all([ssh.stop(), interpreters.stop()])
      await trees.stop()
    },
  }
}

/** How scripts shipped with svc start the programs that they need. */
const sendMail = commandOf(locateCode('./send-mail', import.meta.url))
const programs = {
  SVC_ACTION_NODE: sendMail.file,
  SVC_ACTION_NODE_FLAG: sendMail.flags[0] ?? '',
  SVC_ACTION_SEND_MAIL: sendMail.program,
}

export { inquirerName } from './inquirer.ts'
export { actionChainName, isWorkflowRunner, orquestaName, workflowRunners } from './workflow-runners.ts'
export type { HttpGet } from './http/get.ts'
export type { HttpPost } from './http/post.ts'
export type { RunHelper } from './process/run-helper.ts'
export { findMailProgram, MAIL_PROGRAMS } from './mail-programs.ts'
export { HttpProblem } from './http/exchange.ts'
export type { HeldVersion, PackVersions as PackVersionsPort, WantedVersion } from './content-version.ts'
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
  StoppedBackground,
  StopReason,
} from './runner.ts'
export { runnersSettings } from './settings.ts'
export type { PythonSettings, RunnerSettings, RunnersPorts } from './settings.ts'
export { MAX_SENSOR_LINE_BYTES } from './sensor-process.ts'
export type { SensorEnd, SensorProcess, SensorProcesses, SensorRequest } from './sensor-process.ts'
export { writeStartNote, type StartNote } from './start-note.ts'
export { outputTypes, runnerTypeDefinition } from './runner.ts'
