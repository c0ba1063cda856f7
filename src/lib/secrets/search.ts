/** Which texts svc searches for a set of secrets, and how they go on. */
import { Automaton, type State } from './automaton.ts'
import { asItIs, encodings, escapes, type Encoding, type Writer } from './encodings.ts'

/** A form that is longer than `START_LENGTH`. */
export interface LongForm {
  text: string
  isPadded: boolean
}

/** Forms with the same start, in the order of their texts. */
export interface LongForms {
  forms: readonly LongForm[]
  /** Units of the longest one. */
  longest: number
}

export interface Search {
  automaton: Automaton
  /** Whether the form that ends in this state is base64 with a possible end behind it. */
  isPadded(state: State): boolean
  /** What goes on after this state. Undefined: nothing. Without forms: there are too many to make them. */
  longForms(state: State): LongForms | undefined
}

/** UTF-16 units. */
export const MIN_LENGTH = 4
/** Shorter lines are not secret, such as the closing brace of a JSON text. */
const MIN_LINE_LENGTH = 8
/** Units of a form that the automaton finds. The rest of a longer form is compared once its start was found. */
export const START_LENGTH = 12
/** Units of a part of a value. svc searches each part of a longer value, which bounds the work when a start was found. */
const MAX_PART_LENGTH = 256
/** Units of the longest form of a part, about: JSON in JSON in JSON writes a character as `\\\\\\\\u00e4`. */
const MAX_FORM_LENGTH = 12 * MAX_PART_LENGTH
/** Maximum of different values, and of their units. Beyond these and `MAX_STARTS_LENGTH` svc masks all texts completely. */
export const MAX_VALUES = 5000
export const MAX_LENGTH_TOGETHER = 1024 * 1024
/** Maximum units of the starts of all parts of values. Like `MAX_FORMS`, bounds the time of `createSearch`. */
const MAX_STARTS_LENGTH = 64 * 1024
/** Maximum other forms of all parts: those of 80 passwords with special characters, 180 tokens or 4 RSA keys of 4096 bits. */
const MAX_FORMS = 4000
/** Maximum forms with the same start. They are made in one step when the start was found, and kept. */
const MAX_FORMS_PER_START = 2000
/** Distinct characters of a value for which the writers are compared. */
const MAX_COMPARED = 64

interface Start {
  isWhole: boolean
  isPadded: boolean
  /** What goes on after the start: a value by these writers. */
  sources: { value: string; writers: readonly Writer[] }[]
}

/**
 * Undefined: nothing to search. `too many`: beyond `MAX_STARTS_LENGTH`.
 *
 * Beyond `MAX_FORMS` svc searches the longest values as they are only.
 */
export function createSearch(values: Iterable<string>): Search | 'too many' | undefined {
  const starts = new Map<string, Start>()
  let units = 0
  const startAt = (text: string): Start => {
    const key = text.slice(0, START_LENGTH)
    let start = starts.get(key)
    if (start === undefined) {
      start = { isWhole: false, isPadded: false, sources: [] }
      starts.set(key, start)
      units += key.length
    }
    return start
  }
  /** @returns how many forms the value gets */
  const add = (value: string, encoding: Encoding): number => {
    const { changes } = encoding
    if (changes?.test(value) === false) return 0
    const writers = changes === undefined ? encoding.writers : differentWriters(value, encoding.writers)
    if (writers.length === 0) return 0
    const head = headOf(value)
    if (changes?.test(head) === false) {
      startAt(head).sources.push({ value, writers })
      return writers.length
    }
    const isAll = head.length === value.length
    for (const writer of writers) {
      const text = writer.write(head)
      // A mask is not a secret.
      if (text.length < MIN_LENGTH || (isAll && /^\**$/.test(text))) continue
      const start = startAt(text)
      if (isAll && text.length <= START_LENGTH) {
        start.isWhole = true
        start.isPadded ||= writer.isPadded === true
      } else start.sources.push({ value, writers: [writer] })
    }
    return writers.length
  }

  const parts = new Map<string, Part>()
  for (const part of partsOf(values)) {
    if (parts.has(part.value)) continue
    parts.set(part.value, part)
    add(part.value, asItIs)
    if (units > MAX_STARTS_LENGTH) return 'too many'
  }
  if (parts.size === 0) return undefined
  let forms = 0
  for (const { value, encodings: others } of parts.values()) {
    for (const encoding of others) forms += add(value, encoding)
    if (forms > MAX_FORMS) break
  }
  return searchFor(starts)
}

/**
 * One of those that write a value alike, and none that leaves it as it is. They write character by character, so that
 * its distinct characters decide.
 */
function differentWriters(value: string, writers: readonly Writer[]): readonly Writer[] {
  const chars = [...new Set(value)]
  if (chars.length > MAX_COMPARED) return writers
  const distinct = chars.join('')
  const written = new Set([distinct])
  return writers.filter(({ write }) => {
    const { size } = written
    return written.add(write(distinct)).size > size
  })
}

interface Part {
  value: string
  encodings: readonly Encoding[]
}

/** Parts of the values, shortest values first, then of their longer lines. A line break at the end of a value belongs to the file that it comes from. */
function* partsOf(values: Iterable<string>): Generator<Part> {
  const whole: string[] = []
  for (const given of values) {
    const value = given.trim()
    // A mask is not a secret.
    if (value.length >= MIN_LENGTH && !/^\**$/.test(value)) whole.push(value)
  }
  whole.sort((a, b) => a.length - b.length)
  for (const value of whole) for (const part of shortPartsOf(value)) yield { value: part, encodings }
  for (const value of whole) {
    // Not split at once: reading stops at the maximum.
    for (const [each] of value.matchAll(/[^\n]+/g)) {
      const line = each.trim()
      if (line.length < MIN_LINE_LENGTH) continue
      for (const part of shortPartsOf(line)) yield { value: part, encodings: escapes }
    }
  }
}

function* shortPartsOf(value: string): Generator<string> {
  let at = 0
  while (value.length - at > MAX_PART_LENGTH) {
    const part = withoutHalfCharacter(value.slice(at, at + MAX_PART_LENGTH))
    yield part
    at += part.length
  }
  // Too short an end is not searched alone.
  yield at > 0 && value.length - at < MIN_LINE_LENGTH ? value.slice(-MIN_LINE_LENGTH) : value.slice(at)
}

/** As many units as decide the start of each form. */
function headOf(value: string): string {
  return value.length <= START_LENGTH ? value : withoutHalfCharacter(value.slice(0, START_LENGTH + 1))
}

function withoutHalfCharacter(text: string): string {
  return /[\ud800-\udbff]$/.test(text) ? text.slice(0, -1) : text
}

function searchFor(starts: ReadonlyMap<string, Start>): Search {
  const automaton = new Automaton(starts)
  const padded = new Set<State>()
  const sources = new Map<State, Start['sources']>()
  for (const [text, start] of starts) {
    if (!start.isPadded && start.sources.length === 0) continue
    const state = automaton.stateOf(text)
    if (start.isPadded) padded.add(state)
    if (start.sources.length > 0) sources.set(state, start.sources)
  }
  const made = new Map<State, LongForms>()
  return {
    automaton,
    isPadded: (state) => padded.has(state),
    longForms(state) {
      const known = made.get(state)
      const given = known === undefined ? sources.get(state) : undefined
      if (given === undefined) return known
      const forms = formsOf(given)
      made.set(state, forms)
      return forms
    },
  }
}

function formsOf(sources: Start['sources']): LongForms {
  let count = 0
  for (const { writers } of sources) count += writers.length
  if (count > MAX_FORMS_PER_START) return { forms: [], longest: MAX_FORM_LENGTH }
  const forms = new Map<string, LongForm>()
  let longest = 0
  for (const { value, writers } of sources) {
    for (const { write, isPadded = false } of writers) {
      const text = write(value)
      forms.set(text, { text, isPadded })
      longest = Math.max(longest, text.length)
    }
  }
  return { forms: [...forms.values()].sort((a, b) => (a.text < b.text ? -1 : 1)), longest }
}
