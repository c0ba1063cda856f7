/** Masks the secrets in a text that arrives in chunks. */
import { MASK } from '../schema/index.ts'
import type { State } from './automaton.ts'
import { MIN_LENGTH, START_LENGTH, type LongForm, type LongForms, type Search } from './search.ts'

export interface SecretFilter {
  /** Returns masked text. Keeps the end while it can be the start of a secret. */
  filter(text: string): string
  /** Returns the kept end. */
  end(): string
}

/** A filter that can mask a possible start of a secret at the end of a cut text. */
export interface CutFilter extends SecretFilter {
  /** Like `end`, and masks such a start. */
  cut(): string
}

/**
 * Encoders and editors end lines after 45 characters at least. A form goes on in the next line if as many characters
 * before the line break are base64, or digits of bytes with separators.
 */
const MIN_WRAPPED_LENGTH = 40
/** Line break and indentation between two units of a form. A blank that can separate hexadecimal digits does so. */
const MAX_BREAK_LENGTH = 16
/**
 * Starts that are followed at the same time, which bounds the time per unit. More of them need a text and a secret that
 * repeat themselves: svc follows none and masks all that can belong to them.
 */
const MAX_FOLLOWED = 4

const PROBE_DISTANCE = 5

const LINE_FEED = 10
const RETURN = 13
const BASE64 = 1
const DIGITS = 2
const classes = new Uint8Array(128)
for (let unit = 0; unit < classes.length; unit++) {
  const char = String.fromCharCode(unit)
  classes[unit] = (/[\w+/=-]/.test(char) ? BASE64 : 0) | (/[\da-fA-F :,x\\]/.test(char) ? DIGITS : 0)
}

/** Long forms whose start was found at a place. */
interface Follower extends LongForms {
  /** The forms from here on, and before `to`, are like the text so far. */
  from: number
  to: number
  /** Units found. */
  length: number
  /** Where they start in the text. */
  start: number
}

/** Positions count from the start of the whole text. One mask replaces overlapping secrets. */
export class Filter implements CutFilter {
  readonly #search: Search
  #state: State = 0
  /** Positions of the last units of the state, a ring. */
  readonly #places = new Float64Array(START_LENGTH)
  #placed = 0
  #followers: Follower[] = []
  /** Units of the line break inside a form. */
  #break = 0
  /** Units that base64 can have behind the last found form: one with bits of it, then `==`. */
  #padding = 0
  /** Units masked without looking. */
  #blind = 0
  /** The end of the text before this chunk. */
  #before = ''
  /** Text that is not released yet, and its position. */
  #held = ''
  #base = 0
  /** Separate secrets that start in the kept text. */
  #spans: { start: number; end: number }[] = []
  /** A released mask covers the text up to here. */
  #maskedTo = 0

  constructor(search: Search) {
    this.#search = search
  }

  filter(text: string): string {
    const begin = this.#base + this.#held.length
    this.#walk(text, begin)
    this.#held += text
    this.#before = (text.length < MIN_WRAPPED_LENGTH ? this.#before + text : text).slice(-MIN_WRAPPED_LENGTH - 1)
    return this.#release(this.#openSince(begin + text.length))
  }

  end(): string {
    const rest = this.#release(this.#base + this.#held.length)
    this.#state = 0
    this.#followers = []
    this.#break = 0
    this.#padding = 0
    this.#blind = 0
    this.#before = ''
    return rest
  }

  cut(): string {
    const end = this.#base + this.#held.length
    const since = this.#openSince(end)
    if (end - since >= MIN_LENGTH) this.#add(since, end)
    return this.end()
  }

  /** Where the earliest possible secret starts that goes on behind `end`. */
  #openSince(end: number): number {
    let since = this.#state === 0 ? end : this.#startOf(this.#state)
    for (const { start } of this.#followers) since = Math.min(since, start)
    return since
  }

  #startOf(state: State): number {
    return this.#places[(this.#placed - (this.#search.automaton.depth[state] ?? 0)) % START_LENGTH] ?? 0
  }

  #walk(text: string, begin: number): void {
    const { automaton } = this.#search
    const { depth, found, headLength } = automaton
    const breaks = new Breaks(text, this.#before)
    const isBroken = (from: number, to: number): boolean => breaks.isBetween(from, to)
    /** From here on a head can continue in the next chunk. */
    const tail = text.length - headLength + 1
    for (let i = 0; i < text.length; i++) {
      if (i < tail && this.#isIdle()) i = automaton.next(text, i, tail, isBroken)
      const unit = text.charCodeAt(i)
      const at = begin + i
      if (this.#padding > 0 || this.#blind > 0) this.#goOn(unit, at)
      const mayStay = this.#isInBreak(unit, i, breaks)
      if (this.#followers.length > 0) this.#follow(unit, at, mayStay)
      const next = automaton.step(this.#state, unit)
      if (next === 0 && mayStay) continue
      this.#state = next
      if (next === 0) continue
      this.#places[this.#placed % START_LENGTH] = at
      this.#placed += 1
      const whole = found[next] ?? 0
      if (whole !== 0) {
        this.#add(this.#startOf(whole), at + 1)
        if (this.#search.isPadded(whole)) this.#padding = 3
      }
      if (depth[next] === START_LENGTH) this.#start(next, at)
    }
  }

  #isIdle(): boolean {
    return this.#state === 0 && this.#followers.length === 0 && this.#padding === 0 && this.#blind === 0
  }

  /** Whether the unit can belong to a line break inside a form. */
  #isInBreak(unit: number, i: number, breaks: Breaks): boolean {
    if (unit > 32 || (this.#state === 0 && this.#followers.length === 0)) {
      this.#break = 0
      return false
    }
    const isBreak = unit === LINE_FEED || unit === RETURN
    const isIndent = this.#break > 0 && (unit === 32 || unit === 9)
    const isIn = this.#break < MAX_BREAK_LENGTH && (isIndent || (isBreak && (this.#break > 0 || breaks.isAt(i))))
    this.#break = isIn ? this.#break + 1 : 0
    return isIn
  }

  #start(state: State, at: number): void {
    const begun = this.#search.longForms(state)
    if (begun === undefined) return
    const { forms } = begun
    let { longest } = begun
    let start = this.#startOf(state)
    if (this.#blind === 0 && forms.length > 0 && this.#followers.length < MAX_FOLLOWED) {
      this.#followers.push({ ...begun, from: 0, to: forms.length, length: START_LENGTH, start })
      return
    }
    for (const follower of this.#followers) {
      start = Math.min(start, follower.start)
      longest = Math.max(longest, follower.longest)
    }
    this.#followers = []
    this.#add(start, at + 1)
    // Twice, because a form can go on behind line breaks.
    this.#blind = Math.max(this.#blind, 2 * longest)
  }

  #follow(unit: number, at: number, mayStay: boolean): void {
    let isOver = false
    for (const follower of this.#followers) {
      const isAlone = follower.to - follower.from === 1
      const from = isAlone ? follower.from : firstAt(follower, unit)
      const to = isAlone ? from + Number(unitAt(follower, from) === unit) : firstAt(follower, unit + 1)
      if (from < to) {
        follower.from = from
        follower.to = to
        follower.length += 1
        // The shortest one comes first.
        const { text, isPadded } = follower.forms[from] ?? NO_FORM
        if (text.length !== follower.length) continue
        this.#add(follower.start, at + 1)
        if (isPadded) this.#padding = 3
        follower.from += 1
        isOver ||= follower.from === follower.to
      } else if (!mayStay) {
        follower.to = 0
        isOver = true
      }
    }
    if (isOver) this.#followers = this.#followers.filter(({ from, to }) => from < to)
  }

  /** Masks the unit if it belongs to what was found before. */
  #goOn(unit: number, at: number): void {
    const isEnd = unit === 61
    const isPadding = this.#padding > 0 && (isEnd || (this.#padding === 3 && ((classes[unit] ?? 0) & BASE64) !== 0))
    // Overlaps the unit before, which is masked, so that no second mask follows.
    if (isPadding || this.#blind > 0) this.#add(at - 1, at + 1)
    this.#padding = isPadding ? Math.min(this.#padding - 1, 2) : 0
    if (this.#blind > 0) this.#blind -= 1
  }

  #add(from: number, end: number): void {
    const open = this.#spans.at(-1)
    if (open !== undefined && open.start <= from && open.end > from) {
      open.end = end
      return
    }
    let start = from
    for (let last = this.#spans.at(-1); last !== undefined && last.end > start; last = this.#spans.at(-1)) {
      start = Math.min(start, last.start)
      this.#spans.pop()
    }
    this.#spans.push({ start, end })
  }

  /** Releases the text before `to`: no secret found later starts there. */
  #release(to: number): string {
    if (to === this.#base) return ''
    const parts: string[] = []
    let at = Math.max(this.#base, this.#maskedTo)
    let kept = 0
    for (const { start, end } of this.#spans) {
      if (start >= to) break
      kept += 1
      if (start >= this.#maskedTo) {
        if (start > at) parts.push(this.#held.slice(at - this.#base, start - this.#base))
        parts.push(MASK)
      }
      this.#maskedTo = Math.max(this.#maskedTo, end)
      at = Math.max(at, end)
    }
    if (kept > 0) this.#spans = this.#spans.slice(kept)
    if (to > at) parts.push(this.#held.slice(at - this.#base, to - this.#base))
    this.#held = this.#held.slice(to - this.#base)
    this.#base = to
    return parts.length === 1 ? (parts[0] ?? '') : parts.join('')
  }
}

const NO_FORM: LongForm = { text: '', isPadded: false }

/** The next unit of a form. */
function unitAt({ forms, length }: Follower, form: number): number {
  return forms[form]?.text.charCodeAt(length) ?? 0
}

/** Index of the first form whose next unit is `unit` or above. */
function firstAt(follower: Follower, unit: number): number {
  let low = follower.from
  let high = follower.to
  while (low < high) {
    const middle = (low + high) >>> 1
    if (unitAt(follower, middle) < unit) low = middle + 1
    else high = middle
  }
  return low
}

/** Finds the line breaks of a chunk behind which a form can go on. */
class Breaks {
  readonly #text: string
  readonly #before: string
  #feed = -1
  #return = -1

  /** @param before the end of the text before the chunk */
  constructor(text: string, before: string) {
    this.#text = text
    this.#before = before
  }

  /** Whether the first line break from `from` to `to` is one. Must be called with growing places. */
  isBetween(from: number, to: number): boolean {
    if (this.#feed < from) this.#feed = placeOf(this.#text, '\n', from)
    if (this.#return < from) this.#return = placeOf(this.#text, '\r', from)
    const place = this.#feed < this.#return ? this.#feed : this.#return
    return place <= to && this.isAt(place)
  }

  /** Whether the line before the line break at this place was ended for its length. */
  isAt(place: number): boolean {
    let text = this.#text
    let end = place
    if (place < MIN_WRAPPED_LENGTH) {
      text = this.#before + text.slice(0, place)
      end = text.length
      if (end < MIN_WRAPPED_LENGTH) return false
    }
    let both = BASE64 | DIGITS
    // Far units first: another word or number there decides sooner.
    for (let phase = 1; phase <= PROBE_DISTANCE; phase++) {
      for (let i = end - phase; i >= end - MIN_WRAPPED_LENGTH; i -= PROBE_DISTANCE) {
        both &= classes[text.charCodeAt(i)] ?? 0
        if (both === 0) return false
      }
    }
    return true
  }
}

/** Behind every text. */
const NOWHERE = 2 ** 30

function placeOf(text: string, char: string, from: number): number {
  const place = text.indexOf(char, from)
  return place < 0 ? NOWHERE : place
}

/** Masks every text, because there are too many secrets to search for. */
export class Everything implements CutFilter {
  #hasBegun = false

  filter(text: string): string {
    if (text.trim() === '' || this.#hasBegun) return ''
    this.#hasBegun = true
    return MASK
  }

  end(): string {
    this.#hasBegun = false
    return ''
  }

  cut(): string {
    return this.end()
  }
}
