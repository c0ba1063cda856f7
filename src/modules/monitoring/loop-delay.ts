/** Event loop delay. */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { LoopDelay } from './types.ts'

/** Interval of samples. Each sample includes it. */
const RESOLUTION_MS = 20
const WINDOW_MS = 10_000

export interface LoopDelayWatch {
  start(): void
  /** Delay in the last complete window and the current one. */
  read(): LoopDelay
  stop(): void
}

export function watchLoopDelay(): LoopDelayWatch {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  let last: LoopDelay = { mean: 0, p99: 0, max: 0 }
  let rotation: NodeJS.Timeout | undefined
  return {
    start() {
      histogram.enable()
      rotation ??= setInterval(() => {
        last = delaysOf(histogram)
        histogram.reset()
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
      histogram.disable()
    },
  }
}

function delaysOf(histogram: ReturnType<typeof monitorEventLoopDelay>): LoopDelay {
  // Without samples the histogram returns its bounds and no mean.
  if (histogram.count === 0) return { mean: 0, p99: 0, max: 0 }
  return {
    mean: delayOf(histogram.mean),
    p99: delayOf(histogram.percentile(99)),
    max: delayOf(histogram.max),
  }
}

const delayOf = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS)
