/** What is drawn of a line of output. */
import type { OutputLine, OutputType } from '../../api/records.ts'
import { beginningOf, plainText, spansOf, widthOf, type StyledSpan } from './terminal-text.ts'

/** Of a row; the rest is in the panel of the line. */
const MAX_ROW_LENGTH = 2000

export interface Mark {
  start: number
  end: number
}

/** What is drawn of a line. */
export interface ShownLine {
  spans: readonly StyledSpan[]
  text: string
  /** About how many columns it takes. */
  width: number
  /** There is more of it. */
  isCut: boolean
  /** Where it was written to, if not only to standard output. */
  mark: 'err' | 'oth' | undefined
  hosts: readonly string[]
}

const shownLines = new WeakMap<OutputLine, { size: number; shown: ShownLine }>()

/** Cached per line until more is written to it. */
export function shownLine(line: OutputLine): ShownLine {
  const size = line.parts.reduce((sum, { data }) => sum + data.length + 1, 0)
  const known = shownLines.get(line)
  if (known?.size === size) return known.shown
  const { spans, isCut } = beginningOf(spansOf(line.parts), MAX_ROW_LENGTH)
  const types = new Set<OutputType>(line.parts.map(({ output_type: type }) => type))
  const shown: ShownLine = {
    spans,
    text: plainText(spans),
    width: widthOf(spans),
    isCut: isCut || line.next_offset !== undefined,
    mark: types.has('stderr') ? 'err' : types.has('other') ? 'oth' : undefined,
    hosts: [...new Set(line.parts.flatMap(({ host }) => host ?? []))],
  }
  shownLines.set(line, { size, shown })
  return shown
}

const clock = new Intl.DateTimeFormat('en-GB', {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
})

/** Of the day alone; the title has all of it. */
export function timeOfDay(timestamp: string): string {
  const date = new Date(timestamp)
  return Number.isNaN(date.getTime()) ? '' : clock.format(date)
}

/** A text that begins at a place, in pieces that are marked or not. */
export function piecesOf(text: string, start: number, marks: readonly Mark[]): { piece: string; isMarked: boolean }[] {
  const pieces: { piece: string; isMarked: boolean }[] = []
  let at = 0
  for (const mark of marks) {
    const from = Math.max(at, mark.start - start)
    const to = Math.min(text.length, mark.end - start)
    if (to <= from) continue
    if (from > at) pieces.push({ piece: text.slice(at, from), isMarked: false })
    pieces.push({ piece: text.slice(from, to), isMarked: true })
    at = to
  }
  if (at < text.length) pieces.push({ piece: text.slice(at), isMarked: false })
  return pieces
}
