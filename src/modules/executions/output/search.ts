/**
 * Searches output for lines. Each request searches a bounded part, so a client searches a gigabyte with many requests.
 * Between two short slices the event loop serves everybody else.
 */
import { setImmediate } from 'node:timers/promises'
import { RE2JS, RE2JSException } from 're2js'
import { shown, withoutControlSequences } from '../../../lib/text/index.ts'
import { queryInvalid } from '../../../core/errors.ts'
import { patternSize } from '../../../lib/schema/index.ts'
import type { OutputType } from '../../../runners/index.ts'
import { viewOutput, type OutputReadStore, type OutputSnapshot } from './lines.ts'
import { countLineEnds } from './place.ts'
import type { OutputMatch, OutputMatches } from '../types.ts'

/** Bytes that one request searches. */
const MAX_BYTES = 16 * 1024 * 1024
const MAX_MS = 200
/** After which other work gets a turn. */
const SLICE_MS = 5
export const MAX_QUERY_LENGTH = 1000
const MAX_PATTERN_INSTRUCTIONS = 400
/** Characters times pattern instructions per piece: some milliseconds. */
const PATTERN_STEPS = 200_000
const MAX_WAITED_LENGTH = 65_536
/** This often a pattern searches the whole text; after that, line by line. */
const MAX_WHOLE_LOOKS = 4
/**
 * Kept from the end of an unfinished line, because a match may begin there; for a pattern, half of what it waits for.
 */
const KEPT_LENGTH = 4096
/** Parts of an excerpt, in UTF-16 units. */
const BEFORE_LENGTH = 80
const MATCH_LENGTH = 200
const AFTER_LENGTH = 120

export interface SearchRequest {
  /** Undefined: all. `none`: a type without any output. */
  type: OutputType | undefined | 'none'
  query: string
  ignoreCase: boolean
  isPattern: boolean
  /** Number of the first line, and bytes of it to skip. */
  from: number
  offset: number
  /** Maximum number of matching lines. */
  limit: number
}

/** A match in a text. */
interface Hit {
  start: number
  end: number
}

/**
 * For one text: finds the first match at or after an index that begins a line; undefined without one.
 *
 * @param isCut the text begins within a line: its first character has been searched before
 */
type Find = (text: string, isCut: boolean) => (from: number) => Hit | undefined

interface Finder {
  find: Find
  /** UTF-16 units to search without a pause. */
  pieceLength: number
  /** UTF-16 units of a line to wait for before searching it without its end. */
  waitsFor: number
}

/** Waits for a turn of the event loop. */
export type FairQueue = () => Promise<void>

/** One queue for all searches: together they take no more of each turn than a single one. */
export function createFairQueue(): FairQueue {
  let last: Promise<unknown> = Promise.resolve()
  return async () => {
    last = last.then(() => setImmediate())
    await last
  }
}

/** @throws QUERY_INVALID when the query is empty or the pattern is invalid */
export async function searchOutput(
  store: OutputReadStore,
  executionId: string,
  request: SearchRequest,
  nextTurn: FairQueue,
): Promise<Omit<OutputMatches, 'is_complete'>> {
  const finder = createFinder(request)
  const view = request.type === 'none' ? undefined : viewOutput(store, executionId, request.type)
  const start = view?.lineStart(request.from)
  if (view === undefined || start === undefined) {
    const total = view?.total ?? 0
    return { total, matches: [], next: { from: Math.min(request.from, total + 1), offset: 0 }, is_at_end: true }
  }
  await nextTurn()
  return scan(view, finder, request, nextTurn)
}

async function scan(
  view: OutputSnapshot,
  { find, pieceLength, waitsFor }: Finder,
  { from, offset, limit }: SearchRequest,
  nextTurn: FairQueue,
): Promise<Omit<OutputMatches, 'is_complete'>> {
  const { total } = view
  const begin = beginOf(view, from, offset)
  const matches: OutputMatch[] = []
  /** Number of the line whose last part is `rest`, as far as it has been read. */
  let number = from
  let isFound = false
  let rest = ''
  /** Whether `rest` lacks the beginning of the line. */
  let isCut = begin.bytes !== view.lineStart(from)?.bytes

  /** @returns whether the limit is reached */
  function look(piece: string, isLast = false): boolean {
    let raw = rest + piece
    if (isFound) {
      const lineEnd = piece.indexOf('\n')
      if (lineEnd === -1) return false
      number += 1
      isFound = false
      isCut = false
      raw = piece.slice(lineEnd + 1)
    }
    const lastLine = raw.lastIndexOf('\n') + 1
    const waits = !isLast && raw.length - lastLine <= waitsFor
    const text = withoutControlSequences(waits ? raw.slice(0, lastLine) : raw)
    const isPartial = !waits && !isLast && waitsFor > 0
    const findFrom = find(text, isCut)
    let counted = 0
    for (let hit = findFrom(0); hit !== undefined;) {
      // More of the line may remove the match or extend it.
      if (isPartial && hit.end === text.length) break
      number += countLineEnds(text.slice(counted, hit.start))
      counted = hit.start
      matches.push({ line: number, ...excerpt(text, hit) })
      const lineEnd = text.indexOf('\n', hit.end)
      if (lineEnd === -1) isFound = true
      if (matches.length === limit) return true
      hit = lineEnd === -1 ? undefined : findFrom(lineEnd + 1)
    }
    number += countLineEnds(text.slice(counted))
    const line = raw.slice(lastLine)
    if (isFound) rest = ''
    else rest = waits ? line : keptOf(line, Math.max(KEPT_LENGTH, waitsFor / 2))
    if (lastLine > 0) isCut = false
    if (rest.length < line.length) isCut = true
    return false
  }

  const began = performance.now()
  let sliceBegan = began
  /** End of the searched text, in bytes. */
  let seen = begin.bytes
  let length = 0
  for (const record of view.records(begin.seq)) {
    let index = record.seq === begin.seq ? begin.index : 0
    while (index < record.data.length) {
      const piece = record.data.slice(index, index + pieceLength)
      if (look(piece)) return { total, matches, next: { from: number + 1, offset: 0 }, is_at_end: number >= total }
      index += piece.length
      length += piece.length
      const now = performance.now()
      if (now - sliceBegan > SLICE_MS) {
        await nextTurn()
        sliceBegan = performance.now()
      }
      const isMuch = now - began > MAX_MS || seen - begin.bytes > MAX_BYTES
      // Otherwise the next request would start where this one did.
      if (isMuch && length > rest.length) {
        seen = view.bytesBefore(record) + Buffer.byteLength(record.data.slice(0, index))
        return { total, matches, next: placeToGoOn(), is_at_end: false }
      }
    }
    seen = view.bytesBefore(record) + Buffer.byteLength(record.data)
  }
  const isEnough = rest !== '' && look('', true)
  return { total, matches, next: isEnough ? { from: number + 1, offset: 0 } : placeToGoOn(), is_at_end: true }

  function placeToGoOn(): OutputMatches['next'] {
    if (isFound) return { from: number + 1, offset: 0 }
    // A partly read line: the next request reads its kept part again.
    const lineBegan = rest === '' ? undefined : view.lineStart(number)
    const read = lineBegan === undefined ? 0 : seen - lineBegan.bytes - Buffer.byteLength(rest)
    return { from: number, offset: Math.max(0, read) }
  }
}

function beginOf(view: OutputSnapshot, from: number, offset: number): { seq: number; index: number; bytes: number } {
  const start = view.lineStart(from) ?? { seq: view.first.seq, index: 0, bytes: view.bytesBefore(view.first) }
  const end = view.behindLineEnd(from)?.bytes ?? view.bytesBefore(view.end)
  const isWithin = offset > 0 && start.bytes + offset < end
  return (isWithin ? view.spotOfByte(start.bytes + offset) : undefined) ?? start
}

/** The end of an unfinished line, for the next piece. */
function keptOf(text: string, length: number): string {
  if (text.length <= length) return text
  const cut = text.length - length
  // Not from the middle of a terminal control sequence, which would become text.
  const command = text.lastIndexOf('\u001b', cut)
  return text.slice(command !== -1 && cut - command < 64 ? command : cut)
}

function excerpt(text: string, { start, end }: { start: number; end: number }): Omit<OutputMatch, 'line'> {
  const lineBegan = text.lastIndexOf('\n', start - 1) + 1
  const lineEnd = text.indexOf('\n', end)
  const stop = lineEnd === -1 ? text.length : lineEnd
  // Excerpts may cut surrogate pairs.
  return {
    before: text.slice(Math.max(start === 0 ? 0 : lineBegan, start - BEFORE_LENGTH), start).toWellFormed(),
    match: text.slice(start, Math.min(end, start + MATCH_LENGTH)).toWellFormed(),
    after: text.slice(end, Math.min(stop, end + AFTER_LENGTH)).toWellFormed(),
  }
}

/** @throws QUERY_INVALID */
function createFinder({ query, ignoreCase, isPattern }: SearchRequest): Finder {
  if (query === '') throw queryInvalid('Parameter "query" is empty')
  if (query.length > MAX_QUERY_LENGTH) {
    throw queryInvalid(`Parameter "query" is longer than ${MAX_QUERY_LENGTH} characters`)
  }
  if (query.includes('\n')) throw queryInvalid('Parameter "query" contains a line end: the search runs line by line')
  if (isPattern) return patternFinder(query, ignoreCase)
  const whole = { pieceLength: Infinity, waitsFor: -1 }
  if (!ignoreCase) {
    return {
      find: (text) => (from) => {
        const start = text.indexOf(query, from)
        return start === -1 ? undefined : { start, end: start + query.length }
      },
      ...whole,
    }
  }
  // A text without operators: time is linear in the length of the text.
  const expression = new RegExp(query.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'), 'giu')
  return {
    find: (text) => (from) => {
      expression.lastIndex = from
      const found = expression.exec(text)
      return found === null ? undefined : { start: found.index, end: found.index + found[0].length }
    },
    ...whole,
  }
}

/** @throws QUERY_INVALID */
function patternFinder(pattern: string, ignoreCase: boolean): Finder {
  const expression = compile(pattern, ignoreCase)
  const find: Find = (text, isCut) => {
    const matcher = expression.matcher(text)
    // A cut text does not start at the beginning of a line.
    const first = isCut ? 1 : 0
    let looks = 0
    return (from) => {
      for (let at = from; text.length > first && at <= text.length;) {
        let lineStart = at
        // First in the whole text, which is fast; then in the line of the match, because a match must not span lines.
        // Each
        // search of the whole text may run to its end: one per line would take quadratic time.
        if (looks < MAX_WHOLE_LOOKS) {
          looks += 1
          if (!matcher.find(Math.max(at, first))) return undefined
          lineStart = matcher.start() === 0 ? 0 : text.lastIndexOf('\n', matcher.start() - 1) + 1
        }
        // No line follows the last line end.
        if (lineStart > 0 && lineStart === text.length) return undefined
        const lineEnd = text.indexOf('\n', lineStart)
        const line = text.slice(lineStart, lineEnd === -1 ? undefined : lineEnd)
        const inLine = expression.matcher(line)
        const begin = lineStart === 0 ? first : 0
        if (begin <= line.length && inLine.find(begin))
          return { start: lineStart + inLine.start(), end: lineStart + inLine.end() }
        if (lineEnd === -1 || lineEnd + 1 === text.length) return undefined
        at = lineEnd + 1
      }
      return undefined
    }
  }
  const pieceLength = Math.max(1, Math.floor(PATTERN_STEPS / expression.programSize()))
  // A pattern may refer to the end of a line.
  return { find, pieceLength, waitsFor: Math.min(pieceLength * 4, MAX_WAITED_LENGTH) }
}

/** @throws QUERY_INVALID */
function compile(pattern: string, ignoreCase: boolean): RE2JS {
  try {
    const translated = RE2JS.translateRegExp(pattern)
    if (patternSize(translated) > MAX_PATTERN_INSTRUCTIONS) throw queryInvalid('The regular expression is too large')
    return RE2JS.compile(translated, RE2JS.MULTILINE | (ignoreCase ? RE2JS.CASE_INSENSITIVE : 0))
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error
    const why = error.message.replace('error parsing regexp: ', '')
    throw queryInvalid(`The regular expression is invalid: ${shown(why)}`)
  }
}
