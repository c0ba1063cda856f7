/**
 * The output of sensors: the newest part of it is kept. A flood is cut, so that a sensor that prints without end costs
 * no disk and is not held up.
 */
import type { Database } from '../../../db/index.ts'
import { formatMicros, nowMicros } from '../../../core/time.ts'
import type { Log } from '../../../lib/log/index.ts'
import type { SensorOutput } from '../types.ts'
import type { RunStore } from './store.ts'

export interface OutputLog {
  /** Keeps a text. Never waits. */
  add(type: SensorOutput['type'], text: string): void
  /** Resolves when all so far is stored. */
  flush(): Promise<void>
}

export interface Outputs {
  /** The log of a sensor; of two calls for one sensor both get the same. */
  of(sensorId: string): OutputLog
  /** Records after `seq`, oldest first. */
  after(sensorId: string, seq: number, limit: number): SensorOutput[]
  /** Number of the newest record; 0: none. */
  lastSeq(sensorId: string): number
  /** Resolves when there may be records after `seq`, or the signal is aborted. Never rejects. */
  wait(sensorId: string, seq: number, signal: AbortSignal): Promise<void>
  /** The sensor is gone. */
  forget(sensorId: string): void
  /** From now on nobody waits. */
  endWaits(): void
}

/** Bytes and records that are kept for each sensor. */
export const MAX_KEPT_BYTES = 1024 * 1024
const MAX_KEPT_RECORDS = 2_000
/** Bytes of one record. */
const MAX_RECORD_BYTES = 16 * 1024
/** Bytes that a sensor may write at once, and that are added each second. */
const BURST_BYTES = 512 * 1024
const BYTES_PER_SECOND = 32 * 1024
/** Time in which small texts are joined. */
const JOIN_MS = 50

export function createOutputs(deps: { database: Database; store: RunStore; log: Log }): Outputs {
  const { database, store, log } = deps
  const logs = new Map<string, OwnLog>()
  const followers = new Map<string, Set<() => void>>()
  let isEnded = false

  const wakeAll = (sensorId: string): void => {
    for (const wake of followers.get(sensorId) ?? []) wake()
  }

  class OwnLog implements OutputLog {
    readonly #id: string
    readonly #sizes: { seq: number; bytes: number }[]
    #bytes: number
    #waiting: { type: SensorOutput['type']; text: string }[] = []
    #timer: NodeJS.Timeout | undefined
    #allowance = BURST_BYTES
    #allowedAt = performance.now()
    #dropped = 0
    #work: Promise<void> = Promise.resolve()
    lastSeq: number

    constructor(id: string) {
      this.#id = id
      this.#sizes = store.outputSizes(id)
      this.#bytes = this.#sizes.reduce((sum, { bytes }) => sum + bytes, 0)
      this.lastSeq = this.#sizes.at(-1)?.seq ?? 0
    }

    add(type: SensorOutput['type'], text: string): void {
      if (text === '') return
      this.#earn()
      const bytes = Buffer.byteLength(text)
      if (bytes > this.#allowance) {
        this.#dropped += bytes
      } else {
        this.#allowance -= bytes
        this.#tellDropped()
        const last = this.#waiting.at(-1)
        if (last?.type === type) last.text += text
        else this.#waiting.push({ type, text })
      }
      this.#timer ??= setTimeout(() => void this.flush(), JOIN_MS).unref()
    }

    #earn(): void {
      const at = performance.now()
      const earned = ((at - this.#allowedAt) / 1000) * BYTES_PER_SECOND
      this.#allowance = Math.min(BURST_BYTES, this.#allowance + earned)
      this.#allowedAt = at
    }

    #tellDropped(): void {
      if (this.#dropped === 0) return
      const text = `svc dropped ${this.#dropped} bytes of output: the sensor writes more than ${BYTES_PER_SECOND} bytes a second.\n`
      this.#dropped = 0
      this.#waiting.push({ type: 'other', text })
    }

    flush(): Promise<void> {
      clearTimeout(this.#timer)
      this.#timer = undefined
      this.#earn()
      // While output is being dropped, that is said once it ends.
      if (this.#allowance > BYTES_PER_SECOND) this.#tellDropped()
      else if (this.#dropped > 0) this.#timer = setTimeout(() => void this.flush(), 1000).unref()
      const waiting = this.#waiting
      this.#waiting = []
      if (waiting.length > 0) this.#work = this.#work.then(() => this.#store(waiting))
      return this.#work
    }

    async #store(waiting: readonly { type: SensorOutput['type']; text: string }[]): Promise<void> {
      const timestamp = formatMicros(nowMicros())
      const records = waiting.flatMap(({ type, text }) =>
        cut(text).map((data): SensorOutput => ({ seq: (this.lastSeq += 1), timestamp, type, data })),
      )
      const steps = records.map((record) => store.insertOutput(this.#id, record))
      for (const { seq, data } of records) {
        const bytes = Buffer.byteLength(data)
        this.#sizes.push({ seq, bytes })
        this.#bytes += bytes
      }
      let last: number | undefined
      while (this.#bytes > MAX_KEPT_BYTES || this.#sizes.length > MAX_KEPT_RECORDS) {
        const first = this.#sizes.shift()
        if (first === undefined) break
        this.#bytes -= first.bytes
        last = first.seq
      }
      if (last !== undefined) steps.push(store.deleteOutputUpTo(this.#id, last))
      try {
        await database.write({ steps, facts: [], isUnpromised: true })
      } catch (error) {
        log.warning('sensor.output_lost', 'Could not store output of a sensor', { sensor_id: this.#id, error })
      }
      wakeAll(this.#id)
    }
  }

  function of(sensorId: string): OwnLog {
    const own = logs.get(sensorId) ?? new OwnLog(sensorId)
    logs.set(sensorId, own)
    return own
  }

  return {
    of,
    after: (sensorId, seq, limit) => store.outputAfter(sensorId, seq, limit),
    lastSeq: (sensorId) => of(sensorId).lastSeq,
    wait: (sensorId, seq, signal) =>
      new Promise((resolve) => {
        const set = followers.get(sensorId) ?? new Set()
        followers.set(sensorId, set)
        const done = (): void => {
          set.delete(done)
          if (set.size === 0 && followers.get(sensorId) === set) followers.delete(sensorId)
          signal.removeEventListener('abort', done)
          resolve()
        }
        set.add(done)
        signal.addEventListener('abort', done)
        if (isEnded || signal.aborted || store.outputAfter(sensorId, seq, 1).length > 0) done()
      }),
    forget(sensorId) {
      logs.delete(sensorId)
      wakeAll(sensorId)
    },
    endWaits() {
      isEnded = true
      for (const sensorId of followers.keys()) wakeAll(sensorId)
    },
  }
}

/** Pieces of at most `MAX_RECORD_BYTES`, between characters. */
function cut(text: string): string[] {
  const pieces: string[] = []
  // A UTF-16 unit has at most three bytes.
  const size = Math.floor(MAX_RECORD_BYTES / 3)
  for (let at = 0; at < text.length;) {
    const isPair = (text.charCodeAt(at + size - 1) & 0xfc00) === 0xd800
    const end = at + size - (isPair && at + size < text.length ? 1 : 0)
    pieces.push(text.slice(at, end))
    at = end
  }
  return pieces
}
