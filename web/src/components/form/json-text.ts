/**
 * Reads JSON that somebody types: tells where a mistake is and what it is, and changes nothing in silence. `JSON.parse` tells
 * the place in some browsers only, rounds numbers, takes the last of two equal keys, and mistakes escaped keys for
 * others (nodejs/node#63785).
 */
import { jsonNumber, JsonNumber, JsonNumberError, objectOf, writeJson } from '../../json.ts'

export interface JsonMistake {
  /** For people, without the place. */
  message: string
  /** Characters from the beginning, in UTF-16. */
  offset: number
  /** From 1. */
  line: number
  /** From 1. */
  column: number
}

export type JsonReading = { value: unknown; mistake?: never } | { value?: never; mistake: JsonMistake }

/** As the server takes them. */
const MAX_DEPTH = 100
const MAX_SHOWN = 20

/** @returns the value, or the first mistake */
export function readJsonText(text: string): JsonReading {
  try {
    return { value: new Reader(text).read() }
  } catch (error) {
    if (!(error instanceof Mistake)) throw error
    return { mistake: { message: error.message, offset: error.offset, ...placeOf(text, error.offset) } }
  }
}

/** `Line 3, column 7: a comma is missing.` */
export function mistakeText({ line, column, message }: JsonMistake): string {
  return `Line ${line}, column ${column}: ${message}`
}

class Mistake extends Error {
  readonly offset: number
  constructor(message: string, offset: number) {
    super(message)
    this.offset = offset
  }
}

const NUMBER = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y
const WORD = /[\p{L}\p{N}_$.+-]+/uy
/** What needs no second look inside of quotes. */
const PLAIN = /[^"\\\p{Cc}]+/uy
const escapes: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
}

class Reader {
  private at = 0
  /** Of the last comma. */
  private comma = 0
  private readonly text: string

  constructor(text: string) {
    this.text = text
  }

  read(): unknown {
    this.skip()
    if (this.at >= this.text.length) throw this.mistake('enter a value.')
    const value = this.value(0)
    this.skip()
    if (this.at < this.text.length) throw this.mistake(`${this.shown()} is more than one value.`)
    return value
  }

  private value(depth: number): unknown {
    const character = this.text[this.at]
    if (character === '{' || character === '[') {
      if (depth === MAX_DEPTH) throw this.mistake(`values are nested more than ${MAX_DEPTH} deep.`)
      return character === '{' ? this.object(depth) : this.array(depth)
    }
    if (character === '"') return this.string()
    if (character === "'") throw this.mistake('write strings in double quotes: "…".')
    if (character === undefined) throw this.mistake('a value is missing at the end.')
    if (character === '-' || (character >= '0' && character <= '9')) return this.number()
    return this.word()
  }

  private object(depth: number): Record<string, unknown> {
    const start = this.at
    this.at += 1
    const pairs: [string, unknown][] = []
    const names = new Set<string>()
    this.skip()
    if (this.take('}')) return {}
    for (;;) {
      if (this.text[this.at] !== '"') {
        if (this.at >= this.text.length) throw this.unclosed('{', '}', start)
        if (this.text[this.at] === '}') throw this.surplus('}')
        throw this.mistake(`a name in double quotes is missing before ${this.shown()}.`)
      }
      const nameAt = this.at
      const name = this.string()
      if (names.has(name)) throw new Mistake(`the name ${short(name)} is repeated.`, nameAt)
      if (name === '__proto__') throw new Mistake('the name "__proto__" is not allowed.', nameAt)
      names.add(name)
      this.skip()
      if (!this.take(':')) throw this.mistake('a colon is missing after the name.')
      this.skip()
      pairs.push([name, this.value(depth + 1)])
      this.skip()
      if (this.take('}')) return objectOf(pairs)
      this.separator('{', '}', start)
    }
  }

  private array(depth: number): unknown[] {
    const start = this.at
    this.at += 1
    const items: unknown[] = []
    this.skip()
    if (this.take(']')) return items
    for (;;) {
      if (this.at >= this.text.length) throw this.unclosed('[', ']', start)
      if (this.text[this.at] === ']') throw this.surplus(']')
      items.push(this.value(depth + 1))
      this.skip()
      if (this.take(']')) return items
      this.separator('[', ']', start)
    }
  }

  private separator(open: string, close: string, start: number): void {
    if (this.take(',')) {
      this.comma = this.at - 1
      this.skip()
    } else if (this.at >= this.text.length) throw this.unclosed(open, close, start)
    else throw this.mistake(`a comma or "${close}" is missing before ${this.shown()}.`)
  }

  private string(): string {
    const start = this.at
    this.at += 1
    const pieces: string[] = []
    for (;;) {
      const plain = this.match(PLAIN)
      if (plain !== undefined) pieces.push(plain)
      const character = this.text[this.at]
      if (character === '"') {
        this.at += 1
        return pieces.join('')
      }
      if (character === '\\') pieces.push(this.escape())
      else if (character === undefined) throw new Mistake('this string has no closing quote.', start)
      else if (character === '\n' || character === '\r') {
        throw new Mistake('this string does not end on its line: close it, or write \\n for a line break.', start)
      } else if (character > '\u001f') {
        // Further ones that JSON allows.
        pieces.push(character)
        this.at += 1
      } else throw this.mistake('write a control character as an escape, such as \\t.')
    }
  }

  private escape(): string {
    const letter = this.text[this.at + 1] ?? ''
    if (Object.hasOwn(escapes, letter)) {
      this.at += 2
      return escapes[letter] ?? ''
    }
    const digits = this.text.slice(this.at + 2, this.at + 6)
    if (letter !== 'u' || !/^[\da-f]{4}$/i.test(digits)) {
      throw this.mistake('write one of " \\ / b f n r t after a backslash, or u and four hexadecimal digits.')
    }
    this.at += 6
    return String.fromCharCode(Number.parseInt(digits, 16))
  }

  private number(): number | JsonNumber {
    const start = this.at
    NUMBER.lastIndex = start
    const match = NUMBER.exec(this.text)
    if (match === null) throw this.mistake('digits are missing after the minus sign.')
    const [digits] = match
    this.at = start + digits.length
    const rest = this.text[this.at] ?? ''
    if (/[\p{L}\p{N}_.]/u.test(rest)) throw new Mistake(`${this.shown(start)} is not a number.`, start)
    const problem = problemOfNumber(digits)
    if (problem !== undefined) throw new Mistake(problem, start)
    return jsonNumber(digits)
  }

  private word(): unknown {
    const start = this.at
    const word = this.match(WORD)
    switch (word) {
      case 'true':
        return true
      case 'false':
        return false
      case 'null':
        return null
      case 'True':
      case 'False':
        throw new Mistake(`write ${word.toLowerCase()} in lower case.`, start)
      case 'None':
      case 'undefined':
        throw new Mistake('write null.', start)
      default:
        if (this.text.startsWith('//', start) || this.text.startsWith('/*', start)) {
          throw new Mistake('JSON allows no comments: remove it.', start)
        }
        if (word === undefined) throw new Mistake(`a value is missing before ${this.shown(start)}.`, start)
        throw new Mistake(`${this.shown(start)} needs double quotes to be a string.`, start)
    }
  }

  private skip(): void {
    for (;;) {
      const code = this.text.charCodeAt(this.at)
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return
      this.at += 1
    }
  }

  private take(character: string): boolean {
    if (this.text[this.at] !== character) return false
    this.at += 1
    return true
  }

  private match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.at
    const found = pattern.exec(this.text)?.[0]
    if (found !== undefined) this.at += found.length
    return found
  }

  /** What stands there, for a message. */
  private shown(from = this.at): string {
    const [word = this.text[from] ?? ''] =
      /^[\p{L}\p{N}_$.+-]+/u.exec(this.text.slice(from, from + MAX_SHOWN * 2)) ?? []
    return from >= this.text.length ? 'the end' : short(word)
  }

  private mistake(message: string): Mistake {
    return new Mistake(message, this.at)
  }

  private surplus(close: string): Mistake {
    return new Mistake(`remove the comma before the closing "${close}".`, this.comma)
  }

  private unclosed(open: string, close: string, start: number): Mistake {
    return new Mistake(`this "${open}" has no closing "${close}".`, start)
  }
}

/** Why the number cannot be sent as it is written; undefined: it can. */
export function problemOfNumber(digits: string): string | undefined {
  try {
    jsonNumber(digits)
    return undefined
  } catch (error) {
    if (error instanceof JsonNumberError) return `${error.message}.`
    throw error
  }
}

function short(text: string): string {
  return writeJson(text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text)
}

function placeOf(text: string, offset: number): { line: number; column: number } {
  let line = 1
  let begin = 0
  for (let end = text.indexOf('\n'); end !== -1 && end < offset; end = text.indexOf('\n', end + 1)) {
    line += 1
    begin = end + 1
  }
  return { line, column: offset - begin + 1 }
}
