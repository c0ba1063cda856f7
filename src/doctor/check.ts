/** The input and the results of the checks of `svc doctor`. */
import type { ExecFileOptions } from 'node:child_process'
import type { Account } from '../lib/process/index.ts'
import type { LoadedConfig } from '../config/index.ts'
import type { NotReady } from '../core/module.ts'
import type { RunFile } from '../core/run-file.ts'

export type State = 'ok' | 'warning' | 'problem' | 'skipped'

export interface Result {
  state: State
  /** A sentence. For a skipped check: the reason. */
  message: string
  /** How to fix it; for warnings and problems. */
  remedy?: string
}

export interface Finding extends Result {
  check: string
}

/** The parts of `GET /status` that the checks need. */
export interface ServerStatus {
  /** Empty: the server is ready. */
  notReady: NotReady[]
  /** Unused bytes of the database that the server is returning to the file system now; 0: none. */
  reclaimingBytes: number
  /** Ids of traces that have grown fast within the last ten minutes. */
  growingTraces: string[]
  /** Traces in which rules started each other until svc ended the chain, with the rule that was not enforced. */
  cutTraces: { id: string; rule: string }[]
  /** Undefined: the server is older. */
  commandAccount: { user: string; isRoot: boolean; remedy: string } | undefined
  /** How many rules have not succeeded as they are expected to. */
  lateRules: number
}

/** What the checks runChecks: the machine and the server on it. */
export interface CheckContext {
  loaded: LoadedConfig
  /** Undefined: no server runs with this base path. */
  running: RunFile | undefined
  /** The environment of the running server if it is readable, else that of this process. */
  env: NodeJS.ProcessEnv
  /** The account of the server, so that root does not run programs that the server chooses. Undefined: the current account. */
  account: Account | undefined
  /** Runs `core.local` on the running server. @returns the duration, or why it failed */
  readonly probe: () => Promise<{ milliseconds: number } | { failure: string }>
  /** What the running server says of itself; undefined when it does not answer. */
  readonly status: () => Promise<ServerStatus | undefined>
  /** Packs whose configuration is not used; undefined: the server does not answer. */
  readonly configProblems: () => Promise<readonly ConfigProblem[] | undefined>
  readonly now: () => Date
}

export interface ConfigProblem {
  pack: string
  problem: string
}

/** Options to run a program for a check. */
export function programOptions({ env, account }: CheckContext, timeout: number): ExecFileOptions {
  return { env, timeout, cwd: '/', ...account }
}

export interface HealthCheck {
  name: string
  readonly run: (context: CheckContext) => Promise<Result[]> | Result[]
}

export const ok = (message: string): Result => ({ state: 'ok', message })
export const warning = (message: string, remedy: string): Result => ({ state: 'warning', message, remedy })
export const failedCheck = (message: string, remedy: string): Result => ({ state: 'problem', message, remedy })
export const skipped = (reason: string): Result => ({ state: 'skipped', message: reason })

export const listenerNames = ['auth', 'api', 'stream'] as const
