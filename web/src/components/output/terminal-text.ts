/**
 * What a terminal would show of a line: text with colours. Everything else that a terminal takes as a command (titles, links,
 * movements to other lines, further characters that are no text) is left out; what it is, nobody needs to see.
 *
 * A line is drawn for itself: a colour that is set in it ends with it.
 */
import type { OutputPart, OutputType } from '../../api/records.ts'

/** 0 to 255: of the palette of terminals; from `RGB` on: red, green and blue, a byte each. */
export type Colour = number
export const RGB = 0x100_0000

export interface TextStyle {
  foreground?: Colour
  background?: Colour
  isBold?: true
  isDim?: true
  isItalic?: true
  isUnderlined?: true
  isStruck?: true
  isInverse?: true
}

export interface StyledSpan {
  text: string
  type: OutputType
  /** Undefined: nothing was said about it. Spans of one style share one object. */
  style: TextStyle | undefined
}

/** Commands whose end is in the line, and introducers; `control-sequences.ts` of the server leaves out the same in searches. */
const command =
  // eslint-disable-next-line no-control-regex
  /(?:\u001b\[|\u009b)([0-?]*)([ -/]*)([@-~]?)|(?:\u001b[\]PX^_]|[\u0090\u0098\u009d-\u009f])[^\n\u0007\u001b\u0080-\u009f]*(?:\u0007|\u001b\\|\u009c)|\u001b[ -/]*[0-~]?|[\u0000-\u0008\u000a-\u001f\u007f-\u009f]/g
const MAX_PARAMETERS = 64

export function spansOf(parts: readonly OutputPart[]): StyledSpan[] {
  const screen = createScreen()
  let style: TextStyle | undefined
  for (const { data, output_type: type } of parts) {
    let at = 0
    for (const match of data.matchAll(command)) {
      const [text, parameters = '', between = '', final] = match
      screen.write(data.slice(at, match.index), style, type)
      at = match.index + text.length
      if (text === '\r') screen.moveTo(0)
      else if (text === '\b') screen.moveBack()
      else if (final === 'm' && between === '' && /^[\d;:]*$/.test(parameters)) style = styled(style, parameters)
      else if (final === 'K') screen.erase(Number(parameters) || 0)
    }
    screen.write(data.slice(at), style, type)
  }
  return screen.spans()
}

export function plainText(spans: readonly StyledSpan[]): string {
  return spans.map(({ text }) => text).join('')
}

/** At most so many UTF-16 units, never half of a surrogate pair. */
export function beginningOf(spans: readonly StyledSpan[], length: number): { spans: StyledSpan[]; isCut: boolean } {
  const shown: StyledSpan[] = []
  let room = length
  for (const span of spans) {
    if (span.text.length <= room) {
      shown.push(span)
      room -= span.text.length
      continue
    }
    const unit = span.text.charCodeAt(room - 1)
    const text = span.text.slice(0, unit >= 0xd800 && unit <= 0xdbff ? room - 1 : room)
    if (text !== '') shown.push({ ...span, text })
    return { spans: shown, isCut: true }
  }
  return { spans: shown, isCut: false }
}

const TAB_WIDTH = 8
const firstWide = 0x1100

/** About how many columns it takes. */
export function widthOf(spans: readonly StyledSpan[]): number {
  let width = 0
  for (const { text } of spans) {
    for (let i = 0; i < text.length; i++) {
      const unit = text.charCodeAt(i)
      width += unit === 9 ? TAB_WIDTH : unit < firstWide || unit >= 0xdc00 ? 1 : 2
    }
  }
  return width
}

interface Screen {
  write(text: string, style: TextStyle | undefined, type: OutputType): void
  moveTo(column: number): void
  moveBack(): void
  /** 0: from the cursor on; 1: up to it; 2: all. */
  erase(what: number): void
  spans(): StyledSpan[]
}

/** One line of it. Only what writes over what is there already is looked at character by character. */
function createScreen(): Screen {
  let written: StyledSpan[] = []
  /** Once the cursor has moved back: each character with what it was written in. */
  let cells: StyledSpan[] | undefined
  let cursor = 0

  function toCells(): StyledSpan[] {
    if (cells === undefined) {
      cells = written.flatMap((span) => Array.from(span.text, (text) => ({ ...span, text })))
      cursor = cells.length
    }
    return cells
  }

  return {
    write(text, style, type) {
      if (text === '') return
      if (cells === undefined) {
        const last = written.at(-1)
        if (last !== undefined && last.style === style && last.type === type) last.text += text
        else written.push({ text, style, type })
        return
      }
      for (const character of text) {
        while (cells.length < cursor) cells.push({ text: ' ', style: undefined, type })
        cells[cursor] = { text: character, style, type }
        cursor += 1
      }
    },
    moveTo(column) {
      toCells()
      cursor = column
    },
    moveBack() {
      toCells()
      cursor = Math.max(0, cursor - 1)
    },
    erase(what) {
      // Behind the cursor there is nothing before it has moved back.
      if (what === 0 && cells === undefined) return
      const all = toCells()
      if (what === 0) all.length = Math.min(all.length, cursor)
      else if (what === 2) all.length = 0
      else for (const cell of all.slice(0, cursor + 1)) Object.assign(cell, { text: ' ', style: undefined })
    },
    spans() {
      if (cells === undefined) return written
      written = []
      for (const { text, style, type } of cells) {
        const last = written.at(-1)
        if (last !== undefined && last.style === style && last.type === type) last.text += text
        else written.push({ text, style, type })
      }
      return written
    },
  }
}

const flags = {
  1: 'isBold',
  2: 'isDim',
  3: 'isItalic',
  4: 'isUnderlined',
  7: 'isInverse',
  9: 'isStruck',
  21: 'isUnderlined',
} as const satisfies Record<number, keyof TextStyle>

const endings: Readonly<Record<number, readonly (keyof TextStyle)[]>> = {
  22: ['isBold', 'isDim'],
  23: ['isItalic'],
  24: ['isUnderlined'],
  27: ['isInverse'],
  29: ['isStruck'],
  39: ['foreground'],
  49: ['background'],
}

/** "Select graphic rendition" (ECMA-48, 8.3.117), with the colours that xterm has added. */
function styled(before: TextStyle | undefined, parameters: string): TextStyle | undefined {
  let style: TextStyle = { ...before }
  const codes = parameters.split(';').slice(0, MAX_PARAMETERS)
  for (let i = 0; i < codes.length; i++) {
    const [code = 0, ...more] = (codes[i] ?? '').split(':').map(Number)
    if (code === 0) style = {}
    else if (code === 4 && more[0] === 0) delete style.isUnderlined
    else if (isFlag(code)) style[flags[code]] = true
    else if (code >= 30 && code <= 37) style.foreground = code - 30
    else if (code >= 40 && code <= 47) style.background = code - 40
    else if (code >= 90 && code <= 97) style.foreground = code - 90 + 8
    else if (code >= 100 && code <= 107) style.background = code - 100 + 8
    else if (code === 38 || code === 48) {
      // `38:2::r:g:b`, where an identifier of a colour space may stand, or `38;2;r;g;b`.
      const rest =
        more.length > 0
          ? more.toSpliced(1, more[0] === 2 && more.length > 4 ? 1 : 0)
          : codes.slice(i + 1, i + 5).map(Number)
      const colour = colourOf(rest)
      if (colour !== undefined) style[code === 38 ? 'foreground' : 'background'] = colour
      // Of what is no colour, nobody knows where it ends.
      if (more.length === 0) i += rest[0] === 2 ? 4 : rest[0] === 5 ? 2 : codes.length
    } else for (const name of endings[code] ?? []) delete style[name]
  }
  return Object.keys(style).length === 0 ? undefined : shared(style)
}

function isFlag(code: number): code is keyof typeof flags {
  return Object.hasOwn(flags, code)
}

function colourOf([kind, first = -1, second = -1, third = -1]: readonly number[]): Colour | undefined {
  const isByte = (value: number): boolean => Number.isInteger(value) && value >= 0 && value <= 255
  if (kind === 5) return isByte(first) ? first : undefined
  if (kind !== 2 || ![first, second, third].every(isByte)) return undefined
  return RGB + first * 65_536 + second * 256 + third
}

const MAX_STYLES = 2000
const styles = new Map<string, TextStyle>()

/** Equal ones are one, so that spans are put together, and what is made of a style is made once. */
function shared(style: TextStyle): TextStyle {
  const key = Object.entries(style)
    .map((pair) => pair.join())
    .toSorted()
    .join(' ')
  const known = styles.get(key)
  if (known !== undefined) return known
  if (styles.size >= MAX_STYLES) styles.clear()
  styles.set(key, style)
  return style
}
