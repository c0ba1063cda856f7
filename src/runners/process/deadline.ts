/** Timers beyond the longest delay of a Node timer. */
import { LONGEST_TIMER_MS } from '../../core/clock.ts'

/** Calls back once after the given time, however long; the returned function cancels it. */
export function onDeadline(afterMs: number, callback: () => void): () => void {
  const end = performance.now() + afterMs
  let timer: NodeJS.Timeout
  const arm = (): void => {
    const left = end - performance.now()
    timer = left > LONGEST_TIMER_MS ? setTimeout(arm, LONGEST_TIMER_MS) : setTimeout(callback, Math.max(left, 0))
  }
  arm()
  return () => clearTimeout(timer)
}
