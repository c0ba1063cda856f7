/**
 * Finds many texts in one pass (Aho and Corasick, CACM 18, 1975), so that the time is linear in the length of the text.
 *
 * Skips text that cannot contain the start of a pattern, by pairs of units (Wu and Manber, TR-94-17, 1994).
 */

/** Index into the arrays; 0: the empty text. A state is the start of a pattern. */
export type State = number

/** Longest start of a pattern that decides what is skipped, in UTF-16 units. */
const MAX_HEAD_LENGTH = 12
/** Slots of the tables by pair: all pairs of ASCII, or several pairs in one slot. */
const PAIRS = 1 << 14

export class Automaton {
  /** Length of each state in units. */
  readonly depth: Uint8Array
  /** The state of the longest whole pattern at the end of each state; 0: none. */
  readonly found: Int32Array
  readonly #unit: Uint16Array
  readonly #parent: Int32Array
  /** Most states have one child. */
  readonly #child: Int32Array
  /** The longest other state at the end of each state. */
  readonly #shorter: Int32Array
  /** Further children: open addressing by parent and unit. */
  readonly #others: Int32Array
  /** Units after which a pattern can start, by the last pair of the head at a place; fewer if it can touch a line break. */
  readonly #shift = new Uint8Array(PAIRS)
  /** 1: a pattern starts with the pair. */
  readonly #starts = new Uint8Array(PAIRS)
  /** Units at the start of each pattern that decide what is skipped. */
  readonly headLength: number

  /** @param patterns texts of 2 to 255 units; those that are not whole are states, but never found */
  constructor(patterns: ReadonlyMap<string, { isWhole: boolean }>) {
    let size = 1
    for (const pattern of patterns.keys()) size += pattern.length
    this.depth = new Uint8Array(size)
    this.found = new Int32Array(size)
    this.#unit = new Uint16Array(size)
    this.#parent = new Int32Array(size)
    this.#child = new Int32Array(size)
    this.#shorter = new Int32Array(size)
    this.#others = new Int32Array(2 ** Math.ceil(Math.log2(size + 1)))
    let headLength = MAX_HEAD_LENGTH
    let states = 1
    for (const [pattern, { isWhole }] of patterns) {
      headLength = Math.min(headLength, pattern.length)
      let state = 0
      for (let i = 0; i < pattern.length; i++) {
        const unit = pattern.charCodeAt(i)
        let next = this.#childOf(state, unit)
        if (next === 0) {
          next = states++
          this.#unit[next] = unit
          this.#parent[next] = state
          this.depth[next] = i + 1
          this.#adopt(state, next)
        }
        state = next
      }
      if (isWhole) this.found[state] = state
    }
    this.headLength = headLength
    this.#link(states)
    this.#shift.fill(headLength - 1)
    for (let unit = 0; unit < 128; unit++) {
      for (const feed of [10, 13]) this.#shift[pairOf(unit, feed)] = headLength - 2
      for (const blank of [9, 10, 13, 32]) this.#shift[pairOf(blank, unit)] = headLength - 2
    }
    for (const pattern of patterns.keys()) this.#addHead(pattern)
  }

  /** The longest state at the end of `from` followed by the unit. */
  step(from: State, unit: number): State {
    let state = from
    for (;;) {
      const next = this.#childOf(state, unit)
      if (next !== 0 || state === 0) return next
      state = this.#shorter[state] ?? 0
    }
  }

  stateOf(pattern: string): State {
    let state = 0
    for (let i = 0; i < pattern.length; i++) state = this.#childOf(state, pattern.charCodeAt(i))
    return state
  }

  /**
   * First place from `at` before `end` where a pattern can start; `end` if there is none.
   *
   * @param isBroken whether there is a line break between these places, behind which a pattern can go on
   */
  next(text: string, at: number, end: number, isBroken: (from: number, to: number) => boolean): number {
    const shift = this.#shift
    const starts = this.#starts
    const last = this.headLength - 1
    let i = at
    while (i < end) {
      const skipped = shift[pairOf(text.charCodeAt(i + last - 1), text.charCodeAt(i + last))] ?? 0
      // No pattern contains the pair, which does not touch a line break: none starts before the end of the pair.
      if (skipped === last) i += last
      else if (isBroken(i + 1, i + last)) return i
      else if (skipped > 0) i += skipped
      else if (starts[pairOf(text.charCodeAt(i), text.charCodeAt(i + 1))] === 1) return i
      else i += 1
    }
    return end
  }

  #childOf(state: State, unit: number): State {
    const child = this.#child[state] ?? 0
    if (child === 0 || this.#unit[child] === unit) return child
    const others = this.#others
    const mask = others.length - 1
    for (let slot = slotOf(state, unit) & mask; ; slot = (slot + 1) & mask) {
      const other = others[slot] ?? 0
      if (other === 0 || (this.#parent[other] === state && this.#unit[other] === unit)) return other
    }
  }

  #adopt(state: State, next: State): void {
    if (this.#child[state] === 0) {
      this.#child[state] = next
      return
    }
    const mask = this.#others.length - 1
    let slot = slotOf(state, this.#unit[next] ?? 0) & mask
    while (this.#others[slot] !== 0) slot = (slot + 1) & mask
    this.#others[slot] = next
  }

  /** Shorter states first, because longer ones depend on them. */
  #link(states: number): void {
    const from = new Int32Array(257)
    for (let state = 0; state < states; state++) from[(this.depth[state] ?? 0) + 1]! += 1
    for (let depth = 1; depth < from.length; depth++) from[depth]! += from[depth - 1] ?? 0
    const order = new Int32Array(states)
    for (let state = 0; state < states; state++) order[from[this.depth[state] ?? 0]!++] = state
    for (const state of order) {
      const parent = this.#parent[state] ?? 0
      if (parent === 0) continue
      const end = this.step(this.#shorter[parent] ?? 0, this.#unit[state] ?? 0)
      this.#shorter[state] = end
      if (this.found[state] === 0) this.found[state] = this.found[end] ?? 0
    }
  }

  #addHead(pattern: string): void {
    const last = this.headLength - 1
    this.#starts[pairOf(pattern.charCodeAt(0), pattern.charCodeAt(1))] = 1
    for (let i = 1; i <= last; i++) {
      const pair = pairOf(pattern.charCodeAt(i - 1), pattern.charCodeAt(i))
      this.#shift[pair] = Math.min(this.#shift[pair] ?? 0, last - i)
    }
  }
}

function pairOf(first: number, second: number): number {
  return ((first << 7) ^ second) & (PAIRS - 1)
}

function slotOf(state: number, unit: number): number {
  return Math.imul(state, 0x9e3779b1) ^ Math.imul(unit, 0x85ebca6b)
}
