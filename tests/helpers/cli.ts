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

/** @param env is all there is besides PATH */
export function startCli(args: readonly string[], env: Record<string, string>): RunningCli {
  const child = spawn(process.execPath, [executable, ...args], {
    env: { PATH: process.env['PATH'] ?? '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  const exit = new Promise<CliExit>((resolve) => child.once('close', (code) => resolve({ code, stdout, stderr })))
  return { process: child, stdout: () => stdout, stderr: () => stderr, exit }
}

export function runCli(args: readonly string[], env: Record<string, string>): Promise<CliExit> {
  return startCli(args, env).exit
}
