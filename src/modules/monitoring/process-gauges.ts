/** What belongs to no module: the process, its memory, its event loop, and the file of the database. */
import type { Database } from '../../db/index.ts'
import type { Gauge } from '../../core/module.ts'
import type { LoopDelay } from './types.ts'

export function processGauges(deps: {
  database: Pick<Database, 'stats'>
  readonly loopDelay: () => LoopDelay
}): readonly Gauge[] {
  const { database, loopDelay } = deps
  return [
    { key: 'process.uptime_seconds', about: 'Seconds since the process was started.', read: () => process.uptime() },
    {
      key: 'process.memory.resident_bytes',
      about: 'Memory that the process has from the system.',
      read: () => process.memoryUsage.rss(),
    },
    {
      key: 'process.memory.heap_bytes',
      about: 'Memory that objects of the server use.',
      read: () => process.memoryUsage().heapUsed,
    },
    {
      key: 'event_loop.delay_mean_ms',
      about: 'How long, on average, the event loop kept others waiting.',
      read: () => loopDelay().mean,
    },
    {
      key: 'event_loop.delay_p99_ms',
      about: 'How long at most in 99 of 100 cases.',
      read: () => loopDelay().p99,
    },
    { key: 'event_loop.delay_max_ms', about: 'How long at most.', read: () => loopDelay().max },
    { key: 'database.file_bytes', about: 'Size of the database file.', read: () => database.stats().fileBytes },
    {
      key: 'database.used_bytes',
      about: 'Of the database file, what something is in.',
      read: () => database.stats().usedBytes,
    },
    {
      key: 'database.log_bytes',
      about: 'Size of the write-ahead log beside it.',
      read: () => database.stats().logBytes,
    },
    {
      key: 'database.free_bytes',
      about: 'What its file system has left; below database.reserve_bytes no new work is taken on.',
      read: () => database.stats().freeBytes ?? Number.NaN,
    },
    {
      key: 'database.waiting_units',
      about: 'Changes that wait to be committed.',
      read: () => database.stats().waitingUnits,
    },
    {
      key: 'database.waiting_scans',
      about: 'Searches that wait for their thread, 32 at most.',
      read: () => database.stats().waitingScans,
    },
  ]
}
