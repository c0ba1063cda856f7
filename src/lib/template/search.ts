/**
 * Substring search in linear time. The built-in searches take the product of both lengths in the worst case (measured:
 * minutes for 100 KB in 2 MB), which a budget cannot estimate.
 */

/** Up to this length the built-in search is fast in its worst case too. */
const SHORT = 32

type Units = (index: number) => number

/** Finds one text in others, forwards or backwards (Knuth, Morris, Pratt). */
class Search {
  readonly #wanted: Units
  /** For each prefix of the wanted text: the length of its longest border. */
  readonly #borders: Int32Array

  constructor(wanted: Units, length: number) {
    this.#wanted = wanted
    this.#borders = new Int32Array(length)
    for (let at = 1, matched = 0; at < length; at += 1) {
      matched = this.#extend(matched, wanted(at))
      this.#borders[at] = matched
    }
  }

  /** How much of the wanted text ends here, when `matched` units of it ended before `unit`. */
  #extend(matched: number, unit: number): number {
    let length = matched
    while (length > 0 && this.#wanted(length) !== unit) length = this.#borders[length - 1] ?? 0
    return this.#wanted(length) === unit ? length + 1 : 0
  }

  /** The first position from `from` on, or -1. */
  find(text: Units, length: number, from: number): number {
    for (let at = from, matched = 0; at < length; at += 1) {
      matched = this.#extend(matched, text(at))
      if (matched === this.#borders.length) return at - matched + 1
    }
    return -1
  }
}

const forwards = (text: string): Units => {
  return (index) => text.charCodeAt(index)
}

const backwards = (text: string): Units => {
  const last = text.length - 1
  return (index) => text.charCodeAt(last - index)
}

/** `text.indexOf(wanted)`. */
export function indexOfText(text: string, wanted: string): number {
  if (wanted.length <= SHORT || wanted.length >= text.length) return text.indexOf(wanted)
  return new Search(forwards(wanted), wanted.length).find(forwards(text), text.length, 0)
}

/** `text.lastIndexOf(wanted)`. */
export function lastIndexOfText(text: string, wanted: string): number {
  if (wanted.length <= SHORT || wanted.length >= text.length) return text.lastIndexOf(wanted)
  const found = new Search(backwards(wanted), wanted.length).find(backwards(text), text.length, 0)
  return found < 0 ? -1 : text.length - found - wanted.length
}

/** `text.split(separator)`; the separator is not empty. */
export function splitByText(text: string, separator: string): string[] {
  if (separator.length <= SHORT || separator.length >= text.length) return text.split(separator)
  const search = new Search(forwards(separator), separator.length)
  const units = forwards(text)
  const parts: string[] = []
  let at = 0
  for (let next = search.find(units, text.length, 0); next >= 0; next = search.find(units, text.length, at)) {
    parts.push(text.slice(at, next))
    at = next + separator.length
  }
  parts.push(text.slice(at))
  return parts
}
