/** Runs one program on one host: output, time limit, cancellation, and cleanup after a lost connection. */
import { constants } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import type { ClientChannel } from 'ssh2'
import { ChildOutput } from '../process/child-output.ts'
import { onDeadline } from '../process/deadline.ts'
import { DEFAULT_GRACE_MS, SHUTDOWN_GRACE_MS, type FoundProcess } from '../process/kill-tree.ts'
import { signalText } from '../process/signal-text.ts'
import { PromptFilter } from '../process/prompt-filter.ts'
import type { RunContext, StopReason } from '../runner.ts'
import { SshError, sshTextOf, type SshConnection, type SshTarget, type StartedProgram } from './connection.ts'
import type { ConnectionPool, Lease } from './pool.ts'
import {
  backgroundPart,
  LEAST_LOOK_PAUSE_MS,
  runningReport,
  stoppedReport,
  truncatedFlags,
  type BackgroundChoice,
  type BackgroundReport,
} from '../process/run-command.ts'
import { chain, MarkFilter } from './mark-filter.ts'
import {
  findProgram,
  killProgram,
  readFoundProcesses,
  readProcess,
  readRelays,
  readStopped,
  readyShell,
  remoteProgram,
} from './remote-program.ts'
import type { KillRequest, ReadyShell, RemoteCommand, RemoteProcess, RemoteProgram } from './remote-program.ts'

export interface HostRunDeps {
  pool: ConnectionPool
  /** Bytes of each of stdout and stderr that the result holds (decision 6). */
  maxResultBytes: number
  /** Time a login shell has to start our shell. */
  startLimitMs: number
  /** Reports processes that could not be stopped. */
  warn(message: string, fields: Record<string, unknown>): void
}

/** A connected host. The lease is replaced when its connection turns out to be dead. */
export interface ConnectedHost {
  /** Key of its result. */
  label: string
  target: SshTarget
  lease: Lease
}

export interface RunLimits {
  /** 0 disables the limit. */
  timeoutSeconds: number
  /** What happens to processes that outlive the command. */
  background: BackgroundChoice
}

/** Contract 03, 3.9: one host's entry in `result`. */
export interface HostResult extends Record<string, unknown> {
  failed: boolean
  succeeded: boolean
  return_code: number
  stdout: unknown
  stderr: unknown
}

/** Time a server has to start a program. */
const OPEN_LIMIT_MS = 30_000
/** The same on a reused connection, which may have died unnoticed while it was idle. */
const REUSED_OPEN_LIMIT_MS = 5000
/** Time a login shell has to end when its input has ended, before svc closes the channel. */
const END_LIMIT_MS = 5000
/** After the exit, the run waits for late output until nothing arrives for this long. */
const LINGER_MS = 500
/** Upper bound of that wait, for writers that never pause. */
const MAX_LINGER_MS = 60_000
/** Upper bound of output in transit after a program's exit: its pipe, the server's buffers, the channel window. */
const MAX_UNDER_WAY_BYTES = 8 * 1024 * 1024
/** How long svc tries to reconnect to a host whose connection broke, so that no process keeps running there unseen. */
const RECONNECT_MS = 8000
const RECONNECT_PAUSE_MS = 500
/** Time a host has to list processes that outlive a command. */
const FIND_LIMIT_MS = 30_000
/** Beyond the grace period: reading a process table takes a moment, and several seconds on a busy machine. */
const KILL_LIMIT_MS = 30_000

export async function runOnHost(
  deps: HostRunDeps,
  context: RunContext,
  host: ConnectedHost,
  command: RemoteCommand,
  limits: RunLimits,
): Promise<HostResult> {
  if (context.signal.aborted) return stoppedResult('', '')
  const shell = readyShell()
  let started: StartedProgram
  try {
    started = await openOn(deps, host, context.signal, (connection, limitMs) => connection.exec(shell.command, limitMs))
  } catch (error) {
    return context.signal.aborted ? stoppedResult('', '') : connectionFailure(sshTextOf(error))
  }
  return await new HostRun(deps, context, host, command, shell, started, limits).finish()
}

/**
 * Opens a channel on the connection to a host. A reused connection may have died, or allow no further session: then it
 * is replaced, once. No program has run by then.
 */
export async function openOn<T>(
  { pool }: Pick<HostRunDeps, 'pool'>,
  host: ConnectedHost,
  signal: AbortSignal,
  open: (connection: SshConnection, limitMs: number) => Promise<T>,
): Promise<T> {
  const { isReused, connection } = host.lease
  try {
    return await open(connection, isReused ? REUSED_OPEN_LIMIT_MS : OPEN_LIMIT_MS)
  } catch (error) {
    if (!isReused || signal.aborted) throw error
    host.lease.discard()
    host.lease = await pool.acquire(host.target, signal, true)
    return await open(host.lease.connection, OPEN_LIMIT_MS)
  }
}

/** The host is reached, but the login shell of the account starts nothing. */
class LoginShellError extends SshError {}

/** Runs a short program of our own and returns its output. @throws SshError */
async function runHelper(
  { startLimitMs }: Pick<HostRunDeps, 'startLimitMs'>,
  lease: Lease,
  program: string,
  limitMs: number,
): Promise<{ code: number; text: string }> {
  const shell = readyShell()
  const { channel, onExit } = await lease.connection.exec(shell.command, Math.min(limitMs, OPEN_LIMIT_MS))
  return await new Promise((resolve, reject) => {
    let text = ''
    let code: number | undefined
    let isSent = false
    const giveUp = (error: SshError): void => {
      channel.close()
      reject(error)
    }
    const timer = setTimeout(() => {
      giveUp(new SshError(`The helper program did not finish within ${Math.round(limitMs / 1000)} seconds.`))
    }, limitMs)
    const startTimer = setTimeout(() => {
      giveUp(new LoginShellError(`The login shell did not start a shell within ${startLimitMs / 1000} seconds.`))
    }, startLimitMs)
    const send = (): void => {
      clearTimeout(startTimer)
      if (!isSent) channel.end(program)
      isSent = true
    }
    for (const stream of [channel, channel.stderr]) {
      const ready = new MarkFilter(shell.readyMark, send)
      stream.on('data', (bytes: Buffer) => {
        const rest = ready.filter(bytes.toString('utf8'))
        if (text.length < 10_000) text += rest
      })
    }
    channel.on('error', () => undefined)
    onExit((exit) => (code = exit.code ?? -1))
    channel.on('close', () => {
      clearTimeout(timer)
      clearTimeout(startTimer)
      if (code === undefined) reject(new SshError('The connection was closed.'))
      else if (!isSent)
        reject(new LoginShellError(`The login shell ended with exit code ${code} and started no shell.`))
      else resolve({ code, text: text.trim() })
    })
  })
}

/** Runs a helper on this connection, or on new ones as long as the host accepts them. @throws SshError */
export async function runHelperSomehow(
  deps: Pick<HostRunDeps, 'pool' | 'startLimitMs'>,
  host: ConnectedHost,
  program: string,
  limitMs: number,
): Promise<{ code: number; text: string }> {
  let failure: unknown
  if (!host.lease.connection.isClosed) {
    try {
      return await runHelper(deps, host.lease, program, limitMs)
    } catch (error) {
      if (error instanceof LoginShellError) throw error
      failure = error
    }
  }
  const deadline = performance.now() + RECONNECT_MS
  do {
    try {
      const lease = await deps.pool.acquire(host.target, AbortSignal.timeout(RECONNECT_MS), true)
      host.lease.discard()
      host.lease = lease
      return await runHelper(deps, lease, program, limitMs)
    } catch (error) {
      if (error instanceof LoginShellError) throw error
      failure = error
    }
    await delay(RECONNECT_PAUSE_MS)
  } while (performance.now() < deadline)
  throw failure
}

/**
 * Stops the processes of an ended run that carry its marker: its first process is gone, and its pid may be another's.
 *
 * @returns how many got a signal
 * @throws SshError
 */
export async function stopOnHost(
  deps: Pick<HostRunDeps, 'pool' | 'startLimitMs'>,
  host: ConnectedHost,
  run: Pick<KillRequest, 'executionId' | 'sudo' | 'sudoPassword'>,
): Promise<number> {
  const program = killProgram({ ...run, process: undefined, graceSeconds: DEFAULT_GRACE_MS / 1000 })
  const { code, text } = await runHelperSomehow(deps, host, program, DEFAULT_GRACE_MS + KILL_LIMIT_MS)
  const stopped = readStopped(text)
  if (stopped === undefined || code !== 0) throw new SshError(`Processes could not be stopped: ${text.slice(-200)}`)
  return stopped
}

class HostRun {
  readonly #deps: HostRunDeps
  readonly #context: RunContext
  readonly #host: ConnectedHost
  readonly #command: RemoteCommand
  readonly #program: RemoteProgram
  readonly #channel: ClientChannel
  readonly #timeoutSeconds: number
  readonly #background: BackgroundChoice
  readonly #stdout: ChildOutput
  readonly #stderr: ChildOutput
  readonly #prompts: PromptFilter | undefined
  readonly #ready = Promise.withResolvers<void>()
  readonly #closed = Promise.withResolvers<void>()
  #isClosed = false
  #process: RemoteProcess | undefined
  /** From then on the program may run. */
  #isSent = false
  /** The program reported that the command is next. */
  #hasStarted = false
  /** The login shell used up its time. */
  #isLate = false
  #exit: { code: number | null; signal: string | undefined } | undefined
  #hasTimedOut = false
  #killing: Promise<void> | undefined
  /** The processes there that pass the output on; undefined where there are none. */
  #relays: number[] | undefined
  /** The end of the run after the exit of its command. */
  #ending: Promise<void> | undefined
  /** Aborted when svc no longer waits for processes that outlive the command. */
  readonly #patience = new AbortController()
  #report: BackgroundReport | undefined
  #bytesSinceExit = 0
  #lastData = 0

  constructor(
    deps: HostRunDeps,
    context: RunContext,
    host: ConnectedHost,
    command: RemoteCommand,
    shell: ReadyShell,
    { channel, onExit }: StartedProgram,
    { timeoutSeconds, background }: RunLimits,
  ) {
    this.#deps = deps
    this.#context = context
    this.#host = host
    this.#command = command
    this.#program = remoteProgram(command)
    this.#channel = channel
    this.#timeoutSeconds = timeoutSeconds
    this.#background = background
    const { maxResultBytes: maxBytes } = deps
    const { label } = host
    const { sudoPrompt, startMark, relayMark } = this.#program
    this.#prompts = sudoPrompt === undefined ? undefined : new PromptFilter(sudoPrompt)
    const marks = (): MarkFilter[] => [
      new MarkFilter(shell.readyMark, (rest) => {
        this.#process ??= readProcess(rest)
        this.#ready.resolve()
      }),
      new MarkFilter(startMark, () => (this.#hasStarted = true)),
    ]
    this.#stdout = new ChildOutput(channel, {
      maxBytes,
      emit: (text) => context.emit('stdout', text, label),
      filter: chain([...marks(), new MarkFilter(relayMark, (rest) => (this.#relays = readRelays(rest)))]),
    })
    this.#stderr = new ChildOutput(channel.stderr, {
      maxBytes,
      emit: (text) => context.emit('stderr', text, label),
      filter: chain([...marks(), ...(this.#prompts === undefined ? [] : [this.#prompts])]),
    })
    channel.on('data', this.#count)
    channel.stderr.on('data', this.#count)
    onExit((exit) => {
      this.#exit = exit
      this.#ending = this.#endAfterExit()
    })
    channel.once('close', () => {
      this.#isClosed = true
      this.#closed.resolve()
    })
    // `close` follows.
    channel.on('error', () => undefined)
  }

  async finish(): Promise<HostResult> {
    const { signal } = this.#context
    let clearDeadline: (() => void) | undefined
    signal.addEventListener('abort', this.#onAbort)
    try {
      // The run may have been aborted while the channel was opening; no program has started then.
      if (signal.aborted) this.#channel.close()
      else if (await this.#send()) {
        if (this.#timeoutSeconds > 0) clearDeadline = onDeadline(this.#timeoutSeconds * 1000, this.#onTimeout)
      }
      await this.#closed.promise
      clearDeadline?.()
      // The connection broke, or the server ended the session.
      if (this.#exit === undefined && !signal.aborted) void this.#kill(0)
      await this.#ending
      await this.#killing
      await Promise.all([this.#stdout.drain(), this.#stderr.drain()])
      await this.#killing
      return this.#result()
    } catch (error) {
      // A listener that throws or a failing disk must not leave a process behind.
      await this.#kill(0)
      throw error
    } finally {
      clearDeadline?.()
      signal.removeEventListener('abort', this.#onAbort)
      this.#channel.close()
    }
  }

  /** Sends the program when the shell is ready for it. @returns whether it was sent */
  async #send(): Promise<boolean> {
    await within(this.#deps.startLimitMs, this.#ready.promise, this.#closed.promise)
    if (this.#isClosed || this.#killing !== undefined) return false
    if (this.#process === undefined) {
      this.#isLate = true
      void this.#kill(0)
      return false
    }
    this.#isSent = true
    this.#channel.end(this.#program.text)
    return true
  }

  readonly #count = (bytes: Buffer): void => {
    this.#lastData = performance.now()
    if (this.#exit !== undefined) this.#bytesSinceExit += bytes.length
  }

  /** Processes that outlive the command may hold its output open. */
  async #endAfterExit(): Promise<void> {
    const { mode, graceSeconds } = this.#background
    if (this.#killing !== undefined) return
    if (mode === 'wait') await this.#waitForWriters(graceSeconds * 1000)
    else await within(LINGER_MS, this.#closed.promise)
    if (this.#killing !== undefined) return
    if (mode === 'kill') {
      const others = await this.#findOthers()
      if (others.length > 0 && this.#killing === undefined) {
        await this.#kill(DEFAULT_GRACE_MS)
        this.#report = stoppedReport(others.length)
        return
      }
    } else if (!this.#isClosed) {
      const others = await this.#findOthers()
      if (this.#killing !== undefined) return
      this.#report = runningReport(others.map(({ pid }) => pid))
      if (this.#relays === undefined) {
        this.#report.message += '; their next output ends them, because the host has no mkfifo'
      }
    }
    // Whoever still writes has had its time.
    if (mode === 'wait') await this.#close(OPEN_LIMIT_MS)
    else await this.#closeLate()
  }

  /** Until the channel ends, only other programs are left and write nothing for the grace period, or the time limit. */
  async #waitForWriters(graceMs: number): Promise<void> {
    const { signal } = this.#patience
    const isOver = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
    this.#lastData = performance.now()
    let lookAt = 0
    while (!this.#isClosed && !signal.aborted) {
      const isPaused = this.#channel.isPaused() || this.#channel.stderr.isPaused()
      const left = isPaused ? graceMs : Math.max(this.#lastData + graceMs, lookAt) - performance.now()
      if (left > 0) {
        await within(left, this.#closed.promise, isOver)
        continue
      }
      if (!(await this.#findOthers()).some(({ continuesFirst }) => continuesFirst)) return
      lookAt = performance.now() + Math.max(graceMs, LEAST_LOOK_PAUSE_MS)
    }
  }

  /** The processes of the run on the host; without an answer, none. */
  async #findOthers(): Promise<FoundProcess[]> {
    const { executionId } = this.#context
    try {
      const program = findProgram({ executionId, process: this.#process }, this.#relays ?? [])
      const { text } = await runHelperSomehow(this.#deps, this.#host, program, FIND_LIMIT_MS)
      return readFoundProcesses(text)
    } catch (error) {
      this.#deps.warn('Could not search the background processes of an execution on another host.', {
        execution_id: executionId,
        host: this.#host.label,
        error: sshTextOf(error),
      })
      return []
    }
  }

  /** Takes the output in transit, then closes the channel. */
  async #closeLate(): Promise<void> {
    this.#lastData = performance.now()
    const end = this.#lastData + MAX_LINGER_MS
    while (!this.#isClosed && this.#bytesSinceExit < MAX_UNDER_WAY_BYTES && performance.now() < end) {
      const isPaused = this.#channel.isPaused() || this.#channel.stderr.isPaused()
      const left = isPaused ? LINGER_MS : this.#lastData + LINGER_MS - performance.now()
      if (left <= 0) break
      await within(left, this.#closed.promise)
    }
    await this.#close(OPEN_LIMIT_MS)
  }

  /** Closes the channel. The server may not answer the request. */
  async #close(limitMs: number): Promise<void> {
    if (this.#isClosed) return
    this.#channel.close()
    await within(limitMs, this.#closed.promise)
    this.#giveUp()
  }

  /** Ends the channel's streams without waiting for the server. */
  #giveUp(): void {
    if (this.#isClosed) return
    this.#channel.push(null)
    this.#channel.stderr.push(null)
    this.#closed.resolve()
  }

  /** What outlives the command is not timed out: the limit ends the wait for it. */
  readonly #onTimeout = (): void => {
    if (this.#exit !== undefined) {
      this.#patience.abort()
      return
    }
    this.#hasTimedOut = true
    void this.#kill(DEFAULT_GRACE_MS)
  }

  readonly #onAbort = (): void => {
    // Callers abort with a `StopReason`; any other reason counts as a cancel.
    const reason = this.#context.signal.reason as StopReason
    void this.#kill(reason === 'shutdown' ? SHUTDOWN_GRACE_MS : DEFAULT_GRACE_MS)
  }

  #kill(graceMs: number): Promise<void> {
    this.#killing ??= this.#killTree(graceMs)
    this.#patience.abort()
    return this.#killing
  }

  /** Stops every process of the run, over the same connection or a new one, then closes the channel. */
  async #killTree(graceMs: number): Promise<void> {
    if (!this.#isSent) {
      // Nothing of ours runs there. A startup file that waits for input learns that there is none.
      this.#channel.end()
      if (this.#isLate) await within(END_LIMIT_MS, this.#closed.promise)
      return await this.#close(END_LIMIT_MS)
    }
    const { executionId } = this.#context
    const { sudo, sudoPassword } = this.#command
    const graceSeconds = Math.ceil(graceMs / 1000)
    const program = killProgram({ executionId, process: this.#process, graceSeconds, sudo, sudoPassword })
    const fields = { execution_id: executionId, host: this.#host.label }
    try {
      const { code, text } = await runHelperSomehow(this.#deps, this.#host, program, graceMs + KILL_LIMIT_MS)
      if (code !== 0)
        this.#deps.warn('Could not stop processes of an execution on another host.', { ...fields, pids: text })
    } catch (error) {
      this.#deps.warn('Could not stop processes of an execution on another host: svc cannot reach it.', {
        ...fields,
        error: sshTextOf(error),
      })
    }
    if (this.#isClosed) return
    // The last output is still in transit.
    await this.#closeLate()
  }

  #result(): HostResult {
    const stdout = this.#textOf(this.#stdout)
    const stderr = this.#textOf(this.#stderr)
    const about = {
      ...truncatedFlags({ stdout: this.#stdout, stderr: this.#stderr }),
      ...backgroundPart(this.#report === undefined ? {} : { background: this.#report }),
    }
    if (this.#hasTimedOut) {
      const error = `Action failed to complete in ${this.#timeoutSeconds} seconds`
      return { ...outcome(-9, stdout, stderr), timeout: true, error, traceback: '', ...about }
    }
    if (this.#context.signal.aborted) return { ...stoppedResult(stdout, stderr), ...about }
    const problem = this.#startProblem()
    if (problem !== undefined) return { ...connectionFailure(problem), stdout, stderr, ...about }
    if (this.#exit === undefined) {
      const error = 'The connection to the host broke before the command finished.'
      return { ...connectionFailure(error), stdout, stderr, ...about }
    }
    const { code, signal } = this.#exit
    if (code !== 0 && this.#prompts?.wasRefused(stderr) === true) {
      const error = 'sudo refused the password, or does not allow this user to run commands'
      return { ...outcome(-1, stdout, stderr), error, ...about }
    }
    const returnCode = code ?? codeOfSignal(signal)
    const error = signalText(returnCode < 0 ? { code: null, signal: -returnCode } : { code: returnCode, signal: null })
    return { ...outcome(returnCode, stdout, stderr), ...(error === undefined ? {} : { error }), ...about }
  }

  /** Why the command has not run; undefined when it has, or its own shell or sudo reports a failure. */
  #startProblem(): string | undefined {
    if (this.#hasStarted) return undefined
    const { label, target } = this.#host
    const shell = `the login shell of user "${target.username}"`
    const intro = `The command did not run on ${label}: `
    if (this.#isLate) {
      const isWaiting = this.#exit !== undefined
      return isWaiting
        ? `${intro}${shell} waits for input. Its startup files, such as .bashrc, or a forced command must not read ` +
            'standard input'
        : `${intro}${shell} did not start it within ${this.#deps.startLimitMs / 1000} seconds. Check its startup ` +
            'files, such as .bashrc, and forced commands'
    }
    if (this.#exit === undefined) return this.#isSent ? undefined : `${intro}the connection broke`
    const { code, signal } = this.#exit
    const how = code === null ? `was ended by signal ${signal ?? 'unknown'}` : `ended with exit code ${code}`
    if (!this.#isSent) {
      return (
        `${intro}${shell} ${how} before it started it. The account needs a shell such as /bin/sh, startup files ` +
        'that do not call exit, and no forced command that ignores the request'
      )
    }
    if (code !== 0) return undefined
    return `${intro}${this.#command.sudo ? 'sudo' : 'the shell'} ${how}, but did not start it`
  }

  #textOf(output: ChildOutput): string {
    const { text } = output
    // The end of a truncated text is not the end of the output.
    if (output.isTruncated || !text.endsWith('\n')) return text
    return text.endsWith('\r\n') ? text.slice(0, -2) : text.slice(0, -1)
  }
}

/** Resolves when one of the promises does, or the time is over. */
async function within(limitMs: number, ...ends: Promise<void>[]): Promise<void> {
  const late = new AbortController()
  await Promise.race([...ends, delay(limitMs, undefined, late).catch(() => undefined)])
  late.abort()
}

function outcome(returnCode: number, stdout: string, stderr: string): HostResult {
  return { failed: returnCode !== 0, succeeded: returnCode === 0, return_code: returnCode, stdout, stderr }
}

/** Contract 03, 3.9: connection or authentication error. */
export function connectionFailure(message: string): HostResult {
  const error = message.endsWith('.') ? message : `${message}.`
  return { ...outcome(255, '', ''), timeout: false, error, traceback: `SshError: ${error}` }
}

function stoppedResult(stdout: string, stderr: string): HostResult {
  return outcome(-constants.signals.SIGTERM, stdout, stderr)
}

/** Signal names come from another machine; this one may not have them. */
function codeOfSignal(name: string | undefined): number {
  const number = Object.entries(constants.signals).find(
    ([known]) => known === name || known === `SIG${name ?? ''}`,
  )?.[1]
  return -(number ?? constants.signals.SIGKILL)
}
