/**
 * Hides secret values wherever they turn up in text or data (contract 00, 0.15): who cannot know where a secret goes, such as
 * a command that prints its password, can still know what it looks like.
 *
 * A value is found as it is and as JSON, URLs and forms write it; of one with several lines also each longer line. Values of
 * less than `MIN_LENGTH` characters are not looked for: hiding every "1" would leave nothing to read. All patterns are one
 * automaton (Aho and Corasick, CACM 18, 1975), so that a text takes time in proportion to its length, whatever the two are.
 */
import { setImmediate } from 'node:timers/promises'
import { MASK } from '../schema/index.ts'

export interface SecretValues {
  /** Whether any of them is in the text. */
  isIn(text: string): boolean
  /** For texts that are short, such as messages. */
  maskText(text: string): string
  /** A copy of the data with masks in its texts, keys included; the value itself when there is nothing to hide. */
  maskValue(value: unknown): unknown
  /**
   * The same, and lets others have the event loop in between: a result may be 20 MB.
   *
   * @param isCut whether the text of this key ends in the middle: then what may be the beginning of a secret is hidden too
   */
  maskLater(
    value: unknown,
    isCut?: (key: string, owner: Readonly<Record<string, unknown>>) => boolean,
  ): Promise<unknown>
  /** The error, or a copy of it that repeats none of them. */
  maskError<E>(error: E): E
  /** Masks a text that comes in pieces. */
  stream(): SecretFilter
}

export interface SecretFilter {
  /** What may be shown so far; the end is held back as long as it may be the beginning of a secret. */
  filter(text: string): string
  /** What was held back. */
  end(): string
}

/** UTF-16 units. */
export const MIN_LENGTH = 4
/** A line that is shorter can be anything, such as the brace at the end of a JSON text. */
const MIN_LINE_LENGTH = 8
/**
 * UTF-16 units of all patterns together, about 20 bytes of memory each while a run lasts. Beyond it nothing can be told
 * apart from a secret any more: all texts are hidden as a whole.
 */
export const MAX_LENGTH_TOGETHER = 1024 * 1024
/** Levels of lists and objects. What is deeper is hidden as a whole: looking into it would take more stack than there is. */
const MAX_DEPTH = 500
/** UTF-16 units that are masked before others are asked. */
const SLICE_LENGTH = 256 * 1024
const SLICE_MS = 5
const MAX_HEADS = 8
const MAX_HEAD_LENGTH = 8

/**
 * Undefined when there is nothing to hide, which is the usual case and then costs nothing.
 *
 * @param values texts and numbers at any depth of them are secrets; names of properties are not
 */
export function createSecretValues(values: Iterable<unknown>): SecretValues | undefined {
  const patterns = new Set<string>()
  let length = 0
  const add = (pattern: string): void => {
    // What hides a secret is none.
    if (pattern.length < MIN_LENGTH || patterns.has(pattern) || /^\**$/.test(pattern)) return
    length += pattern.length
    if (length <= MAX_LENGTH_TOGETHER) patterns.add(pattern)
  }
  const numbers = new Set<number>()
  const walk = (value: unknown): void => {
    if (length > MAX_LENGTH_TOGETHER) return
    if (typeof value === 'string') for (const form of formsOf(value)) add(form)
    else if (typeof value === 'number') {
      add(String(value))
      if (String(value).length >= MIN_LENGTH) numbers.add(value)
    } else if (typeof value === 'object' && value !== null) for (const inner of Object.values(value)) walk(inner)
  }
  for (const value of values) walk(value)
  if (length > MAX_LENGTH_TOGETHER) return masking(() => new Everything(), numbers)
  if (patterns.size === 0) return undefined
  const automaton = buildAutomaton([...patterns], length)
  return masking(() => new Filter(automaton), numbers)
}

/** How a secret may be written. A line break at its end belongs to the file that it comes from. */
function* formsOf(value: string): Generator<string> {
  if (value.length > MAX_LENGTH_TOGETHER) {
    yield value
    return
  }
  const trimmed = value.trim()
  yield* writtenForms(trimmed)
  if (!trimmed.includes('\n')) return
  for (const line of trimmed.split('\n')) {
    const text = line.trim()
    if (text.length >= MIN_LINE_LENGTH) yield* writtenForms(text)
  }
}

function* writtenForms(text: string): Generator<string> {
  // All write these as they are; such is the token that each run has, so that it costs little.
  if (/^[\w.-]*$/.test(text)) {
    yield text
    return
  }
  const wellFormed = text.toWellFormed()
  yield text
  yield wellFormed
  const json = JSON.stringify(wellFormed).slice(1, -1)
  yield json
  yield json.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
  yield encodeURIComponent(wellFormed)
  yield encodeURI(wellFormed)
  yield new URLSearchParams([['', wellFormed]]).toString().slice(1)
}

function masking(newFilter: () => SecretFilter & { cut(): string }, numbers: ReadonlySet<number>): SecretValues {
  const maskText = (text: string): string => {
    if (text.length < MIN_LENGTH) return text
    const filter = newFilter()
    return filter.filter(text) + filter.end()
  }
  const maskScalar = (value: unknown): unknown => {
    if (typeof value === 'string') return maskText(value)
    return typeof value === 'number' && numbers.has(value) ? MASK : value
  }

  function maskValue(value: unknown, depth = 0): unknown {
    if (typeof value !== 'object' || value === null) return maskScalar(value)
    if (depth > MAX_DEPTH) return MASK
    if (Array.isArray(value)) {
      const items = value.map((item) => maskValue(item, depth + 1))
      return items.some((item, i) => item !== value[i]) ? items : value
    }
    let isChanged = false
    const entries = Object.entries(value).map(([name, inner]): [string, unknown] => {
      const entry: [string, unknown] = [maskText(name), maskValue(inner, depth + 1)]
      isChanged ||= entry[0] !== name || entry[1] !== inner
      return entry
    })
    return isChanged ? Object.fromEntries(entries) : value
  }

  async function maskLater(
    value: unknown,
    isCut: (key: string, owner: Readonly<Record<string, unknown>>) => boolean = () => false,
  ): Promise<unknown> {
    let since = performance.now()
    const pause = (): Promise<void> | undefined => {
      if (performance.now() - since < SLICE_MS) return undefined
      return setImmediate().then(() => {
        since = performance.now()
      })
    }
    const maskLong = async (text: string, ends: boolean): Promise<string> => {
      const filter = newFilter()
      const parts: string[] = []
      for (let start = 0; start < text.length; start += SLICE_LENGTH) {
        parts.push(filter.filter(text.slice(start, start + SLICE_LENGTH)))
        await pause()
      }
      parts.push(ends ? filter.end() : filter.cut())
      return parts.join('')
    }
    const walk = async (inner: unknown, cut: boolean, depth: number): Promise<unknown> => {
      if (typeof inner === 'string')
        return inner.length < SLICE_LENGTH && !cut ? maskText(inner) : maskLong(inner, !cut)
      if (typeof inner !== 'object' || inner === null) return maskScalar(inner)
      if (depth > MAX_DEPTH) return MASK
      const waiting = pause()
      if (waiting !== undefined) await waiting
      if (Array.isArray(inner)) {
        const items: unknown[] = []
        for (const item of inner)
          items.push(isScalar(item) && !isLong(item) ? maskScalar(item) : await walk(item, false, depth + 1))
        return items
      }
      const entries: [string, unknown][] = []
      for (const [name, item] of Object.entries(inner)) {
        // Its entries are those of an object.
        entries.push([
          maskText(name),
          await walk(item, isCut(name, inner as Readonly<Record<string, unknown>>), depth + 1),
        ])
      }
      return Object.fromEntries(entries)
    }
    return walk(value, false, 0)
  }

  return {
    isIn: (text) => maskText(text) !== text,
    maskText,
    maskValue: (value) => maskValue(value),
    maskLater,
    maskError<E>(error: E): E {
      if (!(error instanceof Error)) return error
      const message = maskText(error.message)
      const stack = maskText(error.stack ?? '')
      const details = hasDetails(error) ? maskValue(error.details) : undefined
      const { cause } = error
      const isSame = message === error.message && stack === (error.stack ?? '') && cause === undefined
      if (isSame && !(hasDetails(error) && details !== error.details)) return error
      // The same kind of error, so that whoever looks at its class and its properties sees no difference.
      const copy = Object.create(
        Object.getPrototypeOf(error) as object,
        Object.getOwnPropertyDescriptors(error),
      ) as Error
      Object.defineProperty(copy, 'message', { value: message })
      Object.defineProperty(copy, 'stack', { value: stack })
      if (cause !== undefined) {
        const masked = cause instanceof Error ? this.maskError(cause) : maskValue(cause)
        Object.defineProperty(copy, 'cause', { value: masked })
      }
      if (hasDetails(error)) Object.defineProperty(copy, 'details', { value: details })
      return copy as E
    },
    stream: newFilter,
  }
}

/** Errors that say more than their message says it there. */
function hasDetails(error: Error): error is Error & { details: unknown } {
  return 'details' in error
}

function isScalar(value: unknown): boolean {
  return typeof value !== 'object' || value === null
}

function isLong(value: unknown): boolean {
  return typeof value === 'string' && value.length >= SLICE_LENGTH
}

/** States are prefixes of patterns, 0 is the empty one. Each of these has what belongs to a state at its number. */
interface Automaton {
  /** The unit that leads to the child that was made first, which most states have alone. */
  firstUnit: Uint16Array
  /** 0: there is none. */
  firstChild: Int32Array
  /** Further children, by `state * 65536 + unit`. */
  otherChildren: ReadonlyMap<number, number>
  /** The longest state that is an end of this one. */
  shorter: Int32Array
  /** Units of this one. */
  depth: Int32Array
  /** Units of the longest pattern that is an end of this one; 0: there is none. */
  found: Int32Array
  /** How patterns begin, if there are so few ways that looking for them is quicker than walking. */
  heads: readonly string[]
}

function buildAutomaton(patterns: readonly string[], length: number): Automaton {
  const size = length + 1
  const firstUnit = new Uint16Array(size)
  const firstChild = new Int32Array(size)
  const otherChildren = new Map<number, number>()
  const shorter = new Int32Array(size)
  const depth = new Int32Array(size)
  const found = new Int32Array(size)
  let states = 1
  for (const pattern of patterns) {
    let state = 0
    for (let i = 0; i < pattern.length; i++) {
      const unit = pattern.charCodeAt(i)
      const first = firstChild[state] ?? 0
      const known = first !== 0 && firstUnit[state] === unit ? first : otherChildren.get(state * 65_536 + unit)
      if (known !== undefined) {
        state = known
        continue
      }
      if (first === 0) {
        firstUnit[state] = unit
        firstChild[state] = states
      } else {
        otherChildren.set(state * 65_536 + unit, states)
      }
      depth[states] = i + 1
      state = states
      states += 1
    }
    found[state] = pattern.length
  }
  const heads = new Set(patterns.map((pattern) => pattern.slice(0, MAX_HEAD_LENGTH)))
  const automaton: Automaton = {
    firstUnit,
    firstChild,
    otherChildren,
    shorter,
    depth,
    found,
    heads: heads.size <= MAX_HEADS ? [...heads] : [],
  }

  // Shorter states first, because each one is made out of them.
  const others = new Map<number, [unit: number, child: number][]>()
  for (const [key, child] of otherChildren) {
    const state = Math.floor(key / 65_536)
    const list = others.get(state)
    if (list === undefined) others.set(state, [[key % 65_536, child]])
    else list.push([key % 65_536, child])
  }
  const queue = new Int32Array(states)
  let filled = 1
  for (let next = 0; next < filled; next++) {
    const state = queue[next] ?? 0
    const adopt = (unit: number, child: number): void => {
      const end = state === 0 ? 0 : step(automaton, shorter[state] ?? 0, unit)
      shorter[child] = end
      if (found[child] === 0) found[child] = found[end] ?? 0
      queue[filled] = child
      filled += 1
    }
    const first = firstChild[state] ?? 0
    if (first !== 0) adopt(firstUnit[state] ?? 0, first)
    for (const [unit, child] of others.get(state) ?? []) adopt(unit, child)
  }
  return automaton
}

/** The longest state that is an end of this one with the unit behind it. */
function step({ firstUnit, firstChild, otherChildren, shorter }: Automaton, from: number, unit: number): number {
  let state = from
  for (;;) {
    const first = firstChild[state] ?? 0
    if (first !== 0) {
      if (firstUnit[state] === unit) return first
      const other = otherChildren.size === 0 ? undefined : otherChildren.get(state * 65_536 + unit)
      if (other !== undefined) return other
    }
    if (state === 0) return 0
    state = shorter[state] ?? 0
  }
}

/** Positions count from the beginning of the whole text. Secrets that overlap are hidden by one mask. */
class Filter implements SecretFilter {
  readonly #automaton: Automaton
  readonly #maxHead: number
  #state = 0
  /** What was not given away yet, and where it begins. */
  #held = ''
  #base = 0
  /** Secrets that begin in what is held, apart from each other. */
  #spans: { start: number; end: number }[] = []
  /** A mask that was given away stands for everything up to here. */
  #hiddenTo = 0

  constructor(automaton: Automaton) {
    this.#automaton = automaton
    this.#maxHead = automaton.heads.reduce((longest, head) => Math.max(longest, head.length), 0)
  }

  filter(text: string): string {
    const begin = this.#base + this.#held.length
    this.#walk(text, begin)
    this.#held += text
    const { depth } = this.#automaton
    return this.#release(begin + text.length - (depth[this.#state] ?? 0))
  }

  end(): string {
    const rest = this.#release(this.#base + this.#held.length)
    this.#state = 0
    return rest
  }

  /** Like `end`, of a text that was cut: what may be the beginning of a secret is hidden. */
  cut(): string {
    const end = this.#base + this.#held.length
    const depth = this.#automaton.depth[this.#state] ?? 0
    if (depth >= MIN_LENGTH) this.#add(end - depth, end)
    return this.end()
  }

  #walk(text: string, begin: number): void {
    const automaton = this.#automaton
    const { found, heads } = automaton
    /** Where each head is next. */
    const ahead: number[] = heads.map(() => -1)
    /** From here on a head may go on in the next piece. */
    const tail = text.length - this.#maxHead + 1
    let state = this.#state
    for (let i = 0; i < text.length; i++) {
      if (state === 0 && heads.length > 0 && i < tail) {
        let nearest = tail
        for (let n = 0; n < heads.length; n++) {
          let at = ahead[n] ?? -1
          if (at < i) {
            at = text.indexOf(heads[n] ?? '', i)
            if (at < 0) at = Infinity
            ahead[n] = at
          }
          if (at < nearest) nearest = at
        }
        i = nearest
      }
      state = step(automaton, state, text.charCodeAt(i))
      const length = found[state] ?? 0
      if (length > 0) this.#add(begin + i + 1 - length, begin + i + 1)
    }
    this.#state = state
  }

  #add(from: number, end: number): void {
    let start = from
    for (let last = this.#spans.at(-1); last !== undefined && last.end > start; last = this.#spans.at(-1)) {
      start = Math.min(start, last.start)
      this.#spans.pop()
    }
    this.#spans.push({ start, end })
  }

  /** Gives away what comes before `to`: no secret that is found later begins there. */
  #release(to: number): string {
    if (to === this.#base) return ''
    const parts: string[] = []
    let at = Math.max(this.#base, this.#hiddenTo)
    let kept = 0
    for (const { start, end } of this.#spans) {
      if (start >= to) break
      kept += 1
      if (start >= this.#hiddenTo) {
        if (start > at) parts.push(this.#held.slice(at - this.#base, start - this.#base))
        parts.push(MASK)
      }
      this.#hiddenTo = Math.max(this.#hiddenTo, end)
      at = Math.max(at, end)
    }
    if (kept > 0) this.#spans = this.#spans.slice(kept)
    if (to > at) parts.push(this.#held.slice(at - this.#base, to - this.#base))
    this.#held = this.#held.slice(to - this.#base)
    this.#base = to
    return parts.length === 1 ? (parts[0] ?? '') : parts.join('')
  }
}

/** Hides every text: there is too much that may be a secret. */
class Everything implements SecretFilter {
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
