/** Shared by the local shell runners: parameters, accounts, environment (contract 03, 3.6 and 3.7). */
import { randomUUID } from 'node:crypto'
import { resolve } from 'node:path'
import type { ParameterSchema } from '../lib/schema/index.ts'
import { childEnvironment } from './environment.ts'
import type { BackgroundRuns } from './process/background-runs.ts'
import type { DirectoryCheck } from './process/directory-check.ts'
import type { ProcessTrees } from './process/kill-tree.ts'
import type { Launcher, SpawnError } from './process/launcher.ts'
import { type BackgroundChoice, type Command, runCommand, programStartFailure } from './process/run-command.ts'
import type { SudoAccess } from './process/sudo-kill.ts'
import { isSudoPasswordless, type SystemUserDecision } from './process/system-user.ts'
import { backgroundParameters, readRunParameters } from './run-parameters.ts'
import type { RunContext, RunResult } from './runner.ts'

export interface LocalShellDeps {
  launcher: Launcher
  trees: ProcessTrees
  background: BackgroundRuns
  directoryCheck: DirectoryCheck
  maxResultBytes: number
  /** `actionrunner.background` and its grace. */
  backgroundDefault: BackgroundChoice
  systemUser: SystemUserDecision
  /** The environment that every action gets; see `actionEnvironment`. */
  inheritedEnv: Readonly<Record<string, string>>
  warn(message: string, fields: Record<string, unknown>): void
}

export interface LocalProgram {
  /** Program to start under the server's own account. */
  file: string
  args: string[]
  /** Arguments of the `bash` that sudo starts for another account. */
  bash: string[]
  /** Additional `SVC_ACTION_*` variables. */
  env?: Record<string, string>
  /** Text for its standard input. Default: none. */
  stdin?: string
  /** Explains why `file` cannot be started; default: the launcher's message, which names the file. */
  readonly explain?: (error: SpawnError) => string
}

export interface LocalShell {
  readonly directoryCheck: DirectoryCheck
  /** Whether commands run under another account than the server's. */
  isOtherAccount(context: RunContext): boolean
  /** Applies the runner parameters of `localShellParameters`. */
  run(context: RunContext, program: LocalProgram): Promise<RunResult>
}

const DEFAULT_TIMEOUT_SECONDS = 60
export const localShellParameters = {
  cwd: { type: 'string', description: 'Working directory of the command. It must exist.' },
  env: { type: 'object', description: 'Environment variables for the command. Values become text.' },
  kwarg_op: {
    type: 'string',
    default: '--',
    description: 'Operator in front of the names of keyword arguments, such as -- or -.',
  },
  sudo: { type: 'boolean', default: false, description: 'Run the command as root.' },
  sudo_password: {
    type: 'string',
    default: null,
    secret: true,
    description: 'Password for sudo, if sudo asks for one.',
  },
  timeout: {
    type: 'integer',
    default: DEFAULT_TIMEOUT_SECONDS,
    description: 'Seconds the command may run. 0 disables the limit.',
  },
  ...backgroundParameters,
} as const satisfies Record<string, ParameterSchema>

export function createLocalShell(deps: LocalShellDeps): LocalShell {
  // Unlikely in the output of a command, and reveals nothing.
  const sudoPrompt = `[sudo ${randomUUID()}]`

  async function run(context: RunContext, program: LocalProgram): Promise<RunResult> {
    const parameters = context.runnerParameters
    const defaults = { timeoutSeconds: DEFAULT_TIMEOUT_SECONDS, background: deps.backgroundDefault }
    const read = readRunParameters(parameters, defaults)
    if ('problem' in read) return programStartFailure(read.problem)
    const { timeoutSeconds, env: given, background } = read
    const env = childEnvironment(deps.inheritedEnv, given, { ...context.env, ...program.env })
    const cwd = parameters['cwd']

    const way = await assemble(program, env, parameters)
    if ('status' in way) return way
    const command: Command = { ...way, timeoutSeconds, background }
    if (program.explain !== undefined && way.spawn.file === program.file) command.explain = program.explain
    // Relative to the server's working directory, like other paths on its command line.
    if (typeof cwd === 'string' && cwd !== '') command.spawn.cwd = resolve(cwd)
    return await runCommand(deps, context, command)
  }

  /** With a password, sudo may grant what it refused at the start of the server. */
  function isSwitching(password: string | undefined): boolean {
    const { mode, doesSystemUserExist, sudoProgram } = deps.systemUser
    return (
      mode === 'sudo' ||
      (mode === 'process-user' && password !== undefined && doesSystemUserExist && sudoProgram !== undefined)
    )
  }

  /** Whether the account is the server's own. */
  function isDirect(isElevated: boolean, password: string | undefined): boolean {
    const { isRoot, sudoProgram } = deps.systemUser
    return (!isElevated && !isSwitching(password)) || (isElevated && sudoProgram === undefined && isRoot)
  }

  /** The table of contract 03, 3.7. */
  async function assemble(
    { file, args, bash, stdin: input }: LocalProgram,
    env: Record<string, string>,
    parameters: Readonly<Record<string, unknown>>,
  ): Promise<Omit<Command, 'timeoutSeconds'> | RunResult> {
    const { systemUser, isRoot, sudoProgram } = deps.systemUser
    const isElevated = parameters['sudo'] === true
    const password = passwordOf(parameters)
    if (password !== undefined && /[\r\n\0]/.test(password)) {
      return programStartFailure('The parameter "sudo_password" must be a single line of text.')
    }
    const stdin = input === undefined ? {} : { stdin: Buffer.from(input) }
    if (isDirect(isElevated, password)) return { spawn: { file, args, env, ...stdin } }
    if (sudoProgram === undefined) {
      return programStartFailure(
        'sudo is not installed on the host of the server, and the server does not run as root. Install sudo.',
      )
    }

    const user = isElevated ? undefined : systemUser
    const access: SudoAccess = { program: sudoProgram, env, ...(user === undefined ? {} : { user }) }
    const switches = user === undefined ? ['-E'] : ['-E', '-H', '-u', user]
    // If sudo does not prompt, the command would find the password on its stdin.
    const needsPassword = password !== undefined && !(await isSudoPasswordless(deps.launcher, sudoProgram, user, env))
    if (!needsPassword) {
      const spawn = { file: sudoProgram, args: [...switches, '--', 'bash', ...bash], env, ...stdin }
      return { spawn, ...(isRoot ? {} : { sudo: access }) }
    }
    return {
      spawn: {
        file: sudoProgram,
        // -k: likewise, cached credentials must not make sudo skip the prompt.
        args: ['-k', '-S', '-p', sudoPrompt, ...switches, '--', 'bash', ...bash],
        env,
        // sudo reads no further than the line with the password.
        stdin: Buffer.from(`${password}\n${input ?? ''}`),
      },
      sudoPrompt,
      sudo: { ...access, password },
    }
  }

  return {
    directoryCheck: deps.directoryCheck,
    isOtherAccount: ({ runnerParameters }) =>
      !isDirect(runnerParameters['sudo'] === true, passwordOf(runnerParameters)),
    run,
  }
}

function passwordOf({ sudo_password: given }: Readonly<Record<string, unknown>>): string | undefined {
  return typeof given === 'string' && given !== '' ? given : undefined
}
