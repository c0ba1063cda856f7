/** A mutex for each key. */

export type KeyedLock = <T>(name: string, work: () => Promise<T>) => Promise<T>

/** Work under one key runs one at a time, in the order of the calls. A failure does not stop the next. */
export function createKeyedLock(): KeyedLock {
  const last = new Map<string, Promise<unknown>>()
  return async (name, work) => {
    const before = last.get(name)
    const mine = before === undefined ? work() : before.then(work, work)
    last.set(name, mine)
    try {
      return await mine
    } finally {
      if (last.get(name) === mine) last.delete(name)
    }
  }
}
