/** Waiting for facts instead of for time. */

/** Resolves with the first value that is neither undefined nor false; rejects when there is none within the time. */
export async function waitFor<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  timeoutMs = 30_000,
): Promise<T> {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== false) return found
    if (performance.now() > deadline) throw new Error(`waited ${timeoutMs} ms in vain for: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
