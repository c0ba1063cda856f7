/** Runs one program on one host: output, time limit, cancellation, and cleanup after a lost connection. */
import { constants } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import type { ClientChannel } from 'ssh2'
import { ChildOutput } from '../process/child-output.ts'
import { onDeadline } from '../process/deadline.ts'
import { DEFAULT_GRACE_MS, SHUTDOWN_GRACE_MS } from '../process/kill-tree.ts'
import { signalText } from '../process/signal-text.ts'
import { PromptFilter } from '../process/prompt-filter.ts'
import type { RunContext, StopReason } from '../runner.ts'
import { SshError, sshTextOf, type SshConnection, type SshTarget } from './connection.ts'
import type { ConnectionPool, Lease } from './pool.ts'
import { truncatedFlags } from '../process/run-command.ts'
import { killProgram, READ_PROGRAM, remoteProgram, type RemoteCommand, type RemoteProcess } from './remote-program.ts'
import { StartFilter } from './start-filter.ts'

export interface HostRunDeps {
  pool: ConnectionPool
  /** Bytes of each of stdout and stderr that the result holds (decision 6). */
  maxResultBytes: number
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
/** Time the login shell has to start our program. */
const START_LIMIT_MS = 10_000
/** After the exit, the run waits for late output until nothing arrives for this long. */
const LINGER_MS = 500
/** Upper bound of output in transit after a program's exit: its pipe, the server's buffers, the channel window. */
const MAX_UNDER_WAY_BYTES = 8 * 1024 * 1024
/** How long svc tries to reconnect to a host whose connection broke, so that no process keeps running there unseen. */
const RECONNECT_MS = 8000
const RECONNECT_PAUSE_MS = 500
/** Beyond the grace period: reading a process table takes a moment, and several seconds on a busy machine. */
const KILL_LIMIT_MS = 30_000

export async function runOnHost(
  deps: HostRunDeps,
  context: RunContext,
  host: ConnectedHost,
  command: RemoteCommand,
  timeoutSeconds: number,
): Promise<HostResult> {
  if (context.signal.aborted) return stoppedResult('', '')
  const program = remoteProgram(command)
  let channel: ClientChannel
  try {
    channel = await openOn(deps, host, context.signal, (connection, limitMs) => connection.exec(READ_PROGRAM, limitMs))
  } catch (error) {
    return context.signal.aborted ? stoppedResult('', '') : connectionFailure(sshTextOf(error))
  }
  return await new HostRun(deps, context, host, command, program, channel, timeoutSeconds).finish()
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

/** Runs a short program of our own and returns its output. @throws SshError */
export async function runHelper(
  lease: Lease,
  program: string,
  limitMs: number,
): Promise<{ code: number; text: string }> {
  const channel = await lease.connection.exec(READ_PROGRAM, Math.min(limitMs, OPEN_LIMIT_MS))
  return await new Promise((resolve, reject) => {
    let text = ''
    let code: number | undefined
    const timer = setTimeout(() => {
      channel.close()
      reject(new SshError(`The helper program did not finish within ${Math.round(limitMs / 1000)} seconds.`))
    }, limitMs)
    const keep = (bytes: Buffer): void => {
      if (text.length < 10_000) text += bytes.toString('utf8')
    }
    channel.on('data', keep)
    channel.stderr.on('data', keep)
    channel.on('error', () => undefined)
    channel.on('exit', (given: number | null) => (code = given ?? -1))
    channel.on('close', () => {
      clearTimeout(timer)
      if (code === undefined) reject(new SshError('The connection was closed.'))
      else resolve({ code, text: text.trim() })
    })
    channel.end(program)
  })
}

/** Runs a helper on this connection, or on new ones as long as the host accepts them. @throws SshError */
export async function runHelperSomehow(
  deps: HostRunDeps,
  host: ConnectedHost,
  program: string,
  limitMs: number,
): Promise<{ code: number; text: string }> {
  let failure: unknown
  if (!host.lease.connection.isClosed) {
    try {
      return await runHelper(host.lease, program, limitMs)
    } catch (error) {
      failure = error
    }
  }
  const deadline = performance.now() + RECONNECT_MS
  do {
    try {
      const lease = await deps.pool.acquire(host.target, AbortSignal.timeout(RECONNECT_MS), true)
      host.lease.discard()
      host.lease = lease
      return await runHelper(lease, program, limitMs)
    } catch (error) {
      failure = error
    }
    await delay(RECONNECT_PAUSE_MS)
  } while (performance.now() < deadline)
  throw failure
}

class HostRun {
  readonly #deps: HostRunDeps
  readonly #context: RunContext
  readonly #host: ConnectedHost
  readonly #command: RemoteCommand
  readonly #program: ReturnType<typeof remoteProgram>
  readonly #channel: ClientChannel
  readonly #timeoutSeconds: number
  readonly #stdout: ChildOutput
  readonly #stderr: ChildOutput
  readonly #prompts: PromptFilter | undefined
  readonly #started = Promise.withResolvers<void>()
  readonly #closed = Promise.withResolvers<void>()
  #isClosed = false
  #process: RemoteProcess | undefined
  #exit: { code: number | null; signal: string | undefined } | undefined
  #hasTimedOut = false
  #killing: Promise<void> | undefined
  #bytesSinceExit = 0
  #lastData = 0

  constructor(
    deps: HostRunDeps,
    context: RunContext,
    host: ConnectedHost,
    command: RemoteCommand,
    program: ReturnType<typeof remoteProgram>,
    channel: ClientChannel,
    timeoutSeconds: number,
  ) {
    this.#deps = deps
    this.#context = context
    this.#host = host
    this.#command = command
    this.#program = program
    this.#channel = channel
    this.#timeoutSeconds = timeoutSeconds
    const { maxResultBytes: maxBytes } = deps
    const { label } = host
    this.#prompts = program.sudoPrompt === undefined ? undefined : new PromptFilter(program.sudoPrompt)
    const starts = new StartFilter(program.startMark, (process) => {
      this.#process = process
      this.#started.resolve()
    })
    const prompts = this.#prompts
    this.#stdout = new ChildOutput(channel, { maxBytes, emit: (text) => context.emit('stdout', text, label) })
    this.#stderr = new ChildOutput(channel.stderr, {
      maxBytes,
      emit: (text) => context.emit('stderr', text, label),
      filter: {
        filter: (text) => {
          const rest = starts.filter(text)
          return prompts === undefined ? rest : prompts.filter(rest)
        },
        end: () => (prompts === undefined ? starts.end() : prompts.filter(starts.end()) + prompts.end()),
      },
    })
    channel.on('data', this.#count)
    channel.stderr.on('data', this.#count)
    channel.on('exit', (code: number | null, signal?: string) => {
      this.#exit = { code, signal }
      void this.#closeLate()
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
    const clearDeadline =
      this.#timeoutSeconds > 0 ? onDeadline(this.#timeoutSeconds * 1000, this.#onTimeout) : undefined
    signal.addEventListener('abort', this.#onAbort)
    try {
      // The run may have been aborted while the channel was opening; no program has started then.
      if (signal.aborted) this.#channel.close()
      else this.#channel.end(this.#program.text)
      await this.#closed.promise
      clearDeadline?.()
      // The connection broke, or the server ended the session.
      if (this.#exit === undefined && !signal.aborted) void this.#kill(0)
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

  readonly #count = (bytes: Buffer): void => {
    this.#lastData = performance.now()
    if (this.#exit !== undefined) this.#bytesSinceExit += bytes.length
  }

  /** Processes left behind by the program may hold its output open forever. */
  async #closeLate(): Promise<void> {
    this.#lastData = performance.now()
    while (!this.#isClosed && this.#bytesSinceExit < MAX_UNDER_WAY_BYTES) {
      const isPaused = this.#channel.isPaused() || this.#channel.stderr.isPaused()
      const left = isPaused ? LINGER_MS : this.#lastData + LINGER_MS - performance.now()
      if (left <= 0) break
      const late = new AbortController()
      await Promise.race([delay(left, undefined, late).catch(() => undefined), this.#closed.promise])
      late.abort()
    }
    if (this.#isClosed) return
    this.#channel.close()
    // The server may not answer the close request either.
    const late = new AbortController()
    await Promise.race([delay(OPEN_LIMIT_MS, undefined, late).catch(() => undefined), this.#closed.promise])
    late.abort()
    this.#giveUp()
  }

  /** Ends the channel's streams without waiting for the server. */
  #giveUp(): void {
    if (this.#isClosed) return
    this.#channel.push(null)
    this.#channel.stderr.push(null)
    this.#closed.resolve()
  }

  readonly #onTimeout = (): void => {
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
    return this.#killing
  }

  /** Stops every process of the run, over the same connection or a new one, then closes the channel. */
  async #killTree(graceMs: number): Promise<void> {
    // Before it reports its pid, the program could start processes after the search for them has finished.
    const late = new AbortController()
    await Promise.race([
      this.#started.promise,
      this.#closed.promise,
      delay(START_LIMIT_MS, undefined, late).catch(() => undefined),
    ])
    late.abort()
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
    if (this.#exit === undefined) await this.#closeLate()
    else await this.#closed.promise
  }

  #result(): HostResult {
    const stdout = this.#textOf(this.#stdout)
    const stderr = this.#textOf(this.#stderr)
    const truncated = truncatedFlags({ stdout: this.#stdout, stderr: this.#stderr })
    if (this.#hasTimedOut) {
      const error = `Action failed to complete in ${this.#timeoutSeconds} seconds`
      return { ...outcome(-9, stdout, stderr), timeout: true, error, traceback: '', ...truncated }
    }
    if (this.#context.signal.aborted) return { ...stoppedResult(stdout, stderr), ...truncated }
    if (this.#exit === undefined) {
      const error = 'The connection to the host broke before the command finished.'
      return { ...connectionFailure(error), stdout, stderr, ...truncated }
    }
    const { code, signal } = this.#exit
    if (code !== 0 && this.#prompts?.wasRefused(stderr) === true) {
      const error = 'sudo refused the password, or does not allow this user to run commands'
      return { ...outcome(-1, stdout, stderr), error, ...truncated }
    }
    const returnCode = code ?? codeOfSignal(signal)
    const error = signalText(returnCode < 0 ? { code: null, signal: -returnCode } : { code: returnCode, signal: null })
    return { ...outcome(returnCode, stdout, stderr), ...(error === undefined ? {} : { error }), ...truncated }
  }

  #textOf(output: ChildOutput): string {
    const { text } = output
    // The end of a truncated text is not the end of the output.
    if (output.isTruncated || !text.endsWith('\n')) return text
    return text.endsWith('\r\n') ? text.slice(0, -2) : text.slice(0, -1)
  }
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
