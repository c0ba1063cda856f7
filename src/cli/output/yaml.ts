/**
 * Writes JSON values as YAML: the details of an execution, and `--yaml`. What it writes means the same to readers of YAML
 * 1.1 and 1.2. Own code because a library costs more time to load than most commands take.
 */
import { escapeUnprintable } from '../../lib/log/index.ts'
import { entriesOf as jsonEntries, JsonNumber, writeJson } from '../../lib/json/index.ts'

export interface YamlOptions {
  /** Names in order of the alphabet instead of their own. Default false. */
  sortKeys?: boolean
}

/** A reader looks no further than 1,024 characters for the colon behind a name; before longer ones there is a question mark. */
const MAX_KEY_LENGTH = 1000

/** Ends with a newline. */
export function toYaml(value: unknown, options: YamlOptions = {}): string {
  const lines: string[] = []
  writeNode(lines, '', '', value, options)
  return `${lines.join('\n')}\n`
}

/** Writes `value` after `prefix` (such as `name:` or `-`), its further lines deeper than `indent`. */
function writeNode(lines: string[], indent: string, prefix: string, value: unknown, options: YamlOptions): void {
  const head = prefix === '' ? '' : `${indent}${prefix}`
  if (Array.isArray(value)) {
    if (value.length === 0) lines.push(join(head, '[]'))
    else {
      if (head !== '') lines.push(head)
      for (const item of value) writeItem(lines, indent, item, options)
    }
  } else if (isObject(value)) {
    const entries = entriesOf(value, options)
    if (entries.length === 0) lines.push(join(head, '{}'))
    else {
      if (head !== '') lines.push(head)
      const inner = head === '' ? indent : `${indent}  `
      for (const [name, item] of entries) {
        const key = scalar(name)
        if (key.length > MAX_KEY_LENGTH) lines.push(`${inner}? ${key}`)
        writeNode(lines, inner, key.length > MAX_KEY_LENGTH ? ':' : `${key}:`, item, options)
      }
    }
  } else if (typeof value === 'string' && isBlock(value)) {
    const { header, body } = block(value, prefix === '' ? indent : `${indent}  `)
    lines.push(join(head, header))
    // One by one: as arguments of a single call, a hundred thousand lines would not fit on the stack.
    for (const line of body) lines.push(line)
  } else {
    lines.push(join(head, scalar(value)))
  }
}

/** An item of a list; the first line of a mapping inside stands behind the dash. */
function writeItem(lines: string[], indent: string, item: unknown, options: YamlOptions): void {
  const isNested = (Array.isArray(item) && item.length > 0) || (isObject(item) && Object.keys(item).length > 0)
  if (!isNested) {
    writeNode(lines, indent, '-', item, options)
    return
  }
  const inner: string[] = []
  writeNode(inner, `${indent}  `, '', item, options)
  for (const [index, line] of inner.entries()) {
    lines.push(index === 0 ? `${indent}- ${line.slice(indent.length + 2)}` : line)
  }
}

function join(head: string, text: string): string {
  return head === '' ? text : `${head} ${text}`
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !(value instanceof JsonNumber)
}

function entriesOf(value: object, { sortKeys = false }: YamlOptions): [string, unknown][] {
  const entries = jsonEntries(value as Record<string, unknown>).filter(([, item]) => item !== undefined)
  return sortKeys ? entries.toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)) : entries
}

/** Several lines that a literal block can show as they are: it cannot escape, and leading blanks count as indentation. */
function isBlock(text: string): boolean {
  return /^[^\n \t][^]*\n/.test(text) && isPrintable(text.replaceAll('\n', '').replaceAll('\t', ' '))
}

function block(text: string, indent: string): { header: string; body: string[] } {
  const endsLine = text.endsWith('\n')
  const header = !endsLine ? '|-' : text.endsWith('\n\n') ? '|+' : '|'
  const lines = (endsLine ? text.slice(0, -1) : text).split('\n')
  return { header, body: lines.map((line) => (line === '' ? '' : `${indent === '' ? '  ' : indent}${line}`)) }
}

function isPrintable(text: string): boolean {
  // YAML has no place for the last two characters of the first plane.
  return escapeUnprintable(text) === text && !/[\ufffe\uffff]/.test(text)
}

/** What a reader of YAML 1.1 or 1.2 would take for something other than text. */
const special = new RegExp(
  [
    '~|null|true|false|yes|no|on|off|y|n|=|<<',
    '[-+]?\\.(?:inf|nan)',
    '[-+]?0(?:x[0-9a-f_]+|o?[0-7_]+|b[01_]+)',
    // Decimal, with a fraction and exponent or without.
    '[-+]?(?:[0-9][0-9_]*(?:\\.[0-9_]*)?|\\.[0-9_]+)(?:e[-+]?[0-9]+)?',
    // Minutes and seconds, which YAML 1.1 adds up.
    '[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\\.[0-9_]*)?',
    '[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt ].*)?',
  ]
    .map((pattern) => `^(?:${pattern})$`)
    .join('|'),
  'i',
)

function isPlain(text: string): boolean {
  return (
    text !== '' &&
    isPrintable(text) &&
    !special.test(text) &&
    // Three dots on a line of their own end a document.
    !/^(?:[\s\-?:,[\]{}#&*!|>'"%@`=]|\.\.\.)/.test(text) &&
    !/[:\s]$|: | #/.test(text)
  )
}

function scalar(value: unknown): string {
  if (typeof value !== 'string') {
    if (typeof value === 'number' || value instanceof JsonNumber) return number(value)
    return typeof value === 'boolean' ? String(value) : 'null'
  }
  if (isPlain(value)) return value
  if (isPrintable(value)) return `'${value.replaceAll("'", "''")}'`
  // JSON's escapes are YAML's, but JSON leaves some characters alone that YAML or a terminal does not take.
  return writeJson(value).replace(unprintable, (character) => {
    const code = character.codePointAt(0) ?? 0
    return code > 0xffff ? `\\U${hex(code, 8)}` : `\\u${hex(code, 4)}`
  })
}

const unprintable = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\ufffe\uffff]/gu

function hex(code: number, length: number): string {
  return code.toString(16).padStart(length, '0')
}

/** YAML 1.1 takes `1e+21` and `1.0e21` for text: it wants a point, and a sign in the exponent. */
function number(value: number | JsonNumber): string {
  return String(value)
    .replace(/^(-?\d+)(?=[eE])/, '$1.0')
    .replace(/([eE])(?=\d)/, '$1+')
}
