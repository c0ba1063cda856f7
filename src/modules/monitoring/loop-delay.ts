/** Event loop delay. */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { LoopDelay } from './types.ts'

type IntervalHistogram = ReturnType<typeof monitorEventLoopDelay>

/** Interval of samples. Each sample includes it. */
const RESOLUTION_MS = 20
const WINDOW_MS = 10_000
const NO_DELAY: LoopDelay = { mean: 0, p99: 0, max: 0 }

export interface LoopDelayWatch {
  start(): void
  /** Delay in the last complete window and the current one. */
  read(): LoopDelay
  stop(): void
}

export function watchLoopDelay(): LoopDelayWatch {
  // Not before the start: one that was never enabled keeps the process alive.
  let histogram: IntervalHistogram | undefined
  let last = NO_DELAY
  let rotation: NodeJS.Timeout | undefined
  return {
    start() {
      histogram ??= monitorEventLoopDelay({ resolution: RESOLUTION_MS })
      histogram.enable()
      rotation ??= setInterval(() => {
        last = delaysOf(histogram)
        histogram?.reset()
      }, WINDOW_MS).unref()
    },
    read() {
      const present = delaysOf(histogram)
      return {
        mean: Math.max(last.mean, present.mean),
        p99: Math.max(last.p99, present.p99),
        max: Math.max(last.max, present.max),
      }
    },
    stop() {
      clearInterval(rotation)
      rotation = undefined
      histogram?.disable()
    },
  }
}

function delaysOf(histogram: IntervalHistogram | undefined): LoopDelay {
  // Without samples the histogram returns its bounds and no mean.
  if (histogram === undefined || histogram.count === 0) return NO_DELAY
  return {
    mean: delayOf(histogram.mean),
    p99: delayOf(histogram.percentile(99)),
    max: delayOf(histogram.max),
  }
}

const delayOf = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS)
