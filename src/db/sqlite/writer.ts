/**
 * Sends units to the thread that commits them, and tells their callers. Commits have the order of the calls. Reads on
 * this thread see a commit before its facts are announced and its promises resolve.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Worker } from 'node:worker_threads'
import Sqlite from 'better-sqlite3'
import { locateCode, startWorker } from '../../core/bundle.ts'
import { shuttingDown, storageFailed, storageFull } from '../../core/errors.ts'
import type { Fact } from '../../bus/index.ts'
import { Conflict, type DatabaseStats, type StepResult, type Unit } from '../database.ts'
import type { Answer, PlainResults, PlainStep, PlainUnit, Refusal } from './commits.ts'
import { isDamage } from './damage.ts'
import type { FromWriter, TaskAnswer, ToWriter, WriterTask, WriterThreadData } from './writer-thread.ts'

/** One full commit. */
const MAX_UNITS_SENT = 256
/** Characters and bytes of values that are sent together, besides one larger unit. */
const MAX_SIZE_SENT = 33_554_432
/** A checkpoint waits for the disk, so it runs while no unit waits. */
const REST_AFTER_IDLE_MS = 1000
/** Of the thread, when its connection is closed. */
const MAX_ENDING_MS = 2000

interface Waiting {
  /** Undefined once sent. */
  unit: PlainUnit | undefined
  /** Characters and bytes of its values. */
  size: number
  facts: Fact[]
  resolve(results: StepResult[]): void
  reject(error: unknown): void
}

export interface Writer {
  write(unit: Unit): Promise<StepResult[]>
  stats(): Pick<DatabaseStats, 'waitingUnits' | 'commits' | 'syncs' | 'units'>
  /** Makes a checkpoint between two commits. @throws errors of the disk */
  checkpoint(): Promise<void>
  /** Truncates the log, unless a reader uses it. @throws errors of the disk */
  cutLog(): Promise<void>
  /**
   * Returns unused pages to the file system, in a separate commit. @returns milliseconds of work @throws errors of the
   * disk
   */
  vacuum(pages: number): Promise<number>
  /** Resolves when all units so far are answered. */
  drain(): Promise<void>
  /** Copies the log into the database and ends the thread. @throws errors of the disk */
  close(): Promise<void>
}

export interface WriterHooks {
  /** Receives the facts of each commit, in the order of the units; must not throw. */
  announce: (facts: Fact[]) => void
  /** Called after each commit; must not throw. */
  committed: () => void
  /** Called when no write has happened for a while; must not throw. */
  idle: () => void
  /** Whether the disk is full. */
  isDiskFull: () => boolean
  /** Called when the file is damaged; must not throw. */
  damaged: (error: Error) => void
  /** Called when the thread has ended by itself. All units without an answer are refused; what the file has of them is unknown. */
  ended: (error: Error) => void
}

export function createWriter(data: WriterThreadData, hooks: WriterHooks): Writer {
  let queue: Waiting[] = []
  let sent: Waiting[] = []
  const tasks: { resolve(answer: TaskAnswer): void; reject(error: unknown): void }[] = []
  let drained: (() => void)[] = []
  let commits = 0
  let syncs = 0
  let units = 0
  let sending: NodeJS.Immediate | undefined
  let idle: NodeJS.Timeout | undefined
  let isClosing = false
  let death: Error | undefined

  const worker = startWorker(locateCode('./writer-thread', import.meta.url), { workerData: data })
  worker.on('message', (message: FromWriter) => {
    if ('outcomes' in message) receive(message)
    else tasks.shift()?.resolve(message)
    rest()
  })
  worker.on('error', die)
  worker.on('exit', (code) => die(new Error(`The thread that writes the database has ended (${code}).`)))
  // It keeps the process running only while somebody waits for it.
  worker.unref()

  function die(error: Error): void {
    if (isClosing && tasks.length === 0) return
    if (death !== undefined) return
    death = error
    if (sending !== undefined) clearImmediate(sending)
    clearTimeout(idle)
    for (const one of [...sent.splice(0), ...queue.splice(0), ...tasks.splice(0)]) one.reject(storageFailed(error))
    finishDraining()
    hooks.ended(error)
  }

  function scheduleSend(): void {
    if (queue.length > 0) sending ??= setImmediate(send)
  }

  /**
   * Sends units once those before them are answered: what comes meanwhile shares one message and one commit. Each message
   * wakes two threads, so that many small ones cost more than the thread's wait for the next.
   */
  function send(): void {
    sending = undefined
    if (sent.length > 0) return
    let count = 0
    let together = 0
    for (const { size } of queue) {
      together += size
      if (count > 0 && (count >= MAX_UNITS_SENT || together > MAX_SIZE_SENT)) break
      count += 1
    }
    if (count === 0) return
    const batch = queue.slice(0, count)
    queue = queue.slice(count)
    // The other units of the batch are sendable.
    if (!tryPost(batch)) for (const one of batch) tryPost([one])
    // None was.
    if (sent.length === 0) scheduleSend()
  }

  /** @returns false: a value cannot be sent, and none of several units was sent; a single one is refused */
  function tryPost(batch: readonly Waiting[]): boolean {
    try {
      post(
        worker,
        batch.map(({ unit }) => unit ?? { steps: [] }),
      )
    } catch (error) {
      const [only] = batch
      if (only === undefined || batch.length > 1) return false
      only.reject(error)
      rest()
      return true
    }
    for (const one of batch) {
      one.unit = undefined
      sent.push(one)
    }
    return true
  }

  function receive({ outcomes, isCommitted, isSynced }: Answer): void {
    const answered = sent.splice(0, outcomes.length)
    if (isCommitted) {
      commits += 1
      if (isSynced) syncs += 1
      units += outcomes.length
      restWhenIdle()
      hooks.committed()
    }
    // In the next turn: answers that follow each other at once would keep the event loop from all else.
    scheduleSend()
    for (const [index, one] of answered.entries()) {
      const outcome = outcomes[index]
      if (Array.isArray(outcome)) {
        if (one.facts.length > 0) hooks.announce(one.facts)
        one.resolve(resultsOf(outcome))
      } else if (outcome !== undefined) one.reject(translate(errorOf(outcome)))
    }
  }

  /** By driver code, never by message text. */
  function translate(error: Error): Error {
    if (!(error instanceof Sqlite.SqliteError)) return error
    const { code } = error
    if (code === 'SQLITE_CONSTRAINT_UNIQUE' || code === 'SQLITE_CONSTRAINT_PRIMARYKEY') {
      return new Conflict('a unique key is taken', error)
    }
    // On a full disk some calls report an I/O error.
    if (/^SQLITE_(FULL|IOERR)/.test(code) && (hooks.isDiskFull() || code === 'SQLITE_FULL')) return storageFull(error)
    if (/^SQLITE_(IOERR|BUSY|READONLY|CANTOPEN|NOMEM)/.test(code)) return storageFailed(error)
    if (isDamage(error)) hooks.damaged(error)
    return error
  }

  function perform(task: WriterTask): Promise<number> {
    return new Promise<TaskAnswer>((resolve, reject) => {
      if (death !== undefined) throw storageFailed(death)
      if (isClosing && task.kind !== 'close') throw shuttingDown()
      tasks.push({ resolve, reject })
      post(worker, task)
    }).then(({ ms, refusal }) => {
      if (refusal !== undefined) throw translate(errorOf(refusal))
      return ms
    })
  }

  function restWhenIdle(): void {
    if (idle !== undefined) {
      idle.refresh()
      return
    }
    idle = setTimeout(() => {
      idle = undefined
      hooks.idle()
    }, REST_AFTER_IDLE_MS)
    idle.unref()
  }

  function rest(): void {
    if (sent.length + queue.length > 0) return
    finishDraining()
    if (tasks.length === 0) worker.unref()
  }

  function finishDraining(): void {
    for (const tell of drained) tell()
    drained = []
  }

  return {
    write({ steps, facts, isUnpromised }) {
      return new Promise((resolve, reject) => {
        if (death !== undefined) throw storageFailed(death)
        const plain = steps.map(({ query, expect }): PlainStep => {
          const { sql, parameters } = query.compile()
          return [sql, parameters.map(sendable), expect]
        })
        const unit: PlainUnit = isUnpromised === true ? { steps: plain, isUnpromised } : { steps: plain }
        queue.push({ unit, size: sizeOf(unit), facts, resolve, reject })
        scheduleSend()
      })
    },
    stats: () => ({ waitingUnits: sent.length + queue.length, commits, syncs, units }),
    async checkpoint() {
      await perform({ kind: 'checkpoint' })
    },
    async cutLog() {
      await perform({ kind: 'cut' })
    },
    async vacuum(pages) {
      const ms = await perform({ kind: 'vacuum', pages })
      restWhenIdle()
      hooks.committed()
      return ms
    },
    async drain() {
      if (sent.length + queue.length === 0) return
      await new Promise<void>((resolve) => drained.push(resolve))
    },
    async close() {
      clearTimeout(idle)
      isClosing = true
      try {
        if (death === undefined) await perform({ kind: 'close' })
      } finally {
        const late = new AbortController()
        // A request of its own to a file system that does not answer would keep it.
        await Promise.race([worker.terminate(), delay(MAX_ENDING_MS, undefined, late).catch(() => undefined)])
        late.abort()
      }
    },
  }
}

function post(worker: Worker, message: ToWriter): void {
  worker.postMessage(message)
  worker.ref()
}

/** A view of a large buffer would be sent with the whole buffer. */
function sendable(value: unknown): unknown {
  return value instanceof Uint8Array && value.byteLength < value.buffer.byteLength ? new Uint8Array(value) : value
}

function sizeOf(unit: PlainUnit): number {
  let size = 0
  for (const [, parameters] of unit.steps) {
    for (const value of parameters) {
      if (typeof value === 'string') size += value.length
      else if (value instanceof Uint8Array) size += value.byteLength
    }
  }
  return size
}

function resultsOf(results: PlainResults): StepResult[] {
  return results.map((result) =>
    typeof result === 'number' ? { changes: result, rows: [] } : { changes: result.length, rows: result.map(received) },
  )
}

/** A sent `Buffer` arrives as a plain array of bytes. */
function received(row: Record<string, unknown>): Record<string, unknown> {
  for (const [name, value] of Object.entries(row)) {
    if (value instanceof Uint8Array) row[name] = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  }
  return row
}

function errorOf({ name, message, code }: Refusal): Error {
  if (name === 'UnexpectedRows') return new Conflict(message)
  return code === undefined ? Object.assign(new Error(message), { name }) : new Sqlite.SqliteError(message, code)
}
