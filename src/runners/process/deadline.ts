/** Timers that may be further away than a timer of Node can be set. */

/** Above this Node fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** Calls once after the given time, whatever its length; the answer takes it back. */
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
