/** Lets a few through at a time; the others wait in line, and who finds the line full is turned away. */
import { queueFull } from '../../errors.ts'

export interface Gate {
  /** @throws QUEUE_FULL, and whatever the work throws */
  pass<T>(work: () => Promise<T>): Promise<T>
}

/** @param what is waiting, for the message: `logins` */
export function createGate(what: string, maxRunning: number, maxWaiting: number): Gate {
  let running = 0
  const waiting: (() => void)[] = []
  return {
    async pass(work) {
      if (running >= maxRunning) {
        if (waiting.length >= maxWaiting) throw queueFull(what, maxWaiting)
        // Whoever leaves hands over the place, so that nobody slips in between.
        await new Promise<void>((resolve) => waiting.push(resolve))
      } else {
        running += 1
      }
      try {
        return await work()
      } finally {
        const next = waiting.shift()
        if (next === undefined) running -= 1
        else next()
      }
    },
  }
}
