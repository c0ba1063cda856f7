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

/** How it is started from here. @param files given on the command line @throws CliFailure when this account should not */
export function launchHere(basePath: string, files: readonly string[]): Launch {
  checkAccount(basePath)
  const args = ['serve', ...files.flatMap((file) => ['--config-file', file])]
  return { args, cwd: cliProcess().cwd(), env: cliProcess().env }
}

/** How a running one was started, so that it can be started again. @throws CliFailure when this account may not know */
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
      `How the server, process ${pid}, was started cannot be found out: ${printable(why)}. Run this command as the account of the server, or stop it ("svc stop") and start it as it was started.`,
    )
  }
}

/**
 * Resolves when it takes requests; it goes on when this process ends.
 *
 * @param logFile `log.file`; empty: it logs to `logs/svc.log` in its base path
 * @throws CliFailure with its last words when it ends before
 */
export async function startInBackground(
  { basePath, logFile }: { basePath: string; logFile: string },
  { args, cwd, env }: Launch,
): Promise<Started> {
  const hasLogFile = logFile !== '' || args.some((word) => word.startsWith('--log-file'))
  // By its own name, whatever name this command was called by.
  const program = isSingleExecutable() ? [] : [realpathSync(cliProcess().argv[1] ?? '')]
  const child = spawn(process.execPath, [...program, ...args, ...(hasLogFile ? [] : ['--log-file', usualLogFile])], {
    cwd,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let words = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (words = (words + text).slice(-MAX_CHARACTERS)))
  try {
    const greeting = await withProgress('Starting the server', () => readGreeting(child))
    if (greeting !== undefined) {
      return { pid: child.pid ?? 0, greeting, logFile: logFile === '' ? join(basePath, usualLogFile) : logFile }
    }
  } finally {
    // Nobody reads any more what it writes there; its log is in a file.
    for (const stream of [child.stdout, child.stderr]) stream.destroy()
    child.unref()
  }
  const lines = words.trimEnd().split('\n').slice(-MAX_LINES)
  throw new CliFailure(`The server has ended before it was ready:\n${lines.join('\n')}`)
}

/** Relative to the base path. */
const usualLogFile = 'logs/svc.log'

/** Of its last words. */
const MAX_LINES = 20
const MAX_CHARACTERS = 10_000

/** @returns undefined when the server has ended before @throws CliFailure when it cannot be started at all */
function readGreeting(child: ReturnType<typeof spawn>): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    let printed = ''
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      printed += text
      const [line] = /^svc is ready:.*(?=\n)/m.exec(printed) ?? []
      if (line !== undefined) resolve(line)
    })
    child.once('error', (error) => reject(new CliFailure(`The server cannot be started: ${error.message}`)))
    child.once('close', () => resolve(undefined))
  })
}

/** Files that root makes could not be written by the account that the server runs as otherwise. @throws CliFailure */
function checkAccount(basePath: string): void {
  const owner = statSync(basePath, { throwIfNoEntry: false })?.uid
  if (owner === undefined || owner === process.getuid?.()) return
  throw new CliFailure(
    `${basePath} belongs to another account (${owner}), and the server would run as this one. Start it as that account: sudo -u '#${owner}' svc start`,
  )
}
