/** Programs at a terminal, as a person uses them: what is typed goes through the kernel's terminal, with its echo. */
import { spawn } from 'node:child_process'
import { ensureDebianPackage } from './apt.ts'
import { waitFor } from './wait.ts'

const SCRIPT = '/usr/bin/script'

export interface TerminalRun {
  /** Everything on the screen so far: output, errors and echo. */
  readonly screen: () => string
  /** Waits until the text is on the screen as often as that, then types. */
  readonly typeAt: (text: string, keys: string, times?: number) => Promise<void>
  /** Closes the terminal, which its programs are told by SIGHUP. */
  close(): void
  /** The exit code. */
  readonly exit: Promise<number | null>
}

/**
 * @param env is all there is besides PATH
 * @param columns how wide the terminal is; without, it does not say
 */
export async function startAtTerminal(
  command: readonly string[],
  env: Record<string, string> = {},
  columns?: number,
): Promise<TerminalRun> {
  await ensureDebianPackage('bsdutils', SCRIPT)
  const line = command.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ')
  const script = `${columns === undefined ? '' : `stty cols ${columns} rows 50; `}exec ${line}`
  const child = spawn(SCRIPT, ['--quiet', '--return', '--echo', 'always', '--command', script, '/dev/null'], {
    env: { PATH: process.env['PATH'] ?? '', SHELL: '/bin/sh', ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  child.stdin.on('error', () => undefined)
  let screen = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (screen += text))
  const exit = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)))
  return {
    screen: () => screen,
    async typeAt(text, keys, times = 1) {
      await waitFor(`"${text}" on the screen`, () => screen.split(text).length > times)
      child.stdin.write(keys)
    },
    close: () => void child.kill('SIGKILL'),
    exit,
  }
}
