/** Runs the class in a Python file of a pack (contract 03, 3.6 to 3.9). */
import { join } from 'node:path'
import type { ParameterSchema } from '../lib/schema/index.ts'
import { contentVersionParameter } from './content-version.ts'
import { childEnvironment } from './environment.ts'
import { ChildOutput } from './process/child-output.ts'
import { MARKER_NAME } from './process/kill-tree.ts'
import { type Child, SpawnError } from './process/launcher.ts'
import { markOf } from './process/process-table.ts'
import {
  backgroundPart,
  type BackgroundChoice,
  type ChildEnd,
  type CommandDeps,
  returnCodeOf,
  programStartFailure,
  runStatusOf,
  timeoutText,
  truncatedFlags,
  watchChild,
} from './process/run-command.ts'
import { signalText } from './process/signal-text.ts'
import type { FindPython } from './python/find-python.ts'
import type { Interpreters } from './python/interpreters.ts'
import type { Virtualenvs } from './python/virtualenv.ts'
import { backgroundParameters, readRunParameters, type RunParameters } from './run-parameters.ts'
import type { RunContext, Runner, RunResult, RunStatus } from './runner.ts'
import { writeStartNote } from './start-note.ts'
import { findScript } from './script-file.ts'
import { readJson, writeJson } from '../lib/json/index.ts'

export interface PythonScriptDeps extends CommandDeps {
  findPython: FindPython
  interpreters: Interpreters
  virtualenvs: Virtualenvs
  inheritedEnv: Readonly<Record<string, string>>
  /** `actionrunner.background` and its grace. */
  backgroundDefault: BackgroundChoice
  settings: {
    /** `actionrunner.python_runner_log_level` */
    logLevel: string
    /** `packs.enable_common_libs` */
    enableCommonLibs: boolean
    /** `api.max_page_size` */
    maxPageSize: number
    /** Folders of packs, that for installed packs first. */
    packsPaths: readonly string[]
  }
}

const DEFAULT_TIMEOUT_SECONDS = 600
const LOG_LEVELS = ['AUDIT', 'CRITICAL', 'ERROR', 'WARNING', 'INFO', 'DEBUG']
/** The result of an action that returned nothing (contract 03, 3.9). */
const NO_VALUE = 'None'
/** Allowance for the envelope of the returned value: `{"result": …, "succeeded": false}` and the line before it. */
const REPLY_FRAME_BYTES = 1024

export function createPythonScript(deps: PythonScriptDeps): Runner {
  const runnerParameters: Record<string, ParameterSchema> = {
    debug: { type: 'boolean', default: false, description: 'Sets SVC_ACTION_DEBUG to True for the action.' },
    ...contentVersionParameter,
    env: {
      type: 'object',
      description: 'Environment variables for the action. Values become text. PYTHONPATH is ignored.',
    },
    timeout: {
      type: 'integer',
      default: DEFAULT_TIMEOUT_SECONDS,
      description: 'Seconds the action may run. 0 disables the limit.',
    },
    ...backgroundParameters,
    log_level: {
      type: 'string',
      enum: LOG_LEVELS,
      default: deps.settings.logLevel,
      description: 'Lowest level that self.logger writes.',
    },
  }
  return {
    definition: {
      name: 'python-script',
      description: 'Runs a Python class of a pack on the host of the server.',
      enabled: true,
      runner_package: 'python_runner',
      runner_module: 'python_runner',
      runner_parameters: runnerParameters,
      output_key: 'result',
    },
    notesStart: true,
    run: (context) => runPythonScript(deps, context),
  }
}

async function runPythonScript(deps: PythonScriptDeps, context: RunContext): Promise<RunResult> {
  const { runnerParameters: parameters, signal } = context
  const read = readRunParameters(parameters, {
    timeoutSeconds: DEFAULT_TIMEOUT_SECONDS,
    background: deps.backgroundDefault,
  })
  if ('problem' in read) return programStartFailure(read.problem)
  const script = await findScript(context, deps.directoryCheck)
  if ('problem' in script) return programStartFailure(script.problem)

  const given = Object.entries(read.env ?? {}).filter(([name]) => name.toUpperCase() !== 'PYTHONPATH')
  const env = childEnvironment({}, Object.fromEntries(given), ownVariables(context))
  let config: ReturnType<RunContext['config']>
  try {
    config = context.config()
  } catch (error) {
    return programStartFailure(error instanceof Error ? error.message : String(error))
  }
  const job = writeJson({
    pack: context.pack,
    file: script.path,
    path: importFolders(context.packFolder, deps.settings.enableCommonLibs),
    parameters: context.actionParameters,
    config: config.values,
    remark: config.remark ?? null,
    env,
    cwd: context.packFolder,
    mark: markOf(context.executionId)?.toString() ?? null,
    log_level: parameters['log_level'] ?? deps.settings.logLevel,
    page_size: deps.settings.maxPageSize,
    packs_paths: deps.settings.packsPaths,
    max_bytes: deps.maxResultBytes,
  })

  const interpreter = await deps.virtualenvs.interpreterFor({
    ...context,
    packFolder: context.environmentFolder ?? context.packFolder,
  })
  if ('problem' in interpreter) return signal.aborted ? notStarted() : programStartFailure(interpreter.problem)
  if (signal.aborted) return notStarted()
  // The interpreter and the C library read some variables at start.
  const pooled = given.length === 0 ? deps.interpreters.take(interpreter.program) : undefined
  if (pooled !== undefined) {
    const outcome = await carryOut(deps, context, pooled, job, read)
    if ('status' in outcome) return outcome
    // It died while idle or when it got the job; the action has not run.
    if (signal.aborted) return notStarted()
  }
  let fresh: Child
  try {
    fresh = await deps.interpreters.start(interpreter.program, freshEnvironment(deps, context, env, given.length > 0))
  } catch (error) {
    if (!(error instanceof SpawnError)) throw error
    return programStartFailure(error.message, `${error.name} [${error.errno}]: ${error.message}`)
  }
  const outcome = await carryOut(deps, context, fresh, job, read)
  if ('status' in outcome) return outcome
  return failureOf(outcome, `The Python "${interpreter.program}" exited before it could run the action.`)
}

/** How the interpreter ended if that happened before it understood the job and without our request. */
async function carryOut(
  deps: PythonScriptDeps,
  context: RunContext,
  child: Child,
  job: string,
  { timeoutSeconds, background }: RunParameters,
): Promise<RunResult | ChildEnd> {
  const { stdin, reply: replyStream } = child
  if (stdin === undefined || replyStream === undefined) throw new Error('An interpreter has no stdin or no reply.')
  const reply = new ChildOutput(replyStream, {
    maxBytes: deps.maxResultBytes + REPLY_FRAME_BYTES,
    emit: () => undefined,
  })
  writeStartNote(context.startNote)
  stdin.end(job)
  try {
    const end = await watchChild(deps, context, child, { timeoutSeconds, background })
    await reply.drain()
    const told = readReply(reply)
    return told.isTaken || end.wasKilled ? resultOf(end, told, timeoutSeconds) : end
  } finally {
    stdin.destroy()
    replyStream.destroy()
  }
}

/** Without the token and other secrets: they come with the job, so that no process list shows them. */
function freshEnvironment(
  { inheritedEnv }: PythonScriptDeps,
  { executionId }: RunContext,
  env: Record<string, string>,
  isGiven: boolean,
): { env: Record<string, string>; mark?: bigint } {
  const own = Object.fromEntries(Object.entries(env).filter(([name]) => !isSecretVariable(name)))
  const mark = markOf(executionId)
  return {
    env: { ...inheritedEnv, ...(isGiven ? own : {}), [MARKER_NAME]: executionId },
    ...(mark === undefined ? {} : { mark }),
  }
}

function isSecretVariable(name: string): boolean {
  return name === 'SVC_ACTION_AUTH_TOKEN' || name === 'SVC_AUTH_TOKEN'
}

/** Contract 03, 3.7 and 3.9. */
function ownVariables({ env, runnerParameters }: RunContext): Record<string, string> {
  const url = env['SVC_ACTION_API_URL']
  const token = env['SVC_ACTION_AUTH_TOKEN']
  return {
    SVC_ACTION_DEBUG: runnerParameters['debug'] === true ? 'True' : 'False',
    ...(url === undefined ? {} : { SVC_API_URL: url }),
    ...(token === undefined ? {} : { SVC_AUTH_TOKEN: token }),
    ...env,
  }
}

/** In addition to the action's own folder, which comes last. */
function importFolders(packFolder: string, enableCommonLibs: boolean): string[] {
  return [join(packFolder, 'actions', 'lib'), ...(enableCommonLibs ? [join(packFolder, 'lib')] : [])]
}

interface Reply {
  isTaken: boolean
  isGiven: boolean
  result?: unknown
  succeeded?: boolean
  error?: string
  isTooLarge: boolean
}

const nothing: Reply = { isTaken: false, isGiven: false, isTooLarge: false }

/** Text that the action itself wrote to the descriptor is not a reply. */
function readReply({ text, isTruncated }: ChildOutput): Reply {
  const isTaken = text.startsWith('job\n')
  if (!isTaken || isTruncated) return { ...nothing, isTaken, isTooLarge: isTruncated }
  try {
    const said: unknown = readJson(text.slice('job\n'.length))
    if (typeof said !== 'object' || said === null) return { ...nothing, isTaken }
    const { result, succeeded, error, is_too_large: isTooLarge } = said as Record<string, unknown> // an object
    return {
      isTaken,
      isGiven: 'result' in said,
      result,
      ...(typeof succeeded === 'boolean' ? { succeeded } : {}),
      ...(typeof error === 'string' ? { error } : {}),
      isTooLarge: isTooLarge === true,
    }
  } catch {
    return { ...nothing, isTaken }
  }
}

function resultOf(end: ChildEnd, reply: Reply, timeoutSeconds: number): RunResult {
  const make = (status: RunStatus, exitCode: number, result: unknown, error?: string): RunResult => ({
    status,
    result: {
      stdout: end.stdout.text,
      stderr: end.stderr.text,
      exit_code: exitCode,
      result,
      ...(error === undefined ? {} : { error }),
      ...truncatedFlags(end),
      ...backgroundPart(end),
    },
  })
  if (end.timedOut) return make('timeout', -9, NO_VALUE, timeoutText(timeoutSeconds))
  const exitCode = returnCodeOf(end.exit)
  if (end.wasKilled) return make('abandoned', exitCode, NO_VALUE)
  if (end.backgroundProblem !== undefined) return make('failed', exitCode, NO_VALUE, end.backgroundProblem)
  if (reply.isTooLarge) return make('failed', exitCode, NO_VALUE, reply.error ?? 'The returned value is too large.')
  if (reply.error !== undefined) return failureOf(end, reply.error)
  const status = runStatusOf(end.exit)
  const killed = signalText(end.exit)
  if (!reply.isGiven) {
    const why = status === 'succeeded' ? 'The process of the action exited before run() returned a value.' : killed
    return make(status === 'succeeded' ? 'failed' : status, exitCode, NO_VALUE, why)
  }
  const value = reply.result ?? null
  return make(status === 'succeeded' && reply.succeeded === false ? 'failed' : status, exitCode, value, killed)
}

/** For a run that did not reach the action; its output says why. */
function failureOf(end: ChildEnd, message: string): RunResult {
  const written = { stdout: end.stdout.text, stderr: end.stderr.text, exit_code: returnCodeOf(end.exit) }
  const more = { ...truncatedFlags(end), ...backgroundPart(end) }
  return { status: 'failed', result: { ...programStartFailure(message).result, ...written, ...more } }
}

/** For a run that was aborted before anything started. */
function notStarted(): RunResult {
  return { status: 'abandoned', result: { stdout: '', stderr: '', exit_code: -15, result: NO_VALUE } }
}
