import { BudgetExhausted, limitError } from './error.ts'

/** Bounds of one rendering. */
export interface Limits {
  /** evaluated nodes, visited items and printed values together; default 200,000 */
  maxSteps: number
  /** UTF-16 units of any one text, the result included; default 10 MiB */
  maxTextLength: number
  /** UTF-16 units read and written by all operations together, regular expression work included; default 64 MiB */
  maxWork: number
  /** time after which a rendering is stopped whatever else it may still spend; a second line only; default 2,000 */
  maxMilliseconds: number
  /** items of one list made by a template; default 100,000 */
  maxItems: number
  /** bits of one whole number; default 8,192 */
  maxIntegerBits: number
}

export const defaultLimits: Limits = {
  maxSteps: 200_000,
  maxTextLength: 10 * 1024 * 1024,
  maxWork: 64 * 1024 * 1024,
  maxMilliseconds: 2000,
  maxItems: 100_000,
  maxIntegerBits: 8192,
}

/** Longest template text that is parsed, in UTF-16 units. */
export const MAX_SOURCE_LENGTH = 1024 * 1024

/** Most names, signs and texts of one template: parsing takes about a microsecond for each. */
export const MAX_TOKENS = 50_000

/** Deepest nesting of brackets, blocks, values and calls. */
export const MAX_NESTING = 200

/** Deepest expression tree: a chain such as `a + b + c …` makes a deep tree without any nesting in the text. */
export const MAX_TREE_HEIGHT = 400

/** The work that visiting one value counts as; 64 MiB of work allow a million values. */
const VISIT_WORK = 64

const steadyClock = (): number => performance.now()

/** What one or more renderings may still spend; every operation that grows with its input pays here first. */
export class Budget {
  readonly limits: Limits
  readonly #subject: string
  #steps: number
  #work: number
  #sinceClock = 0
  readonly #now: () => number
  readonly #startedAt: number

  /**
   * @param subject what is bounded, in the words of messages
   * @param now milliseconds
   */
  constructor(limits: Limits, subject = 'the template', now = steadyClock) {
    this.limits = limits
    this.#now = now
    this.#startedAt = now()
    this.#subject = subject
    this.#steps = limits.maxSteps
    this.#work = limits.maxWork
  }

  /** Pays for `count` steps. */
  step(count = 1): void {
    this.#steps -= count
    if (this.#steps < 0) throw new BudgetExhausted(`${this.#subject} needs more than ${this.limits.maxSteps} steps`)
    this.#pass(count)
  }

  /** Pays for making a text of `length` units. */
  text(length: number): void {
    if (length > this.limits.maxTextLength) {
      throw limitError(`a text of ${this.#subject} would be longer than ${this.limits.maxTextLength} characters`)
    }
    this.work(length)
  }

  /** Pays for `units` of work on text. */
  work(units: number): void {
    this.#work -= units
    if (this.#work < 0)
      throw new BudgetExhausted(`${this.#subject} handles more than ${this.limits.maxWork} characters of text`)
    this.#pass(units >> 6)
  }

  /** Pays for visiting one value of a whole that is printed, read or handed out: less than a step, for large data is common. */
  visit(): void {
    this.work(VISIT_WORK)
  }

  /** Pays for taking a text apart into its characters, which costs several times as much as copying it. */
  characters(length: number): void {
    this.work(length * 8)
  }

  /** Refuses at once to visit more values than the rest pays for; takes nothing. */
  foresee(count: number): void {
    if (count * VISIT_WORK > this.#work) this.work(count * VISIT_WORK)
  }

  /** Looks at the clock now and then; a short rendering never does. */
  #pass(effort: number): void {
    this.#sinceClock += effort
    if (this.#sinceClock < 4096) return
    this.#sinceClock = 0
    if (this.#now() - this.#startedAt > this.limits.maxMilliseconds) {
      throw new BudgetExhausted(`${this.#subject} takes too long`)
    }
  }

  /** Pays for making a list of `count` items. */
  items(count: number): void {
    if (count > this.limits.maxItems) {
      throw limitError(`a list of ${this.#subject} would have more than ${this.limits.maxItems} items`)
    }
    this.step(count)
  }

  /** Refuses values and calls nested deeper than `MAX_NESTING`. */
  depth(depth: number): void {
    if (depth > MAX_NESTING) throw limitError(`${this.#subject} nests values or calls deeper than ${MAX_NESTING}`)
  }
}
