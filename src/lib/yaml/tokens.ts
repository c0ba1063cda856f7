/**
 * The tokens of a YAML 1.1 text, as libyaml finds them: where a collection of the block style begins and ends follows
 * from columns, and whether a scalar is a key shows only at the colon after it.
 */

/** A text that is no YAML. `line` counts from 1. */
export class YamlError extends Error {
  readonly line: number

  constructor(message: string, line: number) {
    super(message)
    this.line = line
  }
}

export type TokenKind =
  | 'yaml directive'
  | 'tag directive'
  | 'document start'
  | 'document end'
  | 'text end'
  | 'block sequence'
  | 'block mapping'
  | 'block end'
  | 'entry'
  | 'key'
  | 'value'
  | '['
  | ']'
  | '{'
  | '}'
  | ','
  | 'alias'
  | 'anchor'
  | 'tag'
  | 'scalar'

export interface Token {
  readonly kind: TokenKind
  /** From 1. */
  readonly line: number
  /** Of aliases and anchors the name, of scalars the value, of tags the part after the handle, of `%TAG` the prefix. */
  readonly text: string
  /** Of tags: empty, when the text is the whole tag. */
  readonly handle: string
  /** Of scalars. */
  readonly isPlain: boolean
}

/** Libyaml looks for the colon of a key only so far. */
const MAX_KEY_CHARS = 1024

/** A token that is a key if a colon follows. */
interface PossibleKey {
  /** Index among the tokens. */
  readonly token: number
  readonly at: number
  readonly line: number
  readonly column: number
  /** Nothing else can stand there. */
  readonly isNeeded: boolean
}

const TAB = 0x09
const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20
const DOUBLE_QUOTE = 0x22
const HASH = 0x23
const PERCENT = 0x25
const SINGLE_QUOTE = 0x27
const COMMA = 0x2c
const DASH = 0x2d
const DOT = 0x2e
const COLON = 0x3a
const BACKSLASH = 0x5c
const NEXT_LINE = 0x85
const BYTE_ORDER_MARK = 0xfeff

const isBlank = (code: number): boolean => code === SPACE || code === TAB
const isBreak = (code: number): boolean =>
  code === LF || code === CR || code === NEXT_LINE || code === 0x2028 || code === 0x2029
/** `charCodeAt` gives NaN at the end. */
const isBreakOrEnd = (code: number): boolean => isBreak(code) || Number.isNaN(code)
const isBlankOrEnd = (code: number): boolean => isBlank(code) || isBreakOrEnd(code)
const isNameChar = (code: number): boolean =>
  (code >= 0x30 && code <= 0x39) ||
  (code >= 0x41 && code <= 0x5a) ||
  (code >= 0x61 && code <= 0x7a) ||
  code === 0x5f ||
  code === DASH

const forbidden = /[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd]/

const codesOf = (characters: string): ReadonlySet<number> =>
  new Set(Array.from(characters, (character) => character.charCodeAt(0)))

/** What begins no plain scalar. */
const indicators = codesOf('-?:,[]{}#&*!|>\'"%@`')
const flowIndicators = codesOf(',[]{}')
/** After a colon within a flow collection they are an error. */
const afterColon = codesOf(',?[]{}')
/** They may follow the name of an anchor. */
const afterName = codesOf('?:,]}%@`')

const MAX_TAG_CHARS = 1_024
const verbatimTag = /^!<((?:[\w\-;/?:@&=+$.!~*'(),[\]]|%[0-9A-Fa-f]{2})+)>/
const shortTag = /^(![\w-]*!(?=[^\s,]))?((?:[\w\-;/?:@&=+$.!~*'()]|%[0-9A-Fa-f]{2})*)/

const escapes: Readonly<Record<string, string>> = {
  '0': '\0',
  a: '\x07',
  b: '\b',
  t: '\t',
  '\t': '\t',
  n: '\n',
  v: '\v',
  f: '\f',
  r: '\r',
  e: '\x1b',
  ' ': ' ',
  '"': '"',
  '/': '/',
  '\\': '\\',
  N: '\x85',
  _: '\xa0',
  L: '\u2028',
  P: '\u2029',
}
const escapeLengths: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 }

export const tooManyValues = (maxValues: number): string =>
  `the file stands for more than ${maxValues} values, aliases counted as often as used`

export const tooManyChars = (maxChars: number): string =>
  `the texts of the file have more than ${maxChars} characters, aliases counted as often as used`

/** Of one value at most: anchor, tag, the value itself, and what begins and ends its key, its place and its collection. */
const MAX_TOKENS_PER_VALUE = 10

export interface TokenLimits {
  /** Of brackets and braces: each token looks at what is open. */
  readonly maxDepth: number
  readonly maxValues: number
}

/** @throws YamlError */
export function tokenize(text: string, limits: TokenLimits): Token[] {
  refuseControlCharacters(text)
  const scanner = new Scanner(text, limits)
  scanner.scan()
  return scanner.tokens
}

function refuseControlCharacters(text: string): void {
  // Pairs of surrogates are one character.
  const found = forbidden.exec(text.replace(/[\ud800-\udbff][\udc00-\udfff]/g, ''))
  if (found === null) return
  const code = found[0].charCodeAt(0).toString(16).padStart(4, '0')
  const at = text.indexOf(found[0])
  throw new YamlError(`the character U+${code.toUpperCase()} is not allowed`, text.slice(0, at).split('\n').length)
}

class Scanner {
  readonly tokens: Token[] = []
  readonly #text: string
  readonly #limits: TokenLimits
  #at = 0
  #line = 1
  /** Where the line begins. */
  #lineStart = 0
  /** Columns of the open block collections; the last is the innermost. */
  readonly #indents: number[] = []
  #indent = -1
  #flowDepth = 0
  #mayBeKey = true
  /** One for each open flow collection, and the outermost. */
  readonly #keys: (PossibleKey | undefined)[] = [undefined]
  /** Below this flow depth no token can be a key any more. */
  #firstKey = 0

  constructor(text: string, limits: TokenLimits) {
    this.#text = text
    this.#limits = limits
  }

  get #column(): number {
    return this.#at - this.#lineStart
  }

  scan(): void {
    const { maxValues } = this.#limits
    while (this.#scanToken()) {
      if (this.tokens.length > maxValues * MAX_TOKENS_PER_VALUE) this.#fail(tooManyValues(maxValues))
    }
  }

  #code(offset = 0): number {
    return this.#text.charCodeAt(this.#at + offset)
  }

  #fail(message: string, line = this.#line): never {
    throw new YamlError(message, line)
  }

  #add(kind: TokenKind, line = this.#line, text = '', handle = '', isPlain = false): void {
    this.tokens.push({ kind, line, text, handle, isPlain })
  }

  /** @returns false at the end */
  #scanToken(): boolean {
    this.#skipToToken()
    this.#forgetOldKeys()
    this.#closeBlocks(this.#column)
    const code = this.#code()
    const line = this.#line
    if (Number.isNaN(code)) {
      this.#closeBlocks(-1)
      this.#forgetKey()
      this.#add('text end')
      return false
    }
    if (this.#column === 0 && code === PERCENT) this.#scanDirective()
    else if (this.#isDocumentMark()) {
      this.#closeBlocks(-1)
      this.#forgetKey()
      this.#mayBeKey = false
      this.#at += 3
      this.#add(code === DASH ? 'document start' : 'document end', line)
    } else this.#scanContent(code)
    return true
  }

  #scanContent(code: number): void {
    const character = this.#text[this.#at] ?? ''
    const isSeparate = isBlankOrEnd(this.#code(1))
    const isInFlow = this.#flowDepth > 0
    switch (character) {
      case '[':
      case '{':
        this.#noteKey()
        this.#keys.push(undefined)
        this.#flowDepth += 1
        if (this.#flowDepth > this.#limits.maxDepth)
          this.#fail(`values are nested more than ${this.#limits.maxDepth} deep`)
        this.#mayBeKey = true
        return this.#addIndicator(character)
      case ']':
      case '}':
        this.#forgetKey()
        if (isInFlow) {
          this.#flowDepth -= 1
          this.#keys.pop()
        }
        this.#mayBeKey = false
        return this.#addIndicator(character)
      case ',':
        this.#forgetKey()
        this.#mayBeKey = true
        return this.#addIndicator(character)
      case '*':
      case '&':
        return this.#scanName(character === '*' ? 'alias' : 'anchor')
      case '!':
        return this.#scanTag()
      case "'":
      case '"':
        return this.#scanQuoted(code)
      default:
    }
    if (character === '-' && isSeparate) return this.#scanEntry()
    if (character === '?' && (isInFlow || isSeparate)) return this.#scanKey()
    if (character === ':' && (isInFlow || isSeparate)) return this.#scanValue()
    if ((character === '|' || character === '>') && !isInFlow) return this.#scanBlockScalar(character === '|')
    const beginsPlain =
      (!indicators.has(code) && !isBlank(code)) ||
      (character === '-' && !isSeparate) ||
      (!isInFlow && (character === '?' || character === ':') && !isSeparate)
    if (beginsPlain) return this.#scanPlain()
    return this.#fail(
      code === TAB
        ? 'a tab stands where spaces are needed'
        : `a value cannot begin with ${character}; put it in quotes`,
    )
  }

  #addIndicator(kind: '[' | ']' | '{' | '}' | ','): void {
    this.#add(kind)
    this.#at += 1
  }

  #skipToToken(): void {
    if (this.#at === 0 && this.#code() === BYTE_ORDER_MARK) {
      this.#at = 1
      this.#lineStart = 1
    }
    for (;;) {
      if (this.#column === 0 && this.#code() === BYTE_ORDER_MARK) this.#at += 1
      const allowsTab = this.#flowDepth > 0 || !this.#mayBeKey
      while (this.#code() === SPACE || (allowsTab && this.#code() === TAB)) this.#at += 1
      if (this.#code() === HASH) this.#skipLine()
      if (!isBreak(this.#code())) return
      this.#readBreak()
      if (this.#flowDepth === 0) this.#mayBeKey = true
    }
  }

  #skipLine(): void {
    while (!isBreakOrEnd(this.#code())) this.#at += 1
  }

  /** @returns what it stands for in a scalar */
  #readBreak(): string {
    const code = this.#code()
    this.#at += code === CR && this.#code(1) === LF ? 2 : 1
    this.#line += 1
    this.#lineStart = this.#at
    return code === 0x2028 || code === 0x2029 ? String.fromCharCode(code) : '\n'
  }

  #isDocumentMark(): boolean {
    if (this.#column !== 0) return false
    const code = this.#code()
    return (
      (code === DASH || code === DOT) && this.#code(1) === code && this.#code(2) === code && isBlankOrEnd(this.#code(3))
    )
  }

  #noteKey(): void {
    if (!this.#mayBeKey) return
    this.#forgetKey()
    this.#firstKey = Math.min(this.#firstKey, this.#flowDepth)
    this.#keys[this.#flowDepth] = {
      token: this.tokens.length,
      at: this.#at,
      line: this.#line,
      column: this.#column,
      isNeeded: this.#flowDepth === 0 && this.#indent === this.#column,
    }
  }

  #forgetKey(depth = this.#flowDepth): void {
    const key = this.#keys[depth]
    if (key?.isNeeded === true) this.#fail('a colon is missing after this key', key.line)
    this.#keys[depth] = undefined
  }

  /** A key is on one line. */
  #forgetOldKeys(): void {
    for (let depth = this.#firstKey; depth < this.#keys.length; depth += 1) {
      const key = this.#keys[depth]
      if (key === undefined) {
        if (depth === this.#firstKey) this.#firstKey += 1
      } else if (key.line < this.#line || key.at + MAX_KEY_CHARS < this.#at) this.#forgetKey(depth)
    }
  }

  /** @param token where the beginning of the collection belongs; undefined: at the end */
  #openBlock(column: number, kind: 'block sequence' | 'block mapping', line: number, token?: number): void {
    if (this.#flowDepth > 0 || this.#indent >= column) return
    this.#indents.push(this.#indent)
    this.#indent = column
    const opening: Token = { kind, line, text: '', handle: '', isPlain: false }
    this.tokens.splice(token ?? this.tokens.length, 0, opening)
  }

  #closeBlocks(column: number): void {
    if (this.#flowDepth > 0) return
    while (this.#indent > column) {
      this.#add('block end')
      this.#indent = this.#indents.pop() ?? -1
    }
  }

  #scanEntry(): void {
    if (this.#flowDepth === 0) {
      if (!this.#mayBeKey) this.#fail('a list item cannot begin here; put the list on lines of its own')
      this.#openBlock(this.#column, 'block sequence', this.#line)
    }
    this.#forgetKey()
    this.#mayBeKey = true
    this.#add('entry')
    this.#at += 1
  }

  #scanKey(): void {
    if (this.#flowDepth === 0) {
      if (!this.#mayBeKey) this.#fail('a key cannot begin here')
      this.#openBlock(this.#column, 'block mapping', this.#line)
    }
    this.#forgetKey()
    this.#mayBeKey = this.#flowDepth === 0
    this.#add('key')
    this.#at += 1
  }

  #scanValue(): void {
    const key = this.#keys[this.#flowDepth]
    if (key !== undefined) {
      this.tokens.splice(key.token, 0, { kind: 'key', line: key.line, text: '', handle: '', isPlain: false })
      this.#openBlock(key.column, 'block mapping', key.line, key.token)
      this.#keys[this.#flowDepth] = undefined
      this.#mayBeKey = false
    } else {
      if (this.#flowDepth === 0) {
        if (!this.#mayBeKey) this.#fail('a colon with a blank after it cannot stand here; put the value in quotes')
        this.#openBlock(this.#column, 'block mapping', this.#line)
      }
      this.#mayBeKey = this.#flowDepth === 0
    }
    this.#add('value')
    this.#at += 1
  }

  #scanDirective(): void {
    this.#closeBlocks(-1)
    this.#forgetKey()
    this.#mayBeKey = false
    const start = this.#at
    const line = this.#line
    this.#skipLine()
    const [name = '', ...values] = this.#text
      .slice(start + 1, this.#at)
      .replace(/(^|[ \t])#.*$/, '')
      .trimEnd()
      .split(/[ \t]+/)
    const [first = '', second = ''] = values
    if (name === 'YAML' && values.length === 1 && /^\d{1,9}\.\d{1,9}$/.test(first)) {
      this.#add('yaml directive', line, first)
    } else if (name === 'TAG' && values.length === 2 && /^!(?:[\w-]*!)?$/.test(first)) {
      this.#add('tag directive', line, second, first)
    } else this.#fail('this directive is not understood')
  }

  #scanName(kind: 'alias' | 'anchor'): void {
    this.#noteKey()
    this.#mayBeKey = false
    const start = ++this.#at
    while (isNameChar(this.#code())) this.#at += 1
    const code = this.#code()
    if (start === this.#at || !(isBlankOrEnd(code) || afterName.has(code))) {
      this.#fail(
        `${kind === 'alias' ? '*' : '&'} begins a name of letters, digits, "_" and "-"; put other text in quotes`,
      )
    }
    this.#add(kind, this.#line, this.#text.slice(start, this.#at))
  }

  #scanTag(): void {
    this.#noteKey()
    this.#mayBeKey = false
    const line = this.#line
    const rest = this.#text.slice(this.#at, this.#at + MAX_TAG_CHARS)
    const [verbatim, whole] = verbatimTag.exec(rest) ?? []
    const [short = '', handle = '', suffix = ''] = shortTag.exec(rest) ?? []
    this.#at += (verbatim ?? short).length
    const code = this.#code()
    if (!isBlankOrEnd(code) && !(this.#flowDepth > 0 && code === COMMA))
      this.#fail('a tag that begins with ! ends with a blank; put other text in quotes')
    if (whole !== undefined) this.#add('tag', line, unescapedTag(whole))
    else if (handle !== '') this.#add('tag', line, unescapedTag(suffix), handle)
    // `!` alone says that there is no tag.
    else if (suffix === '!') this.#add('tag', line, '!')
    else if (suffix === '!!' || suffix.endsWith('!')) this.#fail('a name is missing after this tag handle')
    else this.#add('tag', line, unescapedTag(suffix.slice(1)), '!')
  }

  #scanQuoted(quote: number): void {
    this.#noteKey()
    this.#mayBeKey = false
    const line = this.#line
    this.#at += 1
    let value = ''
    for (;;) {
      if (this.#isDocumentMark()) this.#fail('the quotes are not closed before the end of the document', line)
      const start = this.#at
      let code = this.#code()
      while (!isBlankOrEnd(code) && code !== quote && (code !== BACKSLASH || quote === SINGLE_QUOTE)) {
        this.#at += 1
        code = this.#code()
      }
      value += this.#text.slice(start, this.#at)
      if (Number.isNaN(code)) this.#fail('the quotes are not closed', line)
      if (code === quote) {
        this.#at += 1
        if (quote === DOUBLE_QUOTE || this.#code() !== SINGLE_QUOTE) break
        this.#at += 1
        value += "'"
      } else if (code === BACKSLASH) {
        if (isBreak(this.#code(1))) {
          this.#at += 1
          this.#readBreak()
          value += this.#readFold(true)
        } else value += this.#readEscape()
      } else value += this.#readFold(false)
    }
    this.#add('scalar', line, value)
  }

  #readEscape(): string {
    const character = this.#text[this.#at + 1] ?? ''
    const length = escapeLengths[character]
    if (length === undefined) {
      const plain = escapes[character]
      if (plain === undefined)
        this.#fail(`\\${character} is no escape sequence; in double quotes, write \\\\ for a backslash`)
      this.#at += 2
      return plain
    }
    const digits = this.#text.slice(this.#at + 2, this.#at + 2 + length)
    const code = Number.parseInt(digits, 16)
    if (!new RegExp(`^[0-9A-Fa-f]{${length}}$`).test(digits))
      this.#fail(`\\${character} needs ${length} hexadecimal digits`)
    if (code > 0x10ffff) this.#fail(`\\${character}${digits} is no character`)
    this.#at += 2 + length
    // Halves of a character too, as JSON writes them.
    return code > 0xffff ? String.fromCodePoint(code) : String.fromCharCode(code)
  }

  /**
   * Blanks and line breaks within a scalar on several lines: a single break is a space, further ones stay.
   *
   * @param hasBreak a break came before that counts for nothing
   */
  #readFold(hasBreak: boolean): string {
    let blanks = ''
    let first: string | undefined = hasBreak ? '' : undefined
    let others = ''
    for (let code = this.#code(); isBlank(code) || isBreak(code); code = this.#code()) {
      if (isBreak(code)) {
        const text = this.#readBreak()
        if (first === undefined) first = text
        else others += text
      } else {
        if (first === undefined) blanks += this.#text[this.#at] ?? ''
        this.#at += 1
      }
    }
    return first === undefined ? blanks : folded(first, others)
  }

  #scanPlain(): void {
    this.#noteKey()
    this.#mayBeKey = false
    const line = this.#line
    const indent = this.#indent + 1
    let value = ''
    let between = ''
    let hasBreaks = false
    for (;;) {
      if (this.#isDocumentMark() || this.#code() === HASH) break
      const start = this.#at
      let code = this.#code()
      while (!isBlankOrEnd(code)) {
        if (code === COLON) {
          const next = this.#code(1)
          if (this.#flowDepth > 0 && afterColon.has(next)) this.#fail('a blank is needed after the colon')
          if (isBlankOrEnd(next)) break
        }
        if (this.#flowDepth > 0 && flowIndicators.has(code)) break
        this.#at += 1
        code = this.#code()
      }
      if (this.#at > start) {
        value += between + this.#text.slice(start, this.#at)
        between = ''
        hasBreaks = false
      }
      if (!isBlank(code) && !isBreak(code)) break
      let blanks = ''
      let first: string | undefined
      let others = ''
      for (; isBlank(code) || isBreak(code); code = this.#code()) {
        if (isBreak(code)) {
          const text = this.#readBreak()
          if (first === undefined) first = text
          else others += text
        } else {
          if (first !== undefined && code === TAB && this.#column < indent)
            this.#fail('a tab stands where spaces are needed')
          if (first === undefined) blanks += this.#text[this.#at] ?? ''
          this.#at += 1
        }
      }
      hasBreaks = first !== undefined
      between = first === undefined ? blanks : folded(first, others)
      if (this.#flowDepth === 0 && this.#column < indent) break
    }
    this.#add('scalar', line, value, '', true)
    if (hasBreaks) this.#mayBeKey = true
  }

  #scanBlockScalar(isLiteral: boolean): void {
    this.#forgetKey()
    this.#mayBeKey = true
    const line = this.#line
    const [header, digit, chomp] = readHeader(this.#text.slice(this.#at, this.#at + 3))
    if (digit === 0) this.#fail('the indentation after | or > must be at least 1')
    this.#at += header.length
    while (isBlank(this.#code())) this.#at += 1
    if (this.#code() === HASH) this.#skipLine()
    if (!isBreakOrEnd(this.#code())) this.#fail('the text of a block scalar begins on the next line')
    if (isBreak(this.#code())) this.#readBreak()
    const known = digit === undefined ? 0 : Math.max(this.#indent, 0) + digit
    let { breaks, indent } = this.#readIndentation(known)
    let value = ''
    let last = ''
    let wasBlank = false
    while (this.#column === indent && !Number.isNaN(this.#code())) {
      const isIndented = isBlank(this.#code())
      if (!isLiteral && last.startsWith('\n') && !wasBlank && !isIndented) value += breaks === '' ? ' ' : ''
      else value += last
      value += breaks
      wasBlank = isIndented
      const start = this.#at
      this.#skipLine()
      value += this.#text.slice(start, this.#at)
      last = isBreak(this.#code()) ? this.#readBreak() : ''
      ;({ breaks, indent } = this.#readIndentation(indent))
    }
    if (chomp !== '-') value += last
    if (chomp === '+') value += breaks
    this.#add('scalar', line, value)
  }

  /** Empty lines, and the spaces before a line. @param known columns of indentation; 0: as the first line has it */
  #readIndentation(known: number): { breaks: string; indent: number } {
    let breaks = ''
    let widest = 0
    for (;;) {
      while ((known === 0 || this.#column < known) && this.#code() === SPACE) this.#at += 1
      widest = Math.max(widest, this.#column)
      if ((known === 0 || this.#column < known) && this.#code() === TAB)
        this.#fail('a tab stands where spaces are needed')
      if (!isBreak(this.#code())) break
      breaks += this.#readBreak()
    }
    return { breaks, indent: known === 0 ? Math.max(widest, this.#indent + 1, 1) : known }
  }
}

function folded(first: string, others: string): string {
  if (first !== '\n') return first + others
  return others === '' ? ' ' : others
}

/** What stands after `|` or `>`: a digit, and how line breaks at the end are treated, in either order. */
function readHeader(text: string): [header: string, digit: number | undefined, chomp: string | undefined] {
  const [header = ''] = /^.(?:[0-9][+-]?|[+-][0-9]?)?/.exec(text) ?? []
  const [digit] = /[0-9]/.exec(header) ?? []
  const [chomp] = /[+-]/.exec(header.slice(1)) ?? []
  return [header, digit === undefined ? undefined : Number(digit), chomp]
}

function unescapedTag(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
