/** Shell wildcards for a whole string, compatible with Python's `fnmatch`. */
import { limitError, type Budget } from '../../../lib/template/index.ts'
/** Whether a part of the pattern matches the character with this code point. */
type Part = (character: number) => boolean

const STAR = '*'
const any: Part = () => true

/** In UTF-16 units. */
const MAX_LENGTH = 4096

export type Wildcard = readonly (Part | typeof STAR)[]

/** `*` is any text, `?` any character, `[a-z]` and `[!a-z]` a set. An unclosed bracket is a literal. */
export function compileWildcard(pattern: string): Wildcard {
  if (pattern.length > MAX_LENGTH) throw limitError(`the wildcard pattern is longer than ${MAX_LENGTH} characters`)
  const characters = Array.from(pattern, codePointOf)
  const parts: (Part | typeof STAR)[] = []
  for (let at = 0; at < characters.length; at += 1) {
    const character = characters[at]
    if (character === codePointOf('*')) {
      if (parts.at(-1) !== STAR) parts.push(STAR)
    } else if (character === codePointOf('?')) {
      parts.push(any)
    } else {
      const end = character === codePointOf('[') ? endOfSet(characters, at) : -1
      if (end < 0) {
        parts.push((each) => each === character)
      } else {
        parts.push(compileSet(characters.slice(at + 1, end)))
        at = end
      }
    }
  }
  return parts
}

function codePointOf(character: string): number {
  return character.codePointAt(0) ?? 0
}

/** Index of the closing bracket. A bracket in first place is a member of the set. */
function endOfSet(characters: readonly number[], start: number): number {
  const first = start + (characters[start + 1] === codePointOf('!') ? 2 : 1)
  return characters.indexOf(codePointOf(']'), characters[first] === codePointOf(']') ? first + 1 : first)
}

function compileSet(written: readonly number[]): Part {
  const isNegated = written[0] === codePointOf('!')
  const members = isNegated ? written.slice(1) : written
  const ranges: (readonly [number, number])[] = []
  for (let at = 0; at < members.length; at += 1) {
    const from = members[at] ?? 0
    const to = members[at + 1] === codePointOf('-') ? members[at + 2] : undefined
    ranges.push([from, to ?? from])
    if (to !== undefined) at += 2
  }
  return (character) => ranges.some(([from, to]) => from <= character && character <= to) !== isNegated
}

/** Needs at most text length times pattern length of work, counted in the budget. */
export function matchesWildcard(text: string, wildcard: Wildcard, budget: Budget): boolean {
  let at = 0
  let part = 0
  // On a mismatch, the last star takes one more character.
  let starPart = -1
  let starAt = 0
  while (at < text.length) {
    budget.work(PART_WORK)
    const current = wildcard[part]
    const character = text.codePointAt(at) ?? 0
    if (current === STAR) {
      starPart = part
      starAt = at
      part += 1
      if (part === wildcard.length) return true
    } else if (current !== undefined && current(character)) {
      part += 1
      at += widthOf(character)
    } else if (starPart >= 0) {
      starAt += widthOf(text.codePointAt(starAt) ?? 0)
      at = starAt
      part = starPart + 1
    } else {
      return false
    }
  }
  return part === wildcard.length || (part === wildcard.length - 1 && wildcard[part] === STAR)
}

/** Work of comparing one character with one part, in characters of copied text. */
const PART_WORK = 4

function widthOf(character: number): number {
  return character > 0xffff ? 2 : 1
}
