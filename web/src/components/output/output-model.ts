/**
 * The output of an execution while somebody looks at it: its end as it grows, and whatever part is scrolled to.
 *
 * The end comes by the stream, which goes on where the lines that were read end: nothing is missing, nothing comes twice.
 * When it comes faster than anybody can look at it, or when there may be no stream, the end is read again and again instead.
 */
import type { OutputLine, OutputLines } from '../../api/records.ts'
import { createLineStore, PAGE_LINES, type LiveRecord } from './line-store.ts'

/**
 * `live`: what is shown ends with the last line that there is; `lost`: with the last one that was heard of; `complete`: with
 * the last one that there will be; `failed`: nothing can be shown.
 */
export type OutputPhase = 'loading' | 'live' | 'lost' | 'complete' | 'failed'

export interface OutputState {
  phase: OutputPhase
  /** Why it is `lost` or `failed`. */
  reason: string | undefined
  /** Of the last attempt to read the end; while it is `failed`. */
  error?: unknown
  /** What was answered last about the whole; without its lines. */
  about: OutputLines | undefined
  /** Why visible lines could not be read; the request is repeated. */
  readFailure: string | undefined
}

export interface OutputSource {
  /** @throws whatever `messageOf` can tell */
  read(query: { from: number; limit: number }, signal: AbortSignal): Promise<OutputLines>
  /** @returns ends it */
  follow(lastSeq: number, listener: FollowListener): () => void
  messageOf(error: unknown): string
}

export interface FollowListener {
  onRecord(record: LiveRecord): void
  /** As of `follow` of the API. With `ended` comes a reason unless everything has come. */
  onConnection(connection: 'connecting' | 'open' | 'lost' | 'ended', reason?: string): void
}

export interface OutputModel {
  readonly state: OutputState
  /** Lines that there are. */
  readonly total: number
  /** Hosts that lines came from, as far as they have been read. */
  readonly hosts: ReadonlySet<string>
  /** Undefined: it has to be read first, which `show` sees to. */
  line(number: number): OutputLine | undefined
  /** Visible lines; `end` is after the last one. */
  show(first: number, end: number): void
  retry(): void
  stop(): void
}

/** Lines of the end that are read at first. */
const END_LINES = 200
const RETRY_MS = 2000
/** More than this in a second is not followed record by record, in UTF-16 units. */
const MAX_FOLLOWED = 500_000
/** The end is read so often when it comes too fast; it is followed again when less than this has come meanwhile, in bytes. */
const LOOK_EVERY_MS = 400
const CALM_BYTES = 100_000
/** Where there may be no stream. */
const ASK_EVERY_MS = 2000

/** @param changed called when something must be drawn again, perhaps many times a second */
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
      lines.setEnd(answer)
      set({ about: { ...answer, lines: [] } })
      return answer
    } catch (error) {
      if (!stopped.signal.aborted) {
        set({ phase: state.about === undefined ? 'failed' : 'lost', reason: source.messageOf(error), error })
      }
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
        if (Date.now() - since < 1000) lookInstead(LOOK_EVERY_MS)
        followed = 0
        since = Date.now()
      },
      onConnection(connection, reason) {
        if (stopFollowing === undefined) return
        if (connection === 'open') set({ phase: 'live', reason: undefined })
        else if (connection === 'lost') set({ phase: 'lost', reason })
        else if (connection === 'ended') {
          // Refused; or everything has come, unless a workflow pauses or resumes: then its stream ends at once, and is asked for
          // again when some time has passed.
          lookInstead(reason === undefined ? ASK_EVERY_MS : undefined)
        }
      },
    })
  }

  function endFollowing(): void {
    stopFollowing?.()
    stopFollowing = undefined
  }

  /** @param ms absent: there may be no stream */
  function lookInstead(ms?: number): void {
    endFollowing()
    let before = Infinity
    const look = async (): Promise<void> => {
      const answer = await readEnd()
      if (stopped.signal.aborted) return
      if (answer === undefined) {
        later(RETRY_MS, () => void look())
        return
      }
      set(answer.is_complete ? { phase: 'complete', reason: undefined } : { phase: 'live', reason: undefined })
      if (answer.is_complete) return
      const size = Object.values(answer.bytes).reduce((sum, bytes) => sum + bytes, 0)
      const isCalm = size >= before && size - before < CALM_BYTES
      before = size
      if (ms !== undefined && isCalm) followFrom(answer.last_seq)
      else later(ms ?? ASK_EVERY_MS, () => void look())
    }
    void look()
  }

  /** Reads the visible lines that are missing, then the lines next to them. */
  function fill(): void {
    if (isReading || stopped.signal.aborted) return
    const end = Math.min(shown.end, lines.total + 1)
    const missing =
      lines.missing(shown.first, end) ??
      lines.missing(shown.first - PAGE_LINES / 2, Math.min(end + PAGE_LINES / 2, lines.total + 1))
    if (missing === undefined) {
      // What could not be read is not wanted any more.
      if (state.readFailure !== undefined) set({ readFailure: undefined })
      return
    }
    isReading = true
    source
      .read(missing, stopped.signal)
      .then((answer) => {
        isReading = false
        if (stopped.signal.aborted) return
        state = { ...state, readFailure: undefined }
        // Retention has removed the first lines: the others have other numbers now.
        if (answer.total < lines.total) void readEnd().then(fill)
        else {
          lines.addPage(answer)
          if (answer.lines.length > 0) fill()
        }
        changed()
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
    get hosts() {
      return lines.hosts
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
