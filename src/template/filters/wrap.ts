import { characterCount, sliceCharacters } from '../text.ts'

const wordBefore = /[\p{L}\p{N}_!"'&.,?]/u
const wordAfter = /[\p{L}\p{N}_]/u
const letter = /[\p{L}_]/u
const blanks = '\t\n\v\f\r '

/** Breaks one line into lines of at most `width` characters, as Python's `textwrap` does with its defaults. */
export function wrap(text: string, width: number, breakLong: boolean, breakHyphens: boolean): string[] {
  const chunks = (breakHyphens ? splitWords(text).flatMap(splitHyphens) : splitWords(text)).reverse()
  const lines: string[] = []
  while (chunks.length > 0) {
    if (lines.length > 0 && isBlank(chunks.at(-1))) chunks.pop()
    const line: string[] = []
    let length = 0
    for (let next = chunks.at(-1); next !== undefined; next = chunks.at(-1)) {
      const size = characterCount(next)
      if (length + size > width) break
      line.push(next)
      length += size
      chunks.pop()
    }
    const long = chunks.at(-1)
    if (long !== undefined && characterCount(long) > width) {
      if (breakLong) {
        const end = cutAt(long, width - length, breakHyphens)
        line.push(sliceCharacters(long, 0, end))
        chunks[chunks.length - 1] = sliceCharacters(long, end)
      } else if (line.length === 0) {
        line.push(long)
        chunks.pop()
      }
    }
    if (isBlank(line.at(-1))) line.pop()
    if (line.length > 0) lines.push(line.join(''))
  }
  return lines
}

function cutAt(word: string, space: number, breakHyphens: boolean): number {
  if (!breakHyphens) return space
  const head = sliceCharacters(word, 0, space)
  const hyphen = head.lastIndexOf('-')
  const usable = hyphen > 0 && /[^-]/.test(head.slice(0, hyphen))
  return usable ? characterCount(head.slice(0, hyphen)) + 1 : space
}

function isBlank(chunk: string | undefined): boolean {
  return chunk !== undefined && Array.from(chunk).every((character) => blanks.includes(character))
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
