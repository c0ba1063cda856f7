/** A server of a command's own, which nobody else sees: whatever it accepts or refuses, every server does. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cliProcess } from '../cli-process.ts'
import type { CommonFlags } from '../options.ts'
import { withSocketSession } from '../operator-session.ts'
import type { CommandContext, Session } from '../session.ts'
import { findServer, stopServer } from './server.ts'
import { startInBackground } from './start.ts'

export interface TrialServer {
  /** Of the command. */
  flags?: CommonFlags
  /** `section.option` → value, beside what every trial server has. */
  settings?: Readonly<Record<string, string>>
  /** Fills the base path before the server starts. */
  readonly prepare?: (basePath: string) => Promise<void> | void
}

/**
 * Starts the server in a temporary folder, and removes both afterwards.
 *
 * @param work resolves with the exit code
 */
export async function withTrialServer(
  context: CommandContext,
  { flags = {}, settings = {}, prepare }: TrialServer,
  work: (session: Session, basePath: string) => Promise<number>,
): Promise<void> {
  const base = mkdtempSync(join(tmpdir(), 'svc-trial-'))
  const signals = listenForSignals()
  try {
    await prepare?.(base)
    const all = {
      'system.base_path': base,
      'auth.port': '0',
      'api.port': '0',
      'stream.port': '0',
      'content.watch': 'False',
      // What it is given to judge may not run.
      'timersengine.enable': 'False',
      'sensorcontainer.enable': 'False',
      ...settings,
    }
    writeFileSync(join(base, 'svc.conf'), confOf(all))
    // Settings in the environment are for other servers.
    const env = Object.fromEntries(Object.entries(cliProcess().env).filter(([name]) => !name.startsWith('SVC_')))
    const args = ['serve', '--config-file', join(base, 'svc.conf')]
    await startInBackground({ basePath: base, logFile: '' }, { args, cwd: base, env })
    await withSocketSession(context, flags, base, (session) => {
      signals.interrupts(session)
      return work(session, base)
    })
  } finally {
    const server = findServer(base)
    if (server !== undefined) await stopServer(server, { graceSeconds: 0, skipsGrace: true })
    rmSync(base, { recursive: true, force: true })
    signals.close()
  }
}

/** Signals that would end the command alone end the server first: as Ctrl-C does once there is a session. */
function listenForSignals(): { interrupts(session: Session): void; close(): void } {
  const own = cliProcess()
  let session: Session | undefined
  let isHeard = false
  const hear = (signal: NodeJS.Signals): void => {
    isHeard = true
    // A session hears Ctrl-C itself.
    if (signal !== 'SIGINT') session?.interrupt()
  }
  // Without a terminal a hang-up is none of its own.
  const signals = ['SIGINT', 'SIGTERM', ...(own.isTerminal(1) ? (['SIGHUP'] as const) : [])] as const
  for (const signal of signals) own.on(signal, hear)
  return {
    interrupts(begun) {
      session = begun
      if (isHeard) begun.interrupt()
    },
    close() {
      for (const signal of signals) own.off(signal, hear)
    },
  }
}

function confOf(settings: Readonly<Record<string, string>>): string {
  return Object.entries(settings)
    .map(([key, value]) => {
      const at = key.indexOf('.')
      return `[${key.slice(0, at)}]\n${key.slice(at + 1)} = ${value}\n`
    })
    .join('')
}
