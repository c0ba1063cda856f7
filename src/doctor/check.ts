/** What a check of `svc doctor` works with, and what it finds. */
import type { ExecFileOptions } from 'node:child_process'
import type { Account } from '../lib/process/index.ts'
import type { LoadedConfig } from '../config/index.ts'
import type { RunFile } from '../core/run-file.ts'

export type State = 'ok' | 'warning' | 'problem' | 'skipped'

export interface Result {
  state: State
  /** A sentence. Of what was skipped: why. */
  message: string
  /** What to do about it; of warnings and problems. */
  remedy?: string
}

export interface Finding extends Result {
  check: string
}

/** The machine, and the server on it. */
export interface Patient {
  loaded: LoadedConfig
  /** Undefined: no server runs with this base path. */
  running: RunFile | undefined
  /** Of the server when it runs and may be looked at, else of this process. */
  env: NodeJS.ProcessEnv
  /** That of the server, which chooses what programs these are, so root does not run them itself. Undefined: as who looks. */
  account: Account | undefined
  /** Asks the server that runs to run `core.local`. @returns how long it took; or why it did not succeed */
  readonly probe: () => Promise<{ milliseconds: number } | { failure: string }>
  readonly now: () => Date
}

/** How programs are run to be asked. */
export function programOptions({ env, account }: Patient, timeout: number): ExecFileOptions {
  return { env, timeout, cwd: '/', ...account }
}

export interface Check {
  name: string
  readonly look: (patient: Patient) => Promise<Result[]> | Result[]
}

export const ok = (message: string): Result => ({ state: 'ok', message })
export const warning = (message: string, remedy: string): Result => ({ state: 'warning', message, remedy })
export const problem = (message: string, remedy: string): Result => ({ state: 'problem', message, remedy })
export const skipped = (reason: string): Result => ({ state: 'skipped', message: reason })

export const listenerNames = ['auth', 'api', 'stream'] as const
