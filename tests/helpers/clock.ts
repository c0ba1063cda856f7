import type { Clock } from '../../src/core/clock.ts'
import { nowMicros } from '../../src/core/time.ts'

interface Waiting {
  /** Microseconds since the epoch. */
  at: number
  readonly fn: () => void
}

/** A clock that stands still until a test moves it; it begins with the time of this machine. */
export class TestClock implements Clock {
  #micros = nowMicros()
  readonly #waiting = new Set<Waiting>()

  now(): number {
    return this.#micros
  }

  setBacks(): number {
    return 0
  }

  monotonic(): number {
    return this.#micros / 1000
  }

  wait(ms: number, fn: () => void): () => void {
    const waiting = { at: this.#micros + ms * 1000, fn }
    this.#waiting.add(waiting)
    // For something whose time has come while its server looked elsewhere.
    if (ms <= 1) setImmediate(() => this.#call(waiting))
    return () => void this.#waiting.delete(waiting)
  }

  /** How many wait for a time. */
  get waits(): number {
    return this.#waiting.size
  }

  advance(ms: number): void {
    this.moveTo(this.#micros + ms * 1000)
  }

  /** Sets the time, which must not be before, and calls who has waited for it. */
  moveTo(micros: number): void {
    if (micros < this.#micros) throw new Error('a test clock only goes forward')
    this.#micros = micros
    for (const waiting of this.#waiting) {
      // They wait whole milliseconds.
      if (waiting.at < micros + 1000) this.#call(waiting)
    }
  }

  #call(waiting: Waiting): void {
    if (this.#waiting.delete(waiting)) waiting.fn()
  }
}
