/**
 * A search through the output: from what is looked at to the end, then from the beginning up to there, so that what is near is
 * found first. The server looks through a part of it for each request.
 */
import type { OutputMatches } from '../../api/records.ts'

export interface SearchTerms {
  query: string
  matchesCase: boolean
  isPattern: boolean
}

export interface SearchSource {
  /** @throws whatever `messageOf` can tell */
  search(
    terms: SearchTerms,
    place: { from: number; offset: number; limit: number },
    signal: AbortSignal,
  ): Promise<OutputMatches>
  messageOf(error: unknown): string
}

export interface SearchState {
  /** Lines that were found so far. */
  count: number
  /** Of all lines, those that have been looked through: 0 to 1. */
  share: number
  /** `searching`; `stopped` by the user, or because so much was found; `done`, as far as there is output; `failed`. */
  phase: 'searching' | 'stopped' | 'done' | 'failed'
  reason: string | undefined
}

export interface OutputSearch {
  readonly terms: SearchTerms
  readonly state: SearchState
  isFound(line: number): boolean
  /** What was found in a line by a pattern; undefined: nothing, or too much was found since. */
  textIn(line: number): string | undefined
  /** The found line that follows a line, or comes before it; around the end, once that has been reached. */
  next(line: number, direction: 1 | -1): number | undefined
  /** How many found lines there are up to this one. */
  placeOf(line: number): number
  /** By the user; `goOn` takes it up again. */
  stop(): void
  goOn(): void
  /** Nobody looks any more. */
  end(): void
}

/** Lines that are found; more than that, nobody looks at one by one. */
const MAX_FOUND = 100_000
/** Texts that patterns have found. */
const MAX_TEXTS = 5000
const MATCHES_AT_ONCE = 1000
const RETRY_MS = 2000
/** While more is written. */
const LOOK_AGAIN_MS = 3000

export function createOutputSearch(
  source: SearchSource,
  terms: SearchTerms,
  /** The line that is looked at, and how many there are. */
  begin: { line: number; total: number },
  changed: () => void,
): OutputSearch {
  const ended = new AbortController()
  let running = new AbortController()
  /** Behind where it began, and before; each ascends. */
  const after: number[] = []
  const before: number[] = []
  const texts = new Map<number, string>()
  let place = { from: begin.line, offset: 0 }
  let isBehind = true
  /** Where the end was when it was reached. */
  let afterEnd = place
  let total = Math.max(begin.total, begin.line)
  let state: SearchState = { count: 0, share: 0, phase: 'searching', reason: undefined }
  const timers = new Set<ReturnType<typeof setTimeout>>()

  function set(more: Partial<SearchState>): void {
    state = { ...state, count: after.length + before.length, share: shareDone(), ...more }
    changed()
  }

  function shareDone(): number {
    const done = isBehind ? place.from - begin.line : total - begin.line + place.from
    return state.phase === 'done' || total === 0 ? 1 : Math.min(1, Math.max(0, done / total))
  }

  function take({ matches, next, total: known }: OutputMatches): void {
    total = Math.max(known, begin.line)
    const found = isBehind ? after : before
    for (const { line, match } of matches) {
      // A line that went on when it was looked through is looked through again.
      if (line <= (found.at(-1) ?? 0) || (!isBehind && line >= begin.line)) continue
      found.push(line)
      if (terms.isPattern && texts.size < MAX_TEXTS) texts.set(line, match)
    }
    place = next
  }

  async function run(): Promise<void> {
    const { signal } = (running = new AbortController())
    if (state.phase !== 'searching') set({ phase: 'searching', reason: undefined })
    while (!signal.aborted) {
      let answer: OutputMatches
      try {
        answer = await source.search(terms, { ...place, limit: MATCHES_AT_ONCE }, signal)
      } catch (error) {
        if (!signal.aborted && !ended.signal.aborted) set({ phase: 'failed', reason: source.messageOf(error) })
        return
      }
      if (signal.aborted) return
      take(answer)
      const isFull = after.length + before.length >= MAX_FOUND
      const isOver = isBehind ? answer.is_at_end : answer.is_at_end || place.from >= begin.line
      if (isFull) {
        set({ phase: 'stopped', reason: undefined })
        return
      }
      if (!isOver) set({})
      else if (isBehind && begin.line > 1) {
        afterEnd = place
        isBehind = false
        place = { from: 1, offset: 0 }
        set({})
      } else {
        if (isBehind) afterEnd = place
        isBehind = true
        place = afterEnd
        set({ phase: 'done', share: 1 })
        if (!answer.is_complete) later(LOOK_AGAIN_MS, lookAgain)
        return
      }
    }
  }
  /** For what was written meanwhile. */
  async function lookAgain(): Promise<void> {
    if (ended.signal.aborted || state.phase !== 'done') return
    try {
      const answer = await source.search(terms, { ...place, limit: MATCHES_AT_ONCE }, ended.signal)
      if (ended.signal.aborted) return
      const found = after.length
      take(answer)
      if (after.length > found) set({})
      if (after.length + before.length >= MAX_FOUND) return
      if (!answer.is_at_end) later(0, lookAgain)
      else if (!answer.is_complete) later(LOOK_AGAIN_MS, lookAgain)
    } catch {
      // It says so itself when the server cannot be reached; the next look may go well.
      if (!ended.signal.aborted) later(RETRY_MS, lookAgain)
    }
  }

  function later(ms: number, act: () => Promise<void>): void {
    const timer = setTimeout(() => {
      timers.delete(timer)
      void act()
    }, ms)
    timers.add(timer)
  }

  function end(): void {
    ended.abort()
    running.abort()
    for (const timer of timers) clearTimeout(timer)
  }

  void run()

  return {
    terms,
    get state() {
      return state
    },
    isFound: (line) => has(line >= begin.line ? after : before, line),
    textIn: (line) => texts.get(line),
    next(line, direction) {
      // What is between has been looked through.
      const around = state.phase !== 'searching' || !isBehind
      if (direction === 1) {
        const later = firstAbove(before, line) ?? firstAbove(after, line)
        return later ?? (around ? (before[0] ?? after[0]) : undefined)
      }
      const earlier = lastBelow(after, line) ?? lastBelow(before, line)
      return earlier ?? (around ? (after.at(-1) ?? before.at(-1)) : undefined)
    },
    placeOf: (line) => countUpTo(before, line) + countUpTo(after, line),
    stop() {
      running.abort()
      if (state.phase === 'searching') set({ phase: 'stopped' })
    },
    goOn() {
      if (state.phase !== 'searching' && state.count < MAX_FOUND) void run()
    },
    end,
  }
}

/** How many of them are not greater. */
function countUpTo(ascending: readonly number[], value: number): number {
  let low = 0
  let high = ascending.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((ascending[middle] ?? Infinity) <= value) low = middle + 1
    else high = middle
  }
  return low
}

function firstAbove(ascending: readonly number[], value: number): number | undefined {
  return ascending[countUpTo(ascending, value)]
}

function lastBelow(ascending: readonly number[], value: number): number | undefined {
  return ascending[countUpTo(ascending, value - 1) - 1]
}

function has(ascending: readonly number[], value: number): boolean {
  return ascending[countUpTo(ascending, value) - 1] === value
}

/** Where a text stands in another one; for a text as it is written, or whatever the case. */
export function placesOf(
  text: string,
  { query, matchesCase }: Pick<SearchTerms, 'query' | 'matchesCase'>,
): { start: number; end: number }[] {
  if (query === '') return []
  const expression = new RegExp(query.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'), matchesCase ? 'gu' : 'giu')
  return [...text.matchAll(expression)].map(({ index, 0: found }) => ({ start: index, end: index + found.length }))
}
