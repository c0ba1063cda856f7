/** Waiting for facts instead of for time. */

/** Resolves with the first value that is neither undefined nor false; rejects when there is none within the time. */
export async function waitFor<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  timeoutMs = 120_000,
): Promise<T> {
  const begun = performance.now()
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== false) return found
    const waited = performance.now() - begun
    if (waited > timeoutMs) throw new Error(`waited ${timeoutMs} ms in vain for: ${what}`)
    // Whoever has waited for long may wait a little longer, and does not keep the machine from what is waited for.
    await new Promise((resolve) => setTimeout(resolve, Math.min(50, Math.max(5, waited / 10))))
  }
}
