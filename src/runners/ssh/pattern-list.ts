/** OpenSSH pattern lists (ssh_config(5), PATTERNS): `*`, `?`, and a leading `!` for negation. */

/** A matching negated pattern excludes the text; otherwise at least one other pattern must match. */
export function matchesPatternList(patterns: readonly string[], text: string): boolean {
  let isMatched = false
  for (const pattern of patterns) {
    if (pattern.startsWith('!')) {
      if (matchesPattern(pattern.slice(1), text)) return false
    } else {
      isMatched ||= matchesPattern(pattern, text)
    }
  }
  return isMatched
}

/** Runs in time proportional to the product of both lengths, whatever the pattern. */
function matchesPattern(pattern: string, text: string): boolean {
  let p = 0
  let t = 0
  let star = -1
  let resume = 0
  while (t < text.length) {
    if (pattern[p] === '*') {
      star = p++
      resume = t
    } else if (p < pattern.length && (pattern[p] === '?' || pattern[p] === text[t])) {
      p++
      t++
    } else if (star !== -1) {
      p = star + 1
      t = ++resume
    } else {
      return false
    }
  }
  while (pattern[p] === '*') p++
  return p === pattern.length
}
