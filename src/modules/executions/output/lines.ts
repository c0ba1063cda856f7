/**
 * Reads output by line: any line of a gigabyte takes a few milliseconds.
 *
 * Each record stores the number of line ends and bytes before it. A binary search finds the record with a given line
 * end or byte, whatever lies in between; then a few records are read.
 */
import type { OutputType } from '../../../runners/index.ts'
import { placeBehind } from './place.ts'
import type { NumberedPlace, OutputStore, PlacedRecord } from './store.ts'
import type { OutputLine, OutputLines, OutputPart, OutputPlace } from '../types.ts'

export const MAX_LINES = 1000
/** Longest part of a line in one answer, in UTF-16 units. */
export const MAX_LINE_LENGTH = 16_384
/** Per line: a program may alternate between stdout and stderr with each character. */
const MAX_PARTS = 256
/** Size of an answer in UTF-16 units; each part adds `PART_COST`. */
const MAX_ANSWER_LENGTH = 262_144
const PART_COST = 64
/** Records per answer. */
const MAX_RECORDS = 1024
/** Records per read: few at first, for readers of a single line. */
const FIRST_BATCH = 2
const MAX_BATCH = 32

export type OutputReadStore = Pick<OutputStore, 'outputPlace' | 'outputBetween' | 'lastOutput'>

/** A position in the output of one type, or of all. */
export interface Spot {
  seq: number
  /** Index in the text of that record. */
  index: number
  /** Bytes before it, including removed output. */
  bytes: number
}

/** A snapshot of the output of an execution, of one type or of all. */
export interface OutputSnapshot {
  readonly first: NumberedPlace
  readonly last: NumberedPlace
  /** The place after the last record. */
  readonly end: OutputPlace
  /** Number of lines, including a last one without a line end. */
  readonly total: number
  /** Whether the last line has no line end. */
  readonly isLastLineOpen: boolean
  /** Undefined when the line does not exist. */
  lineStart(number: number): Spot | undefined
  /** Undefined when the line has no line end. */
  behindLineEnd(number: number): Spot | undefined
  /** Position of the character that contains this byte; removed output counts. */
  spotOfByte(byte: number): Spot | undefined
  /** Number of the line in which a record begins. */
  lineAt(place: OutputPlace): number
  /** Records of the type, from `seq` to the last one. */
  records(seq: number): Generator<PlacedRecord, undefined>
  bytesBefore(place: OutputPlace): number
}

/** Undefined without stored output. */
export function viewOutput(
  store: OutputReadStore,
  executionId: string,
  type: OutputType | undefined,
): OutputSnapshot | undefined {
  const firstPlace = store.outputPlace(executionId, 0)
  const lastRecord = store.lastOutput(executionId)
  if (firstPlace === undefined || lastRecord === undefined) return undefined
  const [first, last] = [firstPlace, lastRecord]
  const end = placeBehind(last, last)
  const { linesBefore, bytesBefore } = measures(type)
  const linesRemoved = linesBefore(first)

  /** The last record whose `measure` is at most `most`; `measure` grows with `seq`. */
  function lastWith(measure: (place: OutputPlace) => number, most: number): number {
    let low = first.seq
    let high = last.seq
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      // A record that could not be stored is missing: then this is the next one.
      const place = store.outputPlace(executionId, middle)
      if (place !== undefined && measure(place) <= most) low = place.seq
      else high = middle - 1
    }
    return low
  }

  function* records(seq: number): Generator<PlacedRecord, undefined> {
    let batch = FIRST_BATCH
    for (let from = seq; from <= last.seq;) {
      const to = Math.min(from + batch - 1, last.seq)
      const found = store.outputBetween(executionId, from, to, type)
      yield* found
      from = to + 1
      batch = Math.min(batch * 2, MAX_BATCH)
      const place = found.length === 0 ? store.outputPlace(executionId, from) : undefined
      // A million records of other types may precede the next one of this type.
      if (place !== undefined) from = lastWith(bytesBefore, bytesBefore(place))
    }
    return undefined
  }

  const recordAt = (seq: number): PlacedRecord | undefined => records(seq).next().value

  function spotIn(record: PlacedRecord, index: number): Spot {
    return { seq: record.seq, index, bytes: bytesBefore(record) + Buffer.byteLength(record.data.slice(0, index)) }
  }

  function behindLineEnd(number: number): Spot | undefined {
    const wanted = linesRemoved + number
    if (wanted > linesBefore(end)) return undefined
    const record = recordAt(lastWith(linesBefore, wanted - 1))
    if (record === undefined) return undefined
    let index = 0
    for (let left = wanted - linesBefore(record); left > 0; left--) {
      const at = record.data.indexOf('\n', index)
      index = at === -1 ? record.data.length : at + 1
    }
    return spotIn(record, index)
  }

  function endsWithLineEnd(): boolean {
    const record = recordAt(lastWith(bytesBefore, bytesBefore(end) - 1))
    return record?.data.endsWith('\n') ?? false
  }

  const isLastLineOpen = bytesBefore(end) > bytesBefore(first) && !endsWithLineEnd()
  const total = linesBefore(end) - linesRemoved + (isLastLineOpen ? 1 : 0)

  return {
    first,
    last,
    end,
    total,
    isLastLineOpen,
    lineStart(number) {
      if (number < 1 || number > total) return undefined
      return number === 1 ? { seq: first.seq, index: 0, bytes: bytesBefore(first) } : behindLineEnd(number - 1)
    },
    behindLineEnd,
    spotOfByte(byte) {
      if (byte >= bytesBefore(end)) return undefined
      const record = recordAt(lastWith(bytesBefore, byte))
      return record && spotIn(record, indexOfByte(record.data, byte - bytesBefore(record)))
    },
    lineAt: (place) => linesBefore(place) - linesRemoved + 1,
    records,
    bytesBefore,
  }
}

export interface LinesRequest {
  /** Undefined: all. `none`: a type without any output. */
  type: OutputType | undefined | 'none'
  /** Number of the first line; negative numbers count from the end, -1 is the last line. */
  from: number
  limit: number
  /** Bytes of the first line to skip. */
  offset: number
}

/** Reads the requested lines, within the size limits of an answer. */
export function readLines(
  store: OutputReadStore,
  executionId: string,
  { type, from, limit, offset }: LinesRequest,
): Pick<OutputLines, 'total' | 'is_last_line_open' | 'bytes' | 'is_beginning_removed' | 'last_seq' | 'lines'> {
  const view = viewOutput(store, executionId, type === 'none' ? undefined : type)
  if (view === undefined) {
    const bytes = { stdout: 0, stderr: 0, other: 0 }
    return { total: 0, is_last_line_open: false, bytes, is_beginning_removed: false, last_seq: 0, lines: [] }
  }
  const { first, last, end } = view
  const total = type === 'none' ? 0 : view.total
  const begin = from < 0 ? Math.max(1, total + 1 + from) : from
  return {
    total,
    is_last_line_open: total > 0 && view.isLastLineOpen,
    bytes: {
      stdout: end.stdout_bytes - first.stdout_bytes,
      stderr: end.stderr_bytes - first.stderr_bytes,
      other: end.other_bytes - first.other_bytes,
    },
    is_beginning_removed: first.seq > 1,
    last_seq: last.seq,
    lines: total === 0 ? [] : linesOf(view, begin, limit, offset),
  }
}

function linesOf(view: OutputSnapshot, from: number, limit: number, offset: number): OutputLine[] {
  const start = view.lineStart(from)
  const end = start && endOfLine(view, from)
  if (start === undefined || end === undefined || start.bytes + offset > end) return []
  const begin = offset === 0 ? start : view.spotOfByte(start.bytes + offset)
  if (begin === undefined) return []

  const lines: OutputLine[] = []
  const reader = createReader(view, begin)
  let length = 0
  for (let number = from; lines.length < limit && length < MAX_ANSWER_LENGTH && !reader.isExhausted(); number++) {
    const { timestamp, parts, cut } = reader.next()
    if (timestamp === undefined) break
    const line: OutputLine = { number, timestamp, parts }
    const skipped = number === from ? begin.bytes - start.bytes : 0
    if (skipped > 0) line.offset = skipped
    if (cut !== undefined || skipped > 0) {
      const lineStart = number === from ? start : view.lineStart(number)
      const { bytes = 0 } = lineStart ?? {}
      line.length = endOfLine(view, number) - bytes
      if (cut !== undefined) line.next_offset = cut.bytes - bytes
    }
    lines.push(line)
    length += parts.reduce((sum, { data }) => sum + data.length + PART_COST, PART_COST)
    if (cut === undefined) continue
    const next = view.behindLineEnd(number)
    if (next === undefined) break
    reader.goTo(next)
  }
  return lines
}

/** Bytes before its line end, or before the end of the output. */
function endOfLine(view: OutputSnapshot, number: number): number {
  const behind = view.behindLineEnd(number)
  return behind === undefined ? view.bytesBefore(view.end) : behind.bytes - 1
}

interface ReadLine {
  /** Undefined without a further line. */
  timestamp: string | undefined
  parts: OutputPart[]
  /** Where a line that is too long continues. */
  cut: Spot | undefined
}

interface LineReader {
  next(): ReadLine
  goTo(spot: Spot): void
  /** Whether the limit of records per answer is reached. */
  isExhausted(): boolean
}

function createReader(view: OutputSnapshot, begin: Spot): LineReader {
  let recordsRead = 0
  let source = view.records(begin.seq)
  let record: PlacedRecord | undefined
  let index = 0

  function advance(): void {
    recordsRead += 1
    record = source.next().value
    index = 0
  }

  function goTo(spot: Spot): void {
    if (record?.seq !== spot.seq) {
      source = view.records(spot.seq)
      advance()
    }
    if (record?.seq === spot.seq) index = spot.index
  }
  goTo(begin)

  return {
    next() {
      const parts: OutputPart[] = []
      let timestamp: string | undefined
      let room = MAX_LINE_LENGTH
      for (; record !== undefined; advance()) {
        if (index === record.data.length) continue
        timestamp ??= record.timestamp
        const lineEnd = record.data.indexOf('\n', index)
        const stop = lineEnd === -1 ? record.data.length : lineEnd
        const isTooMuch = parts.length === MAX_PARTS || (recordsRead > MAX_RECORDS && parts.length > 0)
        const text = isTooMuch ? '' : beginningOf(record.data, index, stop, room)
        if (text !== '') {
          addText(parts, record, text)
          room -= text.length
        }
        index += text.length
        if (index < stop) {
          const bytes = view.bytesBefore(record) + Buffer.byteLength(record.data.slice(0, index))
          return { timestamp, parts, cut: { seq: record.seq, index, bytes } }
        }
        if (lineEnd !== -1) {
          index = lineEnd + 1
          return { timestamp, parts, cut: undefined }
        }
      }
      return { timestamp, parts, cut: undefined }
    },
    goTo,
    isExhausted: () => recordsRead > MAX_RECORDS,
  }
}

/** At most `room` units of a text, never half of a surrogate pair. */
function beginningOf(text: string, start: number, stop: number, room: number): string {
  if (stop - start <= room) return text.slice(start, stop)
  const end = start + room
  const unit = text.charCodeAt(end - 1)
  return text.slice(start, unit >= 0xd800 && unit <= 0xdbff ? end - 1 : end)
}

function addText(parts: OutputPart[], { output_type, host }: PlacedRecord, data: string): void {
  const last = parts.at(-1)
  if (last?.output_type === output_type && (last.host ?? null) === host) last.data += data
  else parts.push({ output_type, data, ...(host === null ? {} : { host }) })
}

function measures(type: OutputType | undefined): Record<'linesBefore' | 'bytesBefore', (place: OutputPlace) => number> {
  if (type === undefined) {
    return {
      linesBefore: (place) => place.stdout_lines + place.stderr_lines + place.other_lines,
      bytesBefore: (place) => place.stdout_bytes + place.stderr_bytes + place.other_bytes,
    }
  }
  return { linesBefore: (place) => place[`${type}_lines`], bytesBefore: (place) => place[`${type}_bytes`] }
}

/** Index of the character that contains the byte. */
function indexOfByte(text: string, byte: number): number {
  const bytes = Buffer.from(text)
  let start = byte
  // Bytes 10xxxxxx continue a character.
  while (start > 0 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start -= 1
  return bytes.toString('utf8', 0, start).length
}
