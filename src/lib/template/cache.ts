/** Keeps the most recently used values, bounded in number and in weight. */
export class Cache<T> {
  readonly #entries = new Map<string, { value: T; weight: number }>()
  readonly #maxEntries: number
  readonly #maxWeight: number
  #weight = 0

  constructor(maxEntries: number, maxWeight: number) {
    this.#maxEntries = maxEntries
    this.#maxWeight = maxWeight
  }

  get(key: string): T | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    this.#entries.delete(key)
    this.#entries.set(key, entry)
    return entry.value
  }

  /** Keeps a value; one heavier than an eighth of the whole is not kept. */
  set(key: string, value: T, weight: number): void {
    if (weight > this.#maxWeight / 8) return
    this.#drop(key)
    this.#entries.set(key, { value, weight })
    this.#weight += weight
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#maxEntries && this.#weight <= this.#maxWeight) return
      this.#drop(oldest)
    }
  }

  get size(): number {
    return this.#entries.size
  }

  #drop(key: string): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    this.#weight -= entry.weight
    this.#entries.delete(key)
  }
}
