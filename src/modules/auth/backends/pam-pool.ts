/** Pool of PAM helper processes (`pam-helper.ts`): started on demand, ended when idle, replaced when they die. */
import { setTimeout as delay } from 'node:timers/promises'
import { shuttingDown } from '../../../core/errors.ts'
import { createProcessReader } from '../../../runners/index.ts'
import { createGate } from '../gate.ts'
import type { PamQuestion, PamReport, PamVerdict } from './pam-helper.ts'
import { PamHelper, type PamHelperOptions } from './pam-process.ts'

/** A helper needs about 11 MB. A check takes up to 100 ms unless a module asks another machine. */
const MAX_HELPERS = 4
const MAX_WAITING = 64
const IDLE_MS = 30_000
const START_LIMIT_MS = 30_000
const CHECK_LIMIT_MS = 60_000

export interface PamPoolOptions extends PamHelperOptions {
  /** Maximum time of a check; then svc kills the helper. Default: 60 seconds. */
  checkLimitMs?: number
  /** Time without a request after which svc ends a helper. Default: 30 seconds. */
  idleMs?: number
}

export interface PamPool {
  /** Starts the first helper. @throws Error if the library cannot be used */
  start(): Promise<void>
  /**
   * Waits for the refusal delay of the PAM service without blocking a helper. The caller limits the concurrent checks.
   * @throws if the check fails; QUEUE_FULL, SHUTTING_DOWN
   */
  check(user: string, password: string): Promise<PamVerdict>
  /** Group names; empty if the account does not exist. @throws like `check` */
  groupsOf(user: string): Promise<string[]>
  /** Ends all helpers and the processes that their modules have started. Idempotent. */
  stop(): Promise<void>
}

export function createPamPool(options: PamPoolOptions): PamPool {
  const { checkLimitMs = CHECK_LIMIT_MS, idleMs = IDLE_MS } = options
  const gate = createGate('logins', MAX_HELPERS, MAX_WAITING, checkLimitMs)
  const reader = createProcessReader()
  const helpers = new Set<PamHelper>()
  const idle: { helper: PamHelper; timer: NodeJS.Timeout }[] = []
  const stopping = new AbortController()

  async function startHelper(): Promise<PamHelper> {
    const helper = new PamHelper(options, reader)
    helpers.add(helper)
    void helper.ended.then(() => {
      helpers.delete(helper)
      forget(helper)
    })
    try {
      const first = await helper.nextReport(START_LIMIT_MS)
      if (first.kind === 'unusable') throw new Error(first.reason)
      return helper
    } catch (error) {
      await helper.kill()
      throw error
    }
  }

  function forget(helper: PamHelper): void {
    const at = idle.findIndex((resting) => resting.helper === helper)
    for (const { timer } of at === -1 ? [] : idle.splice(at, 1)) clearTimeout(timer)
  }

  function rest(helper: PamHelper): void {
    helper.unref()
    const timer = setTimeout(() => {
      forget(helper)
      void helper.kill()
    }, idleMs)
    timer.unref()
    idle.push({ helper, timer })
  }

  /** The most recently used helper, so that the others become idle and end. */
  function takeIdle(): PamHelper | undefined {
    for (let resting = idle.pop(); resting !== undefined; resting = idle.pop()) {
      clearTimeout(resting.timer)
      if (!resting.helper.hasFailed) return resting.helper
    }
    return undefined
  }

  async function withHelper<T>(use: (helper: PamHelper) => Promise<T>): Promise<T> {
    return gate.pass(async () => {
      if (stopping.signal.aborted) throw shuttingDown()
      let helper = takeIdle()
      try {
        helper ??= await startHelper()
        const answer = await use(helper)
        rest(helper)
        return answer
      } catch (error) {
        await helper?.kill()
        throw stopping.signal.aborted ? shuttingDown() : error
      }
    })
  }

  async function ask(question: PamQuestion): Promise<PamReport> {
    const report = await withHelper((helper) => helper.ask(question, checkLimitMs))
    if (report.kind === 'failed') throw new Error(report.reason)
    return report
  }

  return {
    start: () => withHelper(() => Promise.resolve()),
    async check(user, password) {
      const report = await ask({ kind: 'check', user, password })
      if (report.kind !== 'verdict') throw unexpected(report)
      const { verdict, delayMs } = report
      if (delayMs > 0)
        await delay(Math.min(delayMs, checkLimitMs), undefined, { signal: stopping.signal }).catch(refuse)
      return verdict
    },
    async groupsOf(user) {
      const report = await ask({ kind: 'groups', user })
      if (report.kind !== 'groups') throw unexpected(report)
      return report.groups
    },
    async stop() {
      stopping.abort()
      await Promise.all([...helpers].map((helper) => helper.kill()))
      await reader.stop()
    },
  }
}

function refuse(): never {
  throw shuttingDown()
}

function unexpected(report: PamReport): Error {
  return new Error(`the PAM helper sent an unexpected response of kind "${report.kind}"`)
}
