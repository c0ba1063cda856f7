/** Finds the secrets in a value by its masked copy. */
import { MASK } from '../schema/index.ts'
import { entriesOf, JsonNumber } from '../json/index.ts'

/** Levels of lists and objects; what lies deeper is a secret as a whole. */
const MAX_DEPTH = 500

/**
 * What stands in a value in the place of masks.
 *
 * @param masked a copy of the value in which texts, keys, parts of texts and whole values are replaced by masks
 * @returns texts, keys and numbers; those inside of a value that is masked as a whole, too
 */
export function maskedParts(masked: unknown, value: unknown): unknown[] {
  const found: unknown[] = []
  compare(masked, value, found, 0)
  return found
}

function compare(masked: unknown, value: unknown, found: unknown[], depth: number): void {
  if (masked === value) return
  if (typeof masked === 'string' && typeof value === 'string') {
    found.push(...partsOf(masked, value))
    return
  }
  if (depth < MAX_DEPTH && isContainer(masked) && isContainer(value)) {
    const inMasked = entriesOf(masked)
    const inValue = entriesOf(value)
    if (inMasked.length === inValue.length) {
      for (const [index, [key, inner]] of inValue.entries()) {
        const [maskedKey = '', maskedInner] = inMasked[index] ?? []
        compare(maskedKey, key, found, depth)
        compare(maskedInner, inner, found, depth + 1)
      }
      return
    }
    // Keys that became the same.
    if (!Array.isArray(value)) found.push(...inValue.map(([key]) => key).filter((key) => !Object.hasOwn(masked, key)))
  }
  if (masked instanceof JsonNumber && value instanceof JsonNumber && masked.text === value.text) return
  addLeaves(value, found, depth)
}

function addLeaves(value: unknown, found: unknown[], depth: number): void {
  if (!isContainer(value) || depth >= MAX_DEPTH) found.push(value)
  else for (const [, inner] of entriesOf(value)) addLeaves(inner, found, depth + 1)
}

const isContainer = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !(value instanceof JsonNumber)

/** What stands between the parts of a text that the masked one has too; the whole text if they cannot be matched. */
function partsOf(masked: string, text: string): string[] {
  const [first = '', ...others] = masked.split(MASK)
  const last = others.pop()
  if (last === undefined || !text.startsWith(first)) return [text]
  const found: string[] = []
  let at = first.length
  // Two masks side by side count as one: where one secret ends and the next begins is not known.
  for (const plain of others.filter((each) => each !== '')) {
    const end = text.indexOf(plain, at + 1)
    if (end === -1) return [text]
    found.push(text.slice(at, end))
    at = end + plain.length
  }
  const end = text.length - last.length
  if (end < at || !text.endsWith(last)) return [text]
  found.push(text.slice(at, end))
  return found.filter((part) => part !== '')
}
