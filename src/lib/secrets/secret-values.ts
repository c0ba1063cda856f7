/**
 * Masks secret values anywhere in text or data (contract 00, 0.15), for example in the output of a command that prints
 * its password.
 *
 * Finds a value as it is and as encoded in JSON, URLs and forms. Finds each longer line of a value with several lines.
 * Ignores values shorter than `MIN_LENGTH`: masking every "1" would leave nothing to read. All patterns form one
 * automaton (Aho and Corasick, CACM 18, 1975), so that the time is linear in the length of the text.
 */
import { setImmediate } from 'node:timers/promises'
import { MASK } from '../schema/index.ts'
import { entriesOf, JsonNumber, objectOf, toNumeric, writeJson } from '../json/index.ts'

export interface SecretValues {
  /** Whether the text contains a secret. */
  isIn(text: string): boolean
  /** Masks a short text, such as a message. */
  maskText(text: string): string
  /** A copy with masked texts and keys; the value itself if it contains no secret. */
  maskValue(value: unknown): unknown
  /**
   * Like `maskValue`, but yields to the event loop, because a result can be 20 MB.
   *
   * @param isCut whether the text of this key was cut: then a possible start of a secret at its end is masked too
   */
  maskLater(
    value: unknown,
    isCut?: (key: string, owner: Readonly<Record<string, unknown>>) => boolean,
  ): Promise<unknown>
  /** The error, or a masked copy if it contains a secret. */
  maskError<E>(error: E): E
  /** Masks a text that arrives in chunks. */
  stream(): SecretFilter
}

export interface SecretFilter {
  /** Returns masked text. Keeps the end while it can be the start of a secret. */
  filter(text: string): string
  /** Returns the kept end. */
  end(): string
}

/** UTF-16 units. */
export const MIN_LENGTH = 4
/** Shorter lines are not secret, such as the closing brace of a JSON text. */
const MIN_LINE_LENGTH = 8
/**
 * Maximum UTF-16 units of all patterns, about 20 bytes of memory each during a run. Beyond it svc masks all texts
 * completely.
 */
export const MAX_LENGTH_TOGETHER = 1024 * 1024
/** Levels of lists and objects. Deeper values are masked completely, because reading them could overflow the stack. */
const MAX_DEPTH = 500
/** UTF-16 units masked before yielding to the event loop. */
const SLICE_LENGTH = 256 * 1024
const SLICE_MS = 5
const MAX_HEADS = 8
const MAX_HEAD_LENGTH = 8

/**
 * Undefined: no secrets, the usual case, which costs nothing.
 *
 * @param values all texts and numbers in them, at any depth, are secrets; property names are not
 */
export function createSecretValues(values: Iterable<unknown>): SecretValues | undefined {
  const patterns = new Set<string>()
  let length = 0
  const add = (pattern: string): void => {
    // A mask is not a secret.
    if (pattern.length < MIN_LENGTH || patterns.has(pattern) || /^\**$/.test(pattern)) return
    length += pattern.length
    if (length <= MAX_LENGTH_TOGETHER) patterns.add(pattern)
  }
  const numbers = new Set<number | bigint>()
  const walk = (value: unknown): void => {
    if (length > MAX_LENGTH_TOGETHER) return
    if (typeof value === 'string') for (const form of formsOf(value)) add(form)
    else if (typeof value === 'number' || value instanceof JsonNumber) {
      add(String(value))
      if (String(value).length >= MIN_LENGTH) numbers.add(toNumeric(value))
    } else if (typeof value === 'object' && value !== null) for (const inner of Object.values(value)) walk(inner)
  }
  for (const value of values) walk(value)
  if (length > MAX_LENGTH_TOGETHER) return masking(() => new Everything(), numbers)
  if (patterns.size === 0) return undefined
  const automaton = buildAutomaton([...patterns], length)
  return masking(() => new Filter(automaton), numbers)
}

/** Encodings of a secret. A line break at its end belongs to the file that it comes from. */
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
  // No encoding changes these characters. The token of each run is such a text, so it costs little.
  if (/^[\w.-]*$/.test(text)) {
    yield text
    return
  }
  const wellFormed = text.toWellFormed()
  yield text
  yield wellFormed
  const json = writeJson(wellFormed).slice(1, -1)
  yield json
  yield json.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
  yield encodeURIComponent(wellFormed)
  yield encodeURI(wellFormed)
  yield new URLSearchParams([['', wellFormed]]).toString().slice(1)
}

function masking(
  newFilter: () => SecretFilter & { cut(): string },
  numbers: ReadonlySet<number | bigint>,
): SecretValues {
  const maskText = (text: string): string => {
    if (text.length < MIN_LENGTH) return text
    const filter = newFilter()
    return filter.filter(text) + filter.end()
  }
  const maskScalar = (value: unknown): unknown => {
    if (typeof value === 'string') return maskText(value)
    const isNumber = typeof value === 'number' || value instanceof JsonNumber
    return isNumber && numbers.has(toNumeric(value)) ? MASK : value
  }

  function maskValue(value: unknown, depth = 0): unknown {
    if (typeof value !== 'object' || value === null || value instanceof JsonNumber) return maskScalar(value)
    if (depth > MAX_DEPTH) return MASK
    if (Array.isArray(value)) {
      const items = value.map((item) => maskValue(item, depth + 1))
      return items.some((item, i) => item !== value[i]) ? items : value
    }
    let isChanged = false
    const entries = entriesOf(value as Readonly<Record<string, unknown>>).map(([name, inner]): [string, unknown] => {
      const entry: [string, unknown] = [maskText(name), maskValue(inner, depth + 1)]
      isChanged ||= entry[0] !== name || entry[1] !== inner
      return entry
    })
    return isChanged ? objectOf(entries) : value
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
      if (typeof inner !== 'object' || inner === null || inner instanceof JsonNumber) return maskScalar(inner)
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
      for (const [name, item] of entriesOf(inner as Readonly<Record<string, unknown>>)) {
        // Its entries are those of an object.
        entries.push([
          maskText(name),
          await walk(item, isCut(name, inner as Readonly<Record<string, unknown>>), depth + 1),
        ])
      }
      return objectOf(entries)
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
      // Keeps class and properties of the error.
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

/** Whether the error has `details`. */
function hasDetails(error: Error): error is Error & { details: unknown } {
  return 'details' in error
}

function isScalar(value: unknown): boolean {
  return typeof value !== 'object' || value === null || value instanceof JsonNumber
}

function isLong(value: unknown): boolean {
  return typeof value === 'string' && value.length >= SLICE_LENGTH
}

/** States are prefixes of patterns; state 0 is empty. Arrays are indexed by state. */
interface Automaton {
  /** The unit that leads to the first child. Most states have one child. */
  firstUnit: Uint16Array
  /** 0: none. */
  firstChild: Int32Array
  /** Further children, by `state * 65536 + unit`. */
  otherChildren: ReadonlyMap<number, number>
  /** The longest other state that is a suffix of this one. */
  shorter: Int32Array
  /** Length of the state in units. */
  depth: Int32Array
  /** Length of the longest pattern that is a suffix of this state; 0: none. */
  found: Int32Array
  /** Starts of patterns, if they are few enough that searching for them is faster than the automaton. */
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

  // Shorter states first, because longer ones depend on them.
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

/** The longest state that is a suffix of `from` followed by the unit. */
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

/** Positions count from the start of the whole text. One mask replaces overlapping secrets. */
class Filter implements SecretFilter {
  readonly #automaton: Automaton
  readonly #maxHead: number
  #state = 0
  /** Text that is not released yet, and its position. */
  #held = ''
  #base = 0
  /** Separate secrets that start in the kept text. */
  #spans: { start: number; end: number }[] = []
  /** A released mask covers the text up to here. */
  #maskedTo = 0

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

  /** Like `end` for a cut text: masks a possible start of a secret. */
  cut(): string {
    const end = this.#base + this.#held.length
    const depth = this.#automaton.depth[this.#state] ?? 0
    if (depth >= MIN_LENGTH) this.#add(end - depth, end)
    return this.end()
  }

  #walk(text: string, begin: number): void {
    const automaton = this.#automaton
    const { found, heads } = automaton
    /** Next position of each head. */
    const ahead: number[] = heads.map(() => -1)
    /** From here on a head can continue in the next chunk. */
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

/** Masks every text, because there are too many secrets to search for. */
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
