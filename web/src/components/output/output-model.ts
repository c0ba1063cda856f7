/**
 * The output of an execution while somebody looks at it: its end as it grows, and whatever part is scrolled to.
 *
 * The end comes by the stream, which goes on where the lines that were read end: nothing is missing, nothing comes twice.
 * When it comes faster than anybody can look at it, the end is read again and again instead.
 */
import type { OutputLine, OutputLines } from '../../api/records.ts'
import { createLineStore, type LiveRecord } from './output-lines.ts'

/** What is shown is the end as it is written, or it is complete, or it is not known whether it is the end. */
export type OutputPhase = 'loading' | 'live' | 'lost' | 'complete' | 'failed'

export interface OutputState {
  phase: OutputPhase
  /** Why it is `lost` or `failed`. */
  reason: string | undefined
  /** What was answered last about the whole; without its lines. */
  about: OutputLines | undefined
  /** Lines that could not be read. */
  readFailure: string | undefined
}

export interface OutputSource {
  /** @throws what `messageOf` can tell */
  read(query: { from: number; limit: number }, signal: AbortSignal): Promise<OutputLines>
  follow(
    lastSeq: number,
    listener: {
      onRecord(record: LiveRecord): void
      onConnection(connection: 'connecting' | 'open' | 'lost' | 'ended', reason?: string): void
    },
  ): () => void
  messageOf(error: unknown): string
}

export interface OutputModel {
  readonly state: OutputState
  readonly total: number
  line(number: number): OutputLine | undefined
  /** What is to be seen: what is missing of it is read. `end` is behind the last one. */
  show(first: number, end: number): void
  retry(): void
  stop(): void
}

/** Lines of the end that are read at first. */
const END_LINES = 200
const RETRY_MS = 2000
/** More than this in a second is not followed record by record, in UTF-16 units. */
const MAX_FOLLOWED = 4_000_000
/** The end is read so often when it comes too fast; and it is followed again when less than this has come meanwhile, in bytes. */
const LOOK_EVERY_MS = 400
const CALM_BYTES = 400_000

export function createOutputModel(source: OutputSource, changed: () => void): OutputModel {
  const stopped = new AbortController()
  const lines = createLineStore()
  let state: OutputState = { phase: 'loading', reason: undefined, about: undefined, readFailure: undefined }
  let shown = { first: 1, end: 1 }
  let isReading = false
  let stopFollowing: (() => void) | undefined
  const timers = new Set<ReturnType<typeof setTimeout>>()

  function set(more: Partial<OutputState>): void {
    state = { ...state, ...more }
    changed()
  }

  function later(ms: number, act: () => void): void {
    const timer = setTimeout(() => {
      timers.delete(timer)
      act()
    }, ms)
    timers.add(timer)
  }

  /** @returns undefined when that failed, or nobody looks any more */
  async function readEnd(): Promise<OutputLines | undefined> {
    try {
      let count = END_LINES
      let answer = await source.read({ from: -count, limit: count }, stopped.signal)
      // Long lines fill an answer before the last one.
      while ((answer.lines.at(-1)?.number ?? answer.total) < answer.total && count > 1) {
        count = Math.max(1, Math.floor(answer.lines.length / 2))
        answer = await source.read({ from: -count, limit: count }, stopped.signal)
      }
      if (stopped.signal.aborted) return undefined
      if (answer.total < lines.total) lines.clear()
      lines.setEnd(answer)
      state = { ...state, about: { ...answer, lines: [] } }
      return answer
    } catch (error) {
      if (stopped.signal.aborted) return undefined
      set({ phase: state.about === undefined ? 'failed' : 'lost', reason: source.messageOf(error) })
      return undefined
    }
  }

  async function begin(): Promise<void> {
    const answer = await readEnd()
    if (answer === undefined) {
      if (state.phase === 'lost') later(RETRY_MS, () => void begin())
      return
    }
    if (answer.is_complete) set({ phase: 'complete', reason: undefined })
    else followFrom(answer.last_seq)
    fill()
  }

  function followFrom(lastSeq: number): void {
    let followed = 0
    let since = Date.now()
    set({ phase: 'live', reason: undefined })
    stopFollowing = source.follow(lastSeq, {
      onRecord(record) {
        if (stopFollowing === undefined) return
        lines.append(record)
        changed()
        followed += record.data.length
        if (followed < MAX_FOLLOWED) return
        if (Date.now() - since < 1000) lookInstead()
        followed = 0
        since = Date.now()
      },
      onConnection(connection, reason) {
        if (connection === 'open') set({ phase: 'live', reason: undefined })
        else if (connection === 'lost') set({ phase: 'lost', reason })
        else if (connection === 'ended') {
          endFollowing()
          if (reason === undefined) void begin()
          else set({ phase: 'failed', reason })
        }
      },
    })
  }

  function endFollowing(): void {
    stopFollowing?.()
    stopFollowing = undefined
  }

  function lookInstead(): void {
    endFollowing()
    let before = Infinity
    const look = async (): Promise<void> => {
      const answer = await readEnd()
      if (answer === undefined || answer.is_complete) {
        void begin()
        return
      }
      set({ phase: 'live', reason: undefined })
      const size = Object.values(answer.bytes).reduce((sum, bytes) => sum + bytes, 0)
      if (size - before < CALM_BYTES && size >= before) followFrom(answer.last_seq)
      else later(LOOK_EVERY_MS, () => void look())
      before = size
    }
    void look()
  }

  function fill(): void {
    if (isReading || stopped.signal.aborted) return
    const missing = lines.missing(shown.first, Math.min(shown.end, lines.total + 1))
    if (missing === undefined) return
    isReading = true
    source
      .read(missing, stopped.signal)
      .then((answer) => {
        isReading = false
        if (stopped.signal.aborted) return
        if (answer.total < lines.total) {
          void readEnd().then(changed)
          return
        }
        lines.addPage(answer.lines, answer)
        if (state.readFailure === undefined) changed()
        else set({ readFailure: undefined })
        if (answer.lines.length > 0) fill()
      })
      .catch((error: unknown) => {
        isReading = false
        if (stopped.signal.aborted) return
        set({ readFailure: source.messageOf(error) })
        later(RETRY_MS, fill)
      })
  }

  void begin()

  return {
    get state() {
      return state
    },
    get total() {
      return lines.total
    },
    line: (number) => lines.line(number),
    show(first, end) {
      shown = { first, end }
      fill()
    },
    retry() {
      set({ phase: 'loading', reason: undefined })
      void begin()
    },
    stop() {
      stopped.abort()
      endFollowing()
      for (const timer of timers) clearTimeout(timer)
    },
  }
}
