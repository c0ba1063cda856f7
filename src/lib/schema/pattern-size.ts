/**
 * Largest compiled size of a regular expression: each instruction costs microseconds and about 100 bytes to compile.
 */
export const MAX_PATTERN_INSTRUCTIONS = 20_000

const counted = /\{(\d{1,5})(,(\d{0,5}))?\}/y
const groupKind = /\(\?(?:P?<\w*>|[a-zA-Z-]*:?)/y
const escaped = /\\(?:[pPx]\{[^}]*\}|[\s\S])?/y
const quoted = /\\Q([\s\S]*?)(?:\\E|$)|\\[\s\S]/g
const inBrackets = /\[\^?\]?(?:\\[\s\S]|\[:\^?\w*:\]|[^\]\\])*\]?/y

/**
 * Estimates the number of instructions of a pattern (RE2 syntax) without compiling it. Counted repetitions are
 * unrolled: `x{1000}` is a thousand instructions, so a few characters can ask for any amount of memory.
 */
export function patternSize(written: string): number {
  const pattern = written.replace(quoted, (whole, text?: string) =>
    text === undefined ? whole : 'x'.repeat(text.length),
  )
  let total = 0
  let last = 0
  let classes = 0
  const groups: number[] = []
  for (let at = 0; at < pattern.length; at += 1) {
    switch (pattern[at]) {
      case '(':
        groupKind.lastIndex = at
        at += (groupKind.exec(pattern)?.[0].length ?? 1) - 1
        groups.push(total)
        total = 2
        last = 0
        break
      case ')':
        last = total
        total += groups.pop() ?? 0
        break
      case '{': {
        counted.lastIndex = at
        const [whole, minimum = '', , maximum = ''] = counted.exec(pattern) ?? []
        if (whole === undefined) {
          last = 1
        } else {
          last *= Math.max(1, Number(minimum), Number(maximum)) - 1
          at += whole.length - 1
        }
        total += last
        break
      }
      default: {
        const atom = pattern[at] === '\\' ? escaped : pattern[at] === '[' ? inBrackets : undefined
        if (atom !== undefined) {
          atom.lastIndex = at
          const text = atom.exec(pattern)?.[0] ?? ''
          classes += classSize(text)
          at += Math.max(0, text.length - 1)
        }
        last = 1
        total += 1
      }
    }
  }
  return groups.reduce((sum, size) => sum + size, total) + classes
}

const unicodeClass = /\\[pP]/g
const range = /(?:\\x\{([0-9a-fA-F]{1,6})\}|\\x[0-9a-fA-F]{2}|\\.|[^\\])-(?:\\x\{([0-9a-fA-F]{1,6})\}|\\.|([^\\\]]))/gu

/**
 * What reading a class costs, however often it is repeated: Unicode classes are lists of hundreds of ranges, and without
 * case each character of a range is looked up.
 */
function classSize(text: string): number {
  if (text.length < 2) return 0
  let size = (text.match(unicodeClass)?.length ?? 0) * SIZE_OF_UNICODE_CLASS
  for (const [, from = '0', to, end] of text.matchAll(range)) {
    const last = to === undefined ? (end?.codePointAt(0) ?? 0) : Number.parseInt(to, 16)
    size += Math.max(0, Math.floor((last - Number.parseInt(from, 16)) / CHARACTERS_PER_INSTRUCTION))
  }
  return size
}

const SIZE_OF_UNICODE_CLASS = 50
const CHARACTERS_PER_INSTRUCTION = 350
