/** What the expressions in the texts of a definition are. */
import { entriesOf } from '../../../lib/json/index.ts'
import { isObject } from '../../../lib/schema/index.ts'
import { findExpressions, type Found } from '../expressions/index.ts'

/** Looks at each text once, however often it occurs. */
export class Texts {
  readonly #known = new Map<string, Found>()

  find(text: string): Found {
    const known = this.#known.get(text)
    if (known !== undefined) return known
    const found = findExpressions(text)
    this.#known.set(text, found)
    return found
  }
}

/** The texts in a value, each key before what it names. */
export function* textsIn(value: unknown): Generator<string, void> {
  if (typeof value === 'string') yield value
  else if (Array.isArray(value)) for (const item of value) yield* textsIn(item)
  else if (isObject(value)) {
    for (const [key, inner] of entriesOf(value)) {
      yield key
      yield* textsIn(inner)
    }
  }
}
