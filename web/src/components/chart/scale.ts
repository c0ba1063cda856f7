/** Where things are drawn in a plot: scales, marks on the axes, paths. Nothing here knows of a document. */

export interface Scale {
  /** The upper end; the lower one is 0. */
  max: number
  /** From 0 to the upper end. */
  ticks: readonly number[]
}

/**
 * A scale with marks at round numbers, that holds the highest value.
 *
 * @param highest of the values; whatever is no number above 0 makes a scale to 1
 * @param isWhole marks are at whole numbers only
 */
export function valueScale(highest: number, isWhole = false, maxTicks = 4): Scale {
  const wanted = Number.isFinite(highest) && highest > 0 ? highest : 1
  const rough = wanted / maxTicks
  const power = 10 ** Math.floor(Math.log10(rough))
  const factor = [1, 2, 5, 10].find((each) => each * power >= rough * (1 - 1e-9)) ?? 10
  const step = isWhole ? Math.max(1, Math.round(factor * power)) : factor * power
  const count = Math.max(1, Math.ceil(wanted / step - 1e-9))
  // Each by itself, so that rounding does not add up.
  const ticks = Array.from({ length: count + 1 }, (_, i) => Number((i * step).toPrecision(12)))
  return { max: ticks.at(-1) ?? 1, ticks }
}

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
const timeSteps = [
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE_MS),
  ...[1, 2, 3, 6, 12].map((hours) => hours * HOUR_MS),
  DAY_MS,
]

/**
 * Times for marks: full hours and the like, by the clock on the wall.
 *
 * @param from milliseconds since the epoch, as all times here
 * @param offset of the time zone, in milliseconds to be added to UTC
 */
export function timeTicks(from: number, to: number, offset: number, maxTicks = 6): number[] {
  const step =
    timeSteps.find((each) => (to - from) / each <= maxTicks) ?? DAY_MS * Math.ceil((to - from) / DAY_MS / maxTicks)
  const ticks: number[] = []
  for (let tick = Math.ceil((from + offset) / step) * step - offset; tick <= to; tick += step) ticks.push(tick)
  return ticks
}

export interface Point {
  x: number
  y: number
}

/** A line through points; it is broken where there is none. A point without neighbours becomes a dot, with round ends. */
export function linePath(points: readonly (Point | undefined)[]): string {
  let path = ''
  points.forEach((point, i) => {
    if (point === undefined) return
    const at = `${rounded(point.x)} ${rounded(point.y)}`
    const follows = points[i - 1] !== undefined
    path += follows ? `L${at}` : `M${at}`
    if (!follows && points[i + 1] === undefined) path += 'h0'
  })
  return path
}

export interface Bar {
  x: number
  width: number
  top: number
  bottom: number
}

/** All bars of one series as one path. */
export function barsPath(bars: readonly Bar[]): string {
  return bars
    .filter(({ top, bottom }) => bottom > top)
    .map(
      ({ x, width, top, bottom }) =>
        `M${rounded(x)} ${rounded(bottom)}V${rounded(top)}h${rounded(width)}V${rounded(bottom)}z`,
    )
    .join('')
}

/** Values on top of each other. @returns of each series and each of its values, where it begins and ends */
export function stack(series: readonly (readonly (number | undefined)[])[]): (readonly [from: number, to: number])[][] {
  const heights: number[] = []
  return series.map((values) =>
    values.map((value, i) => {
      const from = heights[i] ?? 0
      const to = from + (value ?? 0)
      heights[i] = to
      return [from, to] as const
    }),
  )
}

/** The index of the time that is nearest; undefined without any. @param times in ascending order */
export function nearest(times: readonly number[], time: number): number | undefined {
  let low = 0
  let high = times.length - 1
  if (high < 0) return undefined
  while (high - low > 1) {
    const middle = (low + high) >> 1
    if ((times[middle] ?? 0) <= time) low = middle
    else high = middle
  }
  return Math.abs((times[high] ?? 0) - time) < Math.abs((times[low] ?? 0) - time) ? high : low
}

/** Points of samples, with nothing where a sample is missing between two. @param stepMs between samples that follow each other */
export function withGaps<T>(
  times: readonly number[],
  stepMs: number,
  at: (index: number) => T | undefined,
): (T | undefined)[] {
  const points: (T | undefined)[] = []
  times.forEach((time, i) => {
    const before = times[i - 1]
    if (before !== undefined && time - before > stepMs * 1.5) points.push(undefined)
    points.push(at(i))
  })
  return points
}

function rounded(value: number): number {
  return Math.round(value * 10) / 10
}
