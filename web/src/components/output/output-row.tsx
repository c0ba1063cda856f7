import type { JSX } from 'preact'
import type { OutputLine } from '../../api/records.ts'
import { lookOf } from './colours.ts'
import { piecesOf, shownLine, timeOfDay, type Mark, type ShownLine } from './shown-line.ts'
import type { StyledSpan } from './terminal-text.ts'

/** Of a line: what is marked in it. */
const MAX_MARKS = 100

const markTitles = { err: 'Written to standard error', oth: 'Written to another stream' } as const

export interface OutputRowProps {
  number: number
  /** Undefined while it is being read. */
  line: OutputLine | undefined
  href: string
  isChosen: boolean
  /** The one of the found lines that is looked at. */
  isCurrent: boolean
  showsTimes: boolean
  /** Whether there are several kinds of output to tell apart. */
  showsMarks: boolean
  showsHosts: boolean
  marks: (shown: ShownLine) => readonly Mark[]
  onOpen: () => void
  onChoose: (event: MouseEvent) => void
}

export function OutputRow(props: OutputRowProps): JSX.Element {
  const { number, line, onOpen } = props
  const shown = line === undefined ? undefined : shownLine(line)
  return (
    <div class="output-line" data-chosen={props.isChosen || undefined} data-current={props.isCurrent || undefined}>
      <span class="output-gutter">
        {/* By keyboard, "Go to line" is one step, and this would be fifty. */}
        <a class="output-number" href={props.href} tabIndex={-1} onClick={props.onChoose}>
          {number}
        </a>
        {props.showsTimes && (
          <time class="output-time" dateTime={line?.timestamp} title={line?.timestamp}>
            {line === undefined ? '' : timeOfDay(line.timestamp)}
          </time>
        )}
        {props.showsHosts && (
          <span class="output-host" title={shown?.hosts.join(', ')}>
            {shown?.hosts.join(', ')}
          </span>
        )}
        {props.showsMarks && (
          <span class="output-mark" title={shown?.mark && markTitles[shown.mark]}>
            {shown?.mark}
          </span>
        )}
      </span>
      {shown === undefined ? (
        <span class="output-text hint">…</span>
      ) : (
        <span
          class="output-text"
          onClick={() => {
            // A selection is for copying.
            if (getSelection()?.isCollapsed !== false) onOpen()
          }}
        >
          <Spans spans={shown.spans} marks={props.marks(shown).slice(0, MAX_MARKS)} />
          {shown.isCut && (
            <button type="button" class="output-more" onClick={onOpen}>
              … show all
            </button>
          )}
        </span>
      )}
    </div>
  )
}

/** @param marks in the text of all spans, in order, apart from each other */
export function Spans({ spans, marks = [] }: { spans: readonly StyledSpan[]; marks?: readonly Mark[] }): JSX.Element {
  const drawn: JSX.Element[] = []
  let start = 0
  for (const { text, type, style } of spans) {
    const look = style === undefined ? undefined : lookOf(style)
    for (const { piece, isMarked } of piecesOf(text, start, marks)) {
      const content = isMarked ? <mark>{piece}</mark> : piece
      drawn.push(
        <span key={drawn.length} data-type={type} {...(look && { style: look })}>
          {content}
        </span>,
      )
    }
    start += text.length
  }
  return <>{drawn}</>
}
