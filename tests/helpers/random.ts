/** Random choices that can be repeated: set `SVC_TEST_SEED` to the number that the title of a failed test shows. */

export interface Random {
  /** 0 or more, less than `limit`; a whole number. */
  below(limit: number): number
  pick<T>(choices: readonly [T, ...T[]]): T
  /** True once in `n` times on average. */
  once(n: number): boolean
}

export function seedOfRun(): number {
  const given = process.env['SVC_TEST_SEED']
  if (given === undefined) return Math.floor(Math.random() * 0x7fff_ffff)
  if (!/^\d{1,10}$/.test(given)) throw new Error(`SVC_TEST_SEED must be a whole number, not "${given}"`)
  return Number(given)
}

/** Mulberry32: 32 bits of state, more than good enough to choose when to kill a server. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000
  }
  const below = (limit: number): number => Math.floor(next() * limit)
  return {
    below,
    pick: (choices) => choices[below(choices.length)] ?? choices[0],
    once: (n) => below(n) === 0,
  }
}
