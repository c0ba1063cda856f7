/** Runs one command on a Windows host: output, time limit, cancellation, cleanup (contract 03, 3.6 to 3.9). */
import { once } from 'node:events'
import { isIPv6 } from 'node:net'
import { PassThrough } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { environmentText } from '../environment.ts'
import { HttpProblem } from '../http/exchange.ts'
import { ChildOutput, type ChildOutputOptions } from '../process/child-output.ts'
import { onDeadline } from '../process/deadline.ts'
import { outcome, programStartFailure, textOf, timeoutText, truncatedFlags } from '../process/run-command.ts'
import { readRunParameters } from '../run-parameters.ts'
import type { RunContext, RunResult } from '../runner.ts'
import type { CommandTarget } from './messages.ts'
import { DEFAULT_TIMEOUT_SECONDS, HTTP_PORT } from './parameters.ts'
import { createRemoteShell, type RemoteShell } from './shell.ts'
import { createTransport, WinrmProblem, type WindowsHost } from './transport.ts'
import { fitsXml } from './xml.ts'
import { isObject } from '../../lib/schema/index.ts'

export interface WinrmDeps {
  /** Bytes of each of stdout and stderr that the result holds. */
  maxResultBytes: number
  /** Reports commands that could not be stopped. */
  warn(message: string, fields: Record<string, unknown>): void
}

export interface WindowsCommand {
  /** For cmd.exe. */
  line: string
  /** What the command reads from its standard input. */
  input?: Buffer
  /** Makes error output readable. */
  stderrFilter?: ChildOutputOptions['filter']
}

/** cmd.exe does not read more. */
export const MAX_LINE_CHARACTERS = 8191

/** Time of each request that stops a command or removes a shell. */
const CLEANUP_LIMIT_MS = 10_000
/** Pause after an answer without output, for hosts that do not wait for some. */
const EMPTY_PAUSE_MS = 100
const INPUT_CHUNK_BYTES = 64 * 1024
/** As for SSH: the connection to the host broke. */
const LOST_RETURN_CODE = 255
const STOPPED_RETURN_CODE = -15

export async function runOnWindows(deps: WinrmDeps, context: RunContext, command: WindowsCommand): Promise<RunResult> {
  const read = readParameters(context, command)
  if ('status' in read) return read
  const { host, cwd, env, timeoutSeconds } = read
  const timeUp = new AbortController()
  const clearDeadline = timeoutSeconds > 0 ? onDeadline(timeoutSeconds * 1000, () => timeUp.abort()) : undefined
  const signal = AbortSignal.any([context.signal, timeUp.signal])
  const transport = createTransport(host)
  const shell = createRemoteShell(transport, host.url)
  const stdout = createOutput(deps, context, 'stdout')
  const stderr = createOutput(deps, context, 'stderr', command.stderrFilter)
  let shellId: string | undefined
  let target: CommandTarget | undefined
  let exitCode: number | undefined
  let problem: WinrmProblem | HttpProblem | undefined
  try {
    signal.throwIfAborted()
    shellId = await shell.create({ cwd, env }, signal)
    const { line, input } = command
    target = { shellId, commandId: await shell.start(shellId, line, input !== undefined, signal) }
    const unsent = input === undefined ? undefined : await sendInput(shell, target, input, signal)
    const code = await receiveAll(shell, target, { stdout, stderr }, signal)
    if (code === 0 && unsent !== undefined) throw unsent
    exitCode = code
  } catch (error) {
    if (!signal.aborted && !(error instanceof WinrmProblem || error instanceof HttpProblem)) throw error
    if (!signal.aborted) problem = error as WinrmProblem | HttpProblem
  } finally {
    clearDeadline?.()
    await cleanUp({ deps, context, host, transport, shell, shellId, target, hasEnded: exitCode !== undefined })
    await Promise.all([stdout.finish(), stderr.finish()])
  }
  const outputs = { stdout: stdout.output, stderr: stderr.output }
  const texts = [textOf(outputs.stdout), textOf(outputs.stderr)] as const
  const about = truncatedFlags(outputs)
  if (exitCode !== undefined) return outcome(exitCode === 0 ? 'succeeded' : 'failed', exitCode, ...texts, about)
  if (context.signal.aborted) return outcome('abandoned', STOPPED_RETURN_CODE, ...texts, about)
  if (problem === undefined) {
    return outcome('timeout', -9, ...texts, { ...about, error: timeoutText(timeoutSeconds) })
  }
  const error = `${problem.message}.`
  if (target === undefined) return programStartFailure(error, `${problem.name}: ${problem.message}`)
  return outcome('failed', LOST_RETURN_CODE, ...texts, { ...about, error })
}

interface Output {
  output: ChildOutput
  /** Resolves when more may be written. @throws the reason of the signal */
  write(bytes: Buffer, signal: AbortSignal): Promise<void>
  /** Resolves when everything has been emitted. */
  finish(): Promise<void>
}

function createOutput(
  { maxResultBytes }: WinrmDeps,
  context: RunContext,
  type: 'stdout' | 'stderr',
  filter?: ChildOutputOptions['filter'],
): Output {
  const stream = new PassThrough()
  const output = new ChildOutput(stream, {
    emit: (text) => context.emit(type, text),
    maxBytes: maxResultBytes,
    ...(filter === undefined ? {} : { filter }),
  })
  return {
    output,
    async write(bytes, signal) {
      if (!stream.write(bytes)) await once(stream, 'drain', { signal })
    },
    async finish() {
      stream.end()
      await output.ended
      await output.drain()
    },
  }
}

/** @returns why the host did not take all of it: the command may have ended, and its output says more */
async function sendInput(
  shell: RemoteShell,
  target: CommandTarget,
  input: Buffer,
  signal: AbortSignal,
): Promise<WinrmProblem | undefined> {
  let at = 0
  try {
    do {
      const end = at + INPUT_CHUNK_BYTES
      await shell.send(target, input.subarray(at, end), end >= input.length, signal)
      at = end
    } while (at < input.length)
    return undefined
  } catch (error) {
    if (error instanceof WinrmProblem) return error
    throw error
  }
}

async function receiveAll(
  shell: RemoteShell,
  target: CommandTarget,
  outputs: Record<'stdout' | 'stderr', Output>,
  signal: AbortSignal,
): Promise<number> {
  for (;;) {
    const { pieces, exitCode } = await shell.receive(target, signal)
    for (const { stream, bytes } of pieces) await outputs[stream].write(bytes, signal)
    if (exitCode !== undefined) return exitCode
    if (pieces.length === 0) await delay(EMPTY_PAUSE_MS, undefined, { signal })
  }
}

interface Left {
  deps: WinrmDeps
  context: RunContext
  host: WindowsHost
  transport: { reset(): Promise<void> }
  shell: RemoteShell
  shellId: string | undefined
  target: CommandTarget | undefined
  hasEnded: boolean
}

/** Stops the command and removes its shell, on a connection that no request occupies. */
async function cleanUp({ deps, context, host, transport, shell, shellId, target, hasEnded }: Left): Promise<void> {
  try {
    if (shellId === undefined) return
    if (!hasEnded) await transport.reset()
    if (!hasEnded && target !== undefined) {
      // Removing the shell ends its commands too.
      await shell.terminate(target, AbortSignal.timeout(CLEANUP_LIMIT_MS)).catch(() => undefined)
    }
    await shell.remove(shellId, AbortSignal.timeout(CLEANUP_LIMIT_MS))
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    const fields = { execution: context.executionId, host: host.url.hostname, error: why }
    if (hasEnded) deps.warn('Could not remove a shell on a Windows host; it ends by itself after 3 minutes.', fields)
    else deps.warn('Could not stop a command on a Windows host.', fields)
  } finally {
    await transport.reset()
  }
}

// Parameters

interface Request {
  host: WindowsHost
  cwd: string
  env: Record<string, string>
  timeoutSeconds: number
}

const HOST = /^[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,252})$/
const LOGINS: ReadonlyMap<unknown, WindowsHost['login']> = new Map([
  ['ntlm', 'ntlm'],
  ['basic', 'basic'],
  ['plaintext', 'basic'],
  ['ssl', 'basic'],
])
const VARIABLE = /^[^=\0]{1,255}$/

function readParameters(context: RunContext, command: WindowsCommand): Request | RunResult {
  const given = context.runnerParameters
  const read = readHost(given)
  if (typeof read === 'string') return programStartFailure(read)
  const background = { mode: 'wait', graceSeconds: 1 } as const
  const common = readRunParameters(given, { timeoutSeconds: DEFAULT_TIMEOUT_SECONDS, background })
  if ('problem' in common) return programStartFailure(common.problem)
  const cwd = given['cwd'] ?? ''
  if (typeof cwd !== 'string') return programStartFailure('The parameter "cwd" must be text.')
  const env: Record<string, string> = {}
  for (const [name, value] of Object.entries(isObject(common.env) ? common.env : {})) {
    if (!VARIABLE.test(name)) {
      return programStartFailure(
        'The parameter "env" has an empty name, or one with "=" or of more than 255 characters.',
      )
    }
    env[name] = environmentText(value)
  }
  // Not those of the execution: its token would give the host, and over http everybody on the way, what its user may do.
  if (![cwd, command.line, ...Object.entries(env).flat()].every(fitsXml)) {
    return programStartFailure(
      'The command, "cwd" or "env" contains a control character or half a character, which WinRM cannot carry. Remove it.',
    )
  }
  if (command.line.length > MAX_LINE_CHARACTERS) {
    return programStartFailure(
      `The command has ${command.line.length} characters; Windows runs at most ${MAX_LINE_CHARACTERS}. Put it into a script on the host, and run that.`,
    )
  }
  return { host: read, cwd, env, timeoutSeconds: common.timeoutSeconds }
}

/** @returns a sentence for parameters that cannot be used */
function readHost(given: Readonly<Record<string, unknown>>): WindowsHost | string {
  const { host, username, password, transport = 'ntlm', verify_ssl_cert: verifies = true } = given
  if (typeof host !== 'string' || !(HOST.test(host) || isIPv6(host))) {
    return 'The parameter "host" must be a host name or an address, without scheme and port.'
  }
  if (typeof username !== 'string' || username === '' || typeof password !== 'string') {
    return 'The parameters "username" and "password" are missing: WinRM needs both.'
  }
  const port = given['port'] ?? 5986
  if (typeof port !== 'number' || !Number.isInteger(port) || port < 1 || port > 65_535) {
    return 'The parameter "port" must be a whole number from 1 to 65535.'
  }
  const scheme = port === HTTP_PORT ? 'http' : (given['scheme'] ?? 'https')
  if (scheme !== 'http' && scheme !== 'https') return 'The parameter "scheme" must be http or https.'
  const login = LOGINS.get(transport)
  if (login === undefined) {
    const named = typeof transport === 'string' ? ` "${transport.slice(0, 50)}"` : ''
    return `The transport${named} is not supported. Set "transport" to ntlm, or to basic for a local account over https.`
  }
  if (transport === 'ssl' && scheme === 'http') return 'The transport "ssl" needs the scheme https.'
  if (login === 'basic' && username.includes(':')) return 'A user name for a basic login cannot contain a colon.'
  const url = new URL(`${scheme}://${isIPv6(host) ? `[${host}]` : host}:${port}/wsman`)
  return { url, login, username, password, verifiesCertificates: verifies !== false }
}
