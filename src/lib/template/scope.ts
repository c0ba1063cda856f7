import type { Value } from './values.ts'

/** Names set by the template; a block sees those around it and keeps its own. */
export class LoopScope {
  readonly #values = new Map<string, Value>()
  readonly #outer: LoopScope | undefined

  constructor(outer?: LoopScope) {
    this.#outer = outer
  }

  get(name: string): Value | undefined {
    const value = this.#values.get(name)
    return value === undefined ? this.#outer?.get(name) : value
  }

  set(name: string, value: Value): void {
    this.#values.set(name, value)
  }
}
