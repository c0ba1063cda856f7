/** Lists of patterns as OpenSSH has them (ssh_config(5), PATTERNS): `*`, `?`, and `!` in front of what shall not match. */

/** A negated pattern that matches decides; else one of the others has to. */
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

/** In time proportional to both lengths multiplied, whatever the pattern. */
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
