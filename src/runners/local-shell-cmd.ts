/** Runs a command line on this machine (contract 03, 3.6 to 3.9). */
import { randomUUID } from 'node:crypto'
import { resolve } from 'node:path'
import { childEnvironment } from './environment.ts'
import type { DirectoryCheck } from './process/directory-check.ts'
import type { ProcessTrees } from './process/kill-tree.ts'
import type { Launcher } from './process/launcher.ts'
import { type Command, runCommand, startFailure } from './process/run-command.ts'
import type { SudoAccess } from './process/sudo-kill.ts'
import { isSudoPasswordless, type SystemUserDecision } from './process/system-user.ts'
import type { RunContext, Runner, RunResult } from './runner.ts'

export interface LocalShellDeps {
  launcher: Launcher
  trees: ProcessTrees
  directoryCheck: DirectoryCheck
  maxResultBytes: number
  systemUser: SystemUserDecision
  /** What every child inherits; see `inheritedEnvironment`. */
  inheritedEnv: Readonly<Record<string, string>>
  warn(message: string, fields: Record<string, unknown>): void
}

const DEFAULT_TIMEOUT_SECONDS = 60
/** Of parameter `env`. The system takes no more than a few megabytes, but only says so after all has been made ready. */
const MAX_VARIABLES = 10_000

export function createLocalShellCmd(deps: LocalShellDeps): Runner {
  // No command prints it by chance, and it tells nothing.
  const sudoPrompt = `[sudo ${randomUUID()}]`
  return {
    definition: {
      name: 'local-shell-cmd',
      description: 'Runs a command line on the machine of the server.',
      enabled: true,
      runner_package: 'local_runner',
      runner_module: 'local_shell_command_runner',
      runner_parameters: {
        cmd: { type: 'string', description: 'Command line to run.' },
        cwd: { type: 'string', description: 'Working directory of the command; it must exist.' },
        env: { type: 'object', description: 'Environment variables for the command; values become text.' },
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
          description: 'Password for sudo, where it asks for one.',
        },
        timeout: {
          type: 'integer',
          default: DEFAULT_TIMEOUT_SECONDS,
          description: 'Seconds after which the command is stopped; 0 means no limit.',
        },
      },
    },
    run: (context) => runLocalShellCmd(deps, sudoPrompt, context),
  }
}

async function runLocalShellCmd(deps: LocalShellDeps, sudoPrompt: string, context: RunContext): Promise<RunResult> {
  const parameters = context.runnerParameters
  if (context.entryPoint !== '') {
    return startFailure(
      'An entry point is not supported by the local-shell-cmd runner; remove "entry_point" of the action.',
    )
  }
  const cmd = parameters['cmd']
  if (typeof cmd !== 'string') return startFailure('The parameter "cmd" is missing: there is no command to run.')
  const timeoutSeconds = parameters['timeout'] ?? DEFAULT_TIMEOUT_SECONDS
  if (typeof timeoutSeconds !== 'number' || !(timeoutSeconds >= 0)) {
    return startFailure('The parameter "timeout" must be 0 (no limit) or a positive number of seconds.')
  }
  const given = parameters['env'] ?? undefined
  if (given !== undefined && !isRecord(given)) return startFailure('The parameter "env" must be an object.')
  if (given !== undefined && Object.keys(given).length > MAX_VARIABLES) {
    return startFailure(`The parameter "env" has more than ${MAX_VARIABLES} variables.`)
  }
  const env = childEnvironment(deps.inheritedEnv, given, context.env)
  const cwd = parameters['cwd']

  const way = await assemble(deps, sudoPrompt, { cmd, env, parameters })
  if ('status' in way) return way
  const command: Command = { ...way, timeoutSeconds }
  // Relative to the directory the server was started in, as everything else a command line names.
  if (typeof cwd === 'string' && cwd !== '') command.spawn.cwd = resolve(cwd)
  return await runCommand(deps, context, command)
}

interface CommandLine {
  cmd: string
  env: Record<string, string>
  parameters: Readonly<Record<string, unknown>>
}

/** The table of contract 03, 3.7. */
async function assemble(
  deps: LocalShellDeps,
  sudoPrompt: string,
  { cmd, env, parameters }: CommandLine,
): Promise<Omit<Command, 'timeoutSeconds'> | RunResult> {
  const { mode, systemUser, isRoot, doesSystemUserExist, sudoProgram } = deps.systemUser
  const isElevated = parameters['sudo'] === true
  const given = parameters['sudo_password']
  const password = typeof given === 'string' && given !== '' ? given : undefined
  if (password !== undefined && /[\r\n\0]/.test(password)) {
    return startFailure('The parameter "sudo_password" must be a single line of text.')
  }
  // With a password even a sudo that refused at the start of the server may let us in.
  const isSwitching =
    mode === 'sudo' ||
    (mode === 'process-user' && password !== undefined && doesSystemUserExist && sudoProgram !== undefined)
  if ((!isElevated && !isSwitching) || (isElevated && sudoProgram === undefined && isRoot)) {
    return { spawn: { file: '/bin/sh', args: shellArguments(cmd), env } }
  }
  if (sudoProgram === undefined) {
    return startFailure('sudo is not installed on the machine of the server, which does not run as root itself.')
  }

  const user = isElevated ? undefined : systemUser
  const access: SudoAccess = { program: sudoProgram, env, ...(user === undefined ? {} : { user }) }
  const switches = user === undefined ? ['-E'] : ['-E', '-H', '-u', user]
  // Where sudo does not ask, the command would find the password on its own stdin.
  const needsPassword = password !== undefined && !(await isSudoPasswordless(deps.launcher, sudoProgram, user, env))
  if (!needsPassword) {
    const args = [...switches, '--', 'bash', ...shellArguments(cmd)]
    return { spawn: { file: sudoProgram, args, env }, ...(isRoot ? {} : { sudo: access }) }
  }
  // -k: for the same reason an earlier answer must not make sudo skip the question.
  const args = ['-k', '-S', '-p', sudoPrompt, ...switches, '--', 'bash', ...shellArguments(cmd)]
  return {
    spawn: { file: sudoProgram, args, env, stdin: Buffer.from(`${password}\n`) },
    sudoPrompt,
    sudo: { ...access, password },
  }
}

/** A command that begins with a dash is no option of the shell. */
function shellArguments(cmd: string): string[] {
  return cmd.startsWith('-') ? ['-c', '--', cmd] : ['-c', cmd]
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
