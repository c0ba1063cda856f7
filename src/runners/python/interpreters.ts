/**
 * Python interpreters: each runs one action in its own process, then exits. A pool starts some in advance, because the
 * start takes longer than most actions.
 *
 * An idle interpreter has no data of an execution. It waits on its stdin, which closes when the server stops it or
 * exits.
 */
import { locatePart } from '../../core/bundle.ts'
import type { Child, Launcher, SpawnRequest } from '../process/launcher.ts'

export interface Interpreters {
  /**
   * An idle interpreter, whose replacement then starts; undefined when none is idle. The caller sends it a job or
   * closes its stdin. It writes nothing before it has the job, so that no output can be missed.
   */
  take(program: string): Child | undefined
  /** Starts another interpreter for an action that cannot wait. Rejects as `Launcher.spawn` does. */
  start(program: string, more: Pick<SpawnRequest, 'env' | 'mark'>): Promise<Child>
  /** Stops the idle interpreters of this program; for programs that have changed. */
  forget(program: string): void
  /** Number of idle interpreters. */
  readonly waiting: readonly Child[]
  /** Stops all idle interpreters; idempotent. */
  stop(): Promise<void>
}

export interface InterpretersOptions {
  launcher: Launcher
  /** `actionrunner.python_pool_size`: idle interpreters per program. */
  size: number
  /** The inherited environment. */
  env: Readonly<Record<string, string>>
  /** Path of `startScript`. */
  startFile: string
  /** Folder for bytecode: svc writes no bytecode beside the sources. */
  cacheFolder: string
  /** How long an interpreter may be idle; default `IDLE_MS`. */
  idleMs?: number
}

const IDLE_MS = 5 * 60_000
/** Programs with idle interpreters, most recently used; every pack with requirements has its own. */
const MAX_PROGRAMS = 4
/** Replacements start after a short action has finished, which needs the processor for itself. */
const REFILL_AFTER_MS = 20
/** Time for stopped interpreters to exit; they may be busy starting. */
const MAX_END_MS = 5000

interface Pool {
  waiting: Child[]
  starting: number
  idle: NodeJS.Timeout | undefined
}

/** The first file that an interpreter runs. */
export const startScript = locatePart('./lib/start.py', './python/lib/start.py', import.meta.url)

export function createInterpreters(options: InterpretersOptions): Interpreters {
  const { launcher, size, env, startFile, cacheFolder, idleMs = IDLE_MS } = options
  /** Most recently used last. */
  const pools = new Map<string, Pool>()
  /** Interpreters that a stop waits for. */
  const held = new Set<Promise<unknown>>()
  let isStopped = false

  function start(program: string, more: Pick<SpawnRequest, 'env' | 'mark'>): Promise<Child> {
    return launcher.spawn({ file: program, args: [startFile, cacheFolder], ...more, stdin: 'open', hasReply: true })
  }

  function end(child: Child): void {
    child.stdin?.end()
    hold(
      child.exited.then(() => {
        for (const stream of [child.stdout, child.stderr, child.reply]) stream?.destroy()
      }),
    )
  }

  function hold(work: Promise<unknown>): void {
    held.add(work)
    void work.then(() => held.delete(work))
  }

  function forget(program: string): void {
    const pool = pools.get(program)
    if (pool === undefined) return
    pools.delete(program)
    clearTimeout(pool.idle)
    for (const child of pool.waiting.splice(0)) end(child)
  }

  function poolOf(program: string): Pool {
    const pool = pools.get(program) ?? { waiting: [], starting: 0, idle: undefined }
    pools.delete(program)
    pools.set(program, pool)
    clearTimeout(pool.idle)
    pool.idle = setTimeout(() => forget(program), idleMs).unref()
    for (const other of pools.keys()) {
      if (pools.size <= MAX_PROGRAMS) break
      forget(other)
    }
    return pool
  }

  function refill(program: string, pool: Pool): void {
    while (pools.get(program) === pool && pool.waiting.length + pool.starting < size) {
      pool.starting += 1
      const started = start(program, { env: { ...env } }).then(
        (child) => {
          pool.starting -= 1
          if (pools.get(program) === pool) keep(child, pool)
          else end(child)
        },
        // The next action tries again and reports why it cannot start.
        () => {
          pool.starting -= 1
        },
      )
      hold(started)
    }
  }

  function keep(child: Child, pool: Pool): void {
    pool.waiting.push(child)
    void child.exited.then(() => {
      const index = pool.waiting.indexOf(child)
      if (index === -1) return
      pool.waiting.splice(index, 1)
      end(child)
    })
  }

  return {
    take(program) {
      if (size === 0 || isStopped) return undefined
      const pool = poolOf(program)
      setTimeout(() => refill(program, pool), REFILL_AFTER_MS).unref()
      return pool.waiting.shift()
    },
    start,
    forget,
    get waiting() {
      return [...pools.values()].flatMap(({ waiting }) => waiting)
    },
    async stop() {
      isStopped = true
      for (const program of pools.keys()) forget(program)
      let isLate = false
      const { promise: late, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(() => {
        isLate = true
        resolve()
      }, MAX_END_MS)
      while (held.size > 0 && !isLate) await Promise.race([Promise.all(held), late])
      clearTimeout(timer)
    },
  }
}
