/**
 * What a command line uses of its process: arguments, environment, streams and signals. Commands ask `cliProcess()` and never
 * the global `process`, so that a program can run command lines inside its own process, several at a time.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { homedir, userInfo } from 'node:os'
import { resolve } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { isatty, type ReadStream, type WriteStream } from 'node:tty'

export type InputStream = Readable & Partial<Pick<ReadStream, 'isTTY' | 'setRawMode'>>
export type OutputStream = Writable & Partial<Pick<WriteStream, 'isTTY' | 'columns' | 'getColorDepth'>>

type SignalListener = (signal: NodeJS.Signals) => void

export interface CliProcess {
  /** As of a process: Node, the program, its arguments. */
  readonly argv: readonly string[]
  readonly env: NodeJS.ProcessEnv
  readonly stdin: InputStream
  readonly stdout: OutputStream
  readonly stderr: OutputStream
  cwd(): string
  /** Whether a standard stream is a terminal; opens none of them. */
  readonly isTerminal: (descriptor: 0 | 1 | 2) => boolean
  on(event: NodeJS.Signals, listener: SignalListener): unknown
  on(event: 'exit', listener: () => void): unknown
  off(event: NodeJS.Signals, listener: SignalListener): unknown
  off(event: 'exit', listener: () => void): unknown
  /** Sends itself a signal. */
  kill(signal: NodeJS.Signals): void
  readonly exit: (code: number) => void
}

const own: CliProcess = {
  get argv() {
    return process.argv
  },
  get env() {
    return process.env
  },
  // Opening a standard stream takes time, and changes what the terminal does.
  get stdin() {
    return process.stdin
  },
  get stdout() {
    return process.stdout
  },
  get stderr() {
    return process.stderr
  },
  cwd: () => process.cwd(),
  isTerminal: (descriptor) => isatty(descriptor),
  on: (event: string, listener: SignalListener) => process.on(event, listener),
  off: (event: string, listener: SignalListener) => process.off(event, listener),
  kill: (signal) => void process.kill(process.pid, signal),
  exit: (code) => process.exit(code),
}

const inside = new AsyncLocalStorage<CliProcess>()

/** Of the command line that runs now: what it was given, or else the process itself. */
export function cliProcess(): CliProcess {
  return inside.getStore() ?? own
}

/** Does the work of a command line, which finds `given` in place of the process. */
export function withCliProcess<T>(given: CliProcess, work: () => T): T {
  return inside.run(given, work)
}

/** A path of the command line as an absolute one. */
export function absolutePath(path: string): string {
  return resolve(cliProcess().cwd(), path)
}

/** A path of the command line to be opened. An empty one stays empty: there is no such file. */
export function pathToOpen(path: string): string {
  return path === '' ? path : absolutePath(path)
}

/** The home directory, as `os.homedir` finds it. @throws Error when the account is in no list of accounts */
export function homeFolder(): string {
  const { env } = cliProcess()
  return env === process.env ? homedir() : (env['HOME'] ?? userInfo().homedir)
}

/** Columns of a terminal; undefined where the stream goes somewhere else, or the terminal does not say. */
export function widthOf({ isTTY, columns = 0 }: OutputStream): number | undefined {
  return isTTY === true && columns > 0 ? columns : undefined
}

/** Whether text for this stream may be styled. */
export function canStyle(stream: OutputStream): boolean {
  const { env } = cliProcess()
  const { NO_COLOR = '', FORCE_COLOR = '', CLICOLOR_FORCE } = env
  if (NO_COLOR !== '' || FORCE_COLOR === '0' || FORCE_COLOR === 'false') return false
  if (FORCE_COLOR !== '' || CLICOLOR_FORCE !== undefined) return true
  return stream.isTTY === true && (stream.getColorDepth?.(env) ?? 1) > 2
}
