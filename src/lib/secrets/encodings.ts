/**
 * How programs write a secret: encoded, escaped or quoted.
 *
 * A writer turns a value into one such form. It writes character by character, so that the start of a value becomes the
 * start of its form: a search can begin with starts, and the rest of a form is made when its start was found.
 */
import { writeJson } from '../json/index.ts'

export interface Writer {
  write: (value: string) => string
  /** Base64 can share the unit behind the form with what follows the value, and ends with `=`. */
  isPadded?: boolean
}

/** Writers that change the same characters. */
export interface Encoding {
  /** Texts without these characters stay as they are. Undefined: no text does. */
  changes?: RegExp
  writers: readonly Writer[]
}

/** Shorter base64 appears in texts by chance. */
const MIN_BASE64_LENGTH = 5

type Write = (text: string) => string

function inJson(text: string): string {
  return writeJson(text).slice(1, -1)
}

function inAscii(text: string): string {
  return text.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

function hexOf(code: number): string {
  return code.toString(16).padStart(2, '0')
}

/** JSON, also inside JSON, escaped once and twice more; some writers escape slashes. */
const jsonWriters: readonly Write[] = [
  inJson,
  (text: string) => inAscii(inJson(text)),
  (text: string) => inJson(text).replaceAll('/', String.raw`\/`),
  (text: string) => inAscii(inJson(text)).replaceAll('/', String.raw`\/`),
].flatMap((once) => [once, (text: string) => inJson(once(text)), (text: string) => inJson(inJson(once(text)))])

const formOf = (text: string): string => new URLSearchParams([['', text]]).toString().slice(1)
const strictUri = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (unit) => `%${hexOf(unit.charCodeAt(0)).toUpperCase()}`)

/** Writers differ in what they keep, and in the case of their digits. */
const urlWriters: readonly Write[] = [
  encodeURI,
  encodeURIComponent,
  formOf,
  strictUri,
  (text: string) => strictUri(text).replaceAll('%20', '+'),
  (text: string) => strictUri(text).replaceAll('%2F', '/'),
].flatMap((write) => [write, (text: string) => write(text).replace(/%[\dA-F]{2}/g, (code) => code.toLowerCase())])

function entity(char: string, radix: 10 | 16): string {
  const code = (char.codePointAt(0) ?? 0).toString(radix)
  return radix === 10 ? `&#${code};` : `&#x${code};`
}

const quotes: readonly [double: string, single: string][] = [
  ['"', "'"],
  ['&quot;', "'"],
  ['&quot;', '&#x27;'],
  ['&quot;', '&#39;'],
  ['&quot;', '&#039;'],
  ['&quot;', '&apos;'],
  ['&#34;', '&#39;'],
]

/** XML and HTML. Writers differ in the quotes, in blanks of attributes and in characters beyond ASCII. */
const markupWriters: readonly Write[] = [
  ...quotes.flatMap(([double, single]) => {
    const names = new Map(Object.entries({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': double, "'": single }))
    const named = (text: string): string => text.replace(/[&<>"']/g, (char) => names.get(char) ?? char)
    return [
      named,
      (text: string) => named(text).replace(/[\t\n\r]/g, (char) => entity(char, 10)),
      (text: string) => named(text).replace(/[^\0-\x7f]/gu, (char) => entity(char, 10)),
      (text: string) => named(text).replace(/[^\0-\x7f]/gu, (char) => entity(char, 16)),
    ]
  }),
  (text) => text.replace(/[\t\n\r&<>"']|[^\0-\x7f]/gu, (char) => entity(char, 10)),
  (text) => text.replace(/[\t\n\r&<>"']|[^\0-\x7f]/gu, (char) => entity(char, 16)),
  (text) => text.replace(/[\t\n\r&<>"']|[^\0-\x7f]/gu, (char) => `&#x${entity(char, 16).slice(3).toUpperCase()}`),
]

const shortEscapes: ReadonlyMap<string, string> = new Map([
  ['\\', '\\\\'],
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
])
const bashEscapes: ReadonlyMap<string, string> = new Map([
  ...shortEscapes,
  ["'", "\\'"],
  ['\x07', '\\a'],
  ['\b', '\\b'],
  ['\x1b', '\\E'],
  ['\f', '\\f'],
  ['\v', '\\v'],
])

function bytesOf(units: string, write: (byte: number) => string): string {
  return Array.from(Buffer.from(units), write).join('')
}

const octal = (byte: number): string => `\\${byte.toString(8).padStart(3, '0')}`
const backslashed = (text: string): string => text.replace(/[ !"$&'()*,;<>?[\\\]^`{|}]/g, (unit) => `\\${unit}`)
const dollarQuoted = (text: string): string =>
  text.replace(/[\\']|\p{Cc}/gu, (unit) => bashEscapes.get(unit) ?? bytesOf(unit, octal))

/**
 * `printf %q` of bash, with backslashes or as `$'…'`; quotes as Python and bash escape them, as `declare -p` does, and
 * doubled, as SQL, YAML and CSV write them.
 */
const shellWriters: readonly Write[] = [
  backslashed,
  (text) => backslashed(text).replace(/^[#~]/, (unit) => `\\${unit}`),
  (text) => text.replaceAll("'", `'"'"'`),
  (text) => text.replaceAll("'", String.raw`'\''`),
  (text) => text.replaceAll("'", "''"),
  (text) => text.replaceAll('"', '""'),
  (text) => text.replace(/["$\\`]/g, String.raw`\$&`),
  dollarQuoted,
  (text) => dollarQuoted(text).replace(/[^\0-\x7f]+/g, (units) => bytesOf(units, octal)),
]

const pythonEscape = (unit: string): string => shortEscapes.get(unit) ?? `\\x${hexOf(unit.charCodeAt(0))}`
const escapedText = (text: string): string => text.replace(/\\|\p{Cc}/gu, pythonEscape)
const escapedBytes = (text: string): string =>
  text
    .replace(/\\|(?=[\0-\x7f])\p{Cc}/gu, pythonEscape)
    .replace(/[^\0-\x7f]+/g, (units) => bytesOf(units, (byte) => `\\x${byte.toString(16)}`))
const escapedAscii = (text: string): string =>
  escapedText(text).replace(/[^\0-\x7f]/gu, (char) => {
    const code = char.codePointAt(0) ?? 0
    if (code < 0x100) return `\\x${code.toString(16)}`
    return code < 0x1_00_00 ? `\\u${code.toString(16).padStart(4, '0')}` : `\\U${code.toString(16).padStart(8, '0')}`
  })

/** `repr` of Python for texts, with and without ASCII only, and for bytes. */
const pythonWriters: readonly Write[] = [escapedText, escapedAscii, escapedBytes].flatMap((write) => [
  write,
  (text: string) => write(text).replaceAll("'", String.raw`\'`),
])

const asTexts = (writes: readonly Write[]): Writer[] =>
  writes.map((write) => ({ write: (value) => write(value.toWellFormed()) }))

export const asItIs: Encoding = { writers: [{ write: (value) => value }] }

/** Escaped and quoted. */
export const escapes: readonly Encoding[] = [
  { changes: /["\\/\p{Cc}\p{Cs}]|[^\0-\x7f]/u, writers: asTexts(jsonWriters) },
  { changes: /[^\w.-]/, writers: asTexts(urlWriters) },
  { changes: /[&<>"'\t\n\r]|[^\0-\x7f]/, writers: asTexts(markupWriters) },
  { changes: /[^\w./@%+=:-]/, writers: asTexts(shellWriters) },
  { changes: /['\\\p{Cc}]|[^\0-\x7f]/u, writers: asTexts(pythonWriters) },
]

/** Digits in pairs, as `od -tx1`, OpenSSL, Python and `xxd -i` separate them, and in fours, as `xxd` does. */
const hexWriters: readonly Writer[] = [
  (digits: string) => digits,
  ...[' ', ':', String.raw`\x`, ', 0x'].map(
    (separator) => (digits: string) => digits.replace(/..\B/g, `$&${separator}`),
  ),
  (digits: string) => digits.replace(/.{4}\B/g, '$& '),
  (digits: string) => digits.replace(/^..|.{4}\B/g, '$& ').trimEnd(),
].flatMap((separate): Writer[] => [
  { write: (value) => separate(Buffer.from(value).toString('hex')) },
  { write: (value) => separate(Buffer.from(value).toString('hex').toUpperCase()) },
])

/** Base64, also for URLs, at its three offsets: only units with bits of no other byte. */
const base64Writers: readonly Writer[] = [0, 1, 2].flatMap((offset): Writer[] => {
  const write = (value: string): string => {
    const bytes = Buffer.concat([Buffer.alloc(offset), Buffer.from(value)])
    const own = bytes.toString('base64').slice(Math.ceil((offset * 8) / 6), Math.floor((bytes.length * 8) / 6))
    return own.length < MIN_BASE64_LENGTH ? '' : own
  }
  return [
    { write, isPadded: true },
    { write: (value) => write(value).replaceAll('+', '-').replaceAll('/', '_'), isPadded: true },
  ]
})

/** An entity for every character, as obfuscators write. */
const entityWriters: readonly Writer[] = ([10, 16] as const).map((radix) => ({
  write: (value) => Array.from(value.toWellFormed(), (char) => entity(char, radix)).join(''),
}))

/** Escaped and quoted, and encoded as base64, hexadecimal digits and entities. */
export const encodings: readonly Encoding[] = [
  ...escapes,
  { writers: hexWriters },
  { writers: base64Writers },
  { writers: entityWriters },
]
