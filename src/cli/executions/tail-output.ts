/** Prints the output of executions live (contract 09, 9.5), unchanged. */
import { printable } from '../output/print.ts'
import type { Session } from '../session.ts'

/** A chunk of output of an execution. */
export interface Piece {
  text: string
  /** `stdout`, `stderr` or `other`. */
  type: string
  timestamp: string
}

export interface TailOutput {
  print(piece: Piece): Promise<void>
  /** Prints what is held back of a line that has no end yet. */
  flush(): Promise<void>
  /** A line of ours, which begins where a line begins. @param isApart below an empty line */
  say(line: string, isApart?: boolean): Promise<void>
}

/**
 * Output of one execution alone: printed at once, whether it is a line or not. In machine form each piece is a record.
 *
 * @param id of the execution
 */
export function createPieceOutput(
  session: Session,
  id: string,
  { includeMetadata }: { includeMetadata: boolean },
): TailOutput {
  if (session.form !== 'human') return createRecordOutput(session, id)
  let isLineOpen = false
  return {
    async print({ text, type, timestamp }) {
      isLineOpen = !text.endsWith('\n')
      const metadata = includeMetadata ? metadataOf(timestamp, type) : ''
      await session.print(`${metadata}${paint(session, type, text)}`)
    },
    flush: () => Promise.resolve(),
    async say(line, isApart = false) {
      const before = `${isLineOpen ? '\n' : ''}${isApart ? '\n' : ''}`
      isLineOpen = false
      await session.print(`${before}${line}\n`)
    },
  }
}

/**
 * Each chunk as a record: one line of JSON, or a document of YAML, as soon as it arrives. Messages of svc
 * go to standard error.
 */
function createRecordOutput(session: Session, id: string): TailOutput {
  return {
    async print({ text, type, timestamp }) {
      const known = Object.entries({ output_type: type, timestamp }).filter(([, value]) => value !== '')
      await session.printRecordLine({ data: text, execution_id: id, ...Object.fromEntries(known) })
    },
    flush: () => Promise.resolve(),
    say(line) {
      session.note(`${line.trimEnd()}\n`)
      return Promise.resolve()
    },
  }
}

/** Longer lines are printed in pieces; what another execution prints between them begins a new line. */
const MAX_HELD_LENGTH = 65_536

/** Output of several executions: whole lines, so that those of one never mix with those of another. */
export class LinePrinter {
  readonly #session: Session
  readonly #includeMetadata: boolean
  /** One prints after the other; each waits, so that a slow terminal holds all of them back. */
  #queue = Promise.resolve()
  /** Who has begun the line that the cursor is in. */
  #lineOwner: HeldLine | undefined

  constructor(session: Session, { includeMetadata }: { includeMetadata: boolean }) {
    this.#session = session
    this.#includeMetadata = includeMetadata
  }

  /** @param id of the execution @param label stands in the metadata of its lines; empty: nothing does */
  outputOf(id: string, label: string): TailOutput {
    if (this.#session.form !== 'human') return createRecordOutput(this.#session, id)
    const held = new Map<string, HeldLine>()
    const lineOf = (type: string): HeldLine => {
      let line = held.get(type)
      if (line === undefined) held.set(type, (line = { text: '', isBegun: false }))
      return line
    }
    const flush = async (): Promise<void> => {
      for (const line of held.values()) await this.#printHeld(line, '')
    }
    return {
      print: async ({ text, type, timestamp }) => {
        const line = lineOf(type)
        const words = label === '' ? [timestamp, type] : [timestamp, type, label]
        const metadata = this.#includeMetadata ? metadataOf(...words) : ''
        const end = text.lastIndexOf('\n') + 1
        const decorated = (part: string): string =>
          paint(this.#session, type, part, line.isBegun ? '' : metadata, metadata)
        if (end > 0) {
          const whole = decorated(text.slice(0, end))
          line.isBegun = false
          await this.#printHeld(line, whole)
        }
        const rest = text.slice(end)
        if (rest === '') return
        line.text += decorated(rest)
        line.isBegun = true
        if (line.text.length > MAX_HELD_LENGTH) await this.#printHeld(line, '')
      },
      flush,
      say: async (text, isApart = false) => {
        await flush()
        await this.#print(undefined, `${isApart ? '\n' : ''}${text}\n`)
      },
    }
  }

  async #printHeld(line: HeldLine, more: string): Promise<void> {
    const text = line.text + more
    line.text = ''
    if (text !== '') await this.#print(line, text)
  }

  #print(owner: HeldLine | undefined, text: string): Promise<void> {
    const printed = this.#queue.then(async () => {
      const isForeign = this.#lineOwner !== undefined && this.#lineOwner !== owner
      this.#lineOwner = text.endsWith('\n') ? undefined : owner
      await this.#session.print(isForeign ? `\n${text}` : text)
    })
    this.#queue = printed.catch(() => undefined)
    return printed
  }
}

interface HeldLine {
  /** Not printed yet. */
  text: string
  /** The line has begun: some of it was printed, or is held. */
  isBegun: boolean
}

/** Words of the server in brackets, escaped: only the text of the output is printed as it is. */
function metadataOf(...words: readonly string[]): string {
  return `${words.map((word) => `[${printable(word)}]`).join('')} `
}

const RED = '\u001b[31m'
const DEFAULT_COLOR = '\u001b[39m'

/**
 * Errors in red where there are colours, line by line, so that nothing else on the screen turns red.
 *
 * @param first stands in front of the text
 * @param further stands in front of each further line
 */
function paint({ isColored }: Session, type: string, text: string, first = '', further = ''): string {
  const painted = isColored && type === 'stderr' ? text.replace(/[^\r\n]+/g, `${RED}$&${DEFAULT_COLOR}`) : text
  if (further === '') return first + painted
  const lines = painted.split('\n')
  return first + lines.map((line, index) => (index === 0 || isEnd(lines, index) ? line : further + line)).join('\n')
}

/** Whether this is the empty string that `split` leaves behind the last line end. */
function isEnd(lines: readonly string[], index: number): boolean {
  return index === lines.length - 1 && lines[index] === ''
}
