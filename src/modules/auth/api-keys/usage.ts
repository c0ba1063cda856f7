/** When API keys were used last: written at most once a minute, many together, and never while a request waits. */
import type { Database } from '../../../db/index.ts'
import type { Log } from '../../../lib/log/index.ts'
import { formatMicros } from '../../../core/time.ts'
import type { ApiKeyStore } from './store.ts'

const WRITE_EVERY_MS = 60_000
/** Of further keys the use is not noted until the next writing. */
const MAX_NOTED = 10_000
const MAX_STEPS = 500

export interface ApiKeyUsage {
  note(id: string): void
  /** Wire timestamp of the last use, including uses that are not saved yet. */
  lastOf(id: string): string | undefined
  /** Writes the recorded uses. Never rejects: failures are logged, and the next flush tries again. */
  flush(): Promise<void>
  /** Flushes; later uses are not written. */
  stop(): Promise<void>
}

export interface ApiKeyUsageOptions {
  database: Database
  store: Pick<ApiKeyStore, 'markUsed'>
  log: Log
  /** Microseconds since the epoch. */
  readonly now: () => number
}

export function createApiKeyUsage({ database, store, log, now }: ApiKeyUsageOptions): ApiKeyUsage {
  /** Key id → microseconds since the epoch. */
  const noted = new Map<string, number>()
  let timer: NodeJS.Timeout | undefined
  let flushing: Promise<void> | undefined
  let isStopped = false

  function wait(): void {
    if (isStopped) return
    timer ??= setTimeout(() => {
      timer = undefined
      void flush()
    }, WRITE_EVERY_MS)
    timer.unref()
  }

  async function writeAll(): Promise<void> {
    const entries = [...noted]
    for (let start = 0; start < entries.length; start += MAX_STEPS) {
      const some = entries.slice(start, start + MAX_STEPS)
      try {
        const steps = some.map(([id, at]) => store.markUsed(id, formatMicros(at)))
        await database.write({ steps, facts: [], isUnpromised: true })
      } catch (error) {
        log.warning('api_key.usage_not_written', 'Could not save the last use of API keys', { error })
        wait()
        return
      }
      for (const [id, at] of some) if (noted.get(id) === at) noted.delete(id)
    }
    if (noted.size > 0) wait()
  }

  function flush(): Promise<void> {
    flushing ??= writeAll().finally(() => {
      flushing = undefined
    })
    return flushing
  }

  return {
    note(id) {
      if (isStopped || (noted.size >= MAX_NOTED && !noted.has(id))) return
      noted.set(id, now())
      if (timer === undefined && flushing === undefined) wait()
    },
    lastOf(id) {
      const at = noted.get(id)
      return at === undefined ? undefined : formatMicros(at)
    },
    flush,
    async stop() {
      isStopped = true
      clearTimeout(timer)
      // One under way may have begun before the last use.
      await flushing
      await flush()
    },
  }
}
