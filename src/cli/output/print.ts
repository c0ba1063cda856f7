/** How records, lists and times look (contract 09, 9.2). Nothing printed here can carry a terminal's control characters. */
import { styleText } from 'node:util'
import type { OutputStream } from '../cli-process.ts'
import { escapeUnprintable } from '../../lib/log/index.ts'
import { clientEnvironment } from '../program-names.ts'
import { JsonNumber, writeJson } from '../../lib/json/index.ts'

export type Json = Record<string, unknown>

/** The value under a dotted path; undefined when there is none. A whole name with dots goes before its parts. */
export function attributeOf(record: unknown, path: string): unknown {
  if (typeof record !== 'object' || record === null || record instanceof JsonNumber) return undefined
  if (Object.hasOwn(record, path)) return Reflect.get(record, path)
  for (let dot = path.indexOf('.'); dot !== -1; dot = path.indexOf('.', dot + 1)) {
    const name = path.slice(0, dot)
    if (!Object.hasOwn(record, name)) continue
    const found = attributeOf(Reflect.get(record, name), path.slice(dot + 1))
    if (found !== undefined) return found
  }
  return undefined
}

/** Only these attributes, in the structure of the record. */
export function pickAttributes(record: unknown, paths: readonly string[]): Json {
  const picked: Json = {}
  for (const path of paths) {
    const value = attributeOf(record, path)
    const names = path.split('.')
    let target = picked
    for (const name of names.slice(0, -1)) {
      const inner = Object.hasOwn(target, name) ? target[name] : undefined
      const next: Json = isPlain(inner) ? { ...inner } : {}
      define(target, name, next)
      target = next
    }
    define(target, names.at(-1) ?? path, value === undefined ? null : value)
  }
  return picked
}

function isPlain(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof JsonNumber)
}

/** Assignment would run the setter of `__proto__`. */
function define(target: Json, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, enumerable: true, writable: true, configurable: true })
}

/** Four blanks of indentation, names in order. */
export function toJson(value: unknown): string {
  return printable(writeJson(sortKeys(value), 4))
}

/** The same in one line, for records that come one after the other. */
export function toJsonLine(value: unknown): string {
  return printable(writeJson(sortKeys(value)))
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys)
  if (typeof value !== 'object' || value === null || value instanceof JsonNumber) return value
  const sorted: Json = {}
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  for (const [name, item] of entries) define(sorted, name, sortKeys(item))
  return sorted
}

/** Keeps line breaks and escapes control characters. */
export function printable(text: string): string {
  if (!/[^\x20-\x7e]/.test(text)) return text
  return text
    .split('\n')
    .map((line) => escapeUnprintable(line.replaceAll('\t', '    ')))
    .join('\n')
}

/** A value as the text of a cell. */
export function cellText(value: unknown): string {
  if (value === undefined || value === null) return ''
  if (typeof value === 'string') return printable(value)
  return printable(writeJson(value, 4))
}

const timePattern = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z$/

/** `Tue, 17 Feb 2015 17:28:28 UTC`; other text stays unchanged. */
export function formatTime(value: unknown, timezone: string): string {
  if (typeof value !== 'string' || !timePattern.test(value)) return cellText(value)
  const date = new Date(`${value.slice(0, 19)}Z`)
  if (Number.isNaN(date.getTime())) return cellText(value)
  if (timezone === 'UTC') return date.toUTCString().replace('GMT', 'UTC')
  const parts = new Intl.DateTimeFormat('en-US', {
    timeZone: timezone,
    weekday: 'short',
    day: '2-digit',
    month: 'short',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
    timeZoneName: 'short',
  }).formatToParts(date)
  const part = (type: Intl.DateTimeFormatPartTypes): string => parts.find((each) => each.type === type)?.value ?? ''
  const day = `${part('weekday')}, ${part('day')} ${part('month')} ${part('year')}`
  return `${day} ${part('hour')}:${part('minute')}:${part('second')} ${part('timeZoneName')}`
}

/** Whether what stands under this name is a point in time. */
export function isTimeName(name: string): boolean {
  return /(?:timestamp|_at|_time|_run|^expiry)$/.test(name)
}

/** How many columns of a terminal a text takes. */
export function displayWidth(text: string): number {
  if (!/[^\x20-\x7e]/.test(text)) return text.length
  let width = 0
  for (const character of text) width += characterWidth(character)
  return width
}

/** East Asian scripts and signs, and emoji; of the letters that flags are made of each is half a flag. */
const wide =
  /(?![\u{1f1e6}-\u{1f1ff}])[\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{18d08}\u{1aff0}-\u{1b2fb}\u{1f200}-\u{1f265}\u{20000}-\u{3fffd}\p{Emoji_Presentation}]/u
/** Signs above, below and around others, and the later parts of Korean syllables. */
const zeroWidth = /[\p{Mn}\p{Me}\u1160-\u11ff\ud7b0-\ud7ff]/u

function characterWidth(character: string): number {
  if (zeroWidth.test(character)) return 0
  return wide.test(character) ? 2 : 1
}

/** Lines of at most `width` columns, broken at a blank where there is one; what is indented stays so, if there is room. */
export function wrapText(text: string, width: number): string[] {
  return text.split('\n').flatMap((line) => (displayWidth(line) <= width ? [line] : wrapLine(line, width)))
}

function wrapLine(line: string, width: number): string[] {
  const lines: string[] = []
  const indent = indentOf(line)
  const beginning = indent.length < width / 2 ? indent : ''
  let current = ''
  let used = 0
  for (const character of line) {
    const needed = characterWidth(character)
    if (used + needed > width && current !== '') {
      const blank = character === ' ' ? current.length : current.lastIndexOf(' ')
      if (current.slice(0, Math.max(0, blank)).trim() !== '') {
        lines.push(current.slice(0, blank))
        current = beginning + current.slice(blank + 1)
      } else {
        lines.push(current)
        current = beginning
      }
      used = displayWidth(current)
      if (character === ' ' && current === beginning) continue
    }
    current += character
    used += needed
  }
  return [...lines, current]
}

function indentOf(line: string): string {
  return /^ */.exec(line)?.[0] ?? ''
}

export interface TableOptions {
  /** Content width of the columns; one number counts for all. */
  widths?: readonly number[] | undefined
  /** Columns of the terminal; cells are wrapped between words until the table fits, if it can. */
  terminalWidth?: number | undefined
  /** Colours the lines of a cell after they got their width. */
  paint?: ((column: number, row: number, text: string) => string) | undefined
}

/** A boxed table, left aligned. Cells may have several lines. Ends with a newline. */
export function renderTable(header: readonly string[], rows: readonly string[][], options: TableOptions = {}): string {
  const all = [[...header], ...rows]
  const measure = (column: number, of: (text: string) => number): number =>
    all.reduce((most, row) => Math.max(most, of(row[column] ?? '')), 1)
  const natural = header.map((_, column) => {
    const given = options.widths?.length === 1 ? options.widths[0] : options.widths?.[column]
    return given ?? Math.min(MAX_WIDTH, measure(column, widestLine))
  })
  const { terminalWidth } = options
  const widths =
    terminalWidth === undefined || options.widths !== undefined
      ? natural
      : fitWidths(
          natural,
          header.map((_, column) => measure(column, longestWord)),
          terminalWidth,
        )
  const rule = `+${widths.map((width) => '-'.repeat(width + 2)).join('+')}+`
  const lines = [rule]
  for (const [index, row] of all.entries()) {
    const cells = widths.map((width, column) => wrapText(row[column] ?? '', width))
    const height = Math.max(1, ...cells.map((cell) => cell.length))
    for (let line = 0; line < height; line += 1) {
      const texts = widths.map((width, column) => {
        const text = cells[column]?.[line] ?? ''
        const padding = ' '.repeat(Math.max(0, width - displayWidth(text)))
        const painted = index === 0 ? text : (options.paint?.(column, index - 1, text) ?? text)
        return ` ${painted}${padding} `
      })
      lines.push(`|${texts.join('|')}|`)
    }
    if (index === 0) lines.push(rule)
  }
  lines.push(rule)
  return `${lines.join('\n')}\n`
}

function widestLine(text: string): number {
  return text.split('\n').reduce((most, line) => Math.max(most, displayWidth(line)), 0)
}

/** Makes the widest columns narrower until the table fits into the terminal, but breaks no word that could be an id. */
function fitWidths(widths: number[], minimums: readonly number[], terminalWidth: number): number[] {
  const fitted = [...widths]
  let excess = fitted.reduce((sum, width) => sum + width, 3 * widths.length + 1) - terminalWidth
  while (excess > 0) {
    const shrinkable = fitted.map((width, column) => (width > (minimums[column] ?? 0) ? width : 0))
    const column = shrinkable.indexOf(Math.max(...shrinkable))
    const width = shrinkable[column] ?? 0
    if (width === 0) break
    fitted[column] = width - 1
    excess -= 1
  }
  return fitted
}

/** The reference of a generated trigger: `core.` and 36 characters. */
const MAX_WHOLE_WORD_WIDTH = 41
/** One endless line would pad every other one. */
const MAX_WIDTH = 500

/** With the indentation of its line, which a wrapped line keeps. */
function longestWord(text: string): number {
  return text
    .split('\n')
    .flatMap((line) =>
      line
        .trimStart()
        .split(' ')
        .map((word) => indentOf(line) + word),
    )
    .reduce((most, word) => Math.max(most, Math.min(displayWidth(word), MAX_WHOLE_WORD_WIDTH)), 1)
}

/** A box around one line, for notes. */
export function renderBox(text: string): string {
  const rule = `+-${'-'.repeat(displayWidth(text))}-+`
  return `${rule}\n| ${text} |\n${rule}\n`
}

/** Contract 09, 9.2 "Truncated lists". */
export function truncationNote(count: number, pluralName: string, singularName: string): string {
  const what = count === 1 ? `one ${singularName} is` : `first ${count} ${pluralName} are`
  return renderBox(`Note: Only ${what} displayed. Use -n/--last flag for more results.`)
}

export function isColored(stream: OutputStream, env: NodeJS.ProcessEnv): boolean {
  if ((clientEnvironment(env)['SVC_COLORIZE'] ?? '') !== '') return true
  return stream.isTTY === true && (env['NO_COLOR'] ?? '') === ''
}

/** Green for success, red for failure, yellow for unfinished; other text stays unchanged. */
export function colorStatus(text: string): string {
  const status = /^[a-z_]+/.exec(text)?.[0] ?? ''
  const color = Object.hasOwn(statusColors, status) ? statusColors[status] : undefined
  return color === undefined ? text : styleText(color, text, { validateStream: false })
}

const statusColors: Readonly<Record<string, 'green' | 'red' | 'yellow'>> = {
  succeeded: 'green',
  failed: 'red',
  timeout: 'red',
  abandoned: 'red',
  canceled: 'red',
  processed: 'green',
  processing: 'yellow',
  processing_failed: 'red',
  requested: 'yellow',
  delayed: 'yellow',
  scheduled: 'yellow',
  running: 'yellow',
  pending: 'yellow',
  pausing: 'yellow',
  paused: 'yellow',
  resuming: 'yellow',
  canceling: 'yellow',
}
