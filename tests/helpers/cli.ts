/** The command line client as its users run it: a process, with its output and exit code. */
import { spawn, type ChildProcess } from 'node:child_process'
import { executable } from './server.ts'

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

/** @param env is all there is besides PATH */
export function startCli(args: readonly string[], env: Record<string, string>, options: CliOptions = {}): RunningCli {
  const child = spawn(process.execPath, [options.program ?? executable, ...args], {
    env: { PATH: process.env['PATH'] ?? '', ...env },
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

export function runCli(
  args: readonly string[],
  env: Record<string, string>,
  options: CliOptions = {},
): Promise<CliExit> {
  return startCli(args, env, options).exit
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
