/** Starting the server in the background. */
import { spawn } from 'node:child_process'
import { readFileSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { cliProcess } from '../cli-process.ts'
import { isSingleExecutable } from '../../core/bundle.ts'
import type { RunFile } from '../../core/run-file.ts'
import { CliFailure } from '../failures.ts'
import { printable } from '../output/print.ts'
import { withProgress } from '../output/progress.ts'

/** How a server is started. */
export interface Launch {
  /** Arguments of `svc`, those of `serve` last. */
  args: readonly string[]
  cwd: string
  env: NodeJS.ProcessEnv
}

export interface Started {
  pid: number
  /** Says where it listens. */
  greeting: string
  logFile: string
}

/** The launch from the current directory. @param files given on the command line @throws CliFailure for the wrong account */
export function launchHere(basePath: string, files: readonly string[]): Launch {
  checkAccount(basePath)
  const args = ['serve', ...files.flatMap((file) => ['--config-file', file])]
  return { args, cwd: cliProcess().cwd(), env: cliProcess().env }
}

/** The launch of a running server, to restart it. @throws CliFailure when this account lacks the permission */
export function launchOf({ pid }: RunFile): Launch {
  const of = (name: string): string => `/proc/${pid}/${name}`
  try {
    const owner = statSync(`/proc/${pid}`).uid
    if (owner !== process.getuid?.()) throw new Error(`it runs as another account (${owner})`)
    const words = readFileSync(of('cmdline'), 'utf8').split('\0').slice(0, -1)
    const command = words.indexOf('serve')
    if (command === -1) throw new Error(`its command line is ${words.join(' ')}`)
    // What stands before are arguments of Node, the program, and perhaps the file of the server.
    const before = words.slice(0, command)
    const file = before.findIndex((word) => word.startsWith('--config-file'))
    const env: NodeJS.ProcessEnv = {}
    for (const line of readFileSync(of('environ'), 'utf8').split('\0')) {
      const at = line.indexOf('=')
      if (at > 0) env[line.slice(0, at)] = line.slice(at + 1)
    }
    const args = [...(file === -1 ? [] : before.slice(file)), ...words.slice(command)]
    return { args, cwd: readlinkSync(of('cwd')), env }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new CliFailure(
      `Cannot read the command line of the server, process ${pid}: ${printable(why)}. Run this command as the account of the server, or run "svc stop" and start the server by hand.`,
    )
  }
}

/**
 * Resolves when the server accepts requests; it keeps running when this process ends.
 *
 * @param logFile `log.file`; empty: it logs to `logs/svc.log` in its base path
 * @throws CliFailure with the end of its error output when it exits before
 */
export async function startInBackground(
  { basePath, logFile }: { basePath: string; logFile: string },
  { args, cwd, env }: Launch,
): Promise<Started> {
  const hasLogFile = logFile !== '' || args.some((word) => word.startsWith('--log-file'))
  // By its own name, not by the name that this command was called by.
  const program = isSingleExecutable() ? [] : [realpathSync(cliProcess().argv[1] ?? '')]
  const child = spawn(
    process.execPath,
    [...program, ...args, ...(hasLogFile ? [] : ['--log-file', DEFAULT_LOG_FILE])],
    {
      cwd,
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  let words = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (words = (words + text).slice(-MAX_CHARACTERS)))
  try {
    const greeting = await withProgress('Starting the server', () => readGreeting(child))
    if (greeting !== undefined) {
      return { pid: child.pid ?? 0, greeting, logFile: logFile === '' ? join(basePath, DEFAULT_LOG_FILE) : logFile }
    }
  } finally {
    // The server now logs to a file: nothing reads these pipes.
    for (const stream of [child.stdout, child.stderr]) stream.destroy()
    child.unref()
  }
  const lines = words.trimEnd().split('\n').slice(-MAX_LINES)
  throw new CliFailure(`The server exited before it was ready:\n${lines.join('\n')}`)
}

/** Relative to the base path. */
const DEFAULT_LOG_FILE = 'logs/svc.log'

/** Of its last words. */
const MAX_LINES = 20
const MAX_CHARACTERS = 10_000

/** @returns undefined when the server exited before @throws CliFailure when the process cannot be started */
function readGreeting(child: ReturnType<typeof spawn>): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    let printed = ''
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      printed += text
      const [line] = /^svc is ready:.*(?=\n)/m.exec(printed) ?? []
      if (line !== undefined) resolve(line)
    })
    child.once('error', (error) => reject(new CliFailure(`Cannot start the server: ${error.message}`)))
    child.once('close', () => resolve(undefined))
  })
}

/** The account of the server could not write files that root creates. @throws CliFailure */
function checkAccount(basePath: string): void {
  const owner = statSync(basePath, { throwIfNoEntry: false })?.uid
  if (owner === undefined || owner === process.getuid?.()) return
  throw new CliFailure(
    `${basePath} belongs to another account (${owner}). Start the server as that account: sudo -u '#${owner}' svc start`,
  )
}
