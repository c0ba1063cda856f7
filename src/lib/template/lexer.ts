import { MAX_NESTING, MAX_TOKENS } from './limits.ts'
import { limitError, quoted, syntaxError, TemplateError } from './error.ts'

export type TokenType =
  | 'text'
  | 'variable-begin'
  | 'variable-end'
  | 'block-begin'
  | 'block-end'
  | 'name'
  | 'string'
  | 'integer'
  | 'float'
  | 'operator'
  | 'end'
  | 'error'

export interface Token {
  type: TokenType
  /** name, operator, decoded string, digits without underscores, or text */
  value: string
  position: number
  /** Of a token of the type `error`, the last one: why the text after it cannot be read. The parser reports the first mistake. */
  error?: TemplateError
}

/** How blocks change the whitespace around them. */
export interface LexerOptions {
  /** Drops the line end after a block, and blanks before a block that starts its line. Default: keeps them. */
  trimBlocks?: boolean
}

const namePattern = /[\p{L}\p{Nl}_][\p{L}\p{Nl}\p{Nd}\p{Mn}\p{Mc}\p{Pc}]*/uy
const floatPattern = /\d+(?:_\d+)*(?:\.\d+(?:_\d+)*(?:[eE][+-]?\d+(?:_\d+)*)?|[eE][+-]?\d+(?:_\d+)*)/y
const integerPattern = /0[bB](?:_?[01])+|0[oO](?:_?[0-7])+|0[xX](?:_?[0-9a-fA-F])+|[1-9](?:_?\d)*|0(?:_?0)*/y
const operatorPattern = /\/\/|\*\*|==|!=|>=|<=|[-+/*%~[\](){}<>=.:|,;]/y
const spacePattern = /\s+/y
const rawPattern = /\{%([-+]?)\s*raw\s*([-+]?)%\}/y
const endRawPattern = /\{%([-+]?)\s*endraw\s*([-+]?)%\}/g
const wideSpace = /\s/
const closing: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' }

/**
 * Splits template text into tokens.
 *
 * Whitespace next to a delimiter with `-` is dropped, line ends become `\n`, and one line end at the very end of the text is
 * dropped, as Jinja2 does by default.
 *
 * @param tokens receives them, also those before an error
 */
export function tokenize(source: string, tokens: Token[], options: LexerOptions = {}): Token[] {
  const normalized = source.includes('\r') ? source.replace(/\r\n?/g, '\n') : source
  const text = normalized.endsWith('\n') ? normalized.slice(0, -1) : normalized
  return new Lexer(text, tokens, options.trimBlocks === true).run()
}

/** Splits what stands between `{{` and `}}`. */
export function tokenizeExpression(source: string): Token[] {
  return new Lexer(source, [], false).runExpression()
}

class Lexer {
  readonly #source: string
  readonly #tokens: Token[]
  readonly #trimBlocks: boolean
  #position = 0
  #stripNext = false

  constructor(source: string, tokens: Token[], trimBlocks: boolean) {
    this.#source = source
    this.#tokens = tokens
    this.#trimBlocks = trimBlocks
  }

  run(): Token[] {
    return this.#until(() => this.#template())
  }

  runExpression(): Token[] {
    return this.#until(() => this.#expression())
  }

  #until(read: () => void): Token[] {
    try {
      read()
      this.#push('end', '', this.#source.length)
    } catch (error) {
      if (!(error instanceof TemplateError) || error.code !== 'SYNTAX') throw error
      this.#tokens.push({ type: 'error', value: '', position: error.position ?? 0, error })
    }
    return this.#tokens
  }

  #template(): void {
    while (this.#position < this.#source.length) {
      const opening = this.#nextOpening()
      if (opening < 0) {
        this.#text(this.#position, this.#source.length, false)
        break
      }
      const sign = this.#source[opening + 2]
      this.#text(this.#position, this.#indentedAt(opening, sign), sign === '-')
      const signed = sign === '-' || sign === '+' ? 1 : 0
      switch (this.#source[opening + 1]) {
        case '#':
          this.#comment(opening, opening + 2 + (sign === '-' || sign === '+' ? 1 : 0))
          break
        case '{':
          this.#push('variable-begin', '{{', opening)
          this.#position = opening + 2 + signed
          this.#expression('variable-end', '}}')
          break
        default:
          if (this.#raw(opening)) break
          this.#push('block-begin', '{%', opening)
          this.#position = opening + 2 + signed
          this.#expression('block-end', '%}')
      }
    }
  }

  /** Where the text before a block ends: at the start of its line, if blanks alone precede the block there. */
  #indentedAt(opening: number, sign: string | undefined): number {
    if (!this.#trimBlocks || sign === '+' || this.#source[opening + 1] === '{') return opening
    let at = opening
    while (at > this.#position && isSpace(this.#source.charCodeAt(at - 1)) && this.#source[at - 1] !== '\n') at -= 1
    return at === 0 || this.#source[at - 1] === '\n' ? at : opening
  }

  /** Drops the line end after a block that does not end in a sign. */
  #trimLineEnd(sign: string | undefined): void {
    if (this.#trimBlocks && sign !== '-' && sign !== '+' && this.#source[this.#position] === '\n') this.#position += 1
  }

  #push(type: TokenType, value: string, position: number): void {
    if (this.#tokens.length >= MAX_TOKENS) throw limitError(`the template has more than ${MAX_TOKENS} parts`)
    this.#tokens.push({ type, value, position })
  }

  #nextOpening(): number {
    let at = this.#source.indexOf('{', this.#position)
    while (at >= 0) {
      const next = this.#source[at + 1]
      if (next === '{' || next === '%' || next === '#') return at
      at = this.#source.indexOf('{', at + 1)
    }
    return -1
  }

  #text(start: number, end: number, stripRight: boolean): void {
    let from = start
    if (this.#stripNext) {
      while (from < end && isSpace(this.#source.charCodeAt(from))) from += 1
      this.#stripNext = false
    }
    let to = end
    if (stripRight) while (to > from && isSpace(this.#source.charCodeAt(to - 1))) to -= 1
    if (to > from) this.#push('text', this.#source.slice(from, to), from)
  }

  #comment(opening: number, start: number): void {
    const end = this.#source.indexOf('#}', start)
    if (end < 0) throw syntaxError('Missing end of comment tag', opening)
    const sign = end > start ? this.#source[end - 1] : undefined
    this.#stripNext = sign === '-'
    this.#position = end + 2
    this.#trimLineEnd(sign)
  }

  #raw(opening: number): boolean {
    rawPattern.lastIndex = opening
    const begin = rawPattern.exec(this.#source)
    if (begin === null) return false
    const start = opening + begin[0].length
    endRawPattern.lastIndex = start
    const end = endRawPattern.exec(this.#source)
    if (end === null) throw syntaxError('Missing end of raw directive', opening)
    this.#stripNext = begin[2] === '-'
    this.#position = start
    this.#text(start, this.#indentedAt(end.index, end[1]), end[1] === '-')
    this.#stripNext = end[2] === '-'
    this.#position = end.index + end[0].length
    this.#trimLineEnd(end[2])
    return true
  }

  /** Reads up to and including a delimiter, else to the end of the text. */
  #expression(endType?: 'variable-end' | 'block-end', delimiter = ''): void {
    const source = this.#source
    const brackets: string[] = []
    for (;;) {
      this.#match(spacePattern)
      const at = this.#position
      if (at >= source.length) return
      if (brackets.length === 0 && endType !== undefined) {
        const sign = source[at] === '-' || source[at] === '+' ? 1 : 0
        if (source.startsWith(delimiter, at + sign)) {
          this.#push(endType, delimiter, at)
          this.#stripNext = source[at] === '-'
          this.#position = at + sign + delimiter.length
          if (endType === 'block-end') this.#trimLineEnd(source[at])
          return
        }
      }
      if (this.#token('float', floatPattern) || this.#token('integer', integerPattern)) continue
      if (this.#token('name', namePattern)) continue
      if (source[at] === "'" || source[at] === '"') {
        this.#string(at)
        continue
      }
      const operator = this.#match(operatorPattern)
      if (operator === undefined) throw unexpectedCharacter(source, at)
      const close = closing[operator]
      if (close !== undefined) {
        brackets.push(close)
        if (brackets.length > MAX_NESTING) throw limitError(`the template nests brackets deeper than ${MAX_NESTING}`)
      } else if (operator === ')' || operator === ']' || operator === '}') {
        const expected = brackets.pop()
        if (expected === undefined) throw syntaxError(`unexpected '${operator}'`, at)
        if (expected !== operator) throw syntaxError(`unexpected '${operator}', expected '${expected}'`, at)
      }
      this.#push('operator', operator, at)
    }
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#position
    const match = pattern.exec(this.#source)
    if (match === null) return undefined
    this.#position += match[0].length
    return match[0]
  }

  #token(type: 'float' | 'integer' | 'name', pattern: RegExp): boolean {
    const position = this.#position
    // `a.1.2` is two lookups, not a lookup of the number 1.2.
    if (type === 'float' && this.#source[position - 1] === '.') return false
    const text = this.#match(pattern)
    if (text === undefined) return false
    this.#push(type, type === 'name' ? text : text.replaceAll('_', ''), position)
    return true
  }

  #string(start: number): void {
    const source = this.#source
    const quote = source[start]
    let at = start + 1
    let escaped = false
    while (at < source.length && source[at] !== quote) {
      if (source[at] === '\\') {
        escaped = true
        at += 1
      }
      at += 1
    }
    if (at >= source.length) throw unexpectedCharacter(source, start)
    const body = source.slice(start + 1, at)
    this.#push('string', escaped ? unescapeString(body, start) : body, start)
    this.#position = at + 1
  }
}

function unexpectedCharacter(source: string, at: number): TemplateError {
  const character = characterAt(source, at)
  const shown = character === "'" ? `"'"` : quoted(character === '\\' ? '\\\\' : character)
  return syntaxError(`unexpected char ${shown} at ${at}`, at)
}

function isSpace(code: number): boolean {
  return code === 32 || (code >= 9 && code <= 13) || (code > 127 && wideSpace.test(String.fromCharCode(code)))
}

function characterAt(text: string, at: number): string {
  return String.fromCodePoint(text.codePointAt(at) ?? 0)
}

const simpleEscapes: Readonly<Record<string, string>> = {
  '\n': '',
  '\\': '\\',
  "'": "'",
  '"': '"',
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
}
const escapePattern = /\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{1,3})|([xuU])|([\s\S]))/g

function unescapeString(body: string, position: number): string {
  return body.replace(
    escapePattern,
    (whole: string, x?: string, u?: string, wide?: string, octal?: string, cut?: string, simple?: string) => {
      if (cut !== undefined) throw syntaxError(`the escape \\${cut} in a string is cut short`, position)
      if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8))
      if (simple !== undefined) {
        if (simple === 'N') throw syntaxError('character names (\\N{…}) cannot be used in strings', position)
        return Object.hasOwn(simpleEscapes, simple) ? (simpleEscapes[simple] ?? whole) : whole
      }
      const code = Number.parseInt(x ?? u ?? wide ?? '', 16)
      if (code > 0x10ffff) throw syntaxError(`the escape ${whole} in a string is no character`, position)
      return String.fromCodePoint(code)
    },
  )
}
