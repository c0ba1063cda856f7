/** Runs one command: output, time limit, cancellation, and the result shape of contract 03, 3.8 and 3.9. */
import { constants } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import type { BackgroundRuns } from './background-runs.ts'
import type { RunContext, RunResult, RunStatus, StopReason } from '../runner.ts'
import { ChildOutput } from './child-output.ts'
import { DIRECTORY_LIMIT_MS, type DirectoryCheck } from './directory-check.ts'
import {
  DEFAULT_GRACE_MS,
  SHUTDOWN_GRACE_MS,
  type FoundProcess,
  type KillReport,
  type ProcessTrees,
} from './kill-tree.ts'
import { type Child, type Exit, type Launcher, SpawnError, type SpawnRequest } from './launcher.ts'
import { onDeadline } from './deadline.ts'
import { markOf } from './process-table.ts'
import { PromptFilter } from './prompt-filter.ts'
import { signalText } from './signal-text.ts'
import type { SudoAccess } from './sudo-kill.ts'

export interface CommandDeps {
  launcher: Launcher
  trees: ProcessTrees
  background: BackgroundRuns
  directoryCheck: DirectoryCheck
  /** Bytes of each of stdout and stderr that the result holds (decision 6). */
  maxResultBytes: number
  /** Reports processes that could not be stopped. */
  warn(message: string, fields: Record<string, unknown>): void
}

export interface Command {
  spawn: SpawnRequest
  /** 0 disables the limit. */
  timeoutSeconds: number
  /** Access to processes of other users; absent when the command does not use sudo. */
  sudo?: SudoAccess
  /** The prompt for sudo, if sudo gets a password. */
  sudoPrompt?: string
  /** Default: `detach`. */
  background?: BackgroundChoice
  /** Explains why the program cannot start; default: the launcher's message. */
  explain?: (error: SpawnError) => string
}

/**
 * What happens to processes that outlive the first process of a run and hold its output. `wait`: the run goes on while
 * they write, or run its own program (a subshell, such as the left side of a pipeline), until the others write nothing
 * for the grace period, at most up to the time limit; then they are left alone. `detach`: they are left alone at once.
 * `kill`: they are stopped.
 */
export const backgroundModes = ['wait', 'detach', 'kill'] as const
export type BackgroundMode = (typeof backgroundModes)[number]

export interface BackgroundChoice {
  mode: BackgroundMode
  /** For `wait`: seconds without output after which the run no longer waits for other programs. */
  graceSeconds: number
}

export const defaultBackground: BackgroundChoice = { mode: 'wait', graceSeconds: 5 }

/** `background` in the result: processes that outlived the first one of the run. */
export type BackgroundReport =
  /** As they were when the run ended; at most `MAX_REPORTED_PIDS`. */
  { pids: number[]; message: string } | { stopped: number; message: string }

const MAX_REPORTED_PIDS = 100
/** For `kill`: time to write the last output before the rest is stopped. */
const LAST_OUTPUT_MS = 100
/** Pause between two looks at processes that write nothing; a look reads the whole process table. */
export const LEAST_LOOK_PAUSE_MS = 1000
const BUSY_PAUSE_MS = 20
const BUSY_LIMIT_MS = 1000

/** Resolves when the command has ended; after a timeout or an abort, when its whole process tree has. */
export async function runCommand(deps: CommandDeps, context: RunContext, command: Command): Promise<RunResult> {
  const { cwd } = command.spawn
  if (cwd !== undefined && !(await deps.directoryCheck(cwd))) {
    const seconds = DIRECTORY_LIMIT_MS / 1000
    return programStartFailure(
      `Cannot use the working directory "${cwd}": its file system, or one queried before it, did not answer within ` +
        `${seconds} seconds.`,
    )
  }
  if (context.signal.aborted) return stoppedResult('', '')
  let child: Child
  try {
    const mark = markOf(context.executionId)
    const { startNote: note } = context
    const request = {
      ...command.spawn,
      ...(mark === undefined ? {} : { mark }),
      ...(note === undefined ? {} : { note }),
    }
    child = await spawnWhenWritten(deps.launcher, request, context.signal)
  } catch (error) {
    if (!(error instanceof SpawnError)) throw error
    if (context.signal.aborted) return stoppedResult('', '')
    const message = (error.file === undefined ? undefined : command.explain?.(error)) ?? error.message
    return programStartFailure(message, `${error.name} [${error.errno}]: ${message}`)
  }
  const prompts = command.sudoPrompt === undefined ? undefined : new PromptFilter(command.sudoPrompt)
  const { timeoutSeconds, sudo, background } = command
  const end = await watchChild(deps, context, child, {
    timeoutSeconds,
    ...(background === undefined ? {} : { background }),
    ...(sudo === undefined ? {} : { sudo }),
    ...(prompts === undefined ? {} : { stderrFilter: prompts }),
  })
  return resultOf(end, timeoutSeconds, prompts)
}

/**
 * A program still open for writing cannot start (ETXTBSY); for a script that is being saved this passes in a moment.
 */
async function spawnWhenWritten(launcher: Launcher, request: SpawnRequest, signal: AbortSignal): Promise<Child> {
  for (let waitedMs = 0; ; waitedMs += BUSY_PAUSE_MS) {
    try {
      return await launcher.spawn(request)
    } catch (error) {
      const isBusy = error instanceof SpawnError && error.errno === 'ETXTBSY'
      if (!isBusy || waitedMs >= BUSY_LIMIT_MS || signal.aborted) throw error
    }
    await delay(BUSY_PAUSE_MS)
  }
}

export interface WatchOptions {
  /** 0 disables the limit. */
  timeoutSeconds: number
  /** Access to processes of other users; absent when the child does not use sudo. */
  sudo?: SudoAccess
  /** Filters stderr first. */
  stderrFilter?: PromptFilter
  /** Default: `detach`. */
  background?: BackgroundChoice
}

/** How a child ended, and its output. */
export interface ChildEnd {
  exit: Exit
  stdout: ChildOutput
  stderr: ChildOutput
  timedOut: boolean
  /** svc stopped its process tree: on a timeout, an abort, or after losing track of the child. */
  wasKilled: boolean
  /** Absent when no process outlived the child, as far as svc looked: its output pipes had ended. */
  background?: BackgroundReport
  /** Set when svc stopped processes that it should have left alone. */
  backgroundProblem?: string
}

/**
 * Watches a started child, from the turn of its start: emits its output, and stops its process tree on a timeout or an
 * abort. Resolves when no process of the run is left, except those that `background` leaves alone. Rejects with the error
 * of the context, also without processes left.
 */
export function watchChild(
  deps: Pick<CommandDeps, 'trees' | 'background' | 'maxResultBytes' | 'warn'>,
  context: Pick<RunContext, 'executionId' | 'signal' | 'emit' | 'processStarted'>,
  child: Child,
  options: WatchOptions,
): Promise<ChildEnd> {
  return new ChildWatch(deps, context, child, options).finish()
}

/** The result of an execution that could not start (contract 03, 3.9). Its traceback names no file of the server. */
export function programStartFailure(message: string, traceback = `StartFailure: ${message}`): RunResult {
  return { status: 'failed', result: { error: message, traceback } }
}

class ChildWatch {
  readonly #deps: Parameters<typeof watchChild>[0]
  readonly #context: Parameters<typeof watchChild>[1]
  readonly #options: WatchOptions
  readonly #child: Child
  readonly #stdout: ChildOutput
  readonly #stderr: ChildOutput
  #timedOut = false
  #killing: Promise<KillReport> | undefined
  #hasExited = false
  #isHandedOver = false
  /** Whether there is nothing more to wait for: the time limit, or the tree is being stopped. */
  #isImpatient = false
  readonly #impatience = Promise.withResolvers<void>()

  constructor(...[deps, context, child, options]: Parameters<typeof watchChild>) {
    this.#deps = deps
    this.#context = context
    this.#options = options
    this.#child = child
    const { maxResultBytes } = deps
    this.#stdout = new ChildOutput(child.stdout, {
      maxBytes: maxResultBytes,
      emit: (text) => context.emit('stdout', text),
    })
    this.#stderr = new ChildOutput(child.stderr, {
      maxBytes: maxResultBytes,
      emit: (text) => context.emit('stderr', text),
      ...(options.stderrFilter === undefined ? {} : { filter: options.stderrFilter }),
    })
  }

  async finish(): Promise<ChildEnd> {
    const { signal } = this.#context
    const timeoutMs = this.#options.timeoutSeconds * 1000
    const clearDeadline = timeoutMs > 0 ? onDeadline(timeoutMs, this.#onTimeout) : undefined
    signal.addEventListener('abort', this.#onAbort)
    try {
      this.#context.processStarted(this.#child.identity)
      // The run may have been aborted while the process was starting.
      if (signal.aborted) this.#onAbort()
      const exit = await this.#exited()
      this.#hasExited = true
      // The launcher lost track of the child, which may still run.
      if (exit.code === null && exit.signal === null) void this.#kill(0)
      const mode = this.#options.background?.mode
      if (mode === 'wait') await this.#waitForWriters()
      const stopped = mode === 'kill' ? await this.#stopOthers() : undefined
      // Until the tree is dead its other members may still write.
      await this.#killing
      await Promise.all([this.#stdout.drain(), this.#stderr.drain()])
      await this.#killing
      clearDeadline?.()
      const left = this.#isOver ? {} : await this.#leaveAlone()
      return {
        ...(stopped === undefined ? {} : { background: stopped }),
        ...left,
        exit,
        stdout: this.#stdout,
        stderr: this.#stderr,
        timedOut: this.#timedOut,
        wasKilled: this.#killing !== undefined,
      }
    } catch (error) {
      // A listener that throws or a failing disk must not leave a process behind.
      await this.#kill(0)
      throw error
    } finally {
      clearDeadline?.()
      signal.removeEventListener('abort', this.#onAbort)
      if (!this.#isHandedOver) {
        this.#child.stdout.destroy()
        this.#child.stderr.destroy()
      }
    }
  }

  /** Whether no process holds the output pipes, or svc has stopped the whole tree. */
  get #isOver(): boolean {
    return (this.#stdout.isEnded && this.#stderr.isEnded) || this.#killing !== undefined
  }

  /** Until the pipes end, only other programs hold them and write nothing for the grace period, or the time limit. */
  async #waitForWriters(): Promise<void> {
    const exitedAt = performance.now()
    const graceMs = (this.#options.background?.graceSeconds ?? 0) * 1000
    let lookAt = 0
    while (!this.#isOver && !this.#isImpatient) {
      const silentSince = Math.max(exitedAt, this.#stdout.readAt, this.#stderr.readAt)
      const leftMs = Math.max(silentSince + graceMs, lookAt) - performance.now()
      if (leftMs > 0) {
        await this.#endsWithin(leftMs)
        continue
      }
      if (!(await this.#others()).some(({ continuesFirst }) => continuesFirst)) return
      lookAt = performance.now() + Math.max(graceMs, LEAST_LOOK_PAUSE_MS)
    }
  }

  /** Resolves when both pipes have ended, or after this time, or when there is nothing more to wait for. */
  async #endsWithin(ms: number): Promise<void> {
    if (this.#stdout.isEnded && this.#stderr.isEnded) return
    // Without signals, which cost every run more than the wait.
    const { promise: pause, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, ms)
    await Promise.race([pause, this.#impatience.promise, Promise.all([this.#stdout.ended, this.#stderr.ended])])
    clearTimeout(timer)
  }

  /** Stops the processes that outlived the child. */
  async #stopOthers(): Promise<BackgroundReport | undefined> {
    await this.#endsWithin(LAST_OUTPUT_MS)
    if (this.#killing !== undefined) return undefined
    const { killed } = await this.#killTree(DEFAULT_GRACE_MS)
    return killed === 0 ? undefined : stoppedReport(killed)
  }

  /** Ends the record of the run, while processes of it hold the pipes. */
  async #leaveAlone(): Promise<Pick<ChildEnd, 'background' | 'backgroundProblem'>> {
    const { background } = this.#deps
    const pids = (await this.#others()).map(({ pid }) => pid)
    if (this.#isOver) return {}
    if (!(await background.take(this.#child, { stdout: this.#stdout, stderr: this.#stderr }))) {
      const { killed } = await this.#killTree(DEFAULT_GRACE_MS)
      const backgroundProblem =
        `svc stopped the background processes of this run: ${background.count} runs have some already. ` +
        'Stop those that are not needed, or start long-running programs as services.'
      return { background: stoppedReport(killed), backgroundProblem }
    }
    this.#isHandedOver = true
    return { background: runningReport(pids) }
  }

  /** The processes that outlived the child; without an answer, none. */
  async #others(): Promise<FoundProcess[]> {
    const { executionId: marker } = this.#context
    try {
      return await this.#deps.trees.find({ marker, identity: this.#child.identity })
    } catch (error) {
      this.#deps.warn('Could not search the background processes of an execution.', {
        execution_id: marker,
        error: error instanceof Error ? error.message : String(error),
      })
      return []
    }
  }

  /** The exit of the child; a child that survives KILL counts as killed. */
  #exited(): Promise<Exit> {
    return new Promise((resolve) => {
      void this.#child.exited.then(resolve)
      this.#onUnkillable = () => resolve({ code: null, signal: 'SIGKILL' })
    })
  }

  #onUnkillable: () => void = () => undefined

  /** What outlives the child is not timed out: the limit ends the wait for it. */
  readonly #onTimeout = (): void => {
    if (this.#hasExited) {
      this.#stopWaiting()
      return
    }
    this.#timedOut = true
    void this.#kill(DEFAULT_GRACE_MS)
  }

  readonly #onAbort = (): void => {
    // Callers abort with a `StopReason`; any other reason counts as a cancel.
    const reason = this.#context.signal.reason as StopReason
    void this.#kill(reason === 'shutdown' ? SHUTDOWN_GRACE_MS : DEFAULT_GRACE_MS)
  }

  #kill(graceMs: number): Promise<KillReport> {
    this.#killing ??= this.#killTree(graceMs)
    this.#stopWaiting()
    return this.#killing
  }

  #stopWaiting(): void {
    this.#isImpatient = true
    this.#impatience.resolve()
  }

  async #killTree(graceMs: number): Promise<KillReport> {
    const { identity } = this.#child
    const { executionId } = this.#context
    let report: KillReport
    try {
      const { sudo } = this.#options
      report = await this.#deps.trees.kill({
        marker: executionId,
        identity,
        graceMs,
        ...(sudo === undefined ? {} : { sudo }),
      })
    } catch (error) {
      report = { killed: 0, survivors: [identity.pid] }
      this.#deps.warn('Could not search the process tree of an execution.', {
        execution_id: executionId,
        error: error instanceof Error ? error.message : String(error),
      })
    }
    if (report.survivors.length > 0) {
      this.#deps.warn('Could not stop processes of an execution.', {
        execution_id: executionId,
        pids: report.survivors,
      })
      if (report.survivors.includes(identity.pid)) this.#onUnkillable()
    }
    return report
  }
}

function resultOf(end: ChildEnd, timeoutSeconds: number, prompts: PromptFilter | undefined): RunResult {
  const { exit } = end
  const stdout = textOf(end.stdout)
  const stderr = textOf(end.stderr)
  const about = { ...truncatedFlags(end), ...backgroundPart(end) }
  if (end.timedOut) {
    return outcome('timeout', -9, stdout, stderr, { ...about, error: timeoutText(timeoutSeconds) })
  }
  const returnCode = returnCodeOf(exit)
  if (end.wasKilled) return outcome('abandoned', returnCode, stdout, stderr, about)
  if (end.backgroundProblem !== undefined) {
    return outcome('failed', returnCode, stdout, stderr, { ...about, error: end.backgroundProblem })
  }
  if (exit.code !== 0 && prompts?.wasRefused(stderr) === true) {
    const error = 'sudo refused the password, or does not allow this user to run commands'
    return outcome('failed', -1, stdout, stderr, { ...about, error })
  }
  const error = signalText(exit)
  return outcome(runStatusOf(exit), returnCode, stdout, stderr, {
    ...about,
    ...(error === undefined ? {} : { error }),
  })
}

/** Flags in a result for truncated output (decision 6). */
export function truncatedFlags({ stdout, stderr }: Pick<ChildEnd, 'stdout' | 'stderr'>): Record<string, true> {
  return {
    ...(stdout.isTruncated ? { stdout_truncated: true } : {}),
    ...(stderr.isTruncated ? { stderr_truncated: true } : {}),
  }
}

export function runningReport(pids: readonly number[]): BackgroundReport {
  const shown = pids.slice(0, MAX_REPORTED_PIDS)
  const names = shown.length === 0 ? 'unknown' : shown.join(', ')
  const more = pids.length > shown.length ? ` and ${pids.length - shown.length} more` : ''
  return { pids: shown, message: `still running in background: pid ${names}${more}` }
}

export function stoppedReport(stopped: number): BackgroundReport {
  return { stopped, message: `stopped in background: ${stopped === 1 ? '1 process' : `${stopped} processes`}` }
}

/** What a result says about processes that outlived the run. */
export function backgroundPart({ background }: Pick<ChildEnd, 'background'>): { background?: BackgroundReport } {
  return background === undefined ? {} : { background }
}

/** Contract 03, 3.8. */
export function timeoutText(seconds: number): string {
  return `Action failed to complete in ${seconds} seconds`
}

export function textOf(output: ChildOutput): string {
  const { text } = output
  // The end of a truncated text is not the end of the output.
  if (output.isTruncated || !text.endsWith('\n')) return text
  return text.endsWith('\r\n') ? text.slice(0, -2) : text.slice(0, -1)
}

export function outcome(
  status: RunStatus,
  returnCode: number,
  stdout: string,
  stderr: string,
  more: Record<string, unknown>,
): RunResult {
  const succeeded = status === 'succeeded'
  return {
    status,
    result: { failed: !succeeded, succeeded, return_code: returnCode, stdout, stderr, ...more },
  }
}

function stoppedResult(stdout: string, stderr: string): RunResult {
  return outcome('abandoned', -constants.signals.SIGTERM, stdout, stderr, {})
}

export function returnCodeOf(exit: Exit): number {
  if (exit.code !== null) return exit.code
  // An unknown exit counts as killed, never as a success.
  return -constants.signals[exit.signal ?? 'SIGKILL']
}

/** Status of a run that svc did not stop; a signal from outside is a failure (decision 31). */
export function runStatusOf(exit: Exit): RunStatus {
  if (exit.code === null && exit.signal === null) return 'abandoned'
  return exit.code === 0 ? 'succeeded' : 'failed'
}
