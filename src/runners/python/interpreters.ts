/**
 * Python interpreters: each carries out one action, in a process of its own, and ends. Some are started before anybody needs
 * them, because starting takes longer than most actions do.
 *
 * One that waits has read nothing of an execution. It waits on its stdin, whose end it sees when the server ends it, or has
 * ended in whatever way.
 */
import { locate } from '../../core/bundle.ts'
import type { Child, Launcher, SpawnRequest } from '../process/launcher.ts'

export interface Interpreters {
  /**
   * One that was waiting, and sees to it that another one will be; undefined when there is none. Whoever takes it gives it a
   * job, or ends its stdin. It writes nothing before it has the job, so that its output cannot be missed.
   */
  take(program: string): Child | undefined
  /** One more, for an action that cannot wait. Rejects as `Launcher.spawn` does. */
  start(program: string, more: Pick<SpawnRequest, 'env' | 'mark'>): Promise<Child>
  /** Ends those of this program that wait; for programs that have changed. */
  forget(program: string): void
  /** Those that wait now. */
  readonly waiting: readonly Child[]
  /** Ends all that wait; idempotent. */
  stop(): Promise<void>
}

export interface InterpretersOptions {
  launcher: Launcher
  /** `actionrunner.python_pool_size`: how many wait, for each program. */
  size: number
  /** What they inherit. */
  env: Readonly<Record<string, string>>
  /** Path of `startScript`. */
  startFile: string
  /** Folder for bytecode: nothing is written beside the sources. */
  cacheFolder: string
  /** How long they wait for the next action; default `IDLE_MS`. */
  idleMs?: number
}

const IDLE_MS = 5 * 60_000
/** The programs used last; every pack with requirements has its own. */
const MAX_PROGRAMS = 4
/** Later than the action that took one has ended, when it is a short one: it shall have the processor for itself. */
const REFILL_AFTER_MS = 20
/** For those that were told to end; they may be busy starting. */
const MAX_END_MS = 5000

interface Pool {
  waiting: Child[]
  starting: number
  idle: NodeJS.Timeout | undefined
}

/** What an interpreter runs first. */
export const startScript = locate('./lib/start.py', './python/lib/start.py', import.meta.url)

export function createInterpreters(options: InterpretersOptions): Interpreters {
  const { launcher, size, env, startFile, cacheFolder, idleMs = IDLE_MS } = options
  /** The one used last comes last. */
  const pools = new Map<string, Pool>()
  /** What a stop waits for. */
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
        // The next action tries again, and says why it cannot be started.
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
