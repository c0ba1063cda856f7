/** Gauges of the process, its memory, its event loop and the database file. */
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
      about: 'Resident memory of the process.',
      read: () => process.memoryUsage.rss(),
    },
    {
      key: 'process.memory.heap_bytes',
      about: 'Used heap memory.',
      read: () => process.memoryUsage().heapUsed,
    },
    {
      key: 'event_loop.delay_mean_ms',
      about: 'Mean event loop delay.',
      read: () => loopDelay().mean,
    },
    {
      key: 'event_loop.delay_p99_ms',
      about: 'p99 of the event loop delay.',
      read: () => loopDelay().p99,
    },
    { key: 'event_loop.delay_max_ms', about: 'Maximum event loop delay.', read: () => loopDelay().max },
    { key: 'database.file_bytes', about: 'Size of the database file.', read: () => database.stats().fileBytes },
    {
      key: 'database.used_bytes',
      about: 'Used pages of the database file.',
      read: () => database.stats().usedBytes,
    },
    {
      key: 'database.reclaiming_bytes',
      about: 'Unused bytes of the database file that svc is returning to the file system and has not returned yet.',
      read: () => database.stats().reclaimingBytes,
    },
    {
      key: 'database.log_bytes',
      about: 'Size of the write-ahead log of the database.',
      read: () => database.stats().logBytes,
    },
    {
      key: 'database.free_bytes',
      about: 'Free bytes on the disk of the database. Below database.reserve_bytes svc accepts no new work.',
      read: () => database.stats().freeBytes ?? Number.NaN,
    },
    {
      key: 'database.waiting_units',
      about: 'Writes that wait for a commit.',
      read: () => database.stats().waitingUnits,
    },
    {
      key: 'database.waiting_scans',
      about: 'Searches that wait for the search thread, at most 32.',
      read: () => database.stats().waitingScans,
    },
  ]
}
