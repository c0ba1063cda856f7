/** Lets a few through at a time; the others wait in line, and who finds the line full is turned away. */
import { queueFull } from '../../core/errors.ts'

export interface Gate {
  /** @throws QUEUE_FULL, and errors of the work */
  pass<T>(work: () => Promise<T>): Promise<T>
}

/**
 * @param what plural noun of the waiting work, for the message: `logins`
 * @param maxWaitMs after which who still waits is turned away, too: those in front wait for something that does not come
 */
export function createGate(what: string, maxRunning: number, maxWaiting: number, maxWaitMs: number): Gate {
  let running = 0
  const waiting = new Set<() => void>()

  /** A finished call passes its slot to the next waiter, so that no later call overtakes it. */
  function wait(): Promise<void> {
    return new Promise((resolve, reject) => {
      const begin = (): void => {
        clearTimeout(timer)
        waiting.delete(begin)
        resolve()
      }
      const timer = setTimeout(() => {
        waiting.delete(begin)
        reject(queueFull(what, maxWaiting))
      }, maxWaitMs)
      timer.unref()
      waiting.add(begin)
    })
  }

  return {
    async pass(work) {
      if (running >= maxRunning) {
        if (waiting.size >= maxWaiting) throw queueFull(what, maxWaiting)
        await wait()
      } else {
        running += 1
      }
      try {
        return await work()
      } finally {
        const [next] = waiting
        if (next === undefined) running -= 1
        else next()
      }
    },
  }
}
