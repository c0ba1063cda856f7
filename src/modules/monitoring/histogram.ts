/** Histogram of durations: small, and merged by addition. */

/** Bucket bounds grow by the factor √2, so quantiles are off by at most 19 %. The last bucket starts at 37 hours. */
const BUCKETS = 55
const PER_OCTAVE = 2

/** Durations per bucket. The first bucket is up to 1 ms. Empty buckets at the end can be missing. */
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
 * The quantile in milliseconds, interpolated within its bucket.
 *
 * @param share 0.95 for p95
 * @returns undefined if there are no durations
 */
export function quantile(histogram: Histogram, share: number): number | undefined {
  const total = histogram.reduce((sum, count) => sum + count, 0)
  if (total === 0) return undefined
  const wanted = Math.max(1, share * total)
  let passed = 0
  for (const [bucket, count] of histogram.entries()) {
    if (count > 0 && passed + count >= wanted) {
      // Interpolates linearly within the bucket.
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
