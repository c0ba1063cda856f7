/** The command line client with its output and exit code: inside the process of the test, or as a process of its own. */
import { spawn, type ChildProcess } from 'node:child_process'
import { EventEmitter } from 'node:events'
import { Readable, Writable } from 'node:stream'
import { WriteStream } from 'node:tty'
import type { CliProcess } from '../../src/cli/cli-process.ts'
import { runCommandLine } from '../../src/cli/command-line.ts'
import { executable } from './server.ts'
import { waitFor } from './wait.ts'

export interface CliExit {
  code: number | null
  stdout: string
  stderr: string
}

export interface RunningCli {
  process: ChildProcess
  /** What was printed so far. */
  stdout(): string
  stderr(): string
  exit: Promise<CliExit>
}

export interface CliOptions {
  /** All of standard input; default: nothing. */
  input?: string
  /** By which name it is called. */
  program?: string
  /** Where it is run. */
  cwd?: string
}

/** A process of its own, for tests that send it signals, close its streams, or look at the process itself. @param env as of `runCli` */
export function startCli(args: readonly string[], env: Record<string, string>, options: CliOptions = {}): RunningCli {
  const child = spawn(process.execPath, [options.program ?? executable, ...args], {
    env: fullEnvironment(env),
    stdio: ['pipe', 'pipe', 'pipe'],
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  })
  // It may end without having read it.
  child.stdin.on('error', () => undefined)
  child.stdin.end(options.input)
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  const exit = new Promise<CliExit>((resolve) => child.once('close', (code) => resolve({ code, stdout, stderr })))
  return { process: child, stdout: () => stdout, stderr: () => stderr, exit }
}

/** Waits until a command has printed something. @throws with all of its output when it ends before that, or never prints it */
export async function waitForOutput(cli: RunningCli, what: string, isPrinted: () => boolean): Promise<void> {
  let end: CliExit | undefined
  void cli.exit.then((exit) => (end = exit))
  try {
    await waitFor(what, () => isPrinted() || end !== undefined)
  } catch (cause) {
    throw new Error(`the command has only printed ${JSON.stringify([cli.stdout(), cli.stderr()])}`, { cause })
  }
  if (!isPrinted()) throw new Error(`the command ended before ${what}: ${JSON.stringify(end)}`)
}

/** Runs a command in a process of its own. @param env as of `runCli` */
export function spawnCli(
  args: readonly string[],
  env: Record<string, string>,
  options: CliOptions = {},
): Promise<CliExit> {
  return startCli(args, env, options).exit
}

/**
 * Runs a command inside this process. `09-scenarios` holds that a process of its own prints the same.
 *
 * @param env is all there is besides PATH
 */
export async function runCli(
  args: readonly string[],
  env: Record<string, string>,
  options: CliOptions = {},
): Promise<CliExit> {
  const stdin = Readable.from(options.input === undefined ? [] : [Buffer.from(options.input)])
  const stdout = new Sink()
  const stderr = new Sink()
  const code = await runInside(args, env, options, { stdin, stdout, stderr })
  return { code, stdout: stdout.text(), stderr: stderr.text() }
}

/** Runs a command inside this process at a terminal where nobody types. @returns what is written there */
export async function runCliAtTerminal(
  args: readonly string[],
  env: Record<string, string>,
  { columns, ...options }: Omit<CliOptions, 'input'> & { columns: number },
): Promise<{ code: number; screen: string }> {
  const screen = new Sink()
  const getColorDepth = (colors?: object): number => WriteStream.prototype.getColorDepth(colors)
  const terminal = Object.assign(screen, { isTTY: true as const, columns, getColorDepth })
  const stdin = Object.assign(new Readable({ read: () => undefined }), { isTTY: true as const })
  try {
    const code = await runInside(args, env, options, { stdin, stdout: terminal, stderr: terminal })
    return { code, screen: screen.text() }
  } finally {
    stdin.destroy()
  }
}

class Sink extends Writable {
  readonly #chunks: Buffer[] = []

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#chunks.push(chunk)
    done()
  }

  text(): string {
    return Buffer.concat(this.#chunks).toString('utf8')
  }
}

/** @returns the exit code */
function runInside(
  args: readonly string[],
  env: Record<string, string>,
  { program = executable, cwd }: CliOptions,
  streams: Pick<CliProcess, 'stdin' | 'stdout' | 'stderr'>,
): Promise<number> {
  if (args[0] === 'serve') throw new Error('a server takes signals and its standard error as its own: use spawnCli')
  const ofNode = Object.keys(env).find((name) => /^(?:NODE_.*|LD_.*|TZ)$/.test(name))
  if (ofNode !== undefined) throw new Error(`${ofNode} counts when a process begins: use spawnCli`)
  const events = new EventEmitter()
  const descriptors = [streams.stdin, streams.stdout, streams.stderr]
  return new Promise((resolve, reject) => {
    runCommandLine({
      argv: [process.execPath, program, ...args],
      env: fullEnvironment(env),
      ...streams,
      cwd: () => cwd ?? process.cwd(),
      isTerminal: (descriptor) => descriptors[descriptor]?.isTTY === true,
      on: (event: string, listener: (signal: NodeJS.Signals) => void) => events.on(event, listener),
      off: (event: string, listener: (signal: NodeJS.Signals) => void) => events.off(event, listener),
      kill: (signal) =>
        reject(new Error(`${args.join(' ')}: sends itself ${signal}, which needs a process of its own`)),
      exit: resolve,
    }).then(resolve, reject)
  })
}

function fullEnvironment(env: Record<string, string>): Record<string, string> {
  return { PATH: process.env['PATH'] ?? '', ...env }
}

/** What a command prints with `-j`. @param svc runs it @throws Error unless it ends with 0 */
export async function jsonOf<T>(svc: (...args: string[]) => Promise<CliExit>, args: readonly string[]): Promise<T> {
  const { code, stdout, stderr } = await svc(...args, '-j')
  if (code !== 0) throw new Error(`svc ${args.join(' ')} ended with ${code}: ${stdout}${stderr}`)
  return JSON.parse(stdout) as T // the caller's command says what it is
}

/** Of a table, what stands in its first line. */
export function header(text: string): string[] | undefined {
  const [, line] = /^\+-.*\n\|(.*)\|\n/m.exec(text) ?? []
  return line?.split('|').map((column) => column.trim())
}

/** Of the table of one record, the names of its attributes. */
export function names(text: string): string[] {
  return [...text.matchAll(/^\| ([\w.]+)/gm)].map(([, name = '']) => name)
}

/** Rows of a table below its header. */
export function rows(text: string): string[][] {
  return [...text.matchAll(/^\|(.*)\|$/gm)]
    .slice(1)
    .map(([, row = '']) => row.split('|').map((column) => column.trim()))
}

/** Finds a cell with exactly this text. */
export function cell(text: string): RegExp {
  return new RegExp(`\\| ${text.replaceAll('.', '\\.')} +\\|`)
}

/** How a command ends that was to be about something that does not exist. */
export function missing(kind: string, id: string): CliExit {
  return { code: 2, stdout: `${kind} "${id}" is not found.\n\n`, stderr: '' }
}
