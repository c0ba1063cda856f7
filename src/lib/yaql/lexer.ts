import { floatText } from '../json/index.ts'
import { characterCount, Float } from '../template/index.ts'
import { limitExceeded, YaqlError } from './error.ts'
import { integerFromText, plainDigits } from './number-text.ts'
import { signs, wordOperators } from './operators.ts'

export interface Token {
  /** `sign`: an operator (also one that is a word) or a bracket; `function`: a name with its opening bracket */
  readonly kind: 'constant' | 'keyword' | 'variable' | 'function' | 'sign' | 'end' | 'illegal'
  /** The name, the sign, or what an error calls it. An illegal one: the error. */
  readonly text: string
  readonly value: null | boolean | number | bigint | string | object
  readonly position: number
}

/** Longest expression, in UTF-16 units. */
const MAX_SOURCE_LENGTH = 1024 * 1024
const MAX_TOKENS = 50_000

const letter = '[\\p{L}\\p{N}_]'
const initial = '(?!\\p{Nd})[\\p{L}\\p{N}_]'
/** The next character is not part of the same word. */
const end = `(?!${letter})`

const space = /[ \t\r\n]*/y
const variable = new RegExp(`\\$${letter}*`, 'uy')
const float = new RegExp(`\\p{Nd}+\\.\\p{Nd}+${end}`, 'uy')
const whole = new RegExp(`\\p{Nd}+${end}`, 'uy')
const call = new RegExp(`${initial}${letter}*\\(`, 'uy')
const word = new RegExp(`(?!__)${initial}${letter}*`, 'uy')
const quoted = /'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"/uy
const verbatim = /`(?:[^`\\]|\\.)*`/uy

const words: Readonly<Record<string, boolean | null>> = { true: true, false: false, null: null }
const wordTexts: Readonly<Record<string, string>> = { true: 'True', false: 'False', null: 'None' }

/** The text that an expression matches at a position. */
function matchAt(expression: RegExp, text: string, at: number): string | undefined {
  expression.lastIndex = at
  return expression.exec(text)?.[0]
}

/**
 * The tokens; the last one is the end, or illegal: what stands before it may be the first mistake.
 *
 * @throws YaqlError LimitExceededException
 */
export function tokenize(text: string): Token[] {
  if (text.length > MAX_SOURCE_LENGTH) {
    throw limitExceeded(`the expression is longer than ${MAX_SOURCE_LENGTH} characters`)
  }
  const tokens: Token[] = []
  let at = 0
  for (;;) {
    at += matchAt(space, text, at)?.length ?? 0
    if (at >= text.length) break
    if (tokens.length >= MAX_TOKENS) throw limitExceeded(`the expression has more than ${MAX_TOKENS} parts`, at)
    const token = readToken(text, at)
    if (token instanceof YaqlError) {
      tokens.push({ kind: 'illegal', text: '', value: token, position: at })
      return tokens
    }
    tokens.push({ kind: token.kind, text: token.text, value: token.value, position: at })
    at += token.length
  }
  tokens.push({ kind: 'end', text: '', value: null, position: text.length })
  return tokens
}

type Read = Omit<Token, 'position'> & { length: number }

function readToken(text: string, at: number): Read | YaqlError {
  try {
    return (
      readName(text, at) ??
      readNumber(text, at) ??
      readText(text, at) ??
      readSign(text, at) ??
      illegalCharacter(text, at)
    )
  } catch (error) {
    if (error instanceof YaqlError) return error
    throw error
  }
}

/** A position as messages count it: in characters. */
export function characterPosition(text: string, at: number): number {
  return characterCount(text.slice(0, at))
}

function illegalCharacter(text: string, at: number): YaqlError {
  const character = String.fromCodePoint(text.codePointAt(at) ?? 0)
  const detail = `Lexical error: illegal character '${character}' at position ${characterPosition(text, at)}`
  return new YaqlError('YaqlLexicalException', detail, at)
}

function readName(text: string, at: number): Read | undefined {
  const dollar = matchAt(variable, text, at)
  if (dollar !== undefined) return { kind: 'variable', text: dollar, value: dollar, length: dollar.length }
  const opening = matchAt(call, text, at)
  if (opening !== undefined) {
    const name = opening.slice(0, -1)
    return { kind: 'function', text: name, value: name, length: opening.length }
  }
  const name = matchAt(word, text, at)
  if (name === undefined) return undefined
  if (wordOperators.has(name)) return { kind: 'sign', text: name, value: name, length: name.length }
  if (Object.hasOwn(words, name)) {
    return { kind: 'constant', text: wordTexts[name] ?? name, value: words[name] ?? null, length: name.length }
  }
  return { kind: 'keyword', text: name, value: name, length: name.length }
}

function readNumber(text: string, at: number): Read | undefined {
  const decimal = matchAt(float, text, at)
  if (decimal !== undefined) {
    const value = Number(plainDigits(decimal))
    return { kind: 'constant', text: floatText(value), value: new Float(value), length: decimal.length }
  }
  const digits = matchAt(whole, text, at)
  if (digits === undefined) return undefined
  const value = integerFromText(digits)
  return { kind: 'constant', text: String(value), value, length: digits.length }
}

function readText(text: string, at: number): Read | undefined {
  const raw = matchAt(verbatim, text, at)
  if (raw !== undefined) {
    const value = raw.slice(1, -1).replaceAll('\\`', '`')
    return { kind: 'constant', text: value, value, length: raw.length }
  }
  const escaped = matchAt(quoted, text, at)
  if (escaped === undefined) return undefined
  const value = unescape(escaped.slice(1, -1), at + 1)
  return { kind: 'constant', text: value, value, length: escaped.length }
}

function readSign(text: string, at: number): Read | undefined {
  const sign = signs.find((each) => text.startsWith(each, at))
  return sign === undefined ? undefined : { kind: 'sign', text: sign, value: sign, length: sign.length }
}

const escapes =
  /\\(?:U(?<long>.{8})|u(?<short>.{4})|x(?<byte>.{2})|(?<octal>[0-7]{1,3})|N\{(?<name>[^}]+)\}|(?<one>[\\'"abfnrtv]))/gu
const single: Readonly<Record<string, string>> = {
  a: '\u0007',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
}

/** The text that a quoted one stands for; a backslash before anything else stays. */
function unescape(body: string, position: number): string {
  if (!body.includes('\\')) return body
  return body.replace(escapes, (...found) => {
    const groups = found.at(-1) as Record<string, string | undefined>
    const { long, short, byte, octal, name, one } = groups
    if (one !== undefined) return single[one] ?? one
    if (octal !== undefined) return String.fromCodePoint(Number.parseInt(octal, 8))
    if (name !== undefined) {
      throw new YaqlError('YaqlLexicalException', `svc does not know characters by name: \\N{${name}}`, position)
    }
    const digits = long ?? short ?? byte ?? ''
    const code = /^[0-9a-fA-F]+$/.test(digits) ? Number.parseInt(digits, 16) : Number.NaN
    if (Number.isNaN(code) || code > 0x10ffff) {
      throw new YaqlError('UnicodeDecodeError', `'${String(found[0])}' is no character`, position)
    }
    return String.fromCodePoint(code)
  })
}
