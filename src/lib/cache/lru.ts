/**
 * A map that evicts the least recently used values. It limits their number and, where values have a weight, the total
 * weight.
 */
export class Lru<K, V> {
  readonly #entries = new Map<K, V>()
  readonly #maxEntries: number
  readonly #maxWeight: number
  /** Of the values stored with a weight. */
  readonly #weights = new Map<K, number>()
  #weight = 0

  /** @param maxWeight of all values together; default: no limit */
  constructor(maxEntries: number, maxWeight = Infinity) {
    this.#maxEntries = maxEntries
    this.#maxWeight = maxWeight
  }

  get size(): number {
    return this.#entries.size
  }

  has(key: K): boolean {
    return this.#entries.has(key)
  }

  get(key: K): V | undefined {
    const value = this.#entries.get(key)
    if (value !== undefined) {
      this.#entries.delete(key)
      this.#entries.set(key, value)
    }
    return value
  }

  /** Stores a value, unless it is heavier than an eighth of the maximum weight. */
  set(key: K, value: V, weight = 0): void {
    if (weight > this.#maxWeight / 8) return
    this.delete(key)
    this.#entries.set(key, value)
    if (weight > 0) {
      this.#weights.set(key, weight)
      this.#weight += weight
    }
    if (this.#entries.size <= this.#maxEntries && this.#weight <= this.#maxWeight) return
    for (const oldest of this.#entries.keys()) {
      this.delete(oldest)
      if (this.#entries.size <= this.#maxEntries && this.#weight <= this.#maxWeight) return
    }
  }

  delete(key: K): void {
    this.#entries.delete(key)
    if (this.#weight === 0) return
    this.#weight -= this.#weights.get(key) ?? 0
    this.#weights.delete(key)
  }

  clear(): void {
    this.#entries.clear()
    this.#weights.clear()
    this.#weight = 0
  }
}
