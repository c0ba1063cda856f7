/** Ends a turn of the event loop during long work. */
import { setImmediate } from 'node:timers/promises'

const MS_PER_TURN = 5

/** Returns a function to await between two pieces of work. It lets others work once the turn has lasted 5 ms. */
export function createPause(): () => Promise<void> {
  let since = performance.now()
  return async () => {
    if (performance.now() - since < MS_PER_TURN) return
    await setImmediate()
    since = performance.now()
  }
}
