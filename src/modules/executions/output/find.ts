/**
 * Finds executions by their output, newest first. Each request searches for a limited time and says where the next one
 * continues. The thread for scans finds the executions whose output may have the text, hundreds of thousands in a second;
 * `searchOutput` reads those alone, as it reads the output of one execution.
 */
import { queueFull, queryInvalid } from '../../../core/errors.ts'
import { isId } from '../../../core/ids.ts'
import { shown } from '../../../lib/text/index.ts'
import type { FoundLine } from '../types.ts'
import { viewOutput } from './lines.ts'
import { createFairQueue, MAX_QUERY_LENGTH, searchOutput, type SearchRequest } from './search.ts'
import type { Needle, OutputStore } from './store.ts'

/** Time of a request, beyond which it begins nothing more. */
const MAX_FIND_MS = 1000
/** Executions that the thread looks at together: as many as take about this long. */
const STEP_MS = 50
const FIRST_WINDOW = 100
const MAX_WINDOW = 2000
const MIN_WINDOW = 20
/** Requests that search at once, and those that wait for them. */
const MAX_SEARCHES = 2
const MAX_WAITING = 16
/** Matching lines of an execution in one answer. */
export const MAX_FOUND_LINES = 20

export interface FindRequest {
  text: string
  ignoreCase: boolean
  /** Matching lines to return of each execution; 0: none. */
  lines: number
  /** Where an earlier request has stopped. */
  cursor: Cursor | undefined
  /** Most executions. */
  limit: number
  /** Ids of executions that the caller asks for and may view, newest first. */
  readonly page: (before: string | undefined, limit: number) => Promise<string[]>
}

/** The executions from this one on have been searched; with `from` this one only up to that place in its output. */
export interface Cursor {
  id: string
  from?: { line: number; offset: number }
}

export interface FoundOutput {
  ids: string[]
  /** By id. */
  lines: Map<string, FoundLine[]>
  /** Executions that this request has searched. */
  searched: number
  /** Undefined: the search has reached the oldest execution. */
  cursor: Cursor | undefined
}

/** @throws QUERY_INVALID, QUEUE_FULL */
export type FindOutput = (request: FindRequest) => Promise<FoundOutput>

export function createFindOutput(store: OutputStore): FindOutput {
  const nextTurn = createFairQueue()
  const waiting: (() => void)[] = []
  let searches = 0

  async function inTurn<T>(search: () => Promise<T>): Promise<T> {
    if (searches === MAX_SEARCHES) {
      if (waiting.length === MAX_WAITING) throw queueFull('searches of output', MAX_WAITING)
      await new Promise<void>((resolve) => waiting.push(resolve))
    } else searches += 1
    try {
      return await search()
    } finally {
      const next = waiting.shift()
      if (next === undefined) searches -= 1
      else next()
    }
  }

  async function find({
    text,
    ignoreCase,
    lines: wantedLines,
    cursor,
    limit,
    page,
  }: FindRequest): Promise<FoundOutput> {
    const began = performance.now()
    const isLate = (): boolean => performance.now() - began > MAX_FIND_MS
    const needle = needleOf(text, ignoreCase)
    const wanted = { type: undefined, query: text, ignoreCase, isPattern: false, limit: Math.max(1, wantedLines) }
    const found: FoundOutput = { ids: [], lines: new Map(), searched: 0, cursor: undefined }
    let window = FIRST_WINDOW
    let resumed = cursor?.from === undefined ? undefined : cursor
    // With a sign more it comes behind the id itself, which is then part of the page.
    let before = cursor && (resumed === undefined ? cursor.id : `${cursor.id}0`)

    for (;;) {
      const ids = await page(before, window)
      const stepBegan = performance.now()
      const candidates = await store.mayContain(ids, needle)
      if (resumed !== undefined && ids[0] === resumed.id && !candidates.includes(resumed.id))
        candidates.unshift(resumed.id)
      const stepMs = performance.now() - stepBegan
      for (const id of candidates) {
        const at = resumed?.id === id ? resumed.from : undefined
        resumed = undefined
        const seen = found.searched + ids.indexOf(id) + 1
        const outcome = await searchOne(id, { ...wanted, from: at?.line ?? 1, offset: at?.offset ?? 0 }, isLate)
        if (outcome.matches.length > 0) {
          found.ids.push(id)
          if (wantedLines > 0)
            found.lines.set(
              id,
              outcome.matches.map((match) => lineOf(id, match)),
            )
        } else if (outcome.stoppedAt !== undefined) {
          return { ...found, searched: seen - 1, cursor: { id, from: outcome.stoppedAt } }
        }
        if (found.ids.length === limit || isLate()) return { ...found, searched: seen, cursor: { id } }
      }
      found.searched += ids.length
      const last = ids.at(-1)
      if (last === undefined || ids.length < window) return found
      if (isLate()) return { ...found, cursor: { id: last } }
      before = last
      resumed = undefined
      const fitting = Math.round((window * STEP_MS) / Math.max(1, stepMs))
      window = Math.min(MAX_WINDOW, Math.max(MIN_WINDOW, Math.min(window * 2, fitting)))
    }
  }

  /** The first lines of an output that have the text; `stoppedAt`: it was late before there was one. */
  async function searchOne(
    id: string,
    request: SearchRequest,
    isLate: () => boolean,
  ): Promise<{ matches: Match[]; stoppedAt?: NonNullable<Cursor['from']> }> {
    const matches: Match[] = []
    let { from, offset } = request
    for (;;) {
      const part = await searchOutput(
        store,
        id,
        { ...request, from, offset, limit: request.limit - matches.length },
        nextTurn,
      )
      matches.push(...part.matches)
      if (part.is_at_end || matches.length >= request.limit) return { matches }
      ;({ from, offset } = part.next)
      if (isLate()) return matches.length > 0 ? { matches } : { matches, stoppedAt: { line: from, offset } }
    }
  }

  function lineOf(id: string, match: Match): FoundLine {
    const view = viewOutput(store, id, undefined)
    const start = view?.lineStart(match.line)
    if (view === undefined || start === undefined) return { seq: 0, output_type: 'other', ...match }
    for (const { seq, output_type, data } of view.records(start.seq)) {
      // Behind the last line end of a record the next one begins.
      if (seq > start.seq || start.index < data.length) return { seq, output_type, ...match }
    }
    return { seq: start.seq, output_type: 'other', ...match }
  }

  return (request) => {
    checkText(request.text)
    return inTurn(() => find(request))
  }
}

type Match = Omit<FoundLine, 'seq' | 'output_type'>

/** @throws QUERY_INVALID */
function checkText(text: string): void {
  if (text.length > MAX_QUERY_LENGTH) {
    throw queryInvalid(`Parameter "output" is longer than ${MAX_QUERY_LENGTH} characters`)
  }
  if (text.includes('\n')) throw queryInvalid('Parameter "output" contains a line end: the search runs line by line')
}

const isAscii = (text: string): boolean => /^[\0-\x7f]*$/.test(text)

/**
 * What an output with a match certainly has in its bytes. SQLite knows the case of ASCII letters alone: of other texts it
 * looks for their longest part in ASCII.
 */
function needleOf(text: string, ignoreCase: boolean): Needle {
  if (!ignoreCase || isAscii(text)) return { text, ignoreCase }
  const parts = text.split(/[^\0-\x7f]+/)
  return { text: parts.reduce((longest, part) => (part.length > longest.length ? part : longest), ''), ignoreCase }
}

/** `<id>` or `<id>.<line>.<offset>`. */
export function writeCursor({ id, from }: Cursor): string {
  return from === undefined ? id : `${id}.${from.line}.${from.offset}`
}

/** @throws QUERY_INVALID */
export function readCursor(text: string): Cursor {
  const [, id = '', line, offset] = /^([^.]+)(?:\.(\d{1,15})\.(\d{1,15}))?$/.exec(text) ?? []
  if (!isId(id)) {
    throw queryInvalid(`Parameter "output_cursor": "${shown(text)}" is not what a header X-Output-Cursor has said`)
  }
  return line === undefined ? { id } : { id, from: { line: Math.max(1, Number(line)), offset: Number(offset) } }
}
