import { limitError } from '../../lib/template/index.ts'

/** UTF-16 units of all names and texts, plus one per value: twice the largest payload. */
const MAX_LENGTH = 32 * 1024 * 1024
/** Twice those of the largest body. */
const MAX_VALUES = 200_000

/** What the results of all templates of one request may hold together. A text that occurs a thousand times is as many. */
export class Room {
  readonly left: { length: number; values: number }

  constructor(left: Readonly<Room['left']> = { length: MAX_LENGTH, values: MAX_VALUES }) {
    this.left = { ...left }
  }

  /** @throws TemplateError */
  use<T>(value: T): T {
    this.#walk(value)
    return value
  }

  #walk(value: unknown): void {
    this.left.values -= 1
    if (this.left.values < 0) throw limitError(`the templates give more than ${MAX_VALUES} values together`)
    this.#take(typeof value === 'string' ? value.length + 1 : 1)
    if (typeof value !== 'object' || value === null) return
    if (Array.isArray(value)) {
      for (const item of value) this.#walk(item)
      return
    }
    for (const name of Object.keys(value)) {
      this.#take(name.length)
      this.#walk((value as Record<string, unknown>)[name])
    }
  }

  #take(length: number): void {
    this.left.length -= length
    if (this.left.length < 0) throw limitError(`the templates give more than ${MAX_LENGTH} characters together`)
  }
}
