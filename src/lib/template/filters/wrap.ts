import { charactersOf } from '../text.ts'

const wordBefore = /[\p{L}\p{N}_!"'&.,?]/u
const wordAfter = /[\p{L}\p{N}_]/u
const letter = /[\p{L}_]/u
const blanks = '\t\n\v\f\r '

/** A run of blanks, or a word or breakable part of one; what is before `from` is on an earlier line already. */
interface Chunk {
  characters: readonly string[]
  from: number
}

const sizeOf = (chunk: Chunk): number => chunk.characters.length - chunk.from

const isBlank = (chunk: Chunk | undefined): boolean => blanks.includes(chunk?.characters[chunk.from] ?? '-')

const textOf = ({ characters, from }: Chunk, end?: number): string => characters.slice(from, end).join('')

/** Breaks one line into lines of at most `width` characters, as Python's `textwrap` does with its defaults. */
export function wrap(text: string, width: number, breakLong: boolean, breakHyphens: boolean): string[] {
  const words = splitWords(text)
  const chunks = (breakHyphens ? words.flatMap(splitHyphens) : words)
    .map((word): Chunk => ({ characters: charactersOf(word), from: 0 }))
    .reverse()
  const lines: string[] = []
  while (chunks.length > 0) {
    if (lines.length > 0 && isBlank(chunks.at(-1))) chunks.pop()
    const line: Chunk[] = []
    let tail: string | undefined
    let length = 0
    for (let next = chunks.at(-1); next !== undefined; next = chunks.at(-1)) {
      const size = sizeOf(next)
      if (length + size > width) break
      line.push(next)
      length += size
      chunks.pop()
    }
    const long = chunks.at(-1)
    if (long !== undefined && sizeOf(long) > width) {
      if (breakLong) {
        const end = long.from + cutAt(long, width - length, breakHyphens)
        tail = textOf(long, end)
        long.from = end
      } else if (line.length === 0) {
        line.push(long)
        chunks.pop()
      }
    }
    // A cut without room for a character leaves an empty tail, and the blank before it stays, as in Python.
    if (tail === undefined && isBlank(line.at(-1))) line.pop()
    const isBlankTail = tail === undefined || (isBlank(long) && tail.trim() === '')
    const whole = line.map((chunk) => textOf(chunk)).join('') + (isBlankTail ? '' : tail)
    if (whole !== '') lines.push(whole)
  }
  return lines
}

/** How many characters of a word that is too long go on a line with `space` left: up to a hyphen if there is one. */
function cutAt({ characters, from }: Chunk, space: number, breakHyphens: boolean): number {
  if (!breakHyphens) return space
  const head = characters.slice(from, from + space)
  const hyphen = head.lastIndexOf('-')
  const usable = hyphen > 0 && head.slice(0, hyphen).some((character) => character !== '-')
  return usable ? hyphen + 1 : space
}

/** Words and the blanks between them. */
function splitWords(text: string): string[] {
  return text.match(/[\t-\r ]+|[^\t-\r ]+/g) ?? []
}

/** A word after its breakable hyphens, and around dashes of two hyphens or more. */
function splitHyphens(word: string): string[] {
  if (!word.includes('-')) return [word]
  const parts: string[] = []
  let start = 0
  for (let at = 1; at < word.length; at += 1) {
    if (word[at] !== '-') continue
    let end = at
    while (word[end] === '-') end += 1
    if (end - at >= 2) {
      if (wordBefore.test(word[at - 1] ?? '') && wordAfter.test(word[end] ?? '')) {
        if (at > start) parts.push(word.slice(start, at))
        parts.push(word.slice(at, end))
        start = end
      }
      at = end
      continue
    }
    if (breaksAfter(word, at)) {
      parts.push(word.slice(start, at + 1))
      start = at + 1
    }
  }
  if (start < word.length) parts.push(word.slice(start))
  return parts
}

function breaksAfter(word: string, hyphen: number): boolean {
  const isLetter = (at: number): boolean => letter.test(word[at] ?? '')
  const before =
    (isLetter(hyphen - 1) && isLetter(hyphen - 2)) ||
    (isLetter(hyphen - 3) && word[hyphen - 2] === '-' && wordBefore.test(word[hyphen - 1] ?? ''))
  if (!before || !isLetter(hyphen + 1)) return false
  return isLetter(hyphen + 2) || (word[hyphen + 2] === '-' && isLetter(hyphen + 3))
}
