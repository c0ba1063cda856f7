/** Notices traces that grow fast, and those that svc has cut because their rules start each other. */
import type { Bus } from '../../bus/index.ts'
import { Lru } from '../../lib/cache/index.ts'
import type { Log } from '../../lib/log/index.ts'
import { formatMicros } from '../../core/time.ts'
import type { CutTrace, GrowingTrace } from './types.ts'

/** Members that a trace may get in a minute. */
const MAX_MEMBERS = 1000
/** Slices of the minute. */
const SLICES = 6
const SLICE_MICROS = 10_000_000
/** Traces whose members are counted; a trace that grows is never the one that had none for the longest time. */
const MAX_COUNTED = 10_000
/** Growing traces that are remembered. */
const MAX_GROWING = 100
/** For which a trace that has grown is shown, and after which the log tells again. */
const SHOWN_MICROS = 600_000_000

/** For which a trace that was cut is shown. */
const CUT_SHOWN_MICROS = 86_400_000_000

interface Count {
  /** Members in each slice of the last minute, as a ring. */
  members: number[]
  /** Number of the last slice since the epoch. */
  slice: number
}

export interface TraceGrowth {
  /** The traces that have grown fast within the last ten minutes, oldest first. */
  growing(): GrowingTrace[]
  /** The traces whose chain of rules was cut within the last 24 hours, oldest first. */
  cut(): CutTrace[]
  stop(): void
}

/** @param now microseconds since the epoch */
export function watchTraceGrowth({ bus, log, now }: { bus: Bus; log: Log; now: () => number }): TraceGrowth {
  const counts = new Lru<string, Count>(MAX_COUNTED)
  const growing = new Map<string, { members: number; at: number; loggedAt: number }>()
  const cuts = new Map<string, { rule: string; at: number }>()

  const stop = bus.subscribe('trace.grown', ({ id }) => {
    const at = now()
    const members = count(id, Math.floor(at / SLICE_MICROS))
    if (members <= MAX_MEMBERS) return
    const before = growing.get(id)
    const isNews = before === undefined || at - before.loggedAt >= SHOWN_MICROS
    growing.delete(id)
    growing.set(id, { members, at, loggedAt: isNews ? at : before.loggedAt })
    const [oldest] = growing.keys()
    if (growing.size > MAX_GROWING && oldest !== undefined) growing.delete(oldest)
    if (isNews) {
      log.warning(
        'trace.growing',
        `Trace ${id} has grown by more than ${MAX_MEMBERS} members within a minute. Look at it with "svc trace get ${id}". If rules start each other, disable one of them with "svc rule disable".`,
        { trace_id: id },
      )
    }
  })

  const stopCuts = bus.subscribe('trace.cut', ({ id, rule, depth }) => {
    const isNews = !cuts.has(id)
    cuts.delete(id)
    cuts.set(id, { rule, at: now() })
    const [oldest] = cuts.keys()
    if (cuts.size > MAX_GROWING && oldest !== undefined) cuts.delete(oldest)
    if (isNews) {
      log.warning(
        'trace.cut',
        `Rules start each other: svc cut trace ${id} at rule "${rule}", number ${depth} in the chain. Look at it with "svc trace get ${id}", and change the criteria of the rule or disable it with "svc rule disable ${rule}".`,
        { trace_id: id, rule },
      )
    }
  })

  /** Adds a member. @returns those of the last minute */
  function count(id: string, slice: number): number {
    const known = counts.get(id)
    const counted = known ?? { members: Array.from({ length: SLICES }, () => 0), slice }
    if (known === undefined) counts.set(id, counted)
    const { members } = counted
    // All of them after a minute, or if the clock was set back.
    const passed = slice < counted.slice ? SLICES : Math.min(SLICES, slice - counted.slice)
    for (let n = 0; n < passed; n++) members[(slice - n) % SLICES] = 0
    counted.slice = slice
    members[slice % SLICES] = (members[slice % SLICES] ?? 0) + 1
    return members.reduce((sum, one) => sum + one, 0)
  }

  return {
    growing() {
      const since = now() - SHOWN_MICROS
      return [...growing].flatMap(([id, { members, at }]) =>
        at < since ? [] : [{ id, members, last_timestamp: formatMicros(at) }],
      )
    },
    cut() {
      const since = now() - CUT_SHOWN_MICROS
      return [...cuts].flatMap(([id, { rule, at }]) =>
        at < since ? [] : [{ id, rule, last_timestamp: formatMicros(at) }],
      )
    },
    stop() {
      stop()
      stopCuts()
    },
  }
}
