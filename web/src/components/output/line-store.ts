/** Lines of an output that are in memory: pages of it that were looked at last, and its end. Both have bounds. */
import type { OutputLine, OutputLines, OutputPart, OutputType } from '../../api/records.ts'

/** Lines that are read together. */
export const PAGE_LINES = 200
const MAX_PAGES = 30
/** Of all pages together, and of the end, in UTF-16 units. */
const MAX_LENGTH = 6_000_000
const MAX_END_LINES = 4000
/** Of a line, in UTF-16 units; the server shows as much of it. */
const MAX_LINE_LENGTH = 16_384
/** What a line costs besides its text. */
const LINE_COST = 200
const MAX_HOSTS = 100
/** Of a line; the server shows as many. */
const MAX_PARTS = 256

/** A record as the stream sends it. */
export interface LiveRecord {
  output_type: OutputType
  data: string
  timestamp: string
  host?: string
}

export interface LineStore {
  /** Lines so far, as far as is known. */
  readonly total: number
  readonly isLastLineOpen: boolean
  /** Of the lines so far, up to a hundred. */
  readonly hosts: ReadonlySet<string>
  /** One that was appended to is still the same object. */
  line(number: number): OutputLine | undefined
  /** The end of the output as it is now: `answer` has its last lines. What is known before them is kept, unless there is less now. */
  setEnd(answer: Pick<OutputLines, 'total' | 'is_last_line_open' | 'lines'>): void
  append(record: LiveRecord): void
  /** Lines that were read. */
  addPage(answer: Pick<OutputLines, 'total' | 'is_last_line_open' | 'lines'>): void
  /** The first run of lines that is missing in a range; `end` is behind it. */
  missing(first: number, end: number): { from: number; limit: number } | undefined
}

interface Page {
  /** From the beginning of the page on, without gaps. */
  lines: OutputLine[]
  length: number
}

const encoder = new TextEncoder()

export function createLineStore(): LineStore {
  let total = 0
  let isLastLineOpen = false
  /** By their index; those used last come last. */
  const pages = new Map<number, Page>()
  let pagesLength = 0
  const hosts = new Set<string>()
  let end: OutputLine[] = []
  let endLength = 0

  const endStart = (): number => end[0]?.number ?? total + 1

  function trimEnd(): void {
    if (end.length <= MAX_END_LINES && endLength <= MAX_LENGTH) return
    let dropped = 0
    while (dropped < end.length - 1 && (end.length - dropped > MAX_END_LINES * 0.75 || endLength > MAX_LENGTH * 0.75)) {
      endLength -= lengthOf(end[dropped])
      dropped += 1
    }
    end = end.slice(dropped)
  }

  function use(index: number): Page | undefined {
    const page = pages.get(index)
    if (page === undefined) return undefined
    pages.delete(index)
    pages.set(index, page)
    return page
  }

  function trimPages(): void {
    for (const [index, page] of pages) {
      if (pages.size <= 1 || (pages.size <= MAX_PAGES && pagesLength <= MAX_LENGTH)) return
      pages.delete(index)
      pagesLength -= page.length
    }
  }

  function forgetPages(): void {
    pages.clear()
    pagesLength = 0
  }

  function noteHosts(parts: readonly OutputPart[]): void {
    for (const { host } of parts) if (host !== undefined && hosts.size < MAX_HOSTS) hosts.add(host)
  }

  const pageOf = (number: number): number => Math.floor((number - 1) / PAGE_LINES)

  return {
    get total() {
      return total
    },
    get isLastLineOpen() {
      return isLastLineOpen
    },
    hosts,
    line(number) {
      const start = endStart()
      if (number >= start) return end[number - start]
      return use(pageOf(number))?.lines[(number - 1) % PAGE_LINES]
    },
    setEnd(answer) {
      if (answer.total < total) forgetPages()
      for (const line of answer.lines) noteHosts(line.parts)
      total = answer.total
      isLastLineOpen = answer.is_last_line_open
      end = [...answer.lines]
      endLength = end.reduce((sum, line) => sum + lengthOf(line), 0)
      trimEnd()
    },
    append({ output_type: type, data, timestamp, host }) {
      for (let at = 0; at < data.length;) {
        const lineEnd = data.indexOf('\n', at)
        const stop = lineEnd === -1 ? data.length : lineEnd
        if (!isLastLineOpen) {
          total += 1
          end.push({ number: total, timestamp, parts: [] })
          endLength += LINE_COST
        }
        const line = end.at(-1)
        if (host !== undefined && hosts.size < MAX_HOSTS) hosts.add(host)
        if (line !== undefined && stop > at) endLength += addText(line, type, host, data.slice(at, stop))
        isLastLineOpen = lineEnd === -1
        at = stop + 1
      }
      trimEnd()
    },
    addPage(answer) {
      for (const line of answer.lines) {
        noteHosts(line.parts)
        // What is written next may belong to it.
        if (line.number === answer.total && answer.is_last_line_open) break
        const index = pageOf(line.number)
        const page = use(index) ?? { lines: [], length: 0 }
        pages.set(index, page)
        if (page.lines.length !== (line.number - 1) % PAGE_LINES) continue
        page.lines.push(line)
        page.length += lengthOf(line)
        pagesLength += lengthOf(line)
      }
      trimPages()
    },
    missing(first, behind) {
      const stop = Math.min(behind, endStart())
      for (let number = Math.max(1, first); number < stop;) {
        const index = pageOf(number)
        const pageEnd = (index + 1) * PAGE_LINES + 1
        const from = index * PAGE_LINES + 1 + (pages.get(index)?.lines.length ?? 0)
        if (from < Math.min(pageEnd, stop)) return { from, limit: pageEnd - from }
        number = pageEnd
      }
      return undefined
    },
  }
}

function lengthOf(line: OutputLine | undefined): number {
  return line?.parts.reduce((sum, { data }) => sum + data.length + LINE_COST, LINE_COST) ?? 0
}

/** @returns how much longer the line is now */
function addText(line: OutputLine, type: OutputType, host: string | undefined, text: string): number {
  if (line.length !== undefined) {
    // It is cut already.
    line.length += encoder.encode(text).length
    return 0
  }
  const before = line.parts.reduce((sum, { data }) => sum + data.length, 0)
  const room = line.parts.length < MAX_PARTS ? MAX_LINE_LENGTH - before : 0
  const shown = beginningOf(text, room)
  const last = line.parts.at(-1)
  let cost = shown.length
  if (last?.output_type === type && last.host === host) last.data += shown
  else if (shown !== '') {
    line.parts.push({ output_type: type, data: shown, ...(host === undefined ? {} : { host }) })
    cost += LINE_COST
  }
  if (shown.length < text.length) {
    const bytes = line.parts.reduce((sum, { data }) => sum + encoder.encode(data).length, line.offset ?? 0)
    line.next_offset = bytes
    line.length = bytes + encoder.encode(text.slice(shown.length)).length
  }
  return cost
}

/** Never half of a surrogate pair. */
function beginningOf(text: string, length: number): string {
  if (text.length <= length) return text
  const unit = text.charCodeAt(length - 1)
  return text.slice(0, Math.max(0, unit >= 0xd800 && unit <= 0xdbff ? length - 1 : length))
}
