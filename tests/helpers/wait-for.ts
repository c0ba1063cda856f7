import { setTimeout } from 'node:timers/promises'

/** Resolves with the first value that is not undefined or false; rejects with `what` when none comes in time. */
export async function waitFor<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  limitMs = 5000,
): Promise<T> {
  const end = performance.now() + limitMs
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== false) return found
    if (performance.now() > end) throw new Error(`Waited ${limitMs} ms in vain for ${what}`)
    await setTimeout(5)
  }
}
