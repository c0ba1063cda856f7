/**
 * Output on its way from runners to rows and readers.
 *
 * Chunks of all running executions wait together and become rows in one unit, at once after a silence and every
 * 10 ms under load. A reader is a cursor over `seq`: it reads from the ring of recent records or from the rows.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Bus } from '../../../bus/index.ts'
import type { Database, Step, Unit } from '../../../db/index.ts'
import { isStorageFailure } from '../../../core/errors.ts'
import { newId } from '../../../core/ids.ts'
import type { Log } from '../../../lib/log/index.ts'
import type { OutputType } from '../../../runners/index.ts'
import { now } from '../../../core/time.ts'
import { noPlace, placeBehind } from './place.ts'
import type { OutputStore } from './store.ts'
import type { Execution, OutputPlace, OutputRecord } from '../types.ts'

const FLUSH_EVERY_MS = 10
/** A record holds at most this many UTF-16 units. */
const MAX_CHUNK_LENGTH = 16_384
/** Waiting output beyond this pauses the runner's source. */
const MAX_WAITING_LENGTH = 262_144
/** Recent output kept per running execution, for readers that are up to date. */
const MAX_RING_LENGTH = 262_144
/** Cost of a record besides its text, so that a million tiny records do not bypass the bounds. */
const RECORD_COST = 256
const RETRY_AFTER_MS = 1000
/** Target of one read from the rows, estimated from the records before. */
const READ_LENGTH = 65_536
const MAX_RECORDS_READ = 64

/** Takes the output of one run. */
export interface OutputIntake {
  /** @returns a promise while too much waits: the source pauses until it resolves */
  emit(type: OutputType, text: string, host?: string | null): Promise<void> | undefined
  /** After the last `emit`: the output that is not stored yet, to commit with the end of the execution. */
  finish(): Promise<Unit>
  /** The end is durable; recent output is no longer kept. */
  close(): void
}

export interface OutputCursor {
  /** Records after `seq`, oldest first, at most a few hundred KiB of them; empty when there are none yet. */
  after(seq: number, type: OutputType | undefined): OutputRecord[]
}

export interface ExecutionOutput {
  /** @param enabled `actionrunner.stream_output`: without it nothing is stored */
  open(execution: Execution, enabled: boolean): OutputIntake
  /** Plans output of an execution that no runner runs; writes nothing. @param end of what is stored of it */
  plan(execution: Execution, end: OutputEnd, type: OutputType, text: string): { unit: Unit; end: OutputEnd }
  cursor(executionId: string): OutputCursor
  /** Resolves when what was emitted before is stored. */
  flush(): Promise<void>
}

/** Where the next record of an execution goes. */
export interface OutputEnd {
  /** Of the last record; 0: there is none. */
  readonly seq: number
  /** What the records so far have. */
  readonly place: OutputPlace
}

interface Ring {
  records: OutputRecord[]
  length: number
}

interface Intake {
  execution: Execution
  end: OutputEnd
  waiting: { type: OutputType; host: string | null; parts: string[]; length: number; timestamp: string }[]
  waitingLength: number
  resume: (() => void) | undefined
  resumed: Promise<void> | undefined
}

/** Records of one execution that are not stored yet. */
interface Owed {
  id: string
  unit: Unit
  /** Resumes the paused source. */
  resume: () => void
}

export function createOutput(deps: {
  store: OutputStore
  database: Database
  bus: Bus
  log: Log
  /** Aborted when a stopping server gives up writes that fail. */
  stopRetrying: AbortSignal
}): ExecutionOutput {
  const { store, database, stopRetrying } = deps
  const rings = new Map<string, Ring>()
  const dirty = new Set<Intake>()
  let flushing: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined
  let lastFlushAt = 0

  deps.bus.subscribe('execution.output', ({ execution_id, records }) => {
    const ring = rings.get(execution_id)
    if (ring !== undefined) remember(ring, records)
  })

  function schedule(): void {
    if (timer !== undefined || flushing !== undefined) return
    const wait = Math.max(0, FLUSH_EVERY_MS - (performance.now() - lastFlushAt))
    timer = setTimeout(() => void flush(), wait)
  }

  function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    flushing ??= writeWaiting().finally(() => {
      flushing = undefined
      lastFlushAt = performance.now()
      if ([...dirty].some((intake) => intake.resumed !== undefined)) void flush()
      else if (dirty.size > 0) schedule()
    })
    return flushing
  }

  async function writeWaiting(): Promise<void> {
    const taken = [...dirty].map(take)
    dirty.clear()
    let owed = await writeAll(taken)
    while (owed.length > 0 && !stopRetrying.aborted) {
      // The child processes are paused: their output waits in their pipes instead of being lost.
      await delay(RETRY_AFTER_MS, undefined, { signal: stopRetrying }).catch(() => undefined)
      owed = await writeAll(owed)
    }
    for (const { resume } of taken) resume()
  }

  /** @returns what could not be stored because the disk is full */
  async function writeAll(owed: Owed[]): Promise<Owed[]> {
    // The end of an execution is promised, and keeps all output before it.
    const outcomes = await Promise.allSettled(owed.map(({ unit }) => database.write({ ...unit, isUnpromised: true })))
    const again: Owed[] = []
    let failure: unknown
    for (const [i, outcome] of outcomes.entries()) {
      const one = owed[i]
      if (one === undefined || outcome.status === 'fulfilled') continue
      const error: unknown = outcome.reason
      if (isStorageFailure(error)) {
        again.push(one)
        failure = error
      } else {
        deps.log.error('output.lost', 'Could not store output: it is lost', { execution_id: one.id, error })
        // Its records no longer follow one another.
        rings.delete(one.id)
      }
    }
    if (again.length > 0) {
      deps.log.error('output.not_stored', 'Could not store output: trying again', {
        executions: again.length,
        error: failure,
      })
    }
    return again
  }

  /** Makes numbered records of the waiting output. */
  function take(intake: Intake): Owed {
    const { execution, resume = () => undefined } = intake
    const texts = intake.waiting.map(({ parts, ...text }) => ({ ...text, data: parts.join('') }))
    const { unit, end } = append(execution, intake.end, texts)
    intake.end = end
    intake.waiting = []
    intake.waitingLength = 0
    intake.resume = undefined
    intake.resumed = undefined
    return { id: execution.id, unit, resume }
  }

  /** Makes numbered records of texts. */
  function append(
    execution: Execution,
    before: OutputEnd,
    texts: readonly (Pick<OutputRecord, 'host' | 'data' | 'timestamp'> & { readonly type: OutputType })[],
  ): { unit: Unit; end: OutputEnd } {
    let end = before
    const steps: Step[] = []
    const records: OutputRecord[] = []
    for (const { type, host, data: text, timestamp } of texts) {
      for (const data of pieces(text)) {
        const { id: execution_id } = execution
        const seq = end.seq + 1
        const record: OutputRecord = { id: newId(), execution_id, seq, output_type: type, data, timestamp, host }
        records.push(record)
        steps.push(store.insertOutput(record, end.place))
        end = { seq, place: placeBehind(record, end.place) }
      }
    }
    if (records.length === 0) return { unit: { steps, facts: [] }, end }
    const payload = {
      execution_id: execution.id,
      action_ref: execution.action_ref,
      user: execution.user,
      runner_ref: execution.runner.name,
      last_seq: end.seq,
      records,
    }
    return { unit: { steps, facts: [{ name: 'execution.output', payload }] }, end }
  }

  return {
    plan: (execution, end, type, text) => append(execution, end, [{ type, host: null, data: text, timestamp: now() }]),
    open(execution, enabled) {
      const intake: Intake = {
        execution,
        end: { seq: 0, place: noPlace },
        waiting: [],
        waitingLength: 0,
        resume: undefined,
        resumed: undefined,
      }
      if (enabled) rings.set(execution.id, { records: [], length: 0 })
      return {
        emit(type, text, host = null) {
          if (!enabled || text === '') return undefined
          const last = intake.waiting.at(-1)
          if (last?.type === type && last.host === host && last.length + text.length <= MAX_CHUNK_LENGTH) {
            last.parts.push(text)
            last.length += text.length
          } else {
            intake.waiting.push({ type, host, parts: [text], length: text.length, timestamp: now() })
            intake.waitingLength += RECORD_COST
          }
          intake.waitingLength += text.length
          dirty.add(intake)
          if (intake.waitingLength <= MAX_WAITING_LENGTH) {
            schedule()
            return undefined
          }
          const resumed = (intake.resumed ??= new Promise((resolve) => {
            intake.resume = resolve
          }))
          void flush()
          return resumed
        },
        async finish() {
          dirty.delete(intake)
          // A flush under way may hold earlier records of this run.
          await flushing
          const { unit, resume } = take(intake)
          resume()
          return unit
        },
        close() {
          rings.delete(execution.id)
        },
      }
    },
    cursor: (executionId) => createCursor(store, rings, executionId),
    async flush() {
      while (dirty.size > 0 || flushing !== undefined) await flush()
    },
  }
}

/** Reads recent records from the ring of a run, older ones from the rows. */
function createCursor(store: OutputStore, rings: ReadonlyMap<string, Ring>, executionId: string): OutputCursor {
  // No record of this type is stored between the two. Without this a reader of one type would scan the records of
  // other types again and again.
  let known: { type: OutputType; from: number; to: number } | undefined

  let recordsPerRead = READ_LENGTH / MAX_CHUNK_LENGTH

  function stored(seq: number, type: OutputType | undefined): OutputRecord[] {
    const records = store.outputAfter(executionId, seq, recordsPerRead, type)
    if (records.length === 0) return records
    const length = records.reduce((sum, { data }) => sum + data.length, 1)
    const fitting = Math.floor((READ_LENGTH * records.length) / length)
    recordsPerRead = Math.min(Math.max(fitting, 1), MAX_RECORDS_READ)
    return records
  }

  function recent(seq: number): OutputRecord[] | undefined {
    const ring = rings.get(executionId)
    const first = ring?.records[0]
    return ring !== undefined && first !== undefined && first.seq <= seq + 1
      ? ring.records.slice(seq + 1 - first.seq)
      : undefined
  }

  return {
    after(seq, type) {
      if (type === undefined) return recent(seq) ?? stored(seq, type)
      const start = known?.type === type && known.from <= seq && seq < known.to ? known.to : seq
      const from = recent(start)
      const to = from === undefined ? store.lastSeq(executionId) : (from.at(-1)?.seq ?? start)
      const records = from?.filter((record) => record.output_type === type) ?? stored(start, type)
      if (records.length === 0) known = { type, from: seq, to }
      return records
    },
  }
}

function remember(ring: Ring, records: readonly OutputRecord[]): void {
  for (const record of records) {
    ring.records.push(record)
    ring.length += record.data.length + RECORD_COST
  }
  let dropped = 0
  while (ring.length > MAX_RING_LENGTH && dropped < ring.records.length - 1) {
    ring.length -= (ring.records[dropped]?.data.length ?? 0) + RECORD_COST
    dropped += 1
  }
  if (dropped > 0) ring.records = ring.records.slice(dropped)
}

/** At most `MAX_CHUNK_LENGTH` each, never between the halves of a surrogate pair. */
function pieces(text: string): string[] {
  if (text.length <= MAX_CHUNK_LENGTH) return [text]
  const found: string[] = []
  for (let start = 0; start < text.length;) {
    let end = Math.min(start + MAX_CHUNK_LENGTH, text.length)
    const unit = text.charCodeAt(end - 1)
    if (end < text.length && unit >= 0xd800 && unit <= 0xdbff) end -= 1
    found.push(text.slice(start, end))
    start = end
  }
  return found
}
