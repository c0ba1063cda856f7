/** Work that must not overlap with other work about the same thing. */

export type InTurn = <T>(name: string, work: () => Promise<T>) => Promise<T>

/** Runs work of the same name one after the other, in the order of the calls, whatever becomes of each. */
export function createTurns(): InTurn {
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
