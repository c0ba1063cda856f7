/**
 * Values written as Python literals: `{'a': [1, 2.5, None, True]}`. Clients of this field send lists and objects that
 * way where JSON is meant (contract 02, 2.4).
 */
import { JsonLimitError, parseNumber } from '../../lib/json/index.ts'

const MAX_DEPTH = 100

/**
 * Undefined when the text is not one literal. Tuples and sets become lists.
 *
 * @param maxValues items, properties, lists and objects
 * @throws JsonNumberError, JsonLimitError
 */
export function parsePythonLiteral(text: string, maxValues = Infinity): { value: unknown } | undefined {
  const reader = new Reader(text, maxValues)
  try {
    const value = reader.value(0)
    reader.skipBlanks()
    return reader.isAtEnd ? { value } : undefined
  } catch (error) {
    if (error instanceof NotALiteral) return undefined
    throw error
  }
}

class NotALiteral extends Error {}

const constants = new Map<string, unknown>([
  ['None', null],
  ['True', true],
  ['False', false],
])

const octal = /[0-7]{1,3}/y
const blank = /[ \t\r\n\f]*/y
const word = /[A-Za-z]+/y
const number = /[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?/y
const shortEscapes: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  r: '\r',
  b: '\b',
  f: '\f',
  v: '\v',
  a: '\x07',
  '\n': '',
  '\\': '\\',
  "'": "'",
  '"': '"',
}

class Reader {
  readonly #text: string
  readonly #maxValues: number
  #at = 0
  #values = 0

  constructor(text: string, maxValues: number) {
    this.#text = text
    this.#maxValues = maxValues
  }

  get isAtEnd(): boolean {
    return this.#at === this.#text.length
  }

  skipBlanks(): void {
    this.#match(blank)
  }

  value(depth: number): unknown {
    if (depth > MAX_DEPTH) throw new NotALiteral()
    this.#values += 1
    if (this.#values > this.#maxValues)
      throw new JsonLimitError(`it holds more than ${this.#maxValues} items, properties, lists and objects`)
    this.skipBlanks()
    const first = this.#text.charAt(this.#at)
    switch (first) {
      case '[':
        return this.#items(']', depth)
      case '(':
        return this.#parenthesized(depth)
      case '{':
        return this.#braces(depth)
      case "'":
      case '"':
        return this.#string(first)
      default:
        return this.#numberOrName()
    }
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at
    const [found] = pattern.exec(this.#text) ?? []
    if (found !== undefined) this.#at += found.length
    return found
  }

  #take(character: string): boolean {
    this.skipBlanks()
    if (this.#text.charAt(this.#at) !== character) return false
    this.#at += 1
    return true
  }

  /** From the opening bracket to behind the closing one; one comma may follow the last item. */
  #items(close: string, depth: number): unknown[] {
    this.#at += 1
    const items: unknown[] = []
    while (!this.#take(close)) {
      if (items.length > 0 && !this.#comma(close)) return items
      items.push(this.value(depth + 1))
    }
    return items
  }

  /** False when the closing bracket came instead of another item; both are consumed. */
  #comma(close: string): boolean {
    if (!this.#take(',')) throw new NotALiteral()
    return !this.#take(close)
  }

  #parenthesized(depth: number): unknown {
    const start = this.#at
    const items = this.#items(')', depth)
    const isTuple =
      items.length !== 1 ||
      this.#text
        .slice(start, this.#at - 1)
        .trimEnd()
        .endsWith(',')
    return isTuple ? items : items[0]
  }

  /** A dictionary, or a set. */
  #braces(depth: number): unknown {
    this.#at += 1
    const entries: [string, unknown][] = []
    const members: unknown[] = []
    while (!this.#take('}')) {
      if (entries.length + members.length > 0 && !this.#comma('}')) break
      const key = this.value(depth + 1)
      if (this.#take(':') && members.length === 0) {
        if (typeof key !== 'string') throw new NotALiteral()
        entries.push([key, this.value(depth + 1)])
      } else if (entries.length === 0) {
        members.push(key)
      } else {
        throw new NotALiteral()
      }
    }
    return members.length > 0 ? members : Object.fromEntries(entries)
  }

  #string(mark: string): string {
    this.#at += 1
    let read = ''
    for (;;) {
      const character = this.#text.charAt(this.#at)
      this.#at += 1
      if (character === mark) return read
      if (character === '' || character === '\n') throw new NotALiteral()
      read += character === '\\' ? this.#escape() : character
    }
  }

  #escape(): string {
    const code = this.#match(octal)
    return code === undefined ? this.#namedEscape() : String.fromCharCode(Number.parseInt(code, 8))
  }

  #namedEscape(): string {
    const kind = this.#text.charAt(this.#at)
    this.#at += 1
    const digits = { x: 2, u: 4, U: 8 }[kind]
    if (digits === undefined) return shortEscapes[kind] ?? `\\${kind}`
    const code = this.#text.slice(this.#at, this.#at + digits)
    if (code.length !== digits || !/^[0-9a-fA-F]+$/.test(code)) throw new NotALiteral()
    const point = Number.parseInt(code, 16)
    if (point > 0x10ffff) throw new NotALiteral()
    this.#at += digits
    return String.fromCodePoint(point)
  }

  #numberOrName(): unknown {
    const digits = this.#match(number)
    if (digits !== undefined) return parseNumber(digits)
    const name = this.#match(word)
    if (name === 'u' || name === 'U') {
      const mark = this.#text.charAt(this.#at)
      if (mark === "'" || mark === '"') return this.#string(mark)
    }
    if (name === undefined || !constants.has(name)) throw new NotALiteral()
    return constants.get(name)
  }
}
