/** Durations, counted by their length: little to keep, and several of them are joined by adding up. */

/** Bounds grow by a half of an octave: what is read from it is off by 19 % at most. The last one, 37 hours, holds the rest. */
const BUCKETS = 55
const PER_OCTAVE = 2

/** How many durations are in each bucket; the first one holds those of a millisecond and less. Buckets at the end may be missing. */
export type Histogram = number[]

export function addTo(histogram: Histogram, milliseconds: number): void {
  const bucket = bucketOf(milliseconds)
  while (histogram.length <= bucket) histogram.push(0)
  histogram[bucket] = (histogram[bucket] ?? 0) + 1
}

export function join(histograms: readonly Histogram[]): Histogram {
  const joined: Histogram = []
  for (const histogram of histograms) {
    for (const [bucket, count] of histogram.entries()) joined[bucket] = (joined[bucket] ?? 0) + count
  }
  return joined
}

/**
 * How long so many took at most, in milliseconds: between the bounds of the bucket that the last of them is in.
 *
 * @param share of all, 0.95 for 95 of 100
 * @returns undefined when there are none
 */
export function quantile(histogram: Histogram, share: number): number | undefined {
  const total = histogram.reduce((sum, count) => sum + count, 0)
  if (total === 0) return undefined
  const wanted = Math.max(1, share * total)
  let passed = 0
  for (const [bucket, count] of histogram.entries()) {
    if (count > 0 && passed + count >= wanted) {
      // They are spread over the bucket as if each were as likely.
      const within = (wanted - passed) / count
      return bucket === 0 ? 1 : 2 ** ((bucket - 1 + within) / PER_OCTAVE)
    }
    passed += count
  }
  return 2 ** ((histogram.length - 1) / PER_OCTAVE)
}

function bucketOf(milliseconds: number): number {
  if (!(milliseconds > 1)) return 0
  return Math.min(Math.ceil(Math.log2(milliseconds) * PER_OCTAVE), BUCKETS - 1)
}
