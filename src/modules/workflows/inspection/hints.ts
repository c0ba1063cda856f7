import { closestWords, shown } from '../../../lib/text/index.ts'

const MAX_HINTS = 20
const MAX_CANDIDATES = 2_000
const MAX_NAMES = 3

/** Says what may have been meant. */
export class Hints {
  /** Whether anybody asks for them. */
  readonly areWanted: boolean
  #left: number

  /** @param isWanted false: there are no hints */
  constructor(isWanted: boolean) {
    this.areWanted = isWanted
    this.#left = isWanted ? MAX_HINTS : 0
  }

  /** @returns `{ hint }`, or `{}` */
  give(hint: string): { hint?: string } {
    return this.areWanted ? { hint } : {}
  }

  /**
   * Names that are close to a wrong one. It stops after some hints, because each compares with all names.
   *
   * @returns `{ hint }`, or `{}` if nothing is close
   */
  of(name: string, candidates: () => readonly string[]): { hint?: string } {
    if (this.#left === 0) return {}
    this.#left -= 1
    const names = candidates()
    if (names.length > MAX_CANDIDATES) return {}
    const closest = closestWords(name, names, Math.min(3, Math.floor(name.length / 3))).slice(0, MAX_NAMES)
    if (closest.length === 0) return {}
    return { hint: `Did you mean ${closest.map((close) => `"${shown(close)}"`).join(' or ')}?` }
  }
}
