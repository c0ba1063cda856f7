/** Longer words are not compared. */
const MAX_LENGTH = 100

/** Insertions, deletions, replacements and swaps of neighbors that turn one text into the other. */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (last[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      let best = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, replaced)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        best = Math.min(best, (beforeLast[j - 2] ?? 0) + 1)
      }
      row.push(best)
    }
    beforeLast = last
    last = row
  }
  return last[b.length] ?? 0
}

/**
 * The candidates with the smallest edit distance to `word`, in their order. Upper and lower case are equal.
 *
 * @param maxDistance candidates further away are left out
 */
export function closestWords(word: string, candidates: Iterable<string>, maxDistance: number): string[] {
  if (word.length > MAX_LENGTH) return []
  const lower = word.toLowerCase()
  let closest: string[] = []
  let smallest = maxDistance
  for (const candidate of candidates) {
    if (candidate.length > MAX_LENGTH) continue
    const distance = editDistance(lower, candidate.toLowerCase())
    if (distance > smallest) continue
    if (distance < smallest) closest = []
    smallest = distance
    closest.push(candidate)
  }
  return closest
}
