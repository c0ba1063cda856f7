/** Installs, removes and registers packs as executions (contract 02, 2.8), with output, time limit and cancellation. */
import { delimiter, join } from 'node:path'
import { access } from 'node:fs/promises'
import { constants } from 'node:fs'
import { isAppError } from '../core/errors.ts'
import { childEnvironment } from './environment.ts'
import { onDeadline } from './process/deadline.ts'
import { runCommand, programStartFailure, type CommandDeps } from './process/run-command.ts'
import type { RunContext, Runner, RunResult, StopReason } from './runner.ts'
import { nearestNumber } from '../lib/json/index.ts'

export const packOperations = ['install', 'uninstall', 'register', 'setup_virtualenv'] as const

export type PackOperation = (typeof packOperations)[number]

/** How a program ended; null when svc killed it. */
export interface ProgramEnd {
  code: number | null
  stdout: string
  stderr: string
}

/** What a running operation can use. */
export interface PackWork {
  /** Of the execution. */
  executionId: string
  /** Aborted when the execution is canceled or times out, or the server stops. The operation then throws. */
  signal: AbortSignal
  /** Reports a line of progress. */
  say(line: string): Promise<void>
  /** Reports a problem. */
  warn(line: string): Promise<void>
  /** Emits output of the execution unchanged. */
  emit: RunContext['emit']
  /**
   * Runs a program from the PATH without input and terminal. Its output becomes output of the execution, unless it is
   * quiet. An abort stops its whole process tree; the promise then rejects.
   *
   * @throws Error when it cannot start; the message says what to do
   */
  run(program: string, args: readonly string[], options?: ProgramOptions): Promise<ProgramEnd>
}

export interface ProgramOptions {
  cwd?: string
  /** Changes to the environment of a child; undefined removes a variable. */
  env?: Readonly<Record<string, string | undefined>>
  isQuiet?: boolean
  /** Also stops the program, like the signal of the work. */
  signal?: AbortSignal
}

/** Port: pack operations; provided by the packs module. */
export interface PackManager {
  /**
   * @param parameters of the action; they match its schema
   * @throws AppError with a message for the user; the reason of the abort
   */
  perform(operation: PackOperation, parameters: Readonly<Record<string, unknown>>, work: PackWork): Promise<PackOutcome>
}

export interface PackOutcome {
  /** Whether the whole operation succeeded. */
  succeeded: boolean
  result: Record<string, unknown>
}

export interface PackManagerDeps extends CommandDeps {
  /** The environment that every child inherits; see `inheritedEnvironment`. */
  inheritedEnv: Readonly<Record<string, string>>
  packManager: PackManager
}

const DEFAULT_TIMEOUT_SECONDS = 600

export function createPackManagerRunner(deps: PackManagerDeps): Runner {
  return {
    definition: {
      name: 'pack-manager',
      description: 'Installs, removes and registers packs inside the server.',
      enabled: true,
      runner_package: 'pack_runner',
      runner_module: 'pack_runner',
      runner_parameters: {
        operation: {
          type: 'string',
          enum: [...packOperations],
          required: true,
          description: 'Operation on the packs that the action names.',
        },
        timeout: {
          type: 'integer',
          minimum: 0,
          default: DEFAULT_TIMEOUT_SECONDS,
          description: 'Seconds until the action times out. 0 disables the limit.',
        },
      },
    },
    run: (context) => runOperation(deps, context),
  }
}

async function runOperation(deps: PackManagerDeps, context: RunContext): Promise<RunResult> {
  const { runnerParameters, actionParameters } = context
  const operation = packOperations.find((name) => name === runnerParameters['operation'])
  if (operation === undefined) {
    return programStartFailure(`The parameter "operation" must be one of ${packOperations.join(', ')}.`)
  }
  const given = nearestNumber(runnerParameters['timeout']) ?? DEFAULT_TIMEOUT_SECONDS
  if (typeof given !== 'number' || !(given >= 0)) {
    return programStartFailure('The parameter "timeout" must be 0 (no limit) or a positive number of seconds.')
  }
  const late = new AbortController()
  const clearDeadline =
    given > 0 ? onDeadline(given * 1000, () => late.abort('cancel' satisfies StopReason)) : undefined
  const signal = AbortSignal.any([context.signal, late.signal])
  try {
    const { succeeded, result } = await deps.packManager.perform(
      operation,
      actionParameters,
      createWork(deps, { ...context, signal }),
    )
    return outcome(succeeded ? 'succeeded' : 'failed', result)
  } catch (error) {
    if (signal.aborted && !context.signal.aborted) {
      return outcome('timeout', { error: `Action failed to complete in ${given} seconds` })
    }
    if (signal.aborted) return outcome('abandoned', {})
    if (!isAppError(error)) throw error
    await context.emit('stderr', `${error.message}\n`)
    return outcome('failed', { error: error.message, code: error.code })
  } finally {
    clearDeadline?.()
  }
}

function outcome(status: RunResult['status'], result: Record<string, unknown>): RunResult {
  return { status, result: { failed: status !== 'succeeded', succeeded: status === 'succeeded', ...result } }
}

/** What a run can do with programs. */
export function createWork(deps: Omit<PackManagerDeps, 'packManager'>, context: RunContext): PackWork {
  const { signal } = context
  return {
    executionId: context.executionId,
    signal,
    emit: (type, text) => context.emit(type, text),
    async say(line) {
      await context.emit('stdout', `${line}\n`)
    },
    async warn(line) {
      await context.emit('stderr', `${line}\n`)
    },
    async run(program, args, { cwd, env = {}, isQuiet = false, signal: more } = {}) {
      const ending = more === undefined ? signal : AbortSignal.any([signal, more])
      ending.throwIfAborted()
      const inherited = childEnvironment(deps.inheritedEnv, undefined, context.env)
      const file = await findProgram(program, inherited['PATH'] ?? '')
      if (file === undefined) {
        throw new Error(`The program "${program}" is not in the PATH of the server; install it.`)
      }
      for (const [name, value] of Object.entries(env)) {
        if (value === undefined) delete inherited[name]
        else inherited[name] = value
      }
      const emit: RunContext['emit'] = (type, text) => (isQuiet ? undefined : context.emit(type, text))
      const { result } = await runCommand(
        deps,
        { ...context, emit, signal: ending },
        {
          spawn: { file, args: [...args], env: inherited, ...(cwd === undefined ? {} : { cwd }) },
          timeoutSeconds: 0,
        },
      )
      ending.throwIfAborted()
      if (typeof result['error'] === 'string') throw new Error(result['error'])
      const { return_code: code, stdout, stderr } = result
      return {
        code: typeof code === 'number' && code >= 0 ? code : null,
        stdout: String(stdout),
        stderr: String(stderr),
      }
    },
  }
}

async function findProgram(name: string, path: string): Promise<string | undefined> {
  for (const folder of path.split(delimiter)) {
    if (!folder.startsWith('/')) continue
    const file = join(folder, name)
    try {
      await access(file, constants.X_OK)
      return file
    } catch {
      // Not in this folder.
    }
  }
  return undefined
}
