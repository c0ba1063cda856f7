/**
 * The thread behind `writer.ts`, with the only connection that writes units. The disk keeps this thread waiting, and not
 * the event loop of the server. Units that arrive during a commit share the next one.
 */
import { isMainThread, parentPort, workerData } from 'node:worker_threads'
import { machineClock } from '../../core/clock.ts'
import { createCommits, refusalOf, type Answer, type PlainUnit, type Refusal } from './commits.ts'
import { openDatabaseConnection } from './connection.ts'
import { fitCache, vacuumPiece } from './vacuum.ts'

export interface WriterThreadData {
  path: string
  synchronous: 'normal' | 'full'
}

/** `vacuum`: returns unused pages to the file system, at most so many and for some milliseconds, in a commit of its own. */
export type WriterTask =
  | { kind: 'checkpoint' }
  /** Truncates the log, unless a reader uses it. */
  | { kind: 'cut' }
  | { kind: 'vacuum'; pages: number }
  /** Copies the log into the database and closes the connection. */
  | { kind: 'close' }

/** Units are answered with `Answer`, in their order; a task with `TaskAnswer`. */
export type ToWriter = PlainUnit[] | WriterTask

export interface TaskAnswer {
  /** Milliseconds of work, without the wait for the disk at its commit. */
  ms: number
  refusal?: Refusal
}

export type FromWriter = Answer | TaskAnswer

const CACHE_KIB = 4096

if (!isMainThread) {
  const { path, synchronous } = workerData as WriterThreadData // set by writer.ts, the only one that starts this thread
  const connection = openDatabaseConnection({ path, readonly: false, synchronous, cacheKib: CACHE_KIB })
  const commits = createCommits(connection, machineClock)
  const onePage = connection.prepare('pragma incremental_vacuum(1)')
  let isScheduled = false

  const answer = (message: FromWriter): void => parentPort?.postMessage(message)

  function schedule(): void {
    if (isScheduled || commits.waitingCount === 0) return
    isScheduled = true
    // First takes all units that have arrived.
    setImmediate(() => {
      isScheduled = false
      const answered = commits.commitNext()
      if (answered !== undefined) answer(answered)
      schedule()
    })
  }

  function cut(): void {
    const patience = Number(connection.pragma('busy_timeout', { simple: true }))
    connection.pragma('busy_timeout = 0')
    try {
      connection.pragma('wal_checkpoint(truncate)')
    } finally {
      connection.pragma(`busy_timeout = ${patience}`)
    }
  }

  function vacuum(pages: number): number {
    fitCache(connection, CACHE_KIB)
    commits.beginUnpromised()
    try {
      const ms = vacuumPiece(
        () => onePage.run(),
        pages,
        () => machineClock.monotonic(),
      )
      connection.exec('commit')
      return ms
    } catch (error) {
      if (connection.inTransaction) connection.exec('rollback')
      throw error
    }
  }

  function perform(task: WriterTask): number {
    switch (task.kind) {
      case 'checkpoint':
        connection.pragma('wal_checkpoint(passive)')
        return 0
      case 'cut':
        cut()
        return 0
      case 'vacuum':
        return vacuum(task.pages)
      case 'close':
        try {
          connection.pragma('wal_checkpoint(truncate)')
        } finally {
          connection.close()
        }
        return 0
    }
  }

  parentPort?.on('message', (message: ToWriter) => {
    if (Array.isArray(message)) {
      commits.add(message)
      schedule()
      return
    }
    try {
      answer({ ms: perform(message) })
    } catch (error) {
      answer({ ms: 0, refusal: refusalOf(error) })
    }
  })
}
